"""A small HTTP client for black-box tests: one connection per call, nothing retried."""
import http.client
import json as json_module
import socket
import threading

CALL_SECONDS_MAX = 60


class Response:
    """One answer: status, headers (names in lower case), body bytes."""

    def __init__(self, status, headers, body, asked):
        self.status = status
        self.headers = headers
        self.body = body
        self.asked = asked  # "POST /v1/jobs", for messages

    @property
    def text(self):
        """The body as text."""
        return self.body.decode("utf-8")

    @property
    def json(self):
        """The body as JSON; a test that asks for it has failed when it is none."""
        try:
            return json_module.loads(self.body)
        except ValueError:
            raise AssertionError(f"{self.asked}: the body is not JSON: {self!r}") from None

    def __repr__(self):
        return f"<{self.asked} -> {self.status} {self.body[:600]!r}>"

    def expect(self, status):
        """Asserts the status and gives the parsed body (None when it is empty)."""
        assert self.status == status, f"expected {status}: {self!r}"
        return self.json if self.body else None

    def expect_problem(self, status, code):
        """Asserts a complete problem document with this status and code; gives it back."""
        assert self.status == status, f"expected {status} {code}: {self!r}"
        kind = self.headers.get("content-type", "")
        assert kind.split(";")[0] == "application/problem+json", f"content type {kind}: {self!r}"
        problem = self.json
        assert problem.get("code") == code, f"expected {code}: {self!r}"
        assert problem.get("status") == status, f"status in the document: {self!r}"
        for field in ("type", "title", "detail", "instance"):
            value = problem.get(field)
            assert isinstance(value, str) and value, f"problem field {field}: {self!r}"
        assert ":" in problem["type"], f"type is no URI: {self!r}"
        request_id = self.headers.get("x-request-id")
        assert request_id and request_id in problem["instance"], f"instance: {self!r}"
        wait = self.headers.get("retry-after", "")
        assert status not in (429, 503) or wait.isdigit() and int(wait) >= 1, f"Retry-After: {self!r}"
        return problem


def encode(body):
    """(bytes, content type) of a body given as bytes, text, anything JSON, or None."""
    if body is None:
        return None, None
    if isinstance(body, bytes):
        return body, "application/json"
    if isinstance(body, str):
        return body.encode("utf-8"), "application/json"
    return json_module.dumps(body).encode("utf-8"), "application/json"


def connect(address, timeout):
    """A connection to (host, port), over TLS to a tls.SecureAddress."""
    context = getattr(address, "context", None)
    if context:
        return http.client.HTTPSConnection(*address, timeout=timeout, context=context)
    return http.client.HTTPConnection(*address, timeout=timeout)


def call(address, method, path, body=None, key=None, headers=None, timeout=CALL_SECONDS_MAX):
    """One request to (host, port). `headers` beat what is made here; None leaves one out."""
    payload, content_type = encode(body)
    sent = {}
    if content_type:
        sent["Content-Type"] = content_type
    elif method in ("POST", "PUT", "PATCH"):
        sent["Content-Length"] = "0"
    if key:
        sent["Authorization"] = "Bearer " + key
    for name, value in (headers or {}).items():
        sent.pop(next((n for n in sent if n.lower() == name.lower()), None), None)
        if value is not None:
            sent[name] = value
    connection = connect(address, timeout)
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        if payload is not None and "content-length" not in [n.lower() for n in sent]:
            connection.putheader("Content-Length", str(len(payload)))
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders(payload)
        answer = connection.getresponse()
        return Response(answer.status, {n.lower(): v for n, v in answer.getheaders()},
                        answer.read(), f"{method} {path}")
    finally:
        connection.close()


def send_raw(address, request, timeout=10, half_close=False):
    """Sends bytes as they are and gives every byte that came back until the server closed.

    One that keeps the connection open is left after `timeout` seconds with what came so far."""
    received = b""
    with socket.create_connection(address, timeout=timeout) as connection:
        connection.sendall(request)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        try:
            while True:
                chunk = connection.recv(65536)
                if not chunk:
                    return received
                received += chunk
        except (TimeoutError, ConnectionResetError):
            return received


def follow(address, path, key=None, headers=None, timeout=30, comments=None):
    """Follows a text/event-stream; yields each message as {"event", "id", "data"}; data is parsed. Comments,
    such as pings, are added to a list that is given.

    Close the generator to end it. Waiting longer than `timeout` for the next byte raises."""
    connection = connect(address, timeout)
    try:
        sent = {"Accept": "text/event-stream", **(headers or {})}
        if key:
            sent["Authorization"] = "Bearer " + key
        connection.request("GET", path, headers=sent)
        answer = connection.getresponse()
        assert answer.status == 200, f"GET {path} -> {answer.status} {answer.read()[:600]!r}"
        message = {}
        for raw in answer:
            line = raw.decode("utf-8").rstrip("\r\n")
            name, _, value = line.partition(":")
            if name:
                message[name] = value.removeprefix(" ")
            elif line and comments is not None:
                comments.append(line)
            elif not line and "data" in message:
                yield {**message, "data": json_module.loads(message["data"])}
                message = {}
    finally:
        connection.close()


class Background:
    """A GET in a thread of its own, for calls that wait. Leaving the `with` waits for its end."""

    def __init__(self, address, path, key, timeout=60):
        self.answer = None
        connection = connect(address, timeout)
        connection.request("GET", path, headers={"Authorization": "Bearer " + key})
        self.thread = threading.Thread(target=self.take, args=(connection, path))
        self.thread.start()

    def take(self, connection, path):
        """Waits for the answer."""
        try:
            answer = connection.getresponse()
            self.answer = Response(answer.status, {n.lower(): v for n, v in answer.getheaders()},
                                   answer.read(), f"GET {path}")
        finally:
            connection.close()

    def is_done(self):
        """Whether the answer is there."""
        return not self.thread.is_alive()

    def response(self):
        """The answer, once it is there."""
        self.thread.join()
        return self.answer

    def result(self):
        """What a 200 tells."""
        return self.response().expect(200)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.thread.join()
