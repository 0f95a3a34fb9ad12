"""A collector for tests: takes OTLP/HTTP JSON on /v1/traces and keeps every span, strictly read.

    with OtlpReceiver() as collector:
        Weir(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url})
        collector.wait(lambda spans: ..., timeout)
"""
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness.weir_server import wait_for

KINDS = {1: "internal", 2: "server", 3: "client", 4: "producer", 5: "consumer"}
SPAN_MEMBERS = {"traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano",
                "endTimeUnixNano", "attributes", "links", "status"}


class Span:
    """One span, its numbers as numbers."""

    def __init__(self, said):
        assert set(said) <= SPAN_MEMBERS, said
        assert re.fullmatch(r"[0-9a-f]{32}", said["traceId"]) and int(said["traceId"], 16)
        for member in ("spanId", "parentSpanId"):
            if member in said:
                assert re.fullmatch(r"[0-9a-f]{16}", said[member]) and int(said[member], 16), said
        assert isinstance(said["startTimeUnixNano"], str)  # 64 bits are texts in OTLP's JSON
        self.trace, self.id, self.parent = said["traceId"], said["spanId"], said.get("parentSpanId")
        self.name, self.kind = said["name"], KINDS[said["kind"]]
        self.start, self.end = (int(said[m]) / 1e9 for m in ("startTimeUnixNano", "endTimeUnixNano"))
        assert 0 < self.start <= self.end
        self.failed = said["status"].get("code") == 2
        self.links = [(link["traceId"], link["spanId"]) for link in said.get("links", ())]
        self.attributes = {}
        for one in said["attributes"]:
            assert set(one) == {"key", "value"} and one["key"] not in self.attributes
            (form, value), = one["value"].items()
            assert form in ("stringValue", "intValue") and isinstance(value, str)
            self.attributes[one["key"]] = int(value) if form == "intValue" else value

    def __repr__(self):
        return f"<{self.name} {self.trace[:6]} {self.id} under {self.parent} {self.attributes}>"

    def __getitem__(self, key):
        return self.attributes.get(key)


class Server(ThreadingHTTPServer):
    """Nobody waits for its connections at the end."""

    def handle_error(self, request, client_address):
        """A sender that gave up is no fault of the receiver's."""


class OtlpReceiver:
    """See the module's text. `status` is what it answers; anything but 200 keeps nothing. While `gate` is
    cleared it answers nobody; `held` are those who wait."""

    def __init__(self):
        self.spans, self.requests, self.faults, self.status = [], 0, [], 200
        self.heads, self.peers = [], set()  # the headers of each request, and who connected
        self.gate, self.held = threading.Event(), 0
        self.gate.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            """POST /v1/traces"""
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # pylint: disable=invalid-name
                """One batch."""
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests += 1
                receiver.heads.append({name.lower(): value for name, value in self.headers.items()})
                receiver.peers.add(self.client_address)
                receiver.held += 1
                receiver.gate.wait()
                receiver.held -= 1
                try:
                    if receiver.status == 200:
                        receiver.take(self.path, self.headers, body)
                except Exception as fault:  # pylint: disable=broad-except
                    receiver.faults.append(f"{fault!r}: {body[:2000]!r}")
                self.send_response(receiver.status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                """Nothing."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))

    def take(self, path, headers, body):
        """Reads a batch, strictly."""
        assert path == "/v1/traces" and headers["Content-Type"] == "application/json"
        said = json.loads(body)
        assert set(said) == {"resourceSpans"}
        for resource in said["resourceSpans"]:
            names = {a["key"]: a["value"] for a in resource["resource"]["attributes"]}
            assert names["service.name"] == {"stringValue": "weir"}
            for scope in resource["scopeSpans"]:
                assert scope["scope"]["name"] == "weir"
                self.spans += [Span(one) for one in scope["spans"]]

    def wait(self, condition, what, timeout=15):
        """Waits until condition(all spans so far) gives something true; gives that."""
        found = wait_for(lambda: condition(list(self.spans)) or self.faults, timeout, what)
        assert not self.faults, self.faults
        return found

    def of(self, **attributes):
        """The spans with these attributes; dots are written as two underscores."""
        return [span for span in list(self.spans)
                if all(span[k.replace("__", ".")] == v for k, v in attributes.items())]

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.gate.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
