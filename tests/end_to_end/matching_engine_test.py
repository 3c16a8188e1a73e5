# SPDX-License-Identifier: Apache-2.0
"""The matching engine served, given LOBSTER files by its importer, asked for its book, replayed.
usage: matching_engine_test.py MATCHING_ENGINE SAMPLE"""

import json
import subprocess
import sys
import tempfile

from node import Node, run

engine, sample = sys.argv[1:]


def refused(status, words, *command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode == status, f"{command}: exit {done.returncode}, not {status}\n{done.stdout}"
    for word in words:
        assert word in done.stdout, f"{command}: no '{word}' in\n{done.stdout}"


def levels_of(path):
    """What rests when a LOBSTER file ends, by the file's own word alone: (bids, asks), best first."""
    orders = {}
    for line in open(path):
        _, kind, order, size, price, direction = line.strip().split(",")
        kind, size, price = int(kind), int(size), int(price)
        if kind == 1:
            orders[order] = [direction, price, size]
        elif kind in (2, 3, 4) and order in orders:
            orders[order][2] -= size
    sides = []
    for side, best_first in (("1", -1), ("-1", 1)):
        levels = {}
        for direction, price, size in orders.values():
            if direction == side and size > 0:
                quantity, count = levels.get(price, (0, 0))
                levels[price] = (quantity + size, count + 1)
        sides.append([{"price": price, "quantity": levels[price][0], "orders": levels[price][1]}
                      for price in sorted(levels, key=lambda price: best_first * price)])
    return sides


def import_and_compare(node, path, symbol):
    summary = json.loads(run(engine, "import", path, "--connect", node.addresses["listen"], "--symbol", symbol, "--json"))
    depth = json.loads(run(engine, "depth", "--connect", node.addresses["listen"], "--symbol", symbol, "--levels", "100",
                           "--json"))
    bids, asks = levels_of(path)
    assert depth["bids"] == bids[:100] and depth["asks"] == asks[:100], (depth, bids, asks)
    assert depth["orders"] == sum(level["orders"] for level in bids + asks), depth
    return summary, depth


def bad_arguments_and_files(work):
    assert "import" in run(engine, "--help") and "bench" in run(engine, "--help")
    assert "immediate-or-cancel" in run(engine, "import", "--help")
    refused(2, ["--connect"], engine, "import", sample)
    refused(2, ["HOST:PORT"], engine, "import", sample, "--connect", "nonsense")
    refused(7, ["127.0.0.1:1:"], engine, "depth", "--connect", "127.0.0.1:1")
    refused(7, ["ENOENT"], engine, "import", work + "/missing.csv", "--connect", "127.0.0.1:1")
    bad = work + "/bad.csv"
    with open(bad, "w") as file:
        file.write(open(sample).read() + "34212.0,9,1,1,1,1\n34212.0,1,1,1,1\n")
    lines = len(open(sample).readlines())
    refused(2, [f"{bad}:{lines + 1}: type 9", f"{bad}:{lines + 2}: it has not six"], engine, "import", bad, "--connect",
            "127.0.0.1:1")


def serve_import_replay(work, *arguments):
    data = work + "/data"
    made = work + "/made.csv"
    run(engine, "generate", "--lines", "50000", "--seed", "5", "--out", made)
    assert run(engine, "generate", "--lines", "50000", "--seed", "5") == open(made).read()
    with Node(engine, data, *arguments) as node:
        listen = node.addresses["listen"]
        refused(7, ["no message yet"], engine, "depth", "--connect", listen, "--symbol", "3")

        summary, depth = import_and_compare(node, sample, "3")
        assert summary["execution"] == {"lines": 5, "sent": 5, "refused": 0}, summary
        assert (summary["executed_named"], summary["executed_others"], summary["executed_none"]) == (5, 0, 0), summary
        assert summary["deletion"] == {"lines": 3, "sent": 3, "refused": 1}, summary  # one names an order of before
        assert summary["halt"]["sent"] == 3 and summary["cross"] == {"lines": 1, "sent": 0, "refused": 0}, summary
        assert not depth["halted"], depth
        assert "with the order named" in run(engine, "import", sample, "--connect", listen, "--symbol", "9")

        summary, depth = import_and_compare(node, made, "4")
        assert all(summary[kind]["refused"] == 0 for kind in ("new_order", "partial_cancel", "deletion", "execution"))
        assert summary["executed_named"] == summary["execution"]["lines"] > 2500, summary
        assert depth["orders"] > 500, depth
        assert "bid" in run(engine, "depth", "--connect", listen, "--symbol", "4")

        load = json.loads(run(engine, "bench", "--connect", listen, "--requests", "100000", "--json"))
        assert load["answered"] == 100000 and load["trapped"] == 0, load
        node.stop()
    for executors in ("1", "2", "4"):
        run(engine, "replay", "verify", "--data", data, "--executors", executors)
    dump = run(engine, "journal", "dump", data, "--type", "NewOrder", "--limit", "3")
    assert "matching.NewOrder" in dump and "ImmediateOrCancel" not in dump, dump


for layout in ((), ("--io", "epoll", "--threads", "one", "--executors", "2")):
    with tempfile.TemporaryDirectory() as directory:
        bad_arguments_and_files(directory)
        serve_import_replay(directory, *layout)
