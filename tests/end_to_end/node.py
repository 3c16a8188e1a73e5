# SPDX-License-Identifier: Apache-2.0
"""A node as a child process, for end-to-end tests: on loopback, on ports the kernel chooses, gone when the test ends."""

import json
import os
import signal
import socket
import subprocess
import tempfile
import time


class Node:
    """`program serve` on `data`. Use as a context manager; what is left is killed by pid."""

    def __init__(self, program, data, *arguments, listen="127.0.0.1:0"):
        self.program, self.data = program, data
        self.ready_file = tempfile.mktemp(prefix="lockstep-ready-")
        self.log = tempfile.TemporaryFile(mode="w+")
        command = [program, "serve", "--data", data, "--listen", listen, "--admin", "127.0.0.1:0",
                   "--ready-file", self.ready_file, *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self.log)
        try:
            self.await_ready()
        except BaseException:
            self.kill()
            raise
        with open(self.ready_file) as file:
            self.addresses = json.load(file)
        os.unlink(self.ready_file)

    def await_ready(self):
        deadline = time.monotonic() + 60
        while not os.path.exists(self.ready_file):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the node did not become ready (exit {self.process.poll()}):\n{self.log_text()}")
            time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def port(self, which):
        return int(self.addresses[which].rsplit(":", 1)[1])

    def log_text(self):
        self.log.seek(0)
        return self.log.read()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """SIGTERM; the node must end by itself, cleanly."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=30)
        assert status == 0, f"exit status {status} after SIGTERM:\n{self.log_text()}"


class Redis:
    """A RESP2 connection, as thin as a test needs it."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.file = self.socket.makefile("rb")

    @staticmethod
    def encode(*words):
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            data = word if isinstance(word, bytes) else str(word).encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
        return b"".join(parts)

    def send(self, data):
        self.socket.sendall(data)

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the node closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return RuntimeError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            if rest == b"-1":
                return None
            data = self.file.read(int(rest) + 2)
            if len(data) != int(rest) + 2:
                raise ConnectionError("the node closed the connection")
            return data[:-2]
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        raise AssertionError(f"not RESP2: {line!r}")

    def ask(self, *words):
        self.send(self.encode(*words))
        return self.read()


def run(*command, status=0):
    """Runs a command to its end; its stdout. Its exit status must be `status`."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == status, f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
