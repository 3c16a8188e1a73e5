# SPDX-License-Identifier: Apache-2.0
"""The journal's tools on a real node's directory: following it live, cutting a slice that replays, dumping past damage,
repairing. usage: journal_tools_test.py BANK LOCKSTEP"""

import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import journal_reader
from node import Node, run

bank, lockstep = sys.argv[1:]
block_bytes = 4096
header_bytes = 256


def load(node, requests):
    report = json.loads(run(bank, "bench", "--connect", node.addresses["listen"], "--requests", str(requests), "--json"))
    assert report["answered"] == requests, report


def tree(directory):
    return {path: open(path, "rb").read() for path in glob.glob(directory + "/*")}


def info(directory, status=0):
    return json.loads(run(lockstep, "journal", "info", directory, "--json", status=status))


def blocks(path):
    """(offset, header) of each block of a segment, by the layout of docs/journal.md."""
    with open(path, "rb") as file:
        bytes_ = file.read()
    at = block_bytes
    while bytes_[at + 16:at + 24] == b"LKSTBLK1":
        total = int.from_bytes(bytes_[at + 80:at + 84], "little")
        yield at, {"type": bytes_[at + 26], "total": total, "index": int.from_bytes(bytes_[at + 88:at + 96], "little")}
        at += total


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x10]))


def follow_live(data):
    with Node(bank, data) as node:
        load(node, 2000)
        before = info(data)["last_seq"]
        for stop in (signal.SIGINT, signal.SIGTERM):
            command = [lockstep, "journal", "follow", data, "--last", "5", "--json"]
            follower = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            first = [json.loads(follower.stdout.readline()) for _ in range(5)]
            assert [line["seq"] for line in first] == list(range(before - 4, before + 1)), (before, first)
            load(node, 300)
            wanted = info(data)["last_seq"]
            seqs = [json.loads(follower.stdout.readline())["seq"] for _ in range(wanted - before)]
            assert seqs == list(range(before + 1, wanted + 1)), seqs[:5]
            follower.send_signal(stop)
            out, errors = follower.communicate(timeout=30)
            assert follower.returncode == 0 and out == "" and errors == "", (follower.returncode, out, errors)
            before = wanted
        run(lockstep, "journal", "verify", data)
        node.stop()


def another_language(data):
    batches = list(journal_reader.read(data))
    told = info(data)
    assert (batches[-1][0], batches[-1][1]) == (told["last_batch"], told["chain"]), (batches[-1][:2], told)
    lines = [json.loads(line) for line in run(lockstep, "journal", "dump", data, "--json").splitlines()]
    records = [(index, record["seq"], record["time_ns"]) for index, _, content in batches for record in content]
    assert records == [(line["batch"], line["seq"], line["time_ns"]) for line in lines]


