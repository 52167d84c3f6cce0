"""Rows/s of a parameter server and of Redis with a Lua script, for the same updates, beside those of the loopback interface.

usage: redis.py PUSHES REDIS WORK [--runs N] [--seconds S]
  PUSHES  the example pushes of crates/parameters
  REDIS   the folder of Redis: .deps/redis, from bootstrap/laptop.sh redis
  WORK    a folder for logs; WORK/log must not exist

Two clients add 1,000 random rows of 100 floats per message, then read as many, one message at a time. Redis has a row per
key, and a script adds the rows of a message. Its clients only send bytes that were made before, and count replies. Both
servers log to disk: before each acknowledgement, each second, or not at all. The limit of the loopback interface is that of a
process per client which only reads and sends the bytes of the rows.
"""

import argparse
import json
import multiprocessing
import os
import random
import shutil
import socket
import statistics
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

ROWS, DIM, TABLE, CLIENTS = 1000, 100, 100_000, 2
# Different messages of a client.
MESSAGES = 20
# Settings of Redis for each --log-sync.
LOGS = {
    "always": ["--appendonly", "yes", "--appendfsync", "always"],
    "interval": ["--appendonly", "yes", "--appendfsync", "everysec"],
    "off": ["--appendonly", "no"],
}
ADD = """
local format, rows, values = '<' .. string.rep('f', ARGV[1]), ARGV[2], ARGV[3]
for at = 0, #rows / 4 - 1 do
  local row = 'row' .. struct.unpack('<I4', rows, 4 * at + 1)
  local sums = {struct.unpack(format, redis.call('GET', row))}
  local added = {struct.unpack(format, values, 4 * ARGV[1] * at + 1)}
  for column = 1, ARGV[1] do sums[column] = sums[column] + added[column] end
  redis.call('SET', row, struct.pack(format, unpack(sums, 1, ARGV[1])))
end
return #rows / 4
"""


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("pushes", type=Path)
    parser.add_argument("redis", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    for log_sync in LOGS:
        for name, measure in (("parameters", of_parameters), ("redis", of_redis)):
            runs = [measure(arguments, log_sync) for _ in range(arguments.runs)]
            pushed, pulled = (list(of) for of in zip(*runs, strict=True))
            print(f"{log_sync:9} {name:11} pushed {spread(pushed)}  pulled {spread(pulled)}", flush=True)
    pushed, pulled = (list(of) for of in zip(*(of_loopback(arguments.seconds) for _ in range(arguments.runs)), strict=True))
    print(f"{'':9} {'loopback':11} pushed {spread(pushed)}  pulled {spread(pulled)}", flush=True)


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):11,.0f} ({min(values):,.0f}-{max(values):,.0f})"


def of_parameters(arguments: argparse.Namespace, log_sync: str) -> tuple[float, float]:
    folder = arguments.work / "log"
    settings = [log_sync, "f32", str(CLIENTS), str(ROWS), str(DIM), str(arguments.seconds)]
    said = subprocess.run([arguments.pushes, folder, *settings], check=True, capture_output=True).stdout
    shutil.rmtree(folder)
    found = json.loads(said)
    return found["pushed_rows_per_s"], found["pulled_rows_per_s"]


def of_redis(arguments: argparse.Namespace, log_sync: str) -> tuple[float, float]:
    folder = (arguments.work / "log").resolve()
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    libraries = arguments.redis / "usr/lib/x86_64-linux-gnu"
    server = subprocess.Popen(
        [arguments.redis / "usr/bin/redis-server", "--port", str(port), "--save", "", "--dir", folder, *LOGS[log_sync]],
        env={**os.environ, "LD_LIBRARY_PATH": str(libraries)},
        stdout=subprocess.DEVNULL,
    )
    try:
        connection = connect(port)
        zero = bytes(4 * DIM)
        for first in range(0, TABLE, 1000):
            pairs = [part for row in range(first, first + 1000) for part in (b"row%d" % row, zero)]
            ask(connection, command(b"MSET", *pairs))
        digest = ask(connection, command(b"SCRIPT", b"LOAD", ADD.encode()))
        rates = tuple(all_clients(arguments.seconds, port, make, digest) for make in (pushes, pulls))
        assert len(rates) == 2
        return rates
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(folder)


