"""What /proc tells of a process tree: memory, CPU by thread, bytes written."""
import os

TICK = os.sysconf("SC_CLK_TCK")


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


def tree(root_pid):
    """The pid and all its descendants."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            _, fields = stat_fields(read(f"/proc/{entry}/stat"))
            if fields:
                parents[int(entry)] = int(fields[1])
    found = [root_pid]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def memory_mb(root_pid):
    """Resident and proportional megabytes of the whole tree; pages shared with others count once
    in pss and once per process in rss."""
    total = {"rss": 0.0, "pss": 0.0, "processes": 0}
    for pid in tree(root_pid):
        total["processes"] += 1
        for line in read(f"/proc/{pid}/smaps_rollup").splitlines():
            key, _, value = line.partition(":")
            if key.lower() in ("rss", "pss"):
                total[key.lower()] += int(value.split()[0]) / 1024
    return total


def thread_cpu(root_pid):
    """{thread name: [user s, system s]} summed over the tree; a process's first thread is 'main'."""
    cpu = {}
    for pid in tree(root_pid):
        tasks = f"/proc/{pid}/task"
        for tid in os.listdir(tasks) if os.path.isdir(tasks) else []:
            name, fields = stat_fields(read(f"{tasks}/{tid}/stat"))
            if not fields:
                continue
            name = "main" if int(tid) == pid else name.rstrip("0123456789").rstrip("-")
            entry = cpu.setdefault(name, [0.0, 0.0])
            entry[0] += int(fields[11]) / TICK
            entry[1] += int(fields[12]) / TICK
    return cpu


def cpu_between(before, after):
    """The difference of two thread_cpu() answers, threads that did nothing left out."""
    spent = {}
    for name, (user, system) in after.items():
        was = before.get(name, (0.0, 0.0))
        if user + system > was[0] + was[1]:
            spent[name] = {"user_s": round(user - was[0], 2), "system_s": round(system - was[1], 2)}
    return spent


def written_bytes(root_pid):
    """Bytes the tree handed to the disk so far."""
    total = 0
    for pid in tree(root_pid):
        for line in read(f"/proc/{pid}/io").splitlines():
            if line.startswith("write_bytes:"):
                total += int(line.split()[1])
    return total


def machine_cpu():
    """(busy s, all s) of all cores since boot; stolen time counts as busy: it was not ours."""
    fields = [int(x) for x in read("/proc/stat").splitlines()[0].split()[1:9]]
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / TICK, sum(fields) / TICK
