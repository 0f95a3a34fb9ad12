"""BullMQ on a Redis that syncs its append-only file before it answers."""
import socket
import subprocess

from subjects.peer import Peer


class BullMq(Peer):
    """Redis is the server; BullMQ's Lua scripts run inside it."""
    name, title = "bullmq", "BullMQ, Redis appendfsync always"
    settings = "appendonly yes, appendfsync always, no snapshots; worker concurrency 200 in a " \
               "drain, 4 for pickups; finished jobs removed"
    program_name = "bullmq"
    needs_binaries, needs_packages = ["redis-server"], ["bullmq", "ioredis"]

    def version(self):
        """Library, server and client."""
        told = subprocess.run(["redis-server", "--version"], check=True, capture_output=True,
                              text=True).stdout
        redis = told.partition("v=")[2].split()[0]
        return f"{self.package_version('bullmq')}, redis {redis}, {self.node_version()}"

    def command(self):
        """redis-server without a configuration file."""
        return ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir",
                self.folder, "--save", "", "--appendonly", "yes", "--appendfsync", "always"]

    def is_ready(self):
        """PING is answered with PONG once the data is loaded."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as client:
                client.sendall(b"PING\r\n")
                return client.recv(64).startswith(b"+PONG")
        except OSError:
            return False
