# SPDX-License-Identifier: Apache-2.0
# builds: actors/examples/kv/kv bench/node/peer_load
"""The key-value example beside redis-server, nats-server (JetStream) and etcd, one node each, over TCP on loopback.

usage: bench_node.py BUILD [--seconds N] [--out DIR] [--requests N]

RESP servers are loaded by redis-benchmark, the others by bench/node/peer_load in the same way: a closed loop of 50
connections, each with a pipeline of requests in flight, 3-byte values under 100,000 keys. The servers take turns, round
after round, and each is measured alone; the others are stopped meanwhile. CPU is what the server's process used (user
and system) per million requests. Ratios are drawn between medians of the same run.
"""

import argparse
import csv
import os
import signal
import statistics
import sys
import tempfile
import time

from plots import Plots
from servers import EtcdServer, LockstepServer, NatsServer, RedisServer, give_up

PIPELINES = (1, 16, 64)
# The goals' pipeline first, so that a short run has it.
CASES = [(test, pipeline) for pipeline in (16, 1, 64) for test in ("set", "get")]

NOTES = """\
Durable when acknowledged: lockstep fsync, redis appendfsync always, etcd. In the kernel: lockstep write. Written later:
lockstep none, redis everysec, nats-server (it syncs its file every two minutes). etcd is asked through its JSON gateway
over HTTP/1.1, which has no pipelining: for a pipeline of P it gets 50 x P connections, 800 at most."""


def start_servers(build, work):
    kv, peer_load = f"{build}/actors/examples/kv/kv", f"{build}/bench/node/peer_load"

    def directory(name):
        os.mkdir(f"{work}/{name}")
        return f"{work}/{name}"

    # Those that are compared by a goal stand side by side.
    makers = {
        "redis, no AOF": lambda at: RedisServer(at, "--appendonly", "no"),
        "lockstep, none": lambda at: LockstepServer(kv, at, "none"),
        "redis, AOF always": lambda at: RedisServer(at, "--appendonly", "yes", "--appendfsync", "always"),
        "lockstep, fsync": lambda at: LockstepServer(kv, at, "fsync"),
        "lockstep, write": lambda at: LockstepServer(kv, at, "write"),
        "redis, AOF everysec": lambda at: RedisServer(at, "--appendonly", "yes", "--appendfsync", "everysec"),
        "nats JetStream": lambda at: NatsServer(peer_load, at),
        "etcd": lambda at: EtcdServer(peer_load, at),
    }
    servers = {}
    try:
        for index, (name, make) in enumerate(makers.items()):
            servers[name] = make(directory(f"server-{index}"))
            servers[name].pause()
    except BaseException:
        end_servers(servers)
        raise
    return servers


def end_servers(servers):
    """All of them, also when one does not end as it should, which is then raised."""
    failure = None
    for server in servers.values():
        try:
            server.end()
        except Exception as error:
            server.kill()
            failure = failure or error
    if failure:
        raise failure


def leave(number, _frame):
    """Ends the bench by an exception, so that its servers and their data go with it."""
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


def take_rounds(servers, requests, deadline):
    """Samples by (test, pipeline, server), and the number of whole rounds."""
    samples, rounds = {}, 0
    while True:
        for test, pipeline in CASES:
            for name, server in servers.items():
                if test not in server.tests:
                    continue
                if time.monotonic() > deadline:
                    return samples, rounds
                count = requests if pipeline > 1 else requests // 10
                samples.setdefault((test, pipeline, name), []).append(server.measure(test, pipeline, count))
                server.pause()
        rounds += 1


def median(samples, field):
    return statistics.median(getattr(sample, field) for sample in samples)


def cpu_per_million(samples):
    return sum(sample.cpu_s for sample in samples) * 1e6 / sum(sample.requests for sample in samples)


