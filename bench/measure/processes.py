"""What /proc tells of process trees, given by their roots: memory, CPU by thread, bytes written."""
import os
import re

TICK = os.sysconf("SC_CLK_TCK")
ENDED = "ended processes"
# How PostgreSQL's processes call themselves; whatever else follows is who is connected.
POSTGRES_DUTY = re.compile("postgres: (checkpointer|background writer|walwriter|autovacuum [a-z]+|"
                           "logical replication)")


def read(path):
    """A file's text; "" when the process ended meanwhile."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def stat_fields(text):
    """(name, the fields behind it) of a /proc stat line; the name may hold spaces and brackets."""
    head, _, rest = text.rpartition(")")
    return head.partition("(")[2], rest.split()


def tree(roots):
    """The pids and all their descendants."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            _, fields = stat_fields(read(f"/proc/{entry}/stat"))
            if fields:
                parents[int(entry)] = int(fields[1])
    found = list(roots)
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def memory_mb(roots):
    """Resident and proportional megabytes of all processes; pages shared with others count once
    in pss and once per process in rss."""
    total = {"rss": 0.0, "pss": 0.0, "processes": 0}
    for pid in tree(roots):
        total["processes"] += 1
        for line in read(f"/proc/{pid}/smaps_rollup").splitlines():
            key, _, value = line.partition(":")
            if key.lower() in ("rss", "pss"):
                total[key.lower()] += int(value.split()[0]) / 1024
    return total


def first_thread(pid):
    """What a process's first thread is called: PostgreSQL's by what they do, any other 'main'."""
    title = read(f"/proc/{pid}/cmdline")
    if not title.startswith("postgres: "):
        return "main"
    duty = POSTGRES_DUTY.match(title)
    return "postgres " + (duty[1] if duty else "backend")


def thread_cpu(roots):
    """{thread name: [user s, system s]} summed over the trees. What ended is counted too, without a name: a
    process carries what its children had used when it took leave of them."""
    cpu = {}

    def add(name, user, system):
        entry = cpu.setdefault(name, [0.0, 0.0])
        entry[0] += int(user) / TICK
        entry[1] += int(system) / TICK

    for pid in tree(roots):
        tasks = f"/proc/{pid}/task"
        for tid in os.listdir(tasks) if os.path.isdir(tasks) else []:
            name, fields = stat_fields(read(f"{tasks}/{tid}/stat"))
            if not fields:
                continue
            if int(tid) == pid:
                add(ENDED, *fields[13:15])
                name = first_thread(pid)
            add(name.rstrip("0123456789").rstrip("-."), *fields[11:13])
    return cpu


def cpu_between(before, after):
    """The difference of two thread_cpu() answers, threads that did nothing left out. Negative where a process
    ended meanwhile: what it had used before is among the ended now."""
    spent = {}
    for name in sorted({*before, *after}):
        (user, system), was = after.get(name, (0.0, 0.0)), before.get(name, (0.0, 0.0))
        if (user, system) != tuple(was):
            spent[name] = {"user_s": round(user - was[0], 2), "system_s": round(system - was[1], 2)}
    return spent


def written_bytes(roots):
    """Bytes the trees handed to the disk so far."""
    total = 0
    for pid in tree(roots):
        for line in read(f"/proc/{pid}/io").splitlines():
            if line.startswith("write_bytes:"):
                total += int(line.split()[1])
    return total


def machine_cpu():
    """(busy s, all s) of all cores since boot; stolen time counts as busy: it was not ours."""
    fields = [int(x) for x in read("/proc/stat").splitlines()[0].split()[1:9]]
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / TICK, sum(fields) / TICK
