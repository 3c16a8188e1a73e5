# SPDX-License-Identifier: Apache-2.0
"""The servers of the comparison as child processes on loopback, each with the client that loads it.

A server is started with its data below a directory of its own and stopped by pid. `tests` names what it can be asked
for; `measure(test, pipeline, requests)` loads it and gives a Sample; `check()` ends the bench when the server did not
keep what it acknowledged.
"""

import collections
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/end_to_end"))
from node import Node, Redis  # noqa: E402

CONNECTIONS = 50
LOAD_TIMEOUT_S = 120
TICKS = os.sysconf("SC_CLK_TCK")

# Latencies in us. `distribution` is the percentile curve as (us, share of all from 0 to 1, count so far).
Sample = collections.namedtuple("Sample", "requests rate p50 p99 p999 max cpu_s distribution")


def give_up(message):
    raise SystemExit(f"bench_node: {message}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_port(process, port, what):
    for _ in range(400):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.05)
    give_up(f"{what} did not start on port {port} (exit status {process.poll()})")


def start(command, port):
    """A peer, silent."""
    try:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except FileNotFoundError:
        give_up(f"{command[0]} is not installed; ./dev bench node installs it")
    try:
        await_port(process, port, command[0])
    except BaseException:
        kill(process)
        raise
    return process


def kill(process):
    process.kill()
    process.wait()


class Server:
    """What all have in common. While another one is measured it is stopped (SIGSTOP), so that it costs nothing."""

    process = None
    tests = ("set", "get")

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        self.resume()
        self.process.terminate()
        self.process.wait(timeout=60)

    def kill(self):
        kill(self.process)

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def measure(self, test, pipeline, requests):
        self.resume()
        before = self.cpu_seconds()
        sample = self.load(test, pipeline, requests)
        return sample._replace(cpu_s=self.cpu_seconds() - before)


