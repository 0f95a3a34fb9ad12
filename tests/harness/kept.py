"""One kept-alive connection: for load, where a connection per call would measure the kernel."""
import http.client
import json

from harness import wire

KEPT_SECONDS_MAX = 30


class Kept:
    """Calls over one connection; not for two threads at once. A broken connection raises OSError or
    http.client.HTTPException and is opened anew by the next call; nothing is sent twice."""

    def __init__(self, address, key=None, timeout=KEPT_SECONDS_MAX):
        self.address = address
        self.timeout = timeout
        self.headers = {"Content-Type": "application/json"}
        if key:
            self.headers["Authorization"] = "Bearer " + key
        self.connection = None

    def call(self, method, path, body=None):
        """One call; a wire.Response."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection(*self.address, timeout=self.timeout)
        payload = None if body is None else json.dumps(body).encode("utf-8")
        headers = self.headers if payload else {
            name: value for name, value in self.headers.items() if name != "Content-Type"}
        try:
            self.connection.request(method, path, payload, headers)
            answer = self.connection.getresponse()
            content = answer.read()
        except BaseException:
            self.close()
            raise
        if answer.will_close:
            self.close()
        return wire.Response(answer.status, {n.lower(): v for n, v in answer.getheaders()},
                             content, f"{method} {path}")

    def close(self):
        """Gives the connection up; the next call opens another."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
