# SPDX-License-Identifier: Apache-2.0
"""A file system that goes down under load, without writing its log (ext4's shutdown ioctl on a loop mount): the node
says so and stops; after a mount and a restart all that was acknowledged before is there, and the journal replays equal.
Needs root and a loop device. usage: power_cut_test.py KV [CYCLES]"""

import fcntl
import os
import struct
import subprocess
import sys
import tempfile
import time

from acknowledged import Writer, check
from node import Node, run

kv = sys.argv[1]
cycles = int(sys.argv[2]) if len(sys.argv) > 2 else 3
skipped = 77  # Meson's word for a test that could not run here
ext4_shutdown = 0x8004587D  # EXT4_IOC_SHUTDOWN, _IOR('X', 125, __u32)
without_log_flush = 2


class Disk:
    """An ext4 file system in a file, which can be cut off."""

    def __init__(self, work):
        self.image, self.mount_point = work + "/image", work + "/mount"
        os.mkdir(self.mount_point)
        with open(self.image, "wb") as file:
            file.truncate(768 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", self.image], check=True)

    def mount(self):
        done = subprocess.run(["mount", "-o", "loop", self.image, self.mount_point], stderr=subprocess.PIPE, text=True)
        return done.returncode == 0

    def cut(self):
        directory = os.open(self.mount_point, os.O_RDONLY)
        try:
            fcntl.ioctl(directory, ext4_shutdown, struct.pack("I", without_log_flush))
        finally:
            os.close(directory)

    def unmount(self):
        deadline = time.monotonic() + 10
        while subprocess.run(["umount", self.mount_point], stderr=subprocess.DEVNULL).returncode != 0:
            assert time.monotonic() < deadline, "the mount stays busy"
            time.sleep(0.05)


with tempfile.TemporaryDirectory() as work:
    if os.geteuid() != 0:
        print("not root: no loop mount")
        sys.exit(skipped)
    disk = Disk(work)
    config = work + "/node.toml"
    with open(config, "w") as file:
        file.write("[journal]\nsegment_bytes = 16777216\n")
    sure = {}
    for cycle in range(cycles):
        if not disk.mount():
            print("cannot mount a loop device here")
            sys.exit(skipped)
        try:
            with Node(kv, disk.mount_point + "/data", "--resp", "127.0.0.1:0", "--config", config) as node:
                check(node.port("resp"), sure)
                writers = [Writer(node.port("resp"), f"cycle{cycle}-{i}") for i in range(2)]
                for writer in writers:
                    writer.start()
                while min(writer.acknowledged for writer in writers) < 300 + 97 * (cycle % 7):
                    time.sleep(0.002)
                # Counted before the cut: an answer that comes after it may be to a write that was synced before.
                sure.update((writer.name_, writer.acknowledged) for writer in writers)
                disk.cut()
                status = node.process.wait(timeout=30)
                for writer in writers:
                    writer.join()
                assert status != 0 and "error" in node.log_text(), f"exit {status}:\n{node.log_text()}"
        finally:
            disk.unmount()
    assert disk.mount()
    try:
        data = disk.mount_point + "/data"
        with Node(kv, data, "--resp", "127.0.0.1:0", "--config", config) as node:
            check(node.port("resp"), sure)
            node.stop()
        run(kv, "replay", "verify", "--data", data, "--executors", "2")
    finally:
        disk.unmount()
    print(sum(sure.values()), "acknowledged writes survived", cycles, "power cuts")