def run_load(command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LOAD_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        give_up(f"{' '.join(command)} did not end within {LOAD_TIMEOUT_S} s")
    if done.returncode != 0:
        give_up(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


class RespServer(Server):
    """Driven by redis-benchmark: 3-byte values under 100,000 keys."""

    def __init__(self, process, port):
        self.process, self.port = process, port

    def load(self, test, pipeline, requests):
        text = run_load(["redis-benchmark", "-p", str(self.port), "-t", test, "-n", str(requests), "-P", str(pipeline),
                         "-c", str(CONNECTIONS), "-r", "100000"]).replace("\r", "\n")
        rate = re.search(r"throughput summary: ([\d.]+) requests per second", text)
        lines = re.findall(r"^([\d.]+)% <= ([\d.]+) milliseconds \(cumulative count (\d+)\)", text, re.M)
        if not rate or not lines:
            give_up(f"redis-benchmark against port {self.port} printed no figures:\n{text}")
        curve = [(float(ms) * 1000, float(percent) / 100, int(count)) for percent, ms, count in lines]
        if curve[-1][2] != requests:
            give_up(f"port {self.port} answered {curve[-1][2]} of {requests} requests")

        def at(share):
            return next(us for us, reached, _ in curve if reached >= share)
        return Sample(requests, float(rate.group(1)), at(0.5), at(0.99), at(0.999), curve[-1][0], 0, curve)

    def check(self):
        """Of the keys that redis-benchmark has set, chosen at random, most must be there, with its value."""
        self.resume()
        connection = Redis(self.port)
        values = [connection.ask("GET", f"key:{key:012}") for key in range(0, 100_000, 1000)]
        connection.socket.close()
        if any(value not in (b"VXK", b"xxx", None) for value in values) or sum(value is not None for value in values) < 50:
            give_up(f"port {self.port} does not hold what it was told to: {values[:10]}...")


class RedisServer(RespServer):
    def __init__(self, work, *arguments):
        port = free_port()
        super().__init__(start(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", work,
                                "--daemonize", "no", *arguments], port), port)


class LockstepServer(RespServer):
    def __init__(self, kv, work, durability):
        self.node = Node(kv, work, "--resp", "127.0.0.1:0", "--durability", durability)
        super().__init__(self.node.process, self.node.port("resp"))

    def end(self):
        self.resume()
        self.node.stop()


class PeerServer(Server):
    """Driven by peer_load, as redis-benchmark drives the others."""

    tests = ("set",)

    def __init__(self, peer_load, protocol, process, port, hgrm):
        self.peer_load, self.protocol, self.process, self.port, self.hgrm = peer_load, protocol, process, port, hgrm
        self.acknowledged = 0

    def connections_for(self, _pipeline):
        return CONNECTIONS

    def pipeline_for(self, pipeline):
        return pipeline

    def requests_for(self, requests):
        return requests

    def load(self, _test, pipeline, requests):
        requests = self.requests_for(requests)
        figures = json.loads(run_load([
            self.peer_load, self.protocol, "--port", str(self.port), "--connections", str(self.connections_for(pipeline)),
            "--pipeline", str(self.pipeline_for(pipeline)), "--requests", str(requests), "--seconds", str(LOAD_TIMEOUT_S - 10),
            "--hgrm", self.hgrm]))
        self.acknowledged += figures["requests"]
        with open(self.hgrm) as file:
            rows = [line.split() for line in file if line.strip() and line[0] != "#"][1:]
        curve = [(float(row[0]), float(row[1]), int(row[2])) for row in rows]
        return Sample(requests, figures["rate"], figures["p50"], figures["p99"], figures["p99.9"], figures["max"], 0, curve)


class NatsServer(PeerServer):
    """A publish to a JetStream stream in a file, acknowledged when the stream has it."""

    def __init__(self, peer_load, work):
        port = free_port()
        process = start(["nats-server", "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", work], port)
        super().__init__(peer_load, "nats", process, port, f"{work}/load.hgrm")
        try:
            self.ask("$JS.API.STREAM.CREATE.BENCH",
                     {"name": "BENCH", "subjects": ["bench.*"], "storage": "file", "retention": "limits", "num_replicas": 1})
        except BaseException:
            self.kill()
            raise

    def requests_for(self, requests):
        return requests // 2

    def ask(self, subject, body=None):
        payload = json.dumps(body).encode() if body is not None else b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(b'CONNECT {"verbose":false,"pedantic":false}\r\nSUB _INBOX.ask 1\r\nPUB %s _INBOX.ask %d\r\n%s\r\n'
                               % (subject.encode(), len(payload), payload))
            with connection.makefile("rb") as lines:
                for line in lines:
                    if line.startswith(b"-ERR"):
                        give_up(f"nats-server refused {subject}: {line.decode()}")
                    if line.startswith(b"MSG "):
                        answer = json.loads(lines.read(int(line.split()[-1])))
                        break
                else:
                    give_up(f"nats-server closed the connection at {subject}")
        if "error" in answer:
            give_up(f"nats-server refused {subject}: {answer['error']}")
        return answer

    def check(self):
        self.resume()
        messages = self.ask("$JS.API.STREAM.INFO.BENCH")["state"]["messages"]
        if messages != self.acknowledged:
            give_up(f"nats-server acknowledged {self.acknowledged} messages and holds {messages}")


class EtcdServer(PeerServer):
    """A put through the JSON gateway. HTTP/1.1 has no pipelining worth the name: as many requests are put in flight by
    more connections, up to 800."""

    def __init__(self, peer_load, work):
        port, peer_port = free_port(), free_port()
        client_url, peer_url = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
        process = start(["etcd", "--name", "bench", "--data-dir", f"{work}/data", "--log-level", "error",
                         "--listen-client-urls", client_url, "--advertise-client-urls", client_url,
                         "--listen-peer-urls", peer_url, "--initial-advertise-peer-urls", peer_url,
                         "--initial-cluster", f"bench={peer_url}"], port)
        super().__init__(peer_load, "etcd", process, port, f"{work}/load.hgrm")

    def connections_for(self, pipeline):
        return min(CONNECTIONS * pipeline, 800)

    def pipeline_for(self, _pipeline):
        return 1

    def requests_for(self, requests):
        return max(requests // 20, 2000)

    def check(self):
        """Each put is a revision."""
        self.resume()
        body = json.dumps({"key": "AA==", "range_end": "AA==", "count_only": True}).encode()
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(b"POST /v3/kv/range HTTP/1.0\r\nHost: etcd\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            with connection.makefile("rb") as answer:
                text = answer.read().split(b"\r\n\r\n", 1)[1]
        revision = int(json.loads(text)["header"]["revision"])
        if revision - 1 != self.acknowledged:
            give_up(f"etcd acknowledged {self.acknowledged} puts and is at revision {revision}")
