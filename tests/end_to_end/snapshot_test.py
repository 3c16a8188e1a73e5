# SPDX-License-Identifier: Apache-2.0
"""Snapshots of a live node: taken on request, named, verified, restored into directories that serve and replay."""

import glob
import json
import os
import shutil
import sys
import tempfile

from node import Node, Redis, run

kv, lockstep = sys.argv[1:3]
scratch = tempfile.mkdtemp(prefix="lockstep-snapshot-")
config = os.path.join(scratch, "node.toml")
with open(config, "w") as file:
    file.write("[snapshots]\nevery_bytes = 0\njournal_bytes = 0\n[journal]\nsegment_bytes = 16777216\n"
               "[genesis]\ncheckpoint_interval = 64\nshards = 8\n")


def load(redis, first, count):
    for i in range(first, first + count):
        assert redis.ask("SET", f"key:{i % 500}", f"value {i} " + "x" * (i % 300)) == "OK"


def take(node):
    """Asks from another process while messages go on, since an idle node reaches no checkpoint."""
    import subprocess
    asked = subprocess.Popen([lockstep, "snapshot", "take", node.addresses["admin"], "--json"], stdout=subprocess.PIPE,
                             text=True)
    redis, i = Redis(node.port("resp")), 0
    while asked.poll() is None:
        load(redis, i, 50)
        i += 50
    assert asked.returncode == 0, asked.returncode
    return json.loads(asked.stdout.read())


data = os.path.join(scratch, "data")
with Node(kv, data, "--resp", "127.0.0.1:0", "--config", config) as node:
    redis = Redis(node.port("resp"))
    load(redis, 0, 300)
    first = take(node)
    load(redis, 300, 300)
    second = take(node)
    load(redis, 600, 300)
    redis.ask("SET", "last", "word")
    expected = [redis.ask("GET", f"key:{i}") for i in range(500)]
    # An idle node reaches no checkpoint, and says so.
    run(lockstep, "snapshot", "take", node.addresses["admin"], "--timeout-ms", "300", status=5)
    node.kill()
assert second["batch"] > first["batch"]

listed = json.loads(run(lockstep, "snapshot", "list", data, "--json"))
assert [found["batch"] for found in listed["snapshots"]][:2] == [second["batch"], first["batch"]], listed
run(lockstep, "snapshot", "verify", data)
run(lockstep, "snapshot", "verify", second["file"])


def check(directory, whole):
    with Node(kv, directory, "--resp", "127.0.0.1:0", "--config", config) as node:
        redis = Redis(node.port("resp"))
        if whole:
            assert [redis.ask("GET", f"key:{i}") for i in range(500)] == expected
            assert redis.ask("GET", "last") == b"word"
        for i in range(100):  # keys that nobody expects anything of
            assert redis.ask("SET", f"after:{i}", i) == "OK"
        node.stop()


whole = json.loads(run(kv, "replay", "run", "--data", data, "--json"))
assert whole["from_batch"] == 0
check(data, True)

# From the snapshot alone, and with the journal behind it.
alone = os.path.join(scratch, "alone")
run(lockstep, "snapshot", "restore", first["file"], "--data", alone)
run(lockstep, "snapshot", "restore", first["file"], "--data", alone, status=2)
compared = json.loads(run(lockstep, "hash", "compare", data, alone, "--json"))
assert compared["verdict"] == "equal" and compared["batch"] == first["batch"], compared
check(alone, False)
check(alone, False)
replayed = json.loads(run(kv, "replay", "verify", "--data", alone, "--json"))
assert replayed["from_batch"] == first["batch"] and replayed["verdict"] == "equal", replayed

behind = os.path.join(scratch, "behind")
run(lockstep, "snapshot", "restore", second["file"], "--data", behind, "--journal", data)
compared = json.loads(run(lockstep, "hash", "compare", data, behind, "--json"))
assert compared["verdict"] == "equal" and compared["batch"] > second["batch"], compared
check(behind, True)
ends = [json.loads(run(kv, "replay", "verify", "--data", d, "--json")) for d in (data, behind)]
assert ends[0]["verdict"] == ends[1]["verdict"] == "equal", ends

# Damage: the newest is passed over, and verify says which.
with open(second["file"], "r+b") as file:
    file.seek(4096 + 600)
    byte = file.read(1)
    file.seek(4096 + 600)
    file.write(bytes([byte[0] ^ 1]))
run(lockstep, "snapshot", "verify", data, status=3)
check(data, True)
for path in glob.glob(os.path.join(data, "snap-*.snp")):
    os.unlink(path)
check(data, True)
run(lockstep, "snapshot", "list", data, status=5)
shutil.rmtree(scratch)
