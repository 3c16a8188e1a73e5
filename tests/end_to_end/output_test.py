# SPDX-License-Identifier: Apache-2.0
"""What the commands print: all of a message whatever its bytes, JSON that is JSON, and never success when stdout did not
take it. usage: output_test.py BANK KV LOCKSTEP"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

from node import Node, Redis, run

bank, kv, lockstep = sys.argv[1:]
every_byte = bytes(range(256))


def text_of(value):
    """A FlatBuffers string as dump shows it, as bytes."""
    return base64.b64decode(value["base64"], validate=True) if isinstance(value, dict) else value.encode()


def any_bytes_are_dumped():
    data = work + "/bytes"
    values = [b"plain", every_byte, b"\xff", b"quote\" \\x41 \\ \x00\x01\x7f", "Grüße, 🙂".encode(), "🙂".encode() + b"\x80",
              b"\xed\xa0\x80", b""]
    with Node(kv, data, "--resp", "127.0.0.1:0") as node:
        client = Redis(node.port("resp"))
        for number, value in enumerate(values):
            client.send(Redis.encode("SET", b"key%d" % number, value) + Redis.encode("SET", b"\xfe" + value, "v"))
            assert client.read() == "OK" and client.read() == "OK"
        followed = run(lockstep, "journal", "follow", data, "--type", "kv.Set", "--last", "1000", "--limit",
                       str(2 * len(values)), "--json")
        node.stop()
    dumped = run(lockstep, "journal", "dump", data, "--type", "kv.Set", "--json")
    assert followed == dumped
    bodies = [json.loads(line)["body"] for line in dumped.splitlines()]
    assert [text_of(body["value"]) for body in bodies[::2]] == values, bodies
    assert [text_of(body["key"]) for body in bodies[1::2]] == [b"\xfe" + value for value in values], bodies
    assert bodies[0]["value"] == "plain" and bodies[8]["value"] == "Grüße, 🙂" and "base64" in bodies[2]["value"], bodies
    assert base64.b64encode(every_byte).decode() in run(lockstep, "journal", "dump", data)


def json_of_any_path():
    """A path need not be UTF-8; JSON must be."""
    strange = os.fsencode(work) + b"/bad\xff"
    shutil.copytree(os.fsencode(work + "/bytes"), strange)
    missing = strange + b"/none"
    for status, command in (
            (0, [lockstep, "journal", "info", strange]), (0, [lockstep, "journal", "verify", strange]),
            (0, [lockstep, "hash", "show", strange]), (0, [lockstep, "hash", "compare", strange, work + "/bytes"]),
            (5, [lockstep, "hash", "compare", missing, strange]), (0, [kv, "replay", "run", "--data", strange]),
            (0, [kv, "replay", "verify", "--data", strange]), (5, [lockstep, "snapshot", "list", strange]),
            (5, [lockstep, "snapshot", "verify", strange]), (0, [lockstep, "journal", "repair", strange]),
            (0, [lockstep, "journal", "cut", strange, "1..end", "-o", strange + b"/cut"]),
            (0, [lockstep, "doctor", "--data", strange]), (7, [kv, "replay", "run", "--data", missing])):
        done = subprocess.run([*command, "--json"], capture_output=True, timeout=60)
        assert done.returncode == status, (command, done)
        page = json.loads(done.stdout.decode("utf-8"))
        assert command[1] == "doctor" or "bad\N{REPLACEMENT CHARACTER}" in json.dumps(page, ensure_ascii=False), page
    with Node(kv, os.fsdecode(strange)) as node:
        for path in ("/status", "/snapshot", "/hash"):
            with urllib.request.urlopen(f"http://{node.addresses['admin']}{path}", timeout=10) as answer:
                assert json.loads(answer.read().decode("utf-8")), path
        node.stop()


def lost_output_is_no_success():
    data = work + "/bytes"
    commands = ([lockstep, "journal", "dump", data], [lockstep, "journal", "dump", data, "1", "--json"],
                [lockstep, "journal", "info", data], [lockstep, "journal", "verify", data, "--json"],
                [lockstep, "journal", "follow", data, "--limit", "1"], [lockstep, "journal", "follow", data],
                [lockstep, "hash", "show", data], [kv, "replay", "verify", "--data", data], [kv, "--help"],
                [kv, "serve", "--data", data, "--dump-config"], [lockstep, "--version"], [lockstep, "doctor"])
    for command in commands:
        with open("/dev/full", "w") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == 7 and "cannot write to stdout" in done.stderr, (command, done)
        assert "No space left" in done.stderr and len(done.stderr.splitlines()) == 1, (command, done)
    # A closed stdout is given to no file that is opened, and takes nothing.
    for command in commands[:3]:
        done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True)
        assert done.returncode == 7 and "cannot write to stdout" in done.stderr, (command, done)
    # The exit code holds when stderr takes nothing either.
    with open("/dev/full", "w") as full:
        assert subprocess.run([lockstep, "journal", "info", work + "/none"], stderr=full).returncode == 7
        assert subprocess.run([lockstep, "journal", "info"], stderr=full).returncode == 2


def a_reader_that_leaves_is_no_error():
    data = work + "/many"
    with Node(bank, data) as node:
        run(bank, "bench", "--connect", node.addresses["listen"], "--requests", "3000")
        node.stop()
    command = [lockstep, "journal", "dump", data, "--json"]
    dump = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    dump.stdout.readline()
    dump.stdout.close()
    said = dump.stderr.read()
    assert dump.wait(timeout=60) == -13 and said == b"", (dump.returncode, said)


with tempfile.TemporaryDirectory() as work:
    for scene in (any_bytes_are_dumped, json_of_any_path, lost_output_is_no_success, a_reader_that_leaves_is_no_error):
        started = time.monotonic()
        scene()
        print(f"{scene.__name__}: ok ({time.monotonic() - started:.1f} s)", flush=True)
