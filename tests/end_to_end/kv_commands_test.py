# SPDX-License-Identifier: Apache-2.0
"""The key-value store answers Redis clients as Redis does. usage: kv_commands_test.py KV"""

import sys
import tempfile

from node import Node, Redis, run

kv = sys.argv[1]


def expect(redis, answer, *words):
    got = redis.ask(*words)
    shown = str(got) if isinstance(got, RuntimeError) else got
    assert shown == answer, f"{words}: {shown!r}, not {answer!r}"


def commands(redis):
    expect(redis, "PONG", "PING")
    expect(redis, b"hello", "ECHO", "hello")
    expect(redis, "OK", "SET", "a", "1")
    expect(redis, b"1", "GET", "a")
    expect(redis, None, "GET", "missing")
    expect(redis, 2, "INCR", "a")
    expect(redis, 12, "INCRBY", "a", "10")
    expect(redis, 11, "DECR", "a")
    expect(redis, "OK", "SET", "text", "x")
    expect(redis, "ERR value is not an integer or out of range", "INCR", "text")
    expect(redis, "OK", "SET", "top", str(2**63 - 1))
    expect(redis, "ERR increment or decrement would overflow", "INCR", "top")
    expect(redis, "OK", "MSET", "x", "1", "y", "2")
    expect(redis, [b"1", b"2", None], "MGET", "x", "y", "z")
    expect(redis, 2, "EXISTS", "x", "y", "z")
    expect(redis, 1, "DEL", "x", "z")
    expect(redis, "ERR wrong number of arguments for 'mset' command", "MSET", "x")
    expect(redis, "ERR wrong number of arguments for 'get' command", "GET")
    expect(redis, None, "SET", "a", "other", "NX")
    expect(redis, b"11", "SET", "a", "other", "GET")
    expect(redis, "ERR syntax error", "SET", "a", "b", "NX", "XX")
    expect(redis, "ERR invalid expire time", "SET", "a", "b", "EX", "0")
    expect(redis, -1, "TTL", "a")
    expect(redis, -2, "TTL", "missing")
    expect(redis, 1, "EXPIRE", "a", "100")
    expect(redis, 100, "TTL", "a")
    expect(redis, 1, "PERSIST", "a")
    expect(redis, -1, "TTL", "a")
    expect(redis, 1, "EXPIRE", "a", "-1")
    expect(redis, None, "GET", "a")
    expect(redis, "OK", "SET", b"\x00\r\n\xff", b"\x00\r\n\xff")
    expect(redis, b"\x00\r\n\xff", "GET", b"\x00\r\n\xff")
    expect(redis, "OK", "SELECT", "1")
    expect(redis, None, "GET", "y")
    expect(redis, "OK", "SELECT", "0")
    expect(redis, b"2", "GET", "y")
    assert isinstance(redis.ask("NOSUCHCOMMAND"), RuntimeError)
    assert isinstance(redis.ask("COMMAND"), list)
    assert b"redis_version" in redis.ask("INFO")
    expect(redis, "OK", "CLIENT", "SETNAME", "test")
    assert isinstance(redis.ask("CONFIG", "GET", "save"), list)
    hello = redis.ask("HELLO")
    assert redis.ask("CLIENT", "ID") == hello[hello.index(b"id") + 1] > 0, hello


def pipelines_keep_their_order(redis):
    redis.send(b"".join(Redis.encode(*words) for i in range(500)
                        for words in (("SET", "p", i), ("GET", "p"), ("PING",), ("INCR", "p"))))
    for i in range(500):
        answers = [redis.read() for _ in range(4)]
        assert answers == ["OK", str(i).encode(), "PONG", i + 1], answers


def expires_by_stamped_time(redis):
    expect(redis, "OK", "SET", "brief", "v", "PX", "30")
    while redis.ask("EXISTS", "brief") == 1:
        pass
    expect(redis, -2, "PTTL", "brief")


def serve_and_check(work, *arguments):
    data = work + "/data"
    with Node(kv, data, "--resp", "127.0.0.1:0", *arguments) as node:
        redis = Redis(node.port("resp"))
        commands(redis)
        pipelines_keep_their_order(redis)
        expires_by_stamped_time(redis)
        cli = run("redis-cli", "-p", str(node.port("resp")), "--no-raw", "MGET", "y", "nothing")
        assert cli == '1) "2"\n2) (nil)\n', cli
        bench = run("redis-benchmark", "-p", str(node.port("resp")), "-t", "set,get,incr,mset", "-n", "200000", "-P", "16",
                    "-c", "50", "-q")
        assert bench.count("requests per second") >= 4, bench
        node.stop()
    for executors in ("1", "2", "4"):
        run(kv, "replay", "verify", "--data", data, "--executors", executors)


for layout in ((), ("--io", "epoll", "--threads", "one", "--executors", "2")):
    with tempfile.TemporaryDirectory() as directory:
        serve_and_check(directory, *layout)
