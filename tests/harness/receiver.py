"""A receiver of webhooks under the test's control: what it got, and how it answers.

    with Receiver() as receiver:
        receiver.answers = [500, 200]        # one after the other; the last one stays
        ...
        calls = receiver.wait(3)

An answer is a status, or a function of the request handler that answers by itself (or does not).
"""
import base64
import hashlib
import hmac
import json
import socket
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness.weir_server import wait_for


class Call:
    """One request as it came."""

    def __init__(self, path, headers, body):
        self.path = path
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.body = body
        self.at = time.time()
        self.status = None  # what was answered; None: nothing, or not yet

    @property
    def json(self):
        """Its body."""
        return json.loads(self.body)

    @property
    def id(self):
        """`webhook-id`."""
        return self.headers["webhook-id"]

    @property
    def event(self):
        """The event it carries."""
        return self.json["data"]


def is_signed(call, secret):
    """Whether one of the signatures is ours over "id.timestamp.body"; written from the specification."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    text = f"{call.headers['webhook-id']}.{call.headers['webhook-timestamp']}.".encode() + call.body
    wanted = base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(given, f"v1,{wanted}")
               for given in call.headers["webhook-signature"].split(" "))


def hang(_handler):
    """Answers nothing until the test is over."""
    time.sleep(3600)


def slowly(seconds, status=200):
    """Answers after a while."""
    def answer(handler):
        time.sleep(seconds)
        handler.reply(status)
    return answer


def hang_up(handler):
    """Reads everything, and answers nothing."""
    handler.close_connection = True


def take_and_reset(handler):
    """Takes it, but the answer may be lost: the connection is torn down behind it."""
    handler.reply(200)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True


def one_of(rng, *answers):
    """Another one each time, by chance."""
    def answer(handler):
        chosen = rng.choice(answers)
        if callable(chosen):
            chosen(handler)
        else:
            handler.reply(chosen)
    return answer


class Server(ThreadingHTTPServer):
    """Many connections at once, and nobody waits for them at the end."""
    daemon_threads = True
    request_queue_size = 512
    receiver = None

    def handle_error(self, request, client_address):
        """A client that hangs up is not the receiver's trouble."""


class Receiver:
    """See the module's text."""

    def __init__(self, host="127.0.0.1"):
        self.answers = [200]
        self.headers = {}
        self.calls = []
        self.lock = threading.Lock()
        self.server = Server((host, 0), self.handler())
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def handler(self):
        """The request handler's class, bound to this receiver."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            """Keeps the call, then answers as told."""
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # noqa: N802 (the base class's name)
                """One delivery."""
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with receiver.lock:
                    answer = receiver.answers[0]
                    if len(receiver.answers) > 1:
                        receiver.answers.pop(0)
                    self.call = Call(self.path, self.headers, body)
                    receiver.calls.append(self.call)
                if callable(answer):
                    answer(self)
                else:
                    self.reply(answer)

            def reply(self, status):
                """An empty answer with the receiver's headers."""
                self.call.status = status
                self.send_response(status)
                for name, value in receiver.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format, *args):  # pylint: disable=redefined-builtin
                """Quiet."""

        return Handler

    @property
    def url(self):
        """Where it listens."""
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def wait(self, count, seconds=20):
        """The calls, once there are so many."""
        wait_for(lambda: len(self.calls) >= count, seconds, f"{count} calls, there are {len(self.calls)}")
        return list(self.calls)
