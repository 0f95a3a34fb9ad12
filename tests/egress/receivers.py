"""Receivers that misbehave, and the sender as a program (egress_probe) to send to them.

    with Receiver(hang) as receiver:
        results, summary = probe([{"url": receiver.url}], "--allow-private")

A receiver is a listening socket on 127.0.0.1 (or another loopback address) and a function that gets
each connection in a thread of its own; what it does there is its character.
"""
import contextlib
import json
import os
import socket
import ssl
import struct
import subprocess
import threading
import zlib

from harness import machine
from harness.pace import Stopwatch
from harness.weir_server import SANITIZER_REPORT, binary

PIECE = b"x" * 65536
PORTS_TRIED = 100


def probe_path():
    """The probe built beside the server under test."""
    path = os.environ.get("EGRESS_PROBE") or os.path.join(
        os.path.dirname(binary()), "tests", "egress", "egress_probe")
    assert os.path.exists(path), f"{path}: build with tests, or name it in EGRESS_PROBE"
    return path


def probe(requests, *options, env=None, seconds=60):
    """Sends the requests; (results in the order they ended, summary)."""
    # Freed memory kept back by the sanitizer would count as the sender's.
    sanitizer = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
    sanitizer = machine.without_leaks(sanitizer + ":thread_local_quarantine_size_kb=64")
    done = subprocess.run([probe_path(), *options], input="".join(json.dumps(r) + "\n" for r in requests),
                          env={**os.environ, "ASAN_OPTIONS": sanitizer.strip(":"), **(env or {})},
                          capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0 and not SANITIZER_REPORT.search(done.stderr), done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return lines[:-1], lines[-1]["summary"]


def probe_one(url, *options, **request):
    """The result of one request."""
    results, _ = probe([{"url": url, **request}], *options)
    assert len(results) == 1
    return results[0]


@contextlib.contextmanager
def public_and_private(character):
    """Two receivers with one port: one with this character on an address that is public to the guard's tests,
    and one on a private address. A port that is free on the one may be in use on the other: then another is
    tried."""
    for _ in range(PORTS_TRIED):
        public = Receiver(character, host="127.0.0.2")
        try:
            private = Receiver(answering(answer(200)), port=public.port)
        except OSError:
            public.socket.close()
            continue
        with public, private:
            yield public, private
        return
    raise AssertionError(f"{PORTS_TRIED} ports of 127.0.0.2 are in use on 127.0.0.1")


class Receiver:
    """Listens until the end of its `with`; counts connections and keeps the requests that were read."""

    def __init__(self, character, host="127.0.0.1", port=0, tls=None):
        self.character, self.tls = character, tls
        self.connections = 0
        self.bytes_sent = 0
        self.requests = []
        self.ended = threading.Event()
        self.socket = socket.create_server((host, port), backlog=1024)
        self.host, self.port = self.socket.getsockname()[:2]
        self.url = f"http://{host}:{self.port}/hook"
        self.thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()

    def _accept(self):
        while not self.ended.is_set():
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        connection.settimeout(30)
        try:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            self.character(self, connection)
        except OSError:
            pass  # the sender has closed: what most of these tests are about
        finally:
            connection.close()

    def send(self, connection, data):
        """Sends and counts."""
        connection.sendall(data)
        self.bytes_sent += len(data)

    def read_request(self, connection):
        """One request: (head, body), kept in `requests`; None when the connection has ended."""
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return None
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        while len(body) < length:
            body += connection.recv(65536)
        self.requests.append((head.decode(), body))
        return head, body


def answering(answer):
    """The same bytes to every request, on a connection that stays open."""
    def character(receiver, connection):
        while receiver.read_request(connection):
            receiver.send(connection, answer)
    return character


def answering_together(count, answer):
    """The same bytes to so many requests at once: none of them is answered before all of them are there."""
    gate = threading.Barrier(count)

    def character(receiver, connection):
        while receiver.read_request(connection):
            gate.wait(timeout=30)
            receiver.send(connection, answer)
    return character


def answering_once(answer):
    """The same bytes to one request, then the end of the connection."""
    def character(receiver, connection):
        receiver.read_request(connection)
        receiver.send(connection, answer)
    return character


def answer(status, *fields, body=b""):
    """An answer with its length."""
    lines = [f"HTTP/1.1 {status} Text", *fields, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def hang(receiver, _connection):
    """Accepts, and does nothing until the end."""
    receiver.ended.wait(30)


def hang_after_head(receiver, connection):
    """The head of a 200, and never its body."""
    receiver.read_request(connection)
    receiver.send(connection, b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
    receiver.ended.wait(30)


def hang_inside_head(receiver, connection):
    """Half a head."""
    receiver.read_request(connection)
    receiver.send(connection, b"HTTP/1.1 200 OK\r\nContent-Le")
    receiver.ended.wait(30)


def reset(receiver, connection):
    """Reads the request, then RST."""
    receiver.read_request(connection)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def close_at_once(_receiver, _connection):
    """Accepts and closes."""


def trickle_body(receiver, connection):
    """A 200 whose body comes a byte at a time, for ever."""
    receiver.read_request(connection)
    receiver.send(connection, b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not receiver.ended.wait(0.05):
        receiver.send(connection, b"x")


def trickle_head(receiver, connection):
    """A head that comes a byte at a time, for ever."""
    receiver.read_request(connection)
    receiver.send(connection, b"HTTP/1.1 200 OK\r\nX: ")
    while not receiver.ended.wait(0.05):
        receiver.send(connection, b"x")


def endless(start, piece):
    """Sends `start`, then `piece` as fast as it can until the sender has enough."""
    def character(receiver, connection):
        receiver.read_request(connection)
        receiver.send(connection, start)
        while not receiver.ended.is_set() and receiver.bytes_sent < 1 << 30:
            receiver.send(connection, piece)
    return character


def gzip_bomb(megabytes):
    """So many megabytes of zeros, compressed about a thousand times."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join([packer.compress(bytes(1 << 20)) for _ in range(megabytes)] + [packer.flush()])


def chunked(body):
    """One chunk and the last one."""
    return f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"


def certificate(folder, name, host, days, ca=None):
    """Paths of a certificate and its key, signed by `ca` (another such pair) or by itself."""
    cert, key = os.path.join(folder, name + ".crt"), os.path.join(folder, name + ".key")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
               "-keyout", key, "-out", cert, "-subj", "/CN=" + name, "-days", str(days)]
    if host:
        command += ["-addext", "subjectAltName=" + host]
    if ca:
        request = os.path.join(folder, name + ".csr")
        extensions = os.path.join(folder, name + ".ext")
        with open(extensions, "w", encoding="utf-8") as file:
            file.write("subjectAltName=" + host + "\n")
        subprocess.run([*command[:2], *command[3:11], request, *command[12:14]], check=True,
                       capture_output=True)
        command = ["openssl", "x509", "-req", "-in", request, "-CA", ca[0], "-CAkey", ca[1],
                   "-CAcreateserial", "-days", str(days), "-extfile", extensions, "-out", cert]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


def tls_context(pair):
    """A server's context with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    return context


def seconds_of(function):
    """(what it gave, how long it took, as a quiet machine has it)"""
    watch = Stopwatch()
    return function(), watch.quiet()
