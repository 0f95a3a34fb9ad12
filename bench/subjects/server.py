"""A server process of our own: started, waited for, stopped by its pid."""
import os
import signal
import socket
import subprocess
import time

START_MAX_S = 120
STOP_MAX_S = 60
LOG_TAIL_BYTES = 2000


def free_port():
    """A port nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def folder_bytes(folder):
    """Size of all files below a folder."""
    return sum(os.path.getsize(os.path.join(path, name))
               for path, _, names in os.walk(folder) for name in names)


class Server:
    """One running server and its log."""

    def __init__(self, command, log_path, is_ready, **popen):
        self.log_path, self.name = log_path, os.path.basename(command[0])
        began = time.monotonic()
        with open(log_path, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, **popen)
        try:
            while not is_ready():
                if self.process.poll() is not None or time.monotonic() - began > START_MAX_S:
                    raise SystemExit(f"bench: {self.name} did not start\n{self.log_tail()}")
                time.sleep(0.002)
        except BaseException:
            self.stop(signal.SIGKILL)
            raise
        self.start_s = time.monotonic() - began

    def log_tail(self):
        """The last lines it wrote; the log itself goes with the work folder."""
        with open(self.log_path, "rb") as log:
            return log.read()[-LOG_TAIL_BYTES:].decode("utf-8", "replace")

    def stop(self, how=signal.SIGTERM):
        """Asks it to end and waits; returns the seconds it took."""
        began = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(timeout=STOP_MAX_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return time.monotonic() - began
