"""beanstalkd with its binlog: synced on every write, and as it comes."""
import socket
import subprocess

from subjects.peer import Peer


class Durable(Peer):
    """-f0: fsync before every answer."""
    name, title = "beanstalkd", "beanstalkd -f0"
    settings = "binlog on, fsync on every write; one pipelined connection; no bulk command: 4000 " \
               "puts on their way instead; 64 reserves on their way in a drain"
    program_name = "beanstalk"
    needs_binaries = ["beanstalkd"]
    bulk_share = 0.4  # each write is synced alone
    sync_option = "-f0"

    def version(self):
        """Server and client."""
        told = subprocess.run(["beanstalkd", "-v"], check=True, capture_output=True, text=True)
        return f"{told.stdout.strip()}, {self.node_version()}"

    def command(self):
        """beanstalkd on a binlog in the folder."""
        return ["beanstalkd", "-l", "127.0.0.1", "-p", str(self.port), "-b", self.folder,
                self.sync_option]

    def is_ready(self):
        """It answers as soon as it takes a connection."""
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            return False


class Default(Durable):
    """-f50, the default: what was accepted in the last 50 ms may be lost."""
    name, title = "beanstalkd_f50", "beanstalkd -f50 (default)"
    settings = "binlog on, at most one fsync per 50 ms: an accepted job can be lost; else as -f0"
    durable = False
    bulk_share = 2.0
    sync_option = "-f50"