def report(samples, servers, rounds, directory):
    rows = []
    print(f"kv on one node, 50 connections, closed loop, {rounds} whole rounds; medians; latencies in us\n{NOTES}")
    for test, pipeline in sorted(CASES, key=lambda case: (case[0] == "get", case[1])):
        print(f"\n{f'{test.upper()}, pipeline {pipeline}':24}{'requests/s':>12}{'best':>12}{'p50':>10}{'p99':>10}{'p99.9':>10}"
              f"{'max':>10}{'CPU s/million':>15}{'n':>4}")
        for name, server in servers.items():
            taken = samples.get((test, pipeline, name), [])
            if not taken:
                if test in server.tests:
                    print(f"{name:24}{'the time was up':>24}")
                continue
            row = [test, pipeline, name, median(taken, "rate"), max(sample.rate for sample in taken),
                   *(median(taken, field) for field in ("p50", "p99", "p999", "max")), cpu_per_million(taken), len(taken)]
            rows.append(row)
            print(f"{name:24}{row[3]:>12,.0f}{row[4]:>12,.0f}{row[5]:>10,.0f}{row[6]:>10,.0f}{row[7]:>10,.0f}{row[8]:>10,.0f}"
                  f"{row[9]:>15.2f}{row[10]:>4}")
    judge({(row[0], row[1], row[2]): row for row in rows})
    if not directory:
        return
    os.makedirs(directory, exist_ok=True)
    with open(f"{directory}/node.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["test", "pipeline", "server", "median_per_s", "best_per_s", "p50_us", "p99_us", "p99.9_us", "max_us",
                         "cpu_s_per_million", "samples"])
        writer.writerows(rows)
    write_plots(Plots(directory, "node"), samples, servers)


def judge(rows):
    print()
    for ours, theirs, goal in (("lockstep, none", "redis, no AOF", 1.0), ("lockstep, fsync", "redis, AOF always", 1.5)):
        for test in ("set", "get"):
            pair = [rows.get((test, 16, side)) for side in (ours, theirs)]
            if None in pair:
                continue
            ratio, cpu = pair[0][3] / pair[1][3], pair[0][9] / pair[1][9] if pair[1][9] else float("inf")
            goals = test == "set"
            print(f"{test.upper()}, pipeline 16, {ours} / {theirs}: {ratio:.2f}x"
                  + (f", goal {goal}x: {'reached' if ratio >= goal else 'NOT reached'}" if goals else "")
                  + f"; CPU {cpu:.2f}x"
                  + (f", goal below 1: {'reached' if cpu < 1 else 'NOT reached'}" if goals else ""))


def write_plots(plots, samples, servers):
    by_pipeline, curves = {}, {}
    for name in servers:
        points = [(pipeline, median(samples[key], "rate")) for pipeline in PIPELINES
                  if (key := ("set", pipeline, name)) in samples]
        if points:
            by_pipeline[name] = points
        taken = sorted(samples.get(("set", 16, name), []), key=lambda sample: sample.rate)
        if taken:
            curves[name] = taken[len(taken) // 2].distribution
            plots.distribution(f"{name} set pipeline 16", curves[name])
    plots.lines("rates", "SET: requests a second by pipeline", "pipeline", "requests a second", by_pipeline)
    plots.percentiles("percentiles", "SET, pipeline 16: latency of the sample with the median rate", curves)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="build directory with the programs")
    parser.add_argument("--seconds", type=float, default=240, help="bound on the whole run")
    parser.add_argument("--requests", type=int, default=200_000, help="of one sample with a pipeline")
    parser.add_argument("--out", metavar="DIR", help="write figures, distributions and plots into this directory")
    options = parser.parse_args()
    if not options.seconds > 0:
        parser.error(f"--seconds: must be a number above 0, not {options.seconds:g}")
    if options.requests < 20_000:
        give_up("--requests must be at least 20000, or a sample is shorter than the clock of CPU time is fine")
    if os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR):
        print("under a real-time scheduler the kernel's own threads starve, and with them every durable write, for up to 1 s:\n"
              "run this bench without chrt")
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, leave)
    with tempfile.TemporaryDirectory() as work:
        servers = start_servers(options.build, work)
        try:
            samples, rounds = take_rounds(servers, options.requests, time.monotonic() + options.seconds)
            for name, server in servers.items():
                if ("set", 16, name) in samples:
                    server.check()
        finally:
            end_servers(servers)
    report(samples, servers, rounds, options.out)


main()
