# SPDX-License-Identifier: Apache-2.0
"""What actors log is in the file that the configuration names, once, however often the node starts; a replay writes the
same lines, in whatever order of executors; without a file there are none.
usage: actor_log_test.py POISON"""

import os
import sys
import tempfile
import urllib.request

from node import Node, Redis, run

poison, = sys.argv[1:]


def lines(path):
    with open(path) as file:
        return file.read().splitlines()


def metric(node, name):
    with urllib.request.urlopen(f"http://127.0.0.1:{node.port('admin')}/metrics", timeout=10) as page:
        found = [line.split()[-1] for line in page.read().decode().splitlines() if line.startswith(name + " ")]
    return float(found[0]) if found else None


def serve(data, config):
    return Node(poison, data, "--resp", "127.0.0.1:0", "--config", config)


def add(node, values):
    redis = Redis(node.port("resp"))
    return [redis.ask("ADD", value) for value in values]


with tempfile.TemporaryDirectory() as work:
    live, again, again3 = (f"{work}/{name}.log" for name in ("live", "again", "again3"))
    with_file, without = f"{work}/with.toml", f"{work}/without.toml"
    with open(with_file, "w") as file:
        file.write(f"[log]\nactor_file = '{live}'\n[threads]\nexecutors = 2\n")
    open(without, "w").close()
    data = work + "/data"

    with serve(data, with_file) as node:
        assert add(node, (1, 2, 3))[-1] == 6
        assert "trap" in str(add(node, (665,))[0])
        assert add(node, (4,)) == [10]
        node.stop()
    expected = ["2 adder/1 adds 1 to 0", "3 adder/1 adds 2 to 1", "4 adder/1 adds 3 to 3", "5 adder/1 adds 665 to 6",
                "5 adder/1 -- undone: it threw an exception", "6 adder/1 adds 4 to 6"]
    assert lines(live) == expected, lines(live)

    with serve(data, with_file) as node:  # it runs all of that again, and says nothing
        assert add(node, (5,)) == [15]
        assert metric(node, "lockstep_actor_log_lines_total") == 1
        assert metric(node, "lockstep_actor_log_dropped_total") == 0
        assert metric(node, "lockstep_actor_log_failed") == 0
        node.stop()
    expected.append("7 adder/1 adds 5 to 10")
    assert lines(live) == expected, lines(live)

    with serve(data, without) as node:
        assert add(node, (6,)) == [21]
        assert metric(node, "lockstep_actor_log_lines_total") is None
        node.stop()
    assert lines(live) == expected, lines(live)
    expected.append("8 adder/1 adds 6 to 15")

    run(poison, "replay", "run", "--data", data, "--log", again)
    assert lines(again) == expected, lines(again)
    run(poison, "replay", "verify", "--data", data, "--executors", "3", "--log", again3)
    assert lines(again3) == expected, lines(again3)
    run(poison, "replay", "run", "--data", data, "--log", work + "/none/file", status=7)

    # A disk that takes nothing ends the log, and nothing else.
    with open(with_file, "w") as file:
        file.write("[log]\nactor_file = '/dev/full'\n")
    with serve(data, with_file) as node:
        assert add(node, (7,)) == [28]
        node.stop()
        assert node.log_text().count("write /dev/full: ENOSPC") == 1, node.log_text()
    assert not os.path.exists(work + "/none")
    print("actors' lines were there once, and the same in replay")