def of_loopback(seconds: float) -> tuple[float, float]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        servers = [multiprocessing.Process(target=exchange, args=(listener,), daemon=True) for _ in range(2 * CLIENTS)]
        for server in servers:
            server.start()
        port = listener.getsockname()[1]
        rates = tuple(all_clients(seconds, port, make, b"", exchanged) for make in (bytes_of_pushes, bytes_of_pulls))
        for server in servers:
            server.join()
    assert len(rates) == 2
    return rates


def exchange(listener: socket.socket) -> None:
    """Serves one client: reads messages of a length, and sends replies of a length; both are in the message."""
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    buffer = memoryview(bytearray(8 + ROWS * 4 * (1 + DIM)))
    while True:
        n = connection.recv_into(buffer)
        if n == 0:
            return
        length, reply = struct.unpack_from("<2I", buffer)
        while n < 8 + length:
            n += connection.recv_into(buffer[n:])
        connection.sendall(buffer[:reply])


def exchanged(connection: socket.socket, message: bytes) -> None:
    connection.sendall(message)
    expected = struct.unpack_from("<2I", message)[1]
    while expected > 0:
        expected -= len(connection.recv(1 << 20))


def bytes_of_pushes(*_) -> bytes:
    length = ROWS * 4 * (1 + DIM)
    return struct.pack("<2I", length, 8) + bytes(length)


def bytes_of_pulls(*_) -> bytes:
    return struct.pack("<2I", ROWS * 4, ROWS * 4 * DIM) + bytes(ROWS * 4)


def all_clients(seconds: float, port: int, make: Callable, digest: bytes, send: Callable | None = None) -> float:
    """Rows per second of all clients."""
    with multiprocessing.Pool(CLIENTS) as pool:
        return sum(pool.starmap(client, [(seed, seconds, port, make, digest, send or ask) for seed in range(CLIENTS)]))


def client(seed: int, seconds: float, port: int, make: Callable, digest: bytes, send: Callable) -> float:
    draw = random.Random(seed)
    messages = [make(draw, digest) for _ in range(MESSAGES)]
    connection = connect(port)
    began, n = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        send(connection, messages[n % MESSAGES])
        n += 1
    return n * ROWS / (time.perf_counter() - began)


def pushes(draw: random.Random, digest: bytes) -> bytes:
    rows = sorted(draw.sample(range(TABLE), ROWS))
    values = [draw.random() - 0.5 for _ in range(ROWS * DIM)]
    packed = struct.pack(f"<{ROWS}I", *rows), struct.pack(f"<{ROWS * DIM}f", *values)
    return command(b"EVALSHA", digest, b"0", b"%d" % DIM, *packed)


def pulls(draw: random.Random, _: bytes) -> bytes:
    return command(b"MGET", *(b"row%d" % row for row in sorted(draw.sample(range(TABLE), ROWS))))


def command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def connect(port: int) -> socket.socket:
    deadline = time.monotonic() + 10
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection


def ask(connection: socket.socket, message: bytes) -> bytes:
    """Sends a command. Returns a short reply; the rows of MGET are read and dropped."""
    connection.sendall(message)
    reply = connection.recv(1 << 20)
    if reply.startswith(b"-"):
        raise RuntimeError(reply.decode())
    if reply.startswith(b"*"):
        expected = len(b"*%d\r\n" % ROWS) + ROWS * (len(b"$%d\r\n" % (4 * DIM)) + 4 * DIM + 2)
        n = len(reply)
        while n < expected:
            n += len(connection.recv(1 << 20))
        return b""
    if reply.startswith(b"$"):
        return reply.split(b"\r\n")[1]
    return reply


if __name__ == "__main__":
    main()
