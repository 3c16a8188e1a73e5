# SPDX-License-Identifier: Apache-2.0
"""Writes to the key-value store whose acknowledgements are counted, and the check that they are there: for tests that
kill a node, or its disk, under load."""

import contextlib
import threading

from node import Redis

pipeline = 16


class Writer(threading.Thread):
    """Sets keys nobody else sets, in pipelines, until the node is gone; counts what was acknowledged."""

    def __init__(self, port, name):
        super().__init__()
        self.redis, self.name_, self.acknowledged = Redis(port), name, 0

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                first = self.acknowledged
                self.redis.send(b"".join(Redis.encode("SET", f"{self.name_}:{i}", i)
                                         for i in range(first, first + pipeline)))
                for _ in range(pipeline):
                    if self.redis.read() != "OK":
                        return
                    self.acknowledged += 1


def check(port, counts):
    """`counts`: by writer's name, how many of its writes must be there."""
    redis = Redis(port)
    for name, count in counts.items():
        for first in range(0, count, 500):
            keys = range(first, min(first + 500, count))
            for i, value in zip(keys, redis.ask("MGET", *(f"{name}:{i}" for i in keys))):
                assert value == str(i).encode(), f"acknowledged {name}:{i} is {value!r} after the restart"
