# SPDX-License-Identifier: Apache-2.0
"""A message that crashes its program: after the second crash the node halts before it, stays up, answers queries and
refuses requests; a skip passes over it, in the node as in every replay. An endless handler goes the same way.
usage: poison_test.py POISON LOCKSTEP"""

import json
import signal
import subprocess
import sys
import tempfile
import urllib.request

from node import Node, Redis, run

poison, lockstep = sys.argv[1:]


def serve(data):
    return Node(poison, data, "--resp", "127.0.0.1:0", "--config", config)


def status(node):
    with urllib.request.urlopen(f"http://127.0.0.1:{node.port('admin')}/status", timeout=10) as page:
        return json.load(page)


def total(node):
    return int(run(poison, "total", "127.0.0.1", str(node.port("listen"))))


def crashing_start(data, expected):
    """A start that dies while it executes history again."""
    command = [poison, "serve", "--data", data, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--config", config]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == -expected, f"exit {done.returncode}:\n{done.stderr}"


def meet_poison(data, value, expected):
    """Sends good values and the poison; the sequence number of the poison."""
    with serve(data) as node:
        redis = Redis(node.port("resp"))
        assert [redis.ask("ADD", i) for i in (1, 2, 3)] == [1, 3, 6]
        redis.send(Redis.encode("ADD", value) + Redis.encode("ADD", 10))
        node.process.wait(timeout=60)
        assert node.process.returncode == -expected, f"exit {node.process.returncode}:\n{node.log_text()}"
    dump = run(lockstep, "journal", "dump", data, "--json")
    return next(json.loads(line)["seq"] for line in dump.splitlines()
                if json.loads(line).get("body", {}).get("value") == value)


def check(work, value, expected):
    data = f"{work}/{value}"
    seq = meet_poison(data, value, expected)
    crashing_start(data, expected)

    with serve(data) as node:  # the third start halts instead
        assert status(node)["halted"] == {"before_seq": seq, "deaths": 2}, status(node)
        assert f"lockstep skip {seq} --data {data}" in node.log_text(), node.log_text()
        assert total(node) == 6
        refused = Redis(node.port("resp")).ask("ADD", 1)
        assert isinstance(refused, RuntimeError) and "halted" in str(refused), refused
        node.stop()
    with serve(data) as node:  # and so does the fourth
        assert status(node)["halted"]["before_seq"] == seq
        assert total(node) == 6
        run(lockstep, "skip", str(seq), "--data", data, status=7)  # the node holds the directory
        node.stop()

    run(lockstep, "skip", str(seq + 100), "--data", data, status=2)
    run(lockstep, "skip", str(seq - 1), "--data", data, status=2)  # executed, and answered
    order = json.loads(run(lockstep, "skip", str(seq), "--data", data, "--json"))
    assert order["schema"] == "lockstep.skip/1" and order["skipped_seq"] == seq < order["order_seq"], order
    run(lockstep, "skip", str(seq), "--data", data, status=2)  # once is enough

    with serve(data) as node:
        assert "halted" not in status(node)
        redis = Redis(node.port("resp"))
        assert redis.ask("ADD", 4) in (10, 20)  # whether the 10 behind the poison was journaled in time is open
        whole = total(node)
        node.stop()
    for executors in ("1", "3"):
        verdict = json.loads(run(poison, "replay", "verify", "--data", data, "--executors", executors, "--json"))
        assert verdict["verdict"] == "equal" and verdict["traps"] == 1, verdict
    with serve(data) as node:
        assert total(node) == whole
        run(lockstep, "skip", "2", "--data", data, status=7)
        node.stop()
    run(lockstep, "skip", "2", "--data", data, status=2)  # executed long ago


with tempfile.TemporaryDirectory() as work:
    config = work + "/node.toml"
    with open(config, "w") as file:
        file.write("[threads]\nhandler_timeout_ms = 400\nlayout = 'dedicated'\nexecutors = 2\n")
    check(work, 666, signal.SIGSEGV)
    check(work, 667, signal.SIGABRT)
    print("poison met, halted before, and passed over")
