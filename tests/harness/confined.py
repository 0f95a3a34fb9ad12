#!/usr/bin/python3
"""Runs a command as a container without privileges does: no capabilities and no way to get any, no mounts, no
namespaces, no tracing, a seccomp filter.

    tests/harness/confined.py COMMAND [ARGUMENT...]
    tests/harness/confined.py make test-quick

By that one sees what is skipped there, and that nothing fails.
"""
import ctypes
import errno
import os
import sys

REFUSED = ("mount", "umount2", "pivot_root", "unshare", "setns", "ptrace", "process_vm_readv",
           "process_vm_writev", "bpf", "perf_event_open", "io_uring_setup", "keyctl")
ALLOW, ERRNO = 0x7fff0000, 0x00050000
ARGUMENT_MASKED_EQ = 7
CLONE_NEWUSER = 0x10000000


class Comparison(ctypes.Structure):
    """struct scmp_arg_cmp"""
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("mask", ctypes.c_uint64),
                ("value", ctypes.c_uint64)]


def refuse_calls():
    """Loads the filter."""
    lib = ctypes.CDLL("libseccomp.so.2")
    lib.seccomp_init.restype = ctypes.c_void_p
    filter_ = ctypes.c_void_p(lib.seccomp_init(ctypes.c_uint32(ALLOW)))
    eperm = ctypes.c_uint32(ERRNO | errno.EPERM)
    for name in REFUSED:
        call = lib.seccomp_syscall_resolve_name(name.encode())
        assert lib.seccomp_rule_add_array(filter_, eperm, call, 0, None) == 0, name
    new_user = Comparison(0, ARGUMENT_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER)
    clone = lib.seccomp_syscall_resolve_name(b"clone")
    assert lib.seccomp_rule_add_array(filter_, eperm, clone, 1, ctypes.byref(new_user)) == 0
    assert lib.seccomp_load(filter_) == 0


def main():
    """Command line."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if os.environ.get("WEIR_CONFINED") != "1":  # first the capabilities, then the filter
        drop = ["setpriv", "--no-new-privs", *(["--bounding-set", "-all", "--inh-caps", "-all"]
                                               if os.geteuid() == 0 else [])]
        os.execvpe(drop[0], [*drop, sys.executable, *sys.argv], {**os.environ, "WEIR_CONFINED": "1"})
    refuse_calls()
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
