# SPDX-License-Identifier: Apache-2.0
"""An executor's thread makes no system call while it is busy: strace counts them over a million messages.
usage: quiet_executor_test.py BANK"""

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
requests = 1_000_000


def thread_named(pid, name):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/comm") as file:
                if file.read().strip() == name:
                    return task
        time.sleep(0.01)
    raise AssertionError(f"no thread {name}")


with tempfile.TemporaryDirectory() as work:
    # Threads that spin never sleep, so nobody has to be woken; what is left is the work itself.
    with Node(bank, work + "/data", "--durability", "none", "--threads", "dedicated", "--executors", "1", "--spin-us",
              "1000000") as node:
        counts = work + "/counts"
        strace = subprocess.Popen(["strace", "-c", "-o", counts, "-p", thread_named(node.process.pid, "executor-0")],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        assert strace.poll() is None, "strace could not attach"
        report = json.loads(run(bank, "bench", "--connect", node.addresses["listen"], "--requests", str(requests), "--json"))
        strace.send_signal(signal.SIGINT)
        strace.wait(timeout=20)
        with open(counts) as file:
            summary = file.read()
        node.stop()
    assert report["answered"] == requests, report
    calls = sum(int(line.split()[3]) for line in summary.splitlines() if re.match(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+\d+", line)
                and not line.rstrip().endswith("total"))
    print(f"{calls} system calls over {requests} messages")
    assert calls < 100, f"an executor made {calls} system calls over {requests} messages:\n{summary}"
