# SPDX-License-Identifier: Apache-2.0
"""A disk that is full: the node holds its clients back, stays alive, answers queries, and goes on when there is space;
it starts on a full disk too. Needs root, to mount a small tmpfs. usage: full_disk_test.py POISON (any adder will do)"""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from node import Node, Redis, run

program = sys.argv[1]
skipped = 77  # Meson's word for a test that could not run here
batch = b"".join(Redis.encode("ADD", 1) for _ in range(64))


@contextlib.contextmanager
def small_disk(megabytes):
    with tempfile.TemporaryDirectory() as mount:
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "lockstep-test",
                                                mount], stderr=subprocess.DEVNULL).returncode != 0:
            print("cannot mount a tmpfs here")
            sys.exit(skipped)
        try:
            yield mount
        finally:
            subprocess.run(["umount", mount], check=True)


def fill(path):
    """Takes all that is left."""
    with open(path, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1 << 16))


def status(node):
    with urllib.request.urlopen(f"http://127.0.0.1:{node.port('admin')}/status", timeout=10) as page:
        return json.load(page)


def total(node):
    return int(run(program, "total", "127.0.0.1", str(node.port("listen"))))


def add_until_held(redis):
    """Adds ones until no answer comes for two seconds; how many were answered, and how many are still out."""
    redis.socket.settimeout(2)
    answered = 0
    while True:
        redis.send(batch)
        for i in range(64):
            try:
                answered = redis.read()
            except (socket.timeout, TimeoutError):
                return answered, 64 - i


def finish(redis, open_answers):
    """Reads what was held back; the sum it comes to."""
    redis.socket.settimeout(30)
    redis.file = redis.socket.makefile("rb")  # a file that timed out is of no use any more
    return [redis.read() for _ in range(open_answers)][-1]


with small_disk(96) as mount:
    data, filler = mount + "/data", mount + "/filler"
    config = tempfile.NamedTemporaryFile(suffix=".toml", mode="w")
    config.write("[journal]\nsegment_bytes = 16777216\n[threads]\nspin_us = 0\n")
    config.flush()
    arguments = ["--resp", "127.0.0.1:0", "--config", config.name]

    with Node(program, data, *arguments) as node:
        redis = Redis(node.port("resp"))
        assert redis.ask("ADD", 1) == 1
        time.sleep(0.5)  # for the spare segments
        fill(filler)
        answered, still_open = add_until_held(redis)
        assert answered > 1000, f"only {answered} went into segments that were ready"
        assert node.process.poll() is None and not status(node)["failed"], node.log_text()
        assert total(node) >= answered, "a query waits for the disk"
        assert status(node)["lacks_space"] and node.log_text().count("clients are held back") == 1, node.log_text()

        os.unlink(filler)
        grown = finish(redis, still_open)
        assert grown == answered + still_open, (grown, answered, still_open)
        assert redis.ask("ADD", 1) == grown + 1
        assert not status(node)["lacks_space"] and "there is space again" in node.log_text(), node.log_text()

        fill(filler)
        grown, still_open = add_until_held(redis)
        node.stop()
        told = re.search(r"(\d+) requests were not answered and (\d+) batches not written, for there is no space",
                         node.log_text())
        assert told and 0 < int(told[1]) <= still_open and int(told[2]) > 0, (still_open, node.log_text())

    with Node(program, data, *arguments) as node:  # the disk is as full as before
        kept = total(node)
        assert kept >= grown, f"{grown} were acknowledged, {kept} are there"
        redis = Redis(node.port("resp"))
        redis.socket.settimeout(1)
        redis.send(Redis.encode("ADD", 1))
        with contextlib.suppress(socket.timeout, TimeoutError):
            redis.read()  # held, or taken by a segment that had room
        assert total(node) in (kept, kept + 1)
        os.unlink(filler)
        deadline = time.monotonic() + 20
        while total(node) != kept + 1:
            assert time.monotonic() < deadline, "it did not go on when there was space"
            time.sleep(0.05)
        node.stop()
    run(program, "replay", "verify", "--data", data, "--executors", "2")
    print("held back, went on, and started on a full disk with", kept, "additions")
