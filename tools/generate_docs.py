"""Writes docs/errors.md, docs/lifecycle.md and docs/operations/topology.md from the lists in the source: one
list per fact.

generate_docs.py            writes them
generate_docs.py --check    exits 1 when one is out of date
"""
import re
import sys
from pathlib import Path

import topology_lists

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


TOPOLOGY_HEAD = """# Topology

The failure domains, what each states of itself, and the crash policy. Written from
`src/runtime/domain_table.h`, `failure_modes.h` and `event_names.h` by `tools/generate_docs.py`;
`tools/check_topology.py` refuses a domain that leaves one of the six items out. How processes start, restart
and stop: [processes.md](processes.md). What runs now: `GET /ops/v1/topology`.

Strategy is `one_for_one` everywhere: what failed is started again alone. `N/Ms`: the restart that would be
the (N+1)th within M seconds ends that domain, which is one restart for root; what root cannot restart any
more ends the program. A domain without a process is declared: it shows with the state `declared`.

| domain | processes | owner | supervisor | strategy | intensity | intent |
|---|---|---|---|---|---|---|"""

TOPOLOGY_MODES = """
## Crash policy

Three classes, no other: `fatal` cannot get better by itself and is told at once; `recoverable` is safe to try
again, bounded; `degraded` works on, and nobody is restarted. Each failure is one log line
`{event}` with its mode and exactly these dimensions, and one count in `weir_failures_total`.

| mode | class | handling | supervisor | dimensions |
|---|---|---|---|---|"""

TOPOLOGY_DOMAIN = """
## {d.name}

- Owner: `{d.owner}`, supervisor: `{d.supervisor}`
- Strategy: `one_for_one`, restart intensity: `{d.restarts}/{d.seconds}s`
- Crash policy: {modes}
- Partition key: {d.key}; scaling: {d.scaling}
- SLO: {d.slo}
- Telemetry: {events}

Dependencies:
- Story 00: Runtime Topology And SLOs."""


def topology():
    modes, events = topology_lists.modes(ROOT), topology_lists.events(ROOT)
    domains, processes = topology_lists.domains(ROOT), topology_lists.processes(ROOT)
    lines = [TOPOLOGY_HEAD]
    for d in domains:
        own = ", ".join(f"`{name}`" for name, _, domain, _ in processes if domain == d.id)
        lines.append(f"| {d.name} | {own} | `{d.owner}` | `{d.supervisor}` | `one_for_one` "
                     f"| `{d.restarts}/{d.seconds}s` | {d.intent} |")
    lines.append(TOPOLOGY_MODES.format(event=events["RUNTIME_FAILURE"][0]))
    for mode in modes.values():
        lines.append(f"| `{mode.name}` | `{mode.failure_class}` | {mode.handling} | {mode.action} | "
                     + ", ".join(f"`{name}`" for name in mode.dimensions) + " |")
    lines += ["", "## Events", "", "| event | dimensions |", "|---|---|"]
    for name, dimensions in events.values():
        lines.append(f"| `{name}` | " + ", ".join(f"`{dimension}`" for dimension in dimensions) + " |")
    for d in domains:
        known = [modes[mode] for mode in d.modes if mode in modes]
        told = [events[event] for event in d.events if event in events]
        lines.append(TOPOLOGY_DOMAIN.format(
            d=d, modes=", ".join(f"`{mode.name}` {mode.failure_class}" for mode in known),
            events="; ".join(f"`{name}` ({', '.join(dimensions)})" for name, dimensions in told)))
    return "\n".join(lines) + "\n"


def main():
    check = "--check" in sys.argv[1:]
    stale = []
    for path, text in (("docs/errors.md", errors()), ("docs/lifecycle.md", lifecycle()),
                       ("docs/operations/topology.md", topology())):
        target = ROOT / path
        if check and (not target.exists() or target.read_text() != text):
            stale.append(path)
        elif not check:
            target.write_text(text)
    for path in stale:
        print(f"{path}: out of date; run tools/generate_docs.py")
    return 1 if stale else 0


sys.exit(main())
