"""The process tree under a server, read from /proc."""
import os
import time

from harness.pace import Stopwatch


def read_text(path):
    """A file of /proc as text; empty when the process is gone."""
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def status_fields(pid):
    """(state letter, parent pid) of a process, or (None, None) when it is gone."""
    stat = read_text(f"/proc/{pid}/stat")
    if not stat:
        return None, None
    fields = stat.rpartition(")")[2].split()
    return fields[0], int(fields[1])


def alive(pid):
    """True while a thread of the process runs. The first thread may be a zombie while others, and with them
    the files and locks of the process, are still there."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return False
    return any(status_fields(f"{pid}/task/{thread}")[0] not in (None, "Z", "X") for thread in threads)


def title(pid):
    """What ps shows: the rewritten command line, else the short name."""
    return (read_text(f"/proc/{pid}/cmdline").replace("\0", " ").strip()
            or read_text(f"/proc/{pid}/comm").strip())


def descendants(root):
    """Every living process below `root`, parents first."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            state, parent = status_fields(int(name))
            if state not in (None, "Z", "X"):
                children.setdefault(parent, []).append(int(name))
    found, todo = [], [root]
    while todo:
        for pid in children.get(todo.pop(0), []):
            found.append(pid)
            todo.append(pid)
    return found


def wait_gone(pids, seconds):
    """Waits until none of the processes runs; gives those that still do."""
    watch = Stopwatch()
    left = [pid for pid in pids if alive(pid)]
    while left and not watch.is_over(seconds):
        time.sleep(0.01)
        left = [pid for pid in left if alive(pid)]
    return left


def accept_queue(port):
    """How many connections to a port of this machine no process has accepted yet."""
    waiting = 0
    for line in read_text("/proc/net/tcp").splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and int(fields[1].split(":")[1], 16) == port:  # it listens
            waiting += int(fields[4].split(":")[1], 16)
    return waiting
