# SPDX-License-Identifier: Apache-2.0
# builds: actors/examples/kv/kv
"""The key-value example beside redis-server, both driven by redis-benchmark in turn, round after round.

usage: bench_node.py BUILD [--seconds N] [--out DIR] [--requests N]

Each server runs alone while it is measured; the others are stopped (SIGSTOP), so they cost nothing. CPU is what the
server's process used (user and system) per million requests. Ratios are drawn between medians of the same run.
"""

import argparse
import csv
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/end_to_end"))
from node import Node  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class RedisServer:
    def __init__(self, work, *arguments):
        self.port_number = free_port()
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port_number), "--bind", "127.0.0.1", "--save", "", "--dir", work,
             "--daemonize", "no", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port_number)) == 0:
                    return
            time.sleep(0.05)
        raise SystemExit("redis-server did not start")

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait()


class LockstepServer:
    def __init__(self, kv, work, durability):
        self.node = Node(kv, work, "--resp", "127.0.0.1:0", "--durability", durability)
        self.process, self.port_number = self.node.process, self.node.port("resp")

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        self.node.stop()


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measure(server, test, pipeline, requests):
    """Requests per second as redis-benchmark counts them, and the server's CPU seconds per million."""
    server.process.send_signal(signal.SIGCONT)
    before = cpu_seconds(server.process.pid)
    done = subprocess.run(["redis-benchmark", "-p", str(server.port_number), "-t", test, "-n", str(requests), "-P",
                           str(pipeline), "-c", "50", "-r", "100000", "-q"], stdout=subprocess.PIPE, text=True, timeout=300)
    used = cpu_seconds(server.process.pid) - before
    server.process.send_signal(signal.SIGSTOP)
    rate = re.findall(r"([\d.]+) requests per second", done.stdout.replace("\r", "\n"))
    if done.returncode != 0 or not rate:
        raise SystemExit(f"redis-benchmark failed against port {server.port_number}:\n{done.stdout}")
    return float(rate[-1]), used * 1e6 / requests


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="build directory with the programs")
    parser.add_argument("--seconds", type=float, default=120, help="bound on the whole run")
    parser.add_argument("--requests", type=int, default=200_000, help="of one sample")
    parser.add_argument("--out", metavar="DIR", help="write the figures into this directory")
    options = parser.parse_args()
    deadline = time.monotonic() + options.seconds
    kv = os.path.join(options.build, "actors/examples/kv/kv")

    with tempfile.TemporaryDirectory() as work:
        for name in ("none", "always", "everysec", "kv-none", "kv-fsync"):
            os.mkdir(f"{work}/{name}")
        servers = {
            "redis, no persistence": RedisServer(f"{work}/none", "--appendonly", "no"),
            "lockstep, durability none": LockstepServer(kv, f"{work}/kv-none", "none"),
            "redis, appendfsync always": RedisServer(f"{work}/always", "--appendonly", "yes", "--appendfsync", "always"),
            "lockstep, durability fsync": LockstepServer(kv, f"{work}/kv-fsync", "fsync"),
            "redis, appendfsync everysec": RedisServer(f"{work}/everysec", "--appendonly", "yes", "--appendfsync",
                                                       "everysec"),
        }
        for server in servers.values():
            server.process.send_signal(signal.SIGSTOP)
        samples = {}
        cases = [(test, pipeline) for pipeline in (16, 1, 64) for test in ("set", "get")]
        rounds = 0
        try:
            while time.monotonic() < deadline:
                for test, pipeline in cases:
                    for name, server in servers.items():
                        if time.monotonic() > deadline:
                            break
                        count = options.requests if pipeline > 1 else options.requests // 10
                        samples.setdefault((test, pipeline, name), []).append(measure(server, test, pipeline, count))
                rounds += 1
        finally:
            for server in servers.values():
                server.end()
        report(samples, cases, servers, options.out, rounds)


def report(samples, cases, servers, directory, rounds):
    rows = []
    print(f"kv beside redis-server, redis-benchmark -c 50 -r 100000, {rounds} whole rounds; rates in requests/s")
    for test, pipeline in cases:
        print(f"\n{test.upper()}, pipeline {pipeline}")
        print(f"{'':32}{'median':>12}{'best':>12}{'CPU s/million':>16}{'samples':>9}")
        for name in servers:
            taken = samples.get((test, pipeline, name), [])
            if not taken:
                print(f"{name:32}{'not run: the time was up':>24}")
                continue
            rates, cpu = [rate for rate, _ in taken], [used for _, used in taken]
            row = (name, test, pipeline, statistics.median(rates), max(rates), statistics.median(cpu), len(taken))
            rows.append(row)
            print(f"{name:32}{row[3]:>12,.0f}{row[4]:>12,.0f}{row[5]:>16.2f}{row[6]:>9}")
    medians = {(row[0], row[1], row[2]): row[3] for row in rows}
    print()
    for ours, theirs, goal in (("lockstep, durability none", "redis, no persistence", 1.0),
                               ("lockstep, durability fsync", "redis, appendfsync always", 1.5)):
        for test in ("set", "get"):
            pair = [medians.get((side, test, 16)) for side in (ours, theirs)]
            if None not in pair:
                ratio = pair[0] / pair[1]
                print(f"{test.upper()} pipeline 16, {ours} / {theirs}: {ratio:.2f}x"
                      + (f" (goal {goal}x: {'met' if ratio >= goal else 'not met'})" if test == "set" else ""))
    if directory:
        os.makedirs(directory, exist_ok=True)
        with open(f"{directory}/node.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["server", "test", "pipeline", "median_per_s", "best_per_s", "cpu_s_per_million", "samples"])
            writer.writerows(rows)


main()