def cut_and_replay(data, work):
    last = info(data)["last_seq"]
    whole = json.loads(run(bank, "replay", "run", "--data", data, "--json"))
    before = tree(data)
    out = work + "/whole"
    cut = json.loads(run(lockstep, "journal", "cut", data, "-o", out, "--json"))
    assert cut["first_seq"] == 1 and cut["last_seq"] == last, cut
    again = json.loads(run(bank, "replay", "verify", "--data", out, "--json"))
    assert (again["root"], again["chain"]) == (whole["root"], whole["chain"]), (again, whole)
    for behind, noted in ((last + 1, False), (last + 2, True)):
        command = [lockstep, "journal", "cut", data, f"1..{behind}", "-o", f"{work}/to-{behind}", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert json.loads(done.stdout)["last_seq"] == last, done.stdout
        assert (f"the journal ends at seq {last}, within the range 1..{behind}" in done.stderr) == noted, done.stderr

    part = work + "/part"
    cut = json.loads(run(lockstep, "journal", "cut", data, "1..1000", "-o", part, "--json"))
    assert 999 <= cut["last_seq"] < last, cut
    assert json.loads(run(bank, "replay", "run", "--data", part, "--json"))["seq"] == cut["last_seq"]
    with Node(bank, part) as node:  # and it is a journal like any other
        load(node, 100)
        node.stop()
    run(bank, "replay", "verify", "--data", part)

    run(lockstep, "journal", "cut", data, "500..600", "-o", work + "/refused", status=2)
    run(lockstep, "journal", "cut", data, "-o", part, status=2)
    assert tree(data) == before, "cutting changed its source"


def cut_behind_a_snapshot(work):
    data, out = work + "/long", work + "/late"
    with Node(bank, data) as node:
        load(node, 3000)
        taking = subprocess.Popen([lockstep, "snapshot", "take", node.addresses["admin"]], stdout=subprocess.PIPE)
        while taking.poll() is None:  # it is taken at the next checkpoint: there has to be one
            load(node, 500)
        taking.communicate()
        assert taking.returncode == 0
        load(node, 3000)
        node.stop()
    last = info(data)["last_seq"]
    cut = json.loads(run(lockstep, "journal", "cut", data, f"{last - 1500}..{last - 500}", "-o", out, "--with-snapshot",
                         "--json"))
    assert cut["snapshot"] and 1 < cut["first_seq"] <= last - 1500 and last - 501 <= cut["last_seq"] < last, cut
    assert info(out)["first_batch"] == cut["snapshot"] + 1
    run(bank, "replay", "verify", "--data", out)
    another_language(out)
    with Node(bank, out) as node:
        load(node, 100)
        node.stop()


def past_damage_and_repair(data, work):
    damaged = work + "/damaged"
    shutil.copytree(data, damaged)
    segment = sorted(glob.glob(damaged + "/seg-*.jnl"))[0]
    batches = [(at, header) for at, header in blocks(segment) if header["type"] == 1]
    middle, header = batches[len(batches) // 2]
    flip(segment, middle + header_bytes + 40)
    before = tree(damaged)
    whole = run(lockstep, "journal", "dump", data, "--json").splitlines()
    left = run(lockstep, "journal", "dump", damaged, "--json", status=3).splitlines()
    lost = sum(json.loads(line)["batch"] == header["index"] for line in whole)
    assert lost > 0 and len(left) == len(whole) - lost, (len(left), len(whole), lost)
    report = json.loads(run(lockstep, "journal", "verify", damaged, "--json", status=3))
    assert report["findings"][0]["batch"] == header["index"], report["findings"]
    refused = json.loads(run(lockstep, "journal", "repair", damaged, "--json", status=3))
    assert refused["missing"][0]["first_batch"] == header["index"], refused
    assert tree(damaged) == before, "what cannot be repaired was changed"

    derivable = work + "/derivable"
    shutil.copytree(data, derivable)
    segment = sorted(glob.glob(derivable + "/seg-*.jnl"))[0]
    seal = next(at for at, header in blocks(segment) if header["type"] == 4)
    flip(segment, seal + header_bytes)
    run(lockstep, "journal", "verify", derivable, status=3)
    assert "written anew" in run(lockstep, "journal", "repair", derivable)
    assert os.path.exists(segment + ".bad")
    assert "nothing to repair" in run(lockstep, "journal", "repair", derivable)
    run(bank, "replay", "verify", "--data", derivable)


def damaged_headers(work):
    data = work + "/headers"
    for files in (2, 4):  # of each life a segment that is used; of the second, two that are not
        with Node(bank, data) as node:
            load(node, 300)
            deadline = time.monotonic() + 60
            while len(glob.glob(data + "/seg-*.jnl")) < files:
                assert time.monotonic() < deadline, tree(data).keys()
                time.sleep(0.01)
            node.kill()
    last = info(data)["last_batch"]
    segments = [segment for segment in info(data)["segments"] if not segment["spare"]]
    spares = [segment for segment in info(data)["segments"] if segment["spare"]]
    assert len(segments) == 2 and spares, info(data)

    for segment in segments:
        path = data + "/" + segment["file"]
        sound = open(path, "rb").read()
        flip(path, 68)
        damaged = open(path, "rb").read()
        report = json.loads(run(lockstep, "journal", "verify", data, "--json", status=3))
        assert [finding["file"] for finding in report["findings"]] == [path], report["findings"]
        assert report["last_batch"] == last, report
        started = subprocess.run([bank, "serve", "--data", data, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        assert started.returncode == 3 and path in started.stderr, (started.returncode, started.stderr)
        assert "is what it was again" in run(lockstep, "journal", "repair", data)
        assert open(path, "rb").read() == sound and open(path + ".bad", "rb").read() == damaged
        run(lockstep, "journal", "verify", data)

    flip(data + "/" + spares[0]["file"], 68)
    os.remove(data + "/" + spares[-1]["file"])
    assert "made ahead and never used" in run(lockstep, "journal", "verify", data)
    assert "nothing to repair" in run(lockstep, "journal", "repair", data)
    with Node(bank, data) as node:
        load(node, 100)
        node.stop()
    assert info(data)["last_batch"] > last
    run(bank, "replay", "verify", "--data", data)


def accept_tail(work):
    data = work + "/tail"
    with Node(bank, data) as node:
        load(node, 200)
        run(lockstep, "journal", "repair", data, status=7)  # somebody runs on it
        node.kill()
    segment = sorted(glob.glob(data + "/seg-*.jnl"))[0]
    all_blocks = list(blocks(segment))
    # The MARK at the end is the one block that nothing behind it vouches for.
    last, header = all_blocks[-1]
    assert header["type"] == 2, header
    flip(segment, last + 100)
    started = subprocess.run([bank, "serve", "--data", data, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    assert started.returncode == 3 and "--accept-tail" in started.stderr, (started.returncode, started.stderr)
    assert "--accept-tail" in run(lockstep, "journal", "repair", data, status=3)
    assert "cut" in run(lockstep, "journal", "repair", data, "--accept-tail")
    assert os.path.exists(segment + ".bad")
    with Node(bank, data) as node:
        load(node, 100)
        node.stop()
    run(bank, "replay", "verify", "--data", data)


with tempfile.TemporaryDirectory(prefix="lockstep-tools-") as work:
    data = work + "/data"
    follow_live(data)
    with Node(bank, data) as node:  # a second life, so that the first one's segment is sealed
        load(node, 500)
        node.stop()
    another_language(data)
    cut_and_replay(data, work)
    cut_behind_a_snapshot(work)
    past_damage_and_repair(data, work)
    damaged_headers(work)
    accept_tail(work)
print("ok")
