# SPDX-License-Identifier: Apache-2.0
"""kill -9 in the middle of a client's traffic, again and again: its session goes on, and every request runs once.
usage: session_crash_test.py BANK CUSTOMER"""

import socket
import subprocess
import sys
import tempfile
import time

from node import Node, run

bank, customer = sys.argv[1:3]
kills = 4
requests = 60000


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def progress(client, until):
    """Reads the customer's progress until it has sent so many requests."""
    for line in client.stdout:
        if int(line) >= until:
            return
    raise AssertionError("the customer ended early:\n" + client.stderr.read())


with tempfile.TemporaryDirectory() as work:
    data = work + "/data"
    listen = f"127.0.0.1:{free_port()}"
    node = Node(bank, data, listen=listen)
    client = subprocess.Popen([customer, listen.rsplit(":", 1)[1], str(requests)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    try:
        for kill in range(kills):
            progress(client, (kill + 1) * requests // (kills + 1))
            node.kill()
            time.sleep(0.05)  # the customer meets a closed port
            node = Node(bank, data, listen=listen)
        output, errors = client.communicate(timeout=150)
        assert client.returncode == 0, errors
        node.stop()
    finally:
        node.__exit__()
        if client.poll() is None:
            client.kill()
            client.wait()
    run(bank, "replay", "verify", "--data", data, "--executors", "2")
    print(requests, "requests ran once each through", kills, "kills")
