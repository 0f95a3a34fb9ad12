"""Writes docs/errors.md and docs/lifecycle.md from the lists in the source: one list per fact.

generate_docs.py            writes them
generate_docs.py --check    exits 1 when one is out of date
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def joined(path):
    """The text of a C file with string pieces and continued lines joined."""
    text = (ROOT / path).read_text()
    text = text.replace("\\\n", " ")
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r'"\s+"', "", text)


def errors():
    body = joined("src/base/err.h").split("#define ERR_LIST(X)")[1].split("#define X(")[0]
    rows = re.findall(r'X\((\w+),\s*"([^"]*)",\s*(\d+),\s*"([^"]*)",\s*"([^"]*)"\)', body)
    lines = [
        "# Errors",
        "",
        "Every error answer is `application/problem+json` (RFC 9457) with `type`, `title`, `status`,",
        "`detail`, `instance` (the request id, also in `X-Request-Id`), `code` and `advice`. The code is",
        "stable; match on it. Codes in lower case stand in the item results of the worker API. Written from",
        "`src/base/err.h` by `tools/generate_docs.py`.",
        "",
        "| code | HTTP | meaning | what to do |",
        "|---|---|---|---|",
    ]
    for name, wire, http, title, advice in rows:
        if name != "OK":
            lines.append(f"| `{wire}` | {http} | {title} | {advice} |")
    return "\n".join(lines) + "\n"


def lifecycle():
    moves = re.findall(
        r"\{JOB_(\w+), JOB_ON_(\w+), JOB_(\w+), JOB_EVENT_(\w+)\}", joined("src/lifecycle/job_lifecycle.c")
    )
    names = dict(re.findall(r'X\((\w+), "(job\.\w+)"\)', joined("src/lifecycle/job_lifecycle.h")))
    lines = [
        "# The life of a job",
        "",
        "Every move there is; what is not here is refused. Written from `src/lifecycle/job_lifecycle.c` by",
        "`tools/generate_docs.py`. The move back from ASSIGNED to QUEUED is recovery: only the lease reaper",
        "(or a worker that gives a task back before it started it) makes it.",
        "",
        "```mermaid",
        "stateDiagram-v2",
    ]
    for start, on, to, _ in moves:
        start = "[*]" if start == "NO_STATE" else start
        lines.append(f"    {start} --> {to}: {on.lower().replace('_', ' ')}")
    for final in ("SUCCEEDED", "CANCELED"):
        lines.append(f"    {final} --> [*]")
    lines += ["```", "", "| from | on | to | event |", "|---|---|---|---|"]
    for start, on, to, event in moves:
        start = "(none)" if start == "NO_STATE" else start
        lines.append(f"| {start} | {on.lower().replace('_', ' ')} | {to} | `{names[event]}` |")
    lines += [
        "",
        "`job.retries_exhausted` is a note, not a move: it stands once beside the last failure, with",
        "`prev_state` = `next_state` = FAILED and `payload.transition` = false.",
    ]
    return "\n".join(lines) + "\n"


def main():
    check = "--check" in sys.argv[1:]
    stale = []
    for path, text in (("docs/errors.md", errors()), ("docs/lifecycle.md", lifecycle())):
        target = ROOT / path
        if check and (not target.exists() or target.read_text() != text):
            stale.append(path)
        elif not check:
            target.write_text(text)
    for path in stale:
        print(f"{path}: out of date; run tools/generate_docs.py")
    return 1 if stale else 0


sys.exit(main())
