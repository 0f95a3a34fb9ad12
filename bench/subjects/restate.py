"""Restate, one node as it comes."""
import os
import urllib.request

from subjects import server
from subjects.peer import Peer


class Restate(Peer):
    """Pushes every job to a service at once: no bulk submit, no filled queue to drain."""
    name, title = "restate", "Restate"
    settings = "defaults of a single node (log synced; not tried by a crash here); HTTP/1.1 " \
               "ingress, one Node service; submits are measured with handlers running; its whole " \
               "life is submit and run to completion"
    program_name = "restate"
    rows = {"start", "rest", "submit_1", "submit_64", "cycle", "pickup", "memory", "written"}
    needs_packages = ["@restatedev/restate-sdk", "@restatedev/restate-server"]

    def __init__(self, build):
        super().__init__(build)
        # The package's own command is a Node script that starts this one.
        self.binary = self.found(os.path.join(
            self.installed, "node_modules", "@restatedev", "restate-server-linux-*", "bin",
            "restate-server"), "the npm package restate-server for this processor")
        self.admin_port = self.fabric_port = None

    def version(self):
        """Server, library and client."""
        return ", ".join([*map(self.package_version, reversed(self.needs_packages)),
                          self.node_version()])

    def start(self, folder):
        """Three ports: ingress, administration, and talk between nodes."""
        self.admin_port, self.fabric_port = server.free_port(), server.free_port()
        return super().start(folder)

    def command(self):
        """The server without a configuration file."""
        return [self.binary, "--bind-ip", "127.0.0.1", "--listen-mode", "tcp", "--bind-port",
                str(self.fabric_port), "--no-logo"]

    def popen(self):
        """What can only be said by environment."""
        return {"env": os.environ | {
            "RESTATE_BASE_DIR": self.folder, "RESTATE_DISABLE_TELEMETRY": "true",
            "RESTATE_INGRESS__BIND_PORT": str(self.port),
            "RESTATE_ADMIN__BIND_PORT": str(self.admin_port)}}

    def is_ready(self):
        """Ingress and administration both answer."""
        try:
            for port, path in ((self.port, "/restate/health"), (self.admin_port, "/health")):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=1) as answer:
                    if answer.status != 200:
                        return False
            return True
        except OSError:
            return False

    def options(self):
        """The service is made known through the administration port."""
        return ["--port", self.port, "--admin", self.admin_port]

    def cycle(self, seconds=0, count=0):
        """Submit, 64 in flight, and run to completion."""
        return self.step("cycle", inflight=64, seconds=seconds, count=count)

    def fill(self, jobs):
        """They run at once; what stays is their trace."""
        self.cycle(count=jobs)

    def live(self, jobs):
        """Submit and run; returns how many."""
        return self.cycle(count=jobs)["jobs"]
