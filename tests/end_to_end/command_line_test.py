# SPDX-License-Identifier: Apache-2.0
"""What an operator meets on the command line: exit codes, JSON, refusals that name the object and the remedy.
usage: command_line_test.py BANK KV LOCKSTEP"""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from node import Node, Redis, run

bank, kv, lockstep = sys.argv[1:]


def contents(directory):
    """Of each file in it, by name."""
    found = {}
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), "rb") as file:
            found[name] = file.read()
    return found


def refused(status, words, *command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode == status, f"{command}: exit {done.returncode}, not {status}\n{done.stdout}"
    for word in words:
        assert word in done.stdout, f"{command}: no '{word}' in\n{done.stdout}"


def load(node, requests=20000, *more):
    out = run(bank, "bench", "--connect", node.addresses["listen"], "--requests", str(requests), "--json", *more)
    report = json.loads(out)
    assert report["answered"] == requests and report["lost"] == 0, report


def page(node, path):
    with urllib.request.urlopen(f"http://{node.addresses['admin']}{path}", timeout=10) as answer:
        return answer.read().decode()


def usage_and_help():
    for program in (bank, kv, lockstep):
        assert "Exit status" in run(program, "--help")
    for words in (["serve"], ["replay", "verify"], ["journal", "dump"], ["hash", "compare"], ["doctor"], ["bench"]):
        run(bank, *words, "--help")
    for command, json_is in (("info", "object on"), ("verify", "object on"), ("dump", "object a line"),
                             ("follow", "object a line")):
        assert f"one JSON {json_is}" in run(lockstep, "journal", command, "--help"), command
    refused(2, ["required"], bank, "replay", "verify")
    refused(2, ["--data"], bank, "serve")
    refused(2, ["fsync", "write", "none"], bank, "serve", "--data", "x", "--durability", "maybe")
    refused(2, ["HOST:PORT"], bank, "serve", "--data", work + "/never", "--listen", "nonsense")
    refused(2, ["'sevre'", "serve, replay"], bank, "sevre")
    refused(2, ["'dmp'", "dump"], lockstep, "journal", "dmp", "x")
    refused(2, ["'--durabilty'", "serve --help"], bank, "serve", "--data", "x", "--durabilty", "none")
    refused(2, ["unexpected option '--bogus'", "journal, hash"], lockstep, "--bogus")
    refused(2, ["unexpected option '--bogus'", "info, verify"], lockstep, "journal", "--bogus", "info")
    refused(2, ["no command is named", "journal, hash"], lockstep)
    refused(2, ["--executors: ", "0 to 64"], bank, "serve", "--data", "x", "--executors", "1000")
    refused(2, ["--spin-us: "], bank, "serve", "--data", "x", "--spin-us", "abc")
    refused(2, ["at least 1"], bank, "replay", "until", "0", "--data", "x")
    refused(2, ["Redis"], bank, "serve", "--data", work + "/never2", "--resp", "127.0.0.1:0")
    for everywhere in ("0.0.0.0:0", "[::]:0", "192.168.1.1:9000"):
        refused(2, ["loopback", "ssh -L"], bank, "serve", "--data", work + "/never3", "--admin", everywhere)
    for flag in ("--listen", "--admin"):
        refused(2, ["0..65535"], bank, "serve", "--data", work + "/never3", flag, "127.0.0.1:99999")
    refused(2, ["0..65535"], lockstep, "hash", "show", "127.0.0.1:99999")
    assert not os.path.exists(work + "/never3")
    assert "durability" in run(bank, "serve", "--data", "x", "--dump-config")


def numbers():
    """A number is what it says, or refused: not wrapped, not clamped, not octal."""
    too_large = str(2**64)
    bench = ["bench", "--connect", "127.0.0.1:1"]
    for option in (["replay", "until", "--data", "x"], ["replay", "run", "--data", "x", "--executors"],
                   ["skip", "--data", "x"], ["journal", "dump", "x", "--limit"], ["journal", "follow", "x", "--limit"],
                   ["journal", "follow", "x", "--last"], ["hash", "show", "x", "--at"],
                   ["hash", "compare", "x", "y", "--timeout-ms"], ["snapshot", "take", "127.0.0.1:1", "--timeout-ms"],
                   [*bench, "--requests"], [*bench, "--connections"], [*bench, "--warmup"]):
        for number in ("-1", too_large, "010", "0x10", "1e3", "+1"):
            refused(2, [f"not '{number}'"], bank, *option, number)
        if option[-1] not in ("--last", "--warmup"):
            refused(2, ["at least 1"], bank, *option, "0")
    for text in ("010", "010..12", "1..012"):
        refused(2, [f"'{text}' is not a range"], lockstep, "journal", "dump", work, text)
    for flag in ("--listen", "--admin"):
        refused(2, ["'127.0.0.1:010'", "HOST:PORT"], bank, "serve", "--data", work + "/never", flag, "127.0.0.1:010")
    for number in ("nan", "inf", "-1", "1e10"):
        refused(2, ["--rate"], bank, *bench, "--rate", number)
    for flag in ("--executors", "--perimeters", "--spin-us"):
        for number in ("-2", too_large, "0x1", "1.0", "01", "1\n[limits]\nmax_connections=5"):
            refused(2, [flag + ": must be an integer from"], bank, "serve", "--data", "x", flag, number, "--dump-config")


def config_file():
    path = work + "/node.toml"
    with open(path, "w") as file:
        file.write(run(bank, "serve", "--data", work + "/configured", "--durability", "write", "--executors", "2",
                       "--dump-config"))
    assert 'durability = "write"' in run(bank, "serve", "--config", path, "--dump-config")
    assert 'durability = "none"' in run(bank, "serve", "--config", path, "--durability", "none", "--dump-config")
    with open(path, "a") as file:
        file.write("\n[node2]\n")
    refused(2, [path, "node2", "--dump-config"], bank, "serve", "--config", path)
    refused(2, [work, "Is a directory"], bank, "serve", "--config", work)
    # What is dumped can be served, and is what was said.
    for words, flags in ((["'two'"], ["--threads", "two"]), (["HOST:PORT"], ["--listen", "nonsense"]),
                         (["HOST:PORT"], ["--resp", "nonsense"]), (["UTF-8"], ["--data", os.fsdecode(b"bad\xff")])):
        refused(2, words, bank, "serve", *flags, "--dump-config")
    for words, line in ((["max_frame_bytes", "do not fit"], "[limits]\nmax_frame_bytes = 8388608"),
                        (["segment_bytes", "multiple of 4096"], "[journal]\nsegment_bytes = 16777217"),
                        (["segment_bytes", "16777216 to"], "[journal]\nsegment_bytes = 65536")):
        with open(path, "w") as file:
            file.write(line)
        for more in (["--dump-config"], ["--data", work + "/never4"]):
            refused(2, words, bank, "serve", "--config", path, *more)
    for data in ("a\'\'\'b \"c\" \\d", "one\n[two]", "17", "true", "\"\"\"", "tab\t\x01"):
        dumped = run(bank, "serve", "--data", data, "--dump-config")
        with open(path, "w") as file:
            file.write(dumped)
        assert run(bank, "serve", "--config", path, "--dump-config") == dumped, data
        other = run(bank, "serve", "--data", "x", "--dump-config")
        assert dumped.endswith(other[other.index("\nlisten = "):]), dumped


def genesis_is_for_ever():
    data, path = work + "/begun", work + "/genesis.toml"

    def log_with(text):
        with open(path, "w") as file:
            file.write("[genesis]\n" + text)
        with Node(bank, data, "--config", path) as node:
            load(node, 10)
            node.stop()
            return node.log_text()

    begun = "shards = 16\nseed = 77\nmax_rounds = 32\n"
    assert "[genesis]" not in log_with(begun)
    assert "[genesis]" not in log_with(begun)
    assert "[genesis]" not in log_with("seed = 0\n")
    other = log_with("shards = 8\nseed = 5\nmax_rounds = 32\ncheckpoint_interval = 512\n")
    warnings = [line for line in other.splitlines() if "[genesis]" in line]
    assert len(warnings) == 1 and data in warnings[0], other
    for words in ("shards = 16 (configured: 8)", "seed = 77 (configured: 5)",
                  "checkpoint_interval = 1024 (configured: 512)"):
        assert words in warnings[0], other
    assert "max_rounds" not in warnings[0], other


def live_pages_and_compare():
    first, copy = work + "/first", work + "/copy"
    with Node(bank, first) as node:
        load(node)
        # A node that serves is held against others while it does; its journal may be read meanwhile.
        info = json.loads(run(lockstep, "journal", "info", first, "--json"))
        assert info["last_seq"] > 0 and info["sound"], info
        run(lockstep, "journal", "dump", first, "--limit", "5", "--json")
        refused(7, ["lock", first], bank, "serve", "--data", first, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
        assert json.loads(page(node, "/status"))["durability"] == "fsync"
        try:
            raise AssertionError(page(node, "/hash?at=abc"))
        except urllib.error.HTTPError as refusal:
            assert refusal.code == 400 and "'at'" in refusal.read().decode(), refusal
        metrics = page(node, "/metrics")
        assert "lockstep_requests_total 20000" in metrics, metrics
        node.stop()
    shutil.copytree(first, copy)
    run(lockstep, "hash", "compare", first, copy)
    # The other way to lay out the same node: what it comes to must not show it.
    with Node(bank, first) as node, Node(bank, copy, "--executors", "3", "--perimeters", "2", "--io", "epoll") as other:
        verdict = json.loads(run(lockstep, "hash", "compare", node.addresses["admin"], other.addresses["admin"], copy,
                                 "--json"))
        assert verdict["verdict"] == "equal" and verdict["batch"] > 0, verdict
        refused(5, ["INCOMPLETE", "127.0.0.1:1"], lockstep, "hash", "compare", node.addresses["admin"], "127.0.0.1:1")
        # From here on their histories part.
        load(node, 3000)
        load(other, 3000, "--connections", "3")
        one_side_is_not_compared(node.addresses["admin"])
        refused(1, ["DIVERGED"], lockstep, "hash", "compare", node.addresses["admin"], other.addresses["admin"])
        node.stop()
        other.stop()


def ways_to_write(path):
    link = path + "-link"
    if not os.path.islink(link):
        os.symlink(path, link)
    return [path + "/", path + "/.", f"{os.path.dirname(path)}/./{os.path.basename(path)}", os.path.relpath(path), link,
            link + "/"]


def one_side_is_not_compared(*nodes):
    for side in (work + "/first", *nodes):
        refused(2, ["two or more", "hash show"], lockstep, "hash", "compare", side)
        refused(2, ["two or more"], lockstep, "hash", "compare", side, "--json")
        refused(2, ["named twice"], lockstep, "hash", "compare", side, side)
        for other in [":" + side.rsplit(":", 1)[1]] if side in nodes else ways_to_write(side):
            refused(2, ["named twice", f"also as {other}"], lockstep, "hash", "compare", side, other)
        shown = json.loads(run(lockstep, "hash", "show", side, "--json"))
        assert shown["batch"] > 0 and len(shown["root"]) == len(shown["effects"]) == len(shown["chain"]) == 32, shown
        assert "verdict" not in shown and "equal" not in run(lockstep, "hash", "show", side)
        assert shown["root"][:16] in run(lockstep, "hash", "show", side, "--at", str(shown["batch"]))
        refused(2, ["is not a checkpoint"], lockstep, "hash", "show", side, "--at", str(shown["batch"] + 1))


def two_histories_are_incompatible():
    """Another cluster or another program is neither equal nor a divergence: nobody's state went wrong."""
    first, other_cluster, other_program = work + "/first", work + "/other-cluster", work + "/other-program"
    with Node(bank, other_cluster) as node, Node(kv, other_program, "--resp", "127.0.0.1:0") as store:
        load(node, 3000)
        assert Redis(store.port("resp")).ask("SET", "a", "b") == "OK"
        for side in (node.addresses["admin"], store.addresses["admin"], other_cluster, other_program):
            refused(4, ["INCOMPATIBLE", "two histories", "cluster"], lockstep, "hash", "compare", first, side)
        node.stop()
        store.stop()
    verdict = json.loads(run(lockstep, "hash", "compare", first, other_cluster, "--json", status=4))
    assert verdict["verdict"] == "INCOMPATIBLE" and first in verdict["reason"], verdict
    refused(4, ["INCOMPATIBLE"], lockstep, "hash", "compare", "127.0.0.1:1", first, other_program)


def replay_and_dump():
    first = work + "/first"
    verified = json.loads(run(bank, "replay", "verify", "--data", first, "--json"))
    assert verified["verdict"] == "equal" and verified["compared"] > 0, verified
    until = json.loads(run(bank, "replay", "until", "500", "--data", first, "--json"))
    assert 0 < until["seq"] < 500 and not until["journal_ends_before"], until
    for beyond, ends_before in ((verified["seq"] + 1, False), (999999999, True)):
        until = json.loads(run(bank, "replay", "until", str(beyond), "--data", first, "--json"))
        assert until["seq"] == verified["seq"] and until["journal_ends_before"] == ends_before, until
        said = f"end of the journal, which is at seq {verified['seq']:,}, before seq {beyond:,}"
        assert (said in run(bank, "replay", "until", str(beyond), "--data", first)) == ends_before, said
    refused(4, ["other actors"], kv, "replay", "run", "--data", first)
    refused(4, ["other actors"], kv, "serve", "--data", first, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
    lines = run(lockstep, "journal", "dump", first, "2..300", "--json").splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(2, 300))
    types = {json.loads(line)["type"] for line in lines}
    assert types == {"session_open", "bank.Deposit", "bank.Withdraw", "bank.Transfer"}, types
    assert all("secret" not in line for line in lines)
    only = run(lockstep, "journal", "dump", first, "--type", "Transfer", "--limit", "3", "--json").splitlines()
    assert [json.loads(line)["type"] for line in only] == ["bank.Transfer"] * 3
    refused(2, ["A..B"], lockstep, "journal", "dump", first, "9..3x")
    last = json.loads(run(lockstep, "journal", "info", first, "--json"))["last_seq"]
    for beyond in (f"{last + 1}", f"{last + 1}..{last + 50}", f"{last + 1}..end"):
        refused(2, [first, f"seqs from 1 to {last}"], lockstep, "journal", "dump", first, beyond)
    assert len(run(lockstep, "journal", "dump", first, f"{last}..{last + 50}").splitlines()) == 1
    assert len(run(lockstep, "journal", "dump", first, "--range=-3..end").splitlines()) == 3
    refused(2, ["'Transfre'", "nearest are bank.Transfer"], lockstep, "journal", "dump", first, "--type", "Transfre")
    refused(2, ["'Nope'"], lockstep, "journal", "dump", first, "2..9", "--type", "Nope", "--json")
    refused(2, ["'Nope'"], lockstep, "journal", "follow", first, "--type", "Nope")
    run(lockstep, "journal", "dump", first, "1..2", "--type", "Transfer")
    run(lockstep, "journal", "verify", first)


def a_missing_record_is_incomplete():
    unrecorded = work + "/unrecorded"
    shutil.copytree(work + "/first", unrecorded)
    os.truncate(unrecorded + "/hashlog", 128)
    refused(5, ["INCOMPLETE"], bank, "replay", "verify", "--data", unrecorded)
    os.unlink(unrecorded + "/hashlog")
    refused(5, ["INCOMPLETE"], bank, "replay", "verify", "--data", unrecorded)
    refused(5, ["INCOMPLETE", "has no hashlog"], lockstep, "hash", "compare", work + "/first", unrecorded)
    refused(5, ["has no hashlog"], lockstep, "hash", "show", unrecorded)


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


def a_damaged_record_is_incomplete():
    """What was recorded and cannot be read is not equal: not behind a damaged entry, nor with a damaged header."""
    first = work + "/first"
    whole = json.loads(run(bank, "replay", "verify", "--data", first, "--json"))
    entries = (os.path.getsize(first + "/hashlog") - 128) // 128
    assert entries > 4, entries
    for entry in (entries - 1, entries // 2, 0):
        data = f"{work}/entry{entry}"
        shutil.copytree(first, data)
        flip(data + "/hashlog", 128 + entry * 128 + 50)
        verified = json.loads(run(bank, "replay", "verify", "--data", data, "--json", status=5))
        assert verified["verdict"] == "incomplete" and data + "/hashlog" in verified["reason"], verified
        assert verified["compared"] < whole["compared"] and verified["root"] == whole["root"], verified
        refused(5, ["INCOMPLETE", data + "/hashlog"], bank, "replay", "verify", "--data", data)
        run(bank, "replay", "run", "--data", data)
        refused(5, ["INCOMPLETE", data], lockstep, "hash", "compare", first, data)
    # A start derives what is lost again, as far as it executes again.
    with Node(bank, data) as node:
        node.stop()
    run(bank, "replay", "verify", "--data", data)

    # One flipped bit of the header can be undone; a header that is gone cannot.
    headless = work + "/headless"
    shutil.copytree(first, headless)
    flip(headless + "/hashlog", 20)
    assert json.loads(run(bank, "replay", "verify", "--data", headless, "--json"))["compared"] == whole["compared"]
    with open(headless + "/hashlog", "r+b") as file:
        file.write(b"\x5a" * 128)
    verified = json.loads(run(bank, "replay", "verify", "--data", headless, "--json", status=5))
    assert verified["verdict"] == "incomplete" and "header is damaged" in verified["reason"], verified
    run(bank, "replay", "run", "--data", headless)
    refused(5, ["header is damaged"], lockstep, "hash", "compare", first, headless)


def zero_from_batch(segment, batch):
    """Makes a segment look as if the batch and all behind it had never been written."""
    with open(segment, "r+b") as file:
        content, at = file.read(), 4096
        while struct.unpack_from("<Q", content, at + 88)[0] < batch:
            assert content[at + 16:at + 24] == b"LKSTBLK1", (segment, batch)
            at += struct.unpack_from("<I", content, at + 80)[0]
        file.seek(at)
        file.write(bytes(len(content) - at))


def a_lost_tail_that_was_recorded_is_damage():
    """A root says whether its batch was durable: then a journal that ends before it has lost what was acknowledged."""
    for durability, status, word in (("fsync", 3, "durable"), ("none", 5, "roots are recorded up to batch")):
        killed = f"{work}/killed-{durability}"
        with Node(bank, killed, "--durability", durability) as node:
            load(node, 20000)
            node.kill()
        with open(killed + "/hashlog", "rb") as file:
            recorded = struct.unpack_from("<Q", file.read()[-128:], 24)[0]
        assert recorded > 4, recorded
        zero_from_batch(f"{killed}/{sorted(n for n in os.listdir(killed) if n.endswith('.jnl'))[0]}", recorded - 1)
        verify = [lockstep, "journal", "verify", killed]
        replay = [bank, "replay", "verify", "--data", killed]
        serve = [bank, "serve", "--data", killed, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
        refused(status, [word, str(recorded)], *replay)
        if durability == "none":
            assert f"roots up to batch {recorded}" in run(*verify)
            with Node(bank, killed) as node:
                node.stop()
                assert f"roots up to batch {recorded}" in node.log_text(), node.log_text()
            continue
        for command in (verify, serve, [lockstep, "journal", "repair", killed, "--accept-tail"]):
            refused(3, [str(recorded)], *command)
        os.rename(killed + "/hashlog", killed + "/hashlog.bad")
        with Node(bank, killed) as node:
            node.stop()
        run(*replay)


def a_hash_log_that_holds_nothing_is_made_anew():
    hollow = work + "/hollow"
    shutil.copytree(work + "/first", hollow)
    path = hollow + "/hashlog"
    for content in (b"", bytes(100), bytes(128)):
        with open(path, "wb") as file:
            file.write(content)
        assert "holds nothing" in run(lockstep, "journal", "verify", hollow)
        refused(5, ["INCOMPLETE", "holds nothing"], bank, "replay", "verify", "--data", hollow)
        refused(5, ["INCOMPLETE", "holds nothing"], lockstep, "hash", "compare", work + "/first", hollow)
        with Node(bank, hollow) as node:
            node.stop()
            assert "made anew" in node.log_text(), node.log_text()
    with open(path, "r+b") as file:
        file.write(bytes(128))
    serve = [bank, "serve", "--data", hollow, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    left = contents(hollow)
    refused(3, [path], lockstep, "journal", "verify", hollow)
    refused(3, [path, "header is damaged"], *serve)
    assert contents(hollow) == left
    shutil.copyfile(work + "/other-cluster/hashlog", path)
    refused(4, ["belongs to another cluster"], bank, "replay", "verify", "--data", hollow)
    refused(4, ["INCOMPATIBLE", "belongs to another cluster"], lockstep, "hash", "compare", work + "/first", hollow)
    left = contents(hollow)
    refused(4, ["belongs to another cluster"], *serve)
    assert contents(hollow) == left


def a_wrong_record_is_a_divergence():
    """Roots that another history left behind: the node must not start on them, a replay must say where they part."""
    mixed = work + "/mixed"
    shutil.copytree(work + "/copy", mixed)
    shutil.copyfile(work + "/first/hashlog", mixed + "/hashlog")
    refused(1, ["differ"], bank, "replay", "verify", "--data", mixed)
    refused(3, ["the hash log"], bank, "serve", "--data", mixed, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")


def damage_is_refused():
    damaged = work + "/damaged"
    shutil.copytree(work + "/first", damaged)
    segment = sorted(name for name in os.listdir(damaged) if name.endswith(".jnl"))[0]
    with open(f"{damaged}/{segment}", "r+b") as file:
        file.seek(3 * 4096 + 300)
        byte = file.read(1)
        file.seek(3 * 4096 + 300)
        file.write(bytes([byte[0] ^ 1]))
    refused(3, [segment, "DAMAGED"], lockstep, "journal", "verify", damaged)
    refused(3, [segment], bank, "serve", "--data", damaged, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
    refused(3, [segment], bank, "replay", "run", "--data", damaged)
    what_is_sound_beside_damage_is_shown(damaged, segment)


def what_is_sound_beside_damage_is_shown(damaged, segment):
    whole = [json.loads(line)["seq"] for line in run(lockstep, "journal", "dump", work + "/first", "--json").splitlines()]
    for asked in ([], ["1..end"], [f"--range=-{len(whole)}..end"]):
        done = subprocess.run([lockstep, "journal", "dump", damaged, *asked, "--json"], capture_output=True, text=True)
        assert done.returncode == 3 and segment in done.stderr, done
        seqs = [json.loads(line)["seq"] for line in done.stdout.splitlines()]
        lost = sorted(set(whole) - set(seqs))
        assert lost and lost == list(range(lost[0], lost[-1] + 1)) and seqs[-1] == whole[-1], (asked, lost)
        assert f"seqs {lost[0]}..{lost[-1]} cannot be read" in done.stderr, done.stderr
    # A damaged header of a segment hides no message.
    headless = work + "/headless-segment"
    shutil.copytree(work + "/first", headless)
    flip(f"{headless}/{segment}", 40)
    done = subprocess.run([lockstep, "journal", "dump", headless, "--json"], capture_output=True, text=True)
    assert done.returncode == 3 and segment in done.stderr and "cannot be read;" not in done.stderr, done.stderr
    assert [json.loads(line)["seq"] for line in done.stdout.splitlines()] == whole
    # Up to the damage all is as if there were none.
    sound = json.loads(run(bank, "replay", "until", str(lost[0]), "--data", work + "/first", "--json"))
    done = subprocess.run([bank, "replay", "until", str(lost[0]), "--data", damaged, "--json"], capture_output=True,
                          text=True)
    assert done.returncode == 0 and "behind it" in done.stderr and segment in done.stderr, done
    until = json.loads(done.stdout)
    assert until["seq"] == lost[0] - 1 and until["root"] == sound["root"], (until, sound)
    refused(3, [segment], bank, "replay", "until", str(lost[0] + 1), "--data", damaged)
    if lost[0] > 1:
        run(lockstep, "journal", "dump", damaged, f"1..{lost[0]}")


def nothing_there():
    """Each command that is told of a data directory and finds none there says so, and what to name instead."""
    missing, a_file, empty, foreign = (f"{work}/{name}" for name in ("missing", "a-file", "empty", "foreign"))
    with open(a_file, "w") as file:
        file.write("not a directory")
    for directory in (empty, foreign):
        os.mkdir(directory)
    with open(foreign + "/notes.txt", "w") as file:
        file.write("not a journal")
    half_made = work + "/half-made"
    shutil.copytree(work + "/first", half_made)
    os.unlink(half_made + "/hardstate")
    reading = [[bank, "replay", "run", "--data"], [bank, "replay", "verify", "--data"],
               [bank, "replay", "until", "5", "--data"], [lockstep, "journal", "info"], [lockstep, "journal", "verify"],
               [lockstep, "journal", "dump"], [lockstep, "journal", "follow"], [lockstep, "journal", "repair"],
               [lockstep, "journal", "cut", "-o", work + "/never-cut"], [lockstep, "skip", "5", "--data"]]
    for command in reading:
        refused(7, [f"{missing} is no data directory", "No such file", "a node was served with"], *command, missing)
        refused(7, [f"{a_file} is no data directory", "Not a directory", "a node was served with"], *command, a_file)
        for directory in (empty, foreign):
            refused(2, [f"{directory} holds no journal", "no hardstate", "a node was served with"], *command, directory)
        refused(3, [half_made, "no hardstate", "interrupted", "backup"], *command, half_made)
    assert os.listdir(empty) == [] and os.listdir(foreign) == ["notes.txt"]
    for look in ("list", "verify"):
        refused(7, [missing, "No such file", "*.snp"], lockstep, "snapshot", look, missing)
        refused(7, [a_file, "Not a directory", "*.snp"], lockstep, "snapshot", look, a_file)
        refused(2, [empty, "holds no journal"], lockstep, "snapshot", look, empty)
        refused(7, [missing + ".snp", "No such file"], lockstep, "snapshot", look, missing + ".snp")
    at = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    refused(7, [a_file, "Not a directory", "another place"], bank, "serve", "--data", a_file, *at)
    refused(3, [half_made, "interrupted"], bank, "serve", "--data", half_made, *at)
    refused(2, [a_file, "name a directory"], lockstep, "doctor", "--data", a_file)
    refused(7, [missing, "No such file"], lockstep, "snapshot", "restore", missing, "--data", work + "/restored")
    refused(2, [empty, "*.snp"], lockstep, "snapshot", "restore", empty, "--data", work + "/restored")
    refused(3, [a_file, "not the size of a whole snapshot"], lockstep, "snapshot", "restore", a_file, "--data", empty)
    assert not os.path.exists(work + "/restored") and os.listdir(empty) == []
    refused(7, ["/nonexistent"], lockstep, "journal", "info", "/nonexistent/journal")
    first = work + "/first"
    refused(5, ["/nonexistent", "admin address"], lockstep, "hash", "compare", "/nonexistent/journal", first)
    refused(5, ["127.0.0.1:1  ", "not compared: no connection"], lockstep, "hash", "compare", "127.0.0.1:1", first)
    refused(7, ["/nonexistent", "admin address"], lockstep, "hash", "show", "/nonexistent/journal")
    refused(5, ["127.0.0.1:1: no connection"], lockstep, "hash", "show", "127.0.0.1:1")


def what_is_refused_leaves_nothing():
    """A directory that a command made before it failed would be served as a new cluster by the next start."""
    first, made = work + "/first", work + "/made/for/nothing"
    with Node(bank, first) as node:
        taken = subprocess.Popen([lockstep, "snapshot", "take", node.addresses["admin"]], stdout=subprocess.PIPE, text=True)
        while taken.poll() is None:
            load(node, 2000)
        snapshot = taken.stdout.read().strip()
        assert taken.returncode == 0 and snapshot.endswith(".snp"), snapshot
        refused(7, ["lock", first], lockstep, "snapshot", "restore", snapshot, "--data", made, "--journal", first)
        port = node.addresses["listen"]
        for at in (["--listen", port], ["--listen", "127.0.0.1:0", "--admin", port]):
            refused(7, ["listen"], bank, "serve", "--data", made, *at)
        refused(2, ["no such address"], bank, "serve", "--data", made, "--listen", "192.0.2.1:1")
        node.stop()
    refused(7, ["No such file"], lockstep, "snapshot", "restore", snapshot, "--data", made, "--journal", work + "/never")
    refused(2, ["Redis"], bank, "serve", "--data", made, "--listen", "127.0.0.1:0", "--resp", "127.0.0.1:0")
    refused(2, ["no batch"], lockstep, "journal", "cut", first, "99999999..999999999", "--with-snapshot", "-o", made)
    assert not os.path.exists(work + "/made")
    # What was there before stays, and what somebody else keeps there too.
    os.makedirs(made)
    refused(2, ["Redis"], bank, "serve", "--data", made, "--listen", "127.0.0.1:0", "--resp", "127.0.0.1:0")
    assert os.listdir(made) == []
    with open(made + "/notes.txt", "w") as file:
        file.write("mine")
    refused(2, ["Redis"], bank, "serve", "--data", made, "--listen", "127.0.0.1:0", "--resp", "127.0.0.1:0")
    assert "notes.txt" in os.listdir(made)
    refused(7, ["Not a directory"], lockstep, "snapshot", "restore", snapshot, "--data", made + "/notes.txt")
    refused(7, ["Not a directory"], bank, "serve", "--data", made + "/notes.txt", "--listen", "127.0.0.1:0")
    assert "notes.txt" in os.listdir(made)
    shutil.rmtree(work + "/made")
    # A directory that was restored is compared at once.
    run(lockstep, "snapshot", "restore", snapshot, "--data", made)
    restored = json.loads(run(lockstep, "hash", "compare", made, first, "--json"))
    assert restored["verdict"] == "equal" and f"{restored['batch']:016x}" in snapshot, restored


def a_refused_start_changes_nothing():
    """Of a directory that another program wrote, and whose node was killed, so that a start would have much to settle."""
    data = work + "/left-alone"
    with Node(bank, data) as node:
        load(node, 2000)
        node.process.kill()
        node.process.wait(timeout=60)
    def content():
        return {name: open(f"{data}/{name}", "rb").read() for name in os.listdir(data)}
    before = content()
    refused(4, ["other actors"], kv, "serve", "--data", data, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
    after = content()
    changed = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    assert not changed, changed
    with Node(bank, data) as node:
        node.stop()


def several_perimeters():
    data = work + "/perimeters"
    with Node(kv, data, "--resp", "127.0.0.1:0", "--perimeters", "3", "--executors", "2") as node:
        clients = [Redis(node.port("resp")) for _ in range(24)]
        for turn in range(50):
            for number, client in enumerate(clients):
                client.send(Redis.encode("INCR", "all") + Redis.encode("INCR", f"own{number}"))
            for client in clients:
                client.read()
                assert client.read() == turn + 1
        assert clients[0].ask("GET", "all") == str(50 * len(clients)).encode()
        node.stop()
    run(kv, "replay", "verify", "--data", data)


def idles_quietly():
    with Node(bank, work + "/idle") as node:
        time.sleep(0.3)
        before = cpu_ticks(node)
        time.sleep(1.0)
        used = cpu_ticks(node) - before
        assert used <= 5, f"an idle node used {used} ticks of 10 ms in a second"
        node.stop()


def cpu_ticks(node):
    with open(f"/proc/{node.process.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def doctor():
    report = json.loads(run(lockstep, "doctor", "--json"))
    assert any("io_uring" in row["feature"] or "ring" in row["feature"] for row in report["features"]), report
    there = run(lockstep, "doctor", "--data", work)
    assert "O_DIRECT" in there and "not there" not in there, there
    missing = run(lockstep, "doctor", "--data", work + "/not/yet")
    assert f"{work}/not/yet does not exist" in missing and f"the disk of {work}, " in missing, missing


with tempfile.TemporaryDirectory() as work:
    for scene in (usage_and_help, numbers, config_file, genesis_is_for_ever, live_pages_and_compare,
                  two_histories_are_incompatible, replay_and_dump, a_missing_record_is_incomplete,
                  a_damaged_record_is_incomplete, a_wrong_record_is_a_divergence,
                  a_lost_tail_that_was_recorded_is_damage, a_hash_log_that_holds_nothing_is_made_anew,
                  damage_is_refused, nothing_there, what_is_refused_leaves_nothing, a_refused_start_changes_nothing,
                  several_perimeters, idles_quietly, doctor):
        started = time.monotonic()
        scene()
        print(f"{scene.__name__}: ok ({time.monotonic() - started:.1f} s)", flush=True)
