"""A gateway whose curl refuses requests to ".../planted" on command: the other side of fail_curl.c.

    curl = FailCurl()
    weir = fresh_weir(env=curl.environment())
    curl.failures_left = 10         # the next ten are refused; a partition that meets one fails
"""
import mmap
import os
import struct
import tempfile

from fail_io import sanitizer_runtime
from harness.weir_server import binary

WORDS = ("failures_left", "seen", "failed")  # in the order of enum control_word


class FailCurl:
    """Attributes are the words of the control file."""

    def __init__(self):
        self.__dict__["file"] = tempfile.NamedTemporaryFile(prefix="fail-curl-")
        self.file.truncate(8 * len(WORDS))
        self.__dict__["words"] = mmap.mmap(self.file.fileno(), 8 * len(WORDS))

    def environment(self):
        """What the server's environment needs."""
        path = os.path.join(os.path.dirname(binary()), "tests", "faults", "fail_curl.so")
        assert os.path.exists(path), f"{path} is missing: build the target fail_curl"
        return {"LD_PRELOAD": " ".join(sanitizer_runtime() + [path]), "FAIL_CURL_CONTROL": self.file.name}

    def __getattr__(self, name):
        return struct.unpack_from("q", self.words, 8 * WORDS.index(name))[0]

    def __setattr__(self, name, value):
        struct.pack_into("q", self.words, 8 * WORDS.index(name), value)
