"""Thousands of receivers in one process: healthy ones and broken ones, each under an address of its own.

    with Crowd() as crowd:
        crowd.url("hang", 17)                 # http://127.2.0.17:PORT/
        crowd.report()                        # {"requests": {"hang": 3, ...}, "healthy": [[at, late], ...]}

One listener on every loopback address; the second number of the address says how it behaves. Runs as a
process of its own (this file), so that its CPU is not the caller's, in one thread.

    healthy  takes everything at once; how late each event came is kept
    hang     accepts, reads, never answers
    error    500
    trickle  answers 200, then a byte of the body now and then, for ever
    refuse   nobody listens
"""
import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
import time
from datetime import datetime

CHARACTERS = ("healthy", "hang", "error", "trickle", "refuse")
BROKEN = CHARACTERS[1:]
TRICKLE_SECONDS = 0.5


class Crowd:
    """The crowd from outside."""

    def __init__(self):
        # Held, not listened on: a connection to it is refused.
        self.refusing = socket.socket()
        self.refusing.bind(("0.0.0.0", 0))
        self.process = self.port = None

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=10)
        self.process.stdout.close()
        self.refusing.close()

    def url(self, character, number):
        """Of one receiver of that character."""
        port = self.refusing.getsockname()[1] if character == "refuse" else self.port
        return f"http://127.{CHARACTERS.index(character) + 1}.{number // 250}.{number % 250 + 1}:{port}/"

    def report(self):
        """What came since the last report; CPU seconds used so far."""
        self.process.stdin.write("report\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


class Record:
    """What came."""

    def __init__(self):
        self.clear()

    def clear(self):
        """From now on."""
        self.requests = dict.fromkeys(CHARACTERS, 0)
        self.healthy = []

    def take(self, character, body):
        """One request."""
        self.requests[character] += 1
        if character == "healthy":
            now = time.time()
            happened = datetime.fromisoformat(json.loads(body)["timestamp"].replace("Z", "+00:00"))
            self.healthy.append((now, now - happened.timestamp()))

    def tell(self):
        """A line for the other side."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(json.dumps({"requests": self.requests, "healthy": self.healthy,
                          "cpu_seconds": used.ru_utime + used.ru_stime}), flush=True)
        self.clear()


class Connection(asyncio.Protocol):
    """One connection of a receiver."""

    def __init__(self, record):
        self.record = record
        self.transport = self.character = None
        self.bytes = b""
        self.trickling = None

    def connection_made(self, transport):
        """The address that was called says who answers."""
        self.transport = transport
        self.character = CHARACTERS[int(transport.get_extra_info("sockname")[0].split(".")[1]) - 1]

    def connection_lost(self, exc):
        """The other side has had enough."""
        if self.trickling:
            self.trickling.cancel()

    def data_received(self, data):
        """Answers every request that is complete."""
        self.bytes += data
        while (end := self.bytes.find(b"\r\n\r\n")) >= 0:
            head = self.bytes[:end].lower()
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            if len(self.bytes) < end + 4 + length:
                return
            body, self.bytes = self.bytes[end + 4:end + 4 + length], self.bytes[end + 4 + length:]
            self.record.take(self.character, body)
            self.answer()

    def answer(self):
        """By character."""
        if self.character == "healthy":
            self.transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        elif self.character == "error":
            self.transport.write(b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n")
        elif self.character == "trickle":
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            self.trickle()

    def trickle(self):
        """One byte more."""
        self.transport.write(b"x")
        self.trickling = asyncio.get_running_loop().call_later(TRICKLE_SECONDS, self.trickle)


async def main():
    """Serves until stdin ends."""
    record, loop = Record(), asyncio.get_running_loop()
    many = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (many, many))
    server = await loop.create_server(lambda: Connection(record), "0.0.0.0", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        record.tell()


if __name__ == "__main__":
    asyncio.run(main())
