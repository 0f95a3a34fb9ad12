#!/usr/bin/python3
"""A stand-in for the server, to test the harness itself: answers /readyz and misbehaves when told.

FAKE_WEIR_FAULT: report (writes a sanitizer report), exit (ends with 3), deaf (ignores SIGTERM),
early (ends at once), orphan (leaves its child behind). Writes one line per start into DATA/starts.
"""
import http.server
import os
import signal
import subprocess
import sys
import threading


class Answers(http.server.BaseHTTPRequestHandler):
    """200 on /readyz, an echo of the request elsewhere."""

    def do_GET(self):  # pylint: disable=invalid-name
        """Any path."""
        self.send_response(200 if self.path == "/readyz" else 404)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):  # pylint: disable=arguments-differ
        """No access log."""


class Server(http.server.ThreadingHTTPServer):
    """Binds beside the harness's port reservation, as Weir does."""
    allow_reuse_port = True


def main():
    """serve --listen HOST:PORT --data DIR ..."""
    fault = os.environ.get("FAKE_WEIR_FAULT", "")
    if fault == "early":
        sys.exit("cannot start")
    port = int(sys.argv[sys.argv.index("--listen") + 1].split(":")[1])
    data = sys.argv[sys.argv.index("--data") + 1]
    os.makedirs(data, exist_ok=True)
    with open(os.path.join(data, "starts"), "a", encoding="utf-8") as starts:
        starts.write(f"{port}\n")
    child = subprocess.Popen(["weir: runner 1", "600"], executable="/usr/bin/sleep")
    if fault == "report":
        print("==1==ERROR: AddressSanitizer: heap-use-after-free on address", file=sys.stderr)
    server = Server(("127.0.0.1", port), Answers)

    def end(_signal, _frame):
        if fault == "deaf":
            return
        if fault != "orphan":
            child.kill()
            child.wait()
        threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, end)
    server.serve_forever(poll_interval=0.02)
    sys.exit(3 if fault == "exit" else 0)


if __name__ == "__main__":
    main()
