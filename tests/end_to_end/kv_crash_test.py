# SPDX-License-Identifier: Apache-2.0
"""kill -9 in the middle of a redis-benchmark run: after a restart each acknowledged write is there, and the journal
replays to the same bits. usage: kv_crash_test.py KV [ROUNDS]"""

import random
import subprocess
import sys
import tempfile
import threading
import time

from node import Node, Redis, run

kv = sys.argv[1]
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
pipeline = 16


class Writer(threading.Thread):
    """Sets keys nobody else sets, in pipelines, and remembers what was acknowledged."""

    def __init__(self, port, name):
        super().__init__()
        self.redis, self.name_, self.acknowledged = Redis(port), name, 0

    def run(self):
        try:
            while True:
                first = self.acknowledged
                self.redis.send(b"".join(Redis.encode("SET", f"{self.name_}:{i}", f"v{i}")
                                         for i in range(first, first + pipeline)))
                for _ in range(pipeline):
                    if self.redis.read() != "OK":
                        return
                    self.acknowledged += 1
        except OSError:
            return


def check_acknowledged(port, writers):
    redis = Redis(port)
    for writer in writers:
        for first in range(0, writer.acknowledged, 500):
            keys = range(first, min(first + 500, writer.acknowledged))
            values = redis.ask("MGET", *(f"{writer.name_}:{i}" for i in keys))
            for i, value in zip(keys, values):
                assert value == f"v{i}".encode(), f"acknowledged {writer.name_}:{i} is {value!r} after the restart"


with tempfile.TemporaryDirectory() as work:
    data = work + "/data"
    writers = []
    random.seed(7)
    for number in range(rounds):
        with Node(kv, data, "--resp", "127.0.0.1:0") as node:
            port = node.port("resp")
            check_acknowledged(port, writers)
            bench = subprocess.Popen(["redis-benchmark", "-p", str(port), "-t", "set,get,incr,mset", "-n", "2000000",
                                      "-P", "16", "-c", "50", "-q"], stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
            now = [Writer(port, f"round{number}-{i}") for i in range(2)]
            for writer in now:
                writer.start()
            while min(writer.acknowledged for writer in now) < 200 + random.randrange(800):
                time.sleep(0.002)
            node.kill()
            for writer in now:
                writer.join()
            bench.kill()
            bench.wait()
            writers += now
    with Node(kv, data, "--resp", "127.0.0.1:0") as node:
        check_acknowledged(node.port("resp"), writers)
        node.stop()
    run(kv, "replay", "verify", "--data", data, "--executors", "2")
    print(sum(writer.acknowledged for writer in writers), "acknowledged writes survived", rounds, "kills")
