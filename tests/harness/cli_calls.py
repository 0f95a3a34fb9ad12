"""The command line in tests: exit codes, output for programs, and what a terminal shows."""
import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import termios

from harness.weir_server import server_environment


def run(weir, *args, code=0, **options):
    """Runs a command, asserts its exit code, gives the CompletedProcess."""
    done = weir.cli(*args, **options)
    assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
    return done


def run_json(weir, *args, **options):
    """The same with -o json, parsed."""
    return json.loads(run(weir, *args, "-o", "json", **options).stdout)


def pairs(text):
    """`name  value` lines as a dict."""
    return dict(re.split(r"\s{2,}", line, maxsplit=1) for line in text.splitlines() if "  " in line)


def open_terminal(rows=40, columns=90):
    """Our end of it and the program's."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    return main, side


def on_terminal(weir, *args, rows=24, columns=100, **variables):
    """Runs a command on a terminal; gives everything it wrote, and its exit code."""
    main, side = open_terminal(rows, columns)
    env = {**server_environment(variables), "WEIR_URL": weir.url, "WEIR_DATA": weir.data}
    if "NO_COLOR" not in variables:
        env.pop("NO_COLOR", None)
    with subprocess.Popen(weir.program + list(args), env=env, stdin=side, stdout=side,
                          stderr=subprocess.DEVNULL) as process:
        os.close(side)
        shown = b""
        try:
            while select.select([main], [], [], 30)[0]:
                shown += os.read(main, 65536)
        except OSError:
            pass  # the other side is gone: all has been read
        os.close(main)
        return shown.decode().replace("\r\n", "\n"), process.wait(timeout=30)
