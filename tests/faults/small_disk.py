"""A directory on a disk so small that a test can fill it: for whole processes, without LD_PRELOAD.

    with small_disk(size_bytes=4 << 20) as disk:
        server = start(data=disk.path)      # started after: children see the directory
        disk.fill()                         # every further write of the server fails with ENOSPC
        ...                                 # it must refuse, not crash, and still answer reads
        disk.free()                         # and go on by itself

The disk is a tmpfs in a mount namespace of this process alone: as root by unshare(CLONE_NEWNS), otherwise
in a user namespace of its own (the same as `unshare -Urm`). Nothing outside sees it, and it vanishes with
the process even after kill -9. Call it from the thread that starts the server: a namespace belongs to a
thread.
Where the kernel permits neither, SmallDiskRefused is raised: a fault test never passes by not running.
"""

import contextlib
import ctypes
import errno
import os
import tempfile
from pathlib import Path

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE = 0x2, 0x4, 0x4000, 0x40000
_MNT_DETACH = 2
_PIECE = 64 * 1024

_libc = ctypes.CDLL(None, use_errno=True)


class SmallDiskRefused(RuntimeError):
    """The kernel lets this process make neither a mount nor a user namespace."""


def _call(name, *args):
    if getattr(_libc, name)(*args) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def _mount_namespace():
    return os.readlink("/proc/thread-self/ns/mnt")


_own_namespace = None


def _enter_user_namespace():
    uid, gid = os.getuid(), os.getgid()
    _call("unshare", _CLONE_NEWUSER | _CLONE_NEWNS)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def _enter_own_namespace():
    global _own_namespace
    if _own_namespace == _mount_namespace():
        return
    try:
        try:
            _call("unshare", _CLONE_NEWNS)
        except PermissionError:
            _enter_user_namespace()
        _call("mount", b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
    except OSError as refused:
        raise SmallDiskRefused(f"no small disk here: {refused} (a process with threads cannot enter a "
                               "user namespace; run as root or from the first thread)") from refused
    _own_namespace = _mount_namespace()


class SmallDisk:
    def __init__(self, path):
        self.path = Path(path)
        self._ballast = self.path / ".ballast"

    def free_bytes(self):
        stat = os.statvfs(self.path)
        return stat.f_bavail * stat.f_frsize

    def fill(self, leave_bytes=0):
        """Takes all room but leave_bytes (rounded down to pages)."""
        fd = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            while (room := self.free_bytes() - leave_bytes) > 0:
                if os.write(fd, b"\0" * min(room, _PIECE)) == 0:
                    return
        except OSError as full:
            if full.errno != errno.ENOSPC:
                raise
        finally:
            os.close(fd)

    def free(self, keep_bytes=0):
        """Gives the ballast's room back, all but keep_bytes of it."""
        if keep_bytes:
            os.truncate(self._ballast, min(keep_bytes, self._ballast.stat().st_size))
        else:
            self._ballast.unlink(missing_ok=True)


@contextlib.contextmanager
def small_disk(size_bytes=4 << 20):
    _enter_own_namespace()
    place = tempfile.mkdtemp(prefix="small-disk-")
    try:
        _call("mount", b"small-disk", os.fsencode(place), b"tmpfs", _MS_NOSUID | _MS_NODEV,
              f"size={size_bytes},mode=0700".encode())
    except OSError as refused:
        os.rmdir(place)
        raise SmallDiskRefused(f"no small disk here: {refused}") from refused
    try:
        yield SmallDisk(place)
    finally:
        _call("umount2", os.fsencode(place), _MNT_DETACH)
        os.rmdir(place)
