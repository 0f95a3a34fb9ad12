"""perf's samples as folded stacks, and the stage of work each belongs to."""
import collections
import re

# (thread, stage, what a frame of the stack must match); the first line that matches counts. A stage
# may be reached from several places, so lines that name a purpose stand before lines that name a means.
STAGES = [
    ("checkpoint", "checkpoint beside the commits", r""),
    ("commit", "fdatasync", r"fdatasync|fsync"),
    ("commit", "checkpoint", r"^sqlite_tend|checkpoint"),
    ("commit", "COMMIT: pages into the WAL", r"pwrite|ext4_file_write|vfs_write"),
    ("commit", "listing entries", r"^(list_write|merge)$"),
    ("commit", "SQLite: log chunks", r"^(write_log)$"),
    ("commit", "SQLite: idempotency", r"^(write_idem)$"),
    ("commit", "SQLite: rows", r"^(rows_write|write_rows|write_group)$"),
    ("commit", "live listing in memory", r"^client_tasks_"),
    ("commit", "SQLite: other", r"sqlite"),
    ("commit", "answers: wake the HTTP threads", r"^(answer|http_resume|command_done|batch_end)"),
    ("commit", "idle and take (futex)", r"futex|cond_timedwait|^wait_for_work"),
    ("commit", "watchers: metrics, followers", r"^(api_committed|committed|followers_|metrics_)"),
    ("commit", "decide", r"^decide_|^claim|^live_|_decide$|^job_|^task_|^unit_[a-z]+$|^log_builder"),
    ("commit", "rest", r""),
    ("http", "send", r"^(conn_flush|sendmsg|__libc_sendmsg|__x64_sys_sendmsg)$"),
    ("http", "receive", r"^(recv|__libc_recv|__x64_sys_recvfrom|recvfrom)$"),
    ("http", "epoll", r"epoll"),
    ("http", "hand over (mutex, futex)", r"^kernel_post$|futex"),
    ("http", "auth", r"^(auth_check|check_auth)$|SHA256"),
    ("http", "request head", r"^(head_parse|head_scan|exchange_take)$"),
    ("http", "JSON parse", r"^json_parse$"),
    ("http", "schema", r"^schema_check"),
    ("http", "body fingerprint", r"fingerprint|^json_canonical"),
    ("http", "store reads", r"sqlite|^reader_"),
    ("http", "answer encoding", r"^jw_|^encode_|^reply_|^submitted$|^claimed$|^items_done$"),
    ("http", "routing, decoding, the rest of a request", r"^conn_(read|serve|resumed)$"),
    ("http", "rest", r""),
    ("", "rest", r""),
]
RULES = [(thread, stage, re.compile(pattern)) for thread, stage, pattern in STAGES]


def thread_kind(comm, pid, tid):
    """http, commit, checkpoint, or main. Before threads had names, all but http carried the process's."""
    name = comm.rstrip("0123456789").rstrip("-")
    if name in ("http", "commit", "checkpoint"):
        return name
    return "main" if pid == tid else "commit"


def frame_name(line):
    """A function's name; the library's when the function has none."""
    parts = line.split(None, 1)
    if len(parts) < 2:
        return "?"
    symbol, _, library = parts[1].rpartition(" (")
    symbol = symbol.partition("+0x")[0]
    if symbol in ("", "[unknown]"):
        return "[" + library.rstrip(")").rpartition("/")[2] + "]"
    return symbol


def fold(lines):
    """Counter of (thread kind, root frame, ..., leaf frame)."""
    folded = collections.Counter()
    thread, frames = None, []
    for line in lines:
        line = line.rstrip("\n")
        if line and not line[0].isspace():
            match = re.match(r"(.*?)\s+(\d+)/(\d+)", line)
            thread = thread_kind(match[1].strip(), match[2], match[3]) if match else None
            frames = []
        elif line.strip():
            frames.append(frame_name(line.strip()))
        elif thread:
            folded[(thread, *reversed(frames))] += 1
            thread = None
    return folded


def stage_of(stack):
    """(thread, stage) of one folded stack."""
    thread, frames = stack[0], stack[1:]
    for rule_thread, stage, pattern in RULES:
        if rule_thread in ("", thread) and (not pattern.pattern
                                            or any(pattern.search(f) for f in frames)):
            return thread, stage
    return thread, "rest"


def stage_table(folded, cpu_us):
    """Shares by stage; microseconds each when the total per job is known."""
    total = sum(folded.values())
    by_stage = collections.Counter()
    for stack, count in folded.items():
        by_stage[stage_of(stack)] += count
    out = [f"{total} samples", "", "| thread | stage | share | us |", "|---|---|---|---|"]
    for (thread, stage), count in sorted(by_stage.items(), key=lambda x: (x[0][0], -x[1])):
        us = f"{cpu_us * count / total:.2f}" if cpu_us else ""
        out.append(f"| {thread} | {stage} | {count / total:.1%} | {us} |")
    return "\n".join(out)
