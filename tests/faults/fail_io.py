"""A server whose disk fails, stalls or whose clock jumps on command: the other side of fail_io.c.

    io = FailIo()
    weir = fresh_weir(env=io.environment())
    io.sync_errno = errno.EIO       # from now on every fsync of the database fails
    io.heal()

Armed with nothing the shim changes nothing; `syncs_seen` proves that it is in the way.
"""
import mmap
import os
import struct
import subprocess
import tempfile

from harness.weir_server import binary

# In the order of enum control_word.
WORDS = ("sync_errno", "sync_delay_ms", "write_errno", "read_errno", "clock_shift_ms", "syncs_seen",
         "failures")
FAULTS = ("sync_errno", "sync_delay_ms", "write_errno", "read_errno")


def module_path():
    """The shim that was built beside the program under test, or $FAIL_IO."""
    path = os.environ.get("FAIL_IO") or os.path.join(os.path.dirname(binary()), "tests", "faults",
                                                     "fail_io.so")
    assert os.path.exists(path), f"{path} is missing: build the target fail_io, or set FAIL_IO"
    return path


def sanitizer_runtime():
    """The address sanitizer's library, which has to come first; empty for a plain build."""
    linked = subprocess.run(["ldd", binary()], capture_output=True, text=True, check=True).stdout
    return [line.split()[2] for line in linked.splitlines() if "libasan" in line]


class FailIo:
    """Attributes are the words of the control file."""

    def __init__(self):
        self.__dict__["file"] = tempfile.NamedTemporaryFile(prefix="fail-io-")
        self.file.truncate(8 * len(WORDS))
        self.__dict__["words"] = mmap.mmap(self.file.fileno(), 8 * len(WORDS))

    def environment(self):
        """What the server's environment needs."""
        return {"LD_PRELOAD": " ".join(sanitizer_runtime() + [module_path()]),
                "FAIL_IO_CONTROL": self.file.name}

    def __getattr__(self, name):
        return struct.unpack_from("q", self.words, 8 * WORDS.index(name))[0]

    def __setattr__(self, name, value):
        struct.pack_into("q", self.words, 8 * WORDS.index(name), value)

    def heal(self):
        """No fault any more; the clock stays where it is."""
        for name in FAULTS:
            setattr(self, name, 0)
