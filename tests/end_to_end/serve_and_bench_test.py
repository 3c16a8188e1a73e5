# SPDX-License-Identifier: Apache-2.0
"""How `serve` begins and ends when something is in its way, and what `bench` says of a load that was not all answered.
usage: serve_and_bench_test.py BANK"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from node import Node, run

bank = sys.argv[1]
anywhere = ["--listen", "127.0.0.1:0"]


def end_of(process, status, *words):
    out, errors = process.communicate(timeout=60)
    assert process.returncode == status, f"exit {process.returncode}, not {status}\n{out}\n{errors}"
    for word in words:
        assert re.search(word, out + errors), f"no '{word}' in\n{out}\n{errors}"
    return out


def start(*command):
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def config(text):
    path = work + "/node.toml"
    with open(path, "w") as file:
        file.write(text)
    return path


def bench_tells_what_was_not_sent():
    with Node(bank, work + "/stopped") as node:
        load = start(bank, "bench", "--connect", node.addresses["listen"], "--requests", "300000000")
        time.sleep(1)
        node.stop()
        end_of(load, 7, r"INCOMPLETE: of 300000000 requests [1-9]\d* were answered, .* and \d+ never sent: \S")
    end_of(start(bank, "bench", "--connect", node.addresses["listen"]), 7, "refused")


def bench_says_it_in_json():
    with Node(bank, work + "/served") as node:
        at = ["--connect", node.addresses["listen"], "--json"]
        report = json.loads(run(bank, "bench", *at, "--requests", "2000"))
        assert report["schema"] == "lockstep.bench/1" and report["requests"] == report["answered"] == 2000, report
        assert report["unsent"] == report["lost"] == 0 and report["ended_by"] == "", report
        end_of(start(bank, "bench", *at, "--rate", "nan"), 2, "rate")
        node.stop()


def a_recovery_is_stopped_at_once():
    data = work + "/long"
    no_sync = ["--durability", "none", "--executors", "1"]
    with Node(bank, data, *no_sync) as node:
        run(bank, "bench", "--connect", node.addresses["listen"], "--requests", "600000")
        node.stop()
    before = time.monotonic()
    with Node(bank, data, *no_sync) as node:
        whole = time.monotonic() - before
        node.stop()
    process = start(bank, "serve", "--data", data, *anywhere, *no_sync, "--ready-file", work + "/never-ready")
    time.sleep(whole / 4)
    process.send_signal(signal.SIGTERM)
    before = time.monotonic()
    end_of(process, 0, "stopped while recovering: .*before seq")
    assert time.monotonic() - before < whole / 2 + 0.5, (time.monotonic() - before, whole)
    assert not os.path.exists(work + "/never-ready") and not os.path.exists(work + "/never-ready.tmp")
    run(bank, "replay", "verify", "--data", data)


def what_does_not_fit_the_host_is_refused():
    data = work + "/made/too-large"
    serve = [bank, "serve", "--data", data, *anywhere]
    wide = "[threads]\nexecutors = 64\nperimeters = 64\n"
    with open("/proc/meminfo") as file:
        if int(file.readline().split()[1]) < 40 << 20:  # KiB; a larger host may have room for it
            end_of(start(*serve, "--config", config(wide)), 2, "64 executors and 64 perimeters",
                   r"[0-9.]+ GiB of memory", "fewer")
    limited = start("bash", "-c", 'ulimit -v 20000000 && exec "$@"', "limited", *serve)
    end_of(limited, 7, "64 shards", r"[0-9.]+ GiB of address space", "ulimit -v", "fewer shards")
    assert not os.path.exists(work + "/made")


def as_many_shards_as_there_may_be():
    data = work + "/shards"
    arguments = ["--config", config("[genesis]\nshards = 4096\n"), "--executors", "1"]
    with Node(bank, data, *arguments) as node:
        run(bank, "bench", "--connect", node.addresses["listen"], "--requests", "20000")
        node.stop()
    run(bank, "replay", "verify", "--data", data)


def a_ready_file_that_cannot_be_written_leaves_nothing():
    data = work + "/made/not-ready"
    for path in (work + "/no/such/directory", work):
        end_of(start(bank, "serve", "--data", data, *anywhere, "--ready-file", path), 7, "ready file", path)
    assert not os.path.exists(work + "/made") and not os.path.exists(work + ".tmp")


def addresses_are_shown_as_they_are_given():
    with Node(bank, work + "/six", listen="[::1]:0") as node:
        assert node.addresses["listen"].startswith("[::1]:"), node.addresses
        run(bank, "bench", "--connect", node.addresses["listen"], "--requests", "1000")
        node.stop()
    process = start(bank, "serve", "--data", work + "/no-admin", *anywhere, "--admin", "", "--ready-file", work + "/up")
    while not os.path.exists(work + "/up"):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    with open(work + "/up") as file:
        assert json.load(file)["admin"] == ""
    process.send_signal(signal.SIGTERM)
    end_of(process, 0, "without an admin address")


with tempfile.TemporaryDirectory() as work:
    bench_tells_what_was_not_sent()
    bench_says_it_in_json()
    a_recovery_is_stopped_at_once()
    what_does_not_fit_the_host_is_refused()
    as_many_shards_as_there_may_be()
    a_ready_file_that_cannot_be_written_leaves_nothing()
    addresses_are_shown_as_they_are_given()
