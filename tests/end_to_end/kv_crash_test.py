# SPDX-License-Identifier: Apache-2.0
"""kill -9 in the middle of a redis-benchmark run, snapshots being taken meanwhile: after a restart each acknowledged
write is there, and the journal replays to the same bits. usage: kv_crash_test.py KV [ROUNDS]"""

import glob
import random
import subprocess
import sys
import tempfile
import time

from acknowledged import Writer, check
from node import Node, run

kv = sys.argv[1]
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3

with tempfile.TemporaryDirectory() as work:
    data, config = work + "/data", work + "/node.toml"
    with open(config, "w") as file:
        file.write("[journal]\nsegment_bytes = 16777216\n[snapshots]\nevery_bytes = 1048576\n")
    arguments = ["--resp", "127.0.0.1:0", "--config", config]
    acknowledged, latest = {}, {}
    random.seed(7)
    for number in range(rounds):
        with Node(kv, data, *arguments) as node:
            port = node.port("resp")
            check(port, latest)  # and all of them at the end
            bench = subprocess.Popen(["redis-benchmark", "-p", str(port), "-t", "set,get,incr,mset", "-n", "2000000",
                                      "-P", "16", "-c", "50", "-q"], stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
            writers = [Writer(port, f"round{number}-{i}") for i in range(2)]
            for writer in writers:
                writer.start()
            while min(writer.acknowledged for writer in writers) < 200 + random.randrange(800):
                time.sleep(0.002)
            node.kill()
            for writer in writers:
                writer.join()
            bench.kill()
            bench.wait()
            latest = {writer.name_: writer.acknowledged for writer in writers}
            acknowledged.update(latest)
    with Node(kv, data, *arguments) as node:
        check(node.port("resp"), acknowledged)
        node.stop()
    assert glob.glob(data + "/snap-*.snp"), "no snapshot came about"
    run(kv, "replay", "verify", "--data", data, "--executors", "2")
    print(sum(acknowledged.values()), "acknowledged writes survived", rounds, "kills")
