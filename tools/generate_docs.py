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


def moves_of(path, array, fields):
    """The rows of a table of moves in a C file: tuples, by a pattern for one row."""
    body = joined(path).split(f" {array}[] = {{", 1)[1].split("};", 1)[0]
    rows = re.findall(r"\{[^{}]*\}", body)
    found = [re.fullmatch(fields, row) for row in rows]
    if not rows or None in found:
        sys.exit(f"{path}: {array} has rows that are no moves; mend tools/generate_docs.py")
    return [match.groups() for match in found]


def finals_of(path, listing):
    """Names of the states that a list of (name, final) calls final."""
    body = joined(path).split(f"#define {listing}(X)", 1)[1].split("#define ", 1)[0]
    return [name for name, final in re.findall(r"X\((\w+), (true|false)\)", body) if final == "true"]


def words(name):
    """LEASE_EXPIRE as people read it."""
    return name.lower().replace("_", " ")


def picture(moves, first, finals):
    """A diagram of (from, on, to)."""
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    [*] --> {state}" for state in first]
    lines += [f"    {start} --> {to}: {on}" for start, on, to in moves]
    return lines + [f"    {state} --> [*]" for state in finals] + ["```"]


def table(heads, rows):
    """A Markdown table."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def jobs():
    """The part about jobs."""
    moves = moves_of("src/lifecycle/job_lifecycle.c", "job_moves",
                     r"\{JOB_(\w+), JOB_ON_(\w+), JOB_(\w+), JOB_EVENT_(\w+)\}")
    names = dict(re.findall(r'X\((\w+), "(job\.\w+)"\)', joined("src/lifecycle/job_lifecycle.h")))
    drawn = [("[*]" if start == "NO_STATE" else start, words(on), to) for start, on, to, _ in moves]
    rows = [("(none)" if start == "NO_STATE" else start, words(on), to, f"`{names[event]}`")
            for start, on, to, event in moves]
    return [
        "## A job",
        "",
        "The move back from ASSIGNED to QUEUED is recovery: only the lease reaper (or a worker that gives a",
        "task back before it started it) makes it.",
        "",
        *picture(drawn, [], ["SUCCEEDED", "CANCELED"]),
        "",
        *table(["from", "on", "to", "event"], rows),
        "",
        "A retry is the client's call; with `retry: auto` a retryable failure with attempts left is followed",
        "by it in the same transaction, so nobody sees such a job in FAILED and no report is written until",
        "it ends.",
        "",
        "`job.retries_exhausted` is a note, not a move: it stands once beside the last failure, with",
        "`prev_state` = `next_state` = FAILED and `payload.transition` = false.",
    ]


def runs():
    """The part about runs and their steps."""
    code, head = "src/lifecycle/run_lifecycle.c", "src/lifecycle/run_lifecycle.h"
    run_moves = moves_of(code, "run_moves", r"\{RUN_(\w+), RUN_EVENT_(\w+), RUN_(\w+)\}")
    step_moves = moves_of(code, "step_moves", r"\{STEP_(\w+), RUN_EVENT_(\w+), STEP_(\w+), (true|false)\}")
    run_rows = [(start, f"`{on}`", to) for start, on, to in run_moves]
    step_rows = [(start, f"`{on}`", to, "RUNNING or PAUSED" if paused == "true" else "RUNNING")
                 for start, on, to, paused in step_moves]
    return [
        "## A run",
        "",
        "[Runs](runs.md) move by their events alone. An event that has no row here is invalid: it stands in",
        "the log, changes no state, marks the run inconsistent and raises an alert; our own engine writes",
        "none. `RunQueued` and types that are not in the catalog change nothing and are never invalid.",
        "",
        *picture(run_moves, ["PENDING"], finals_of(head, "RUN_STATUSES")),
        "",
        *table(["from", "event", "to"], run_rows),
        "",
        "## A step",
        "",
        "Of one attempt. Behind a FAILED one the next number begins in PENDING again, and nothing behind any",
        "other; what is shown of a step is its highest attempt.",
        "",
        *picture([row[:3] for row in step_moves], ["PENDING"], finals_of(head, "STEP_STATUSES")),
        "",
        *table(["from", "event", "to", "while the run is"], step_rows),
    ]


def decisions():
    """The part about decisions on signals."""
    listed = joined("src/lifecycle/signals.h").split("#define SIGNAL_DECISIONS(X)")[1].split("#define ")[0]
    names = re.findall(r"X\((\w+)\)", listed)
    settled = re.search(r"if \(\*d != DECISION_(\w+)\).*?approve \? DECISION_(\w+) : DECISION_(\w+);",
                        joined("src/lifecycle/signals.c"), re.S).groups()
    held, approved, rejected = settled
    return [
        "## A decision",
        "",
        "What is decided about a [signal](signals.md): at once, or held until another Admin settles it.",
        "",
        *picture([(held, "approve", approved), (held, "reject", rejected)], names,
                 [name for name in names if name != held]),
    ]


def deliveries():
    """The part about deliveries."""
    code = "src/lifecycle/delivery_lifecycle.c"
    moves = moves_of(code, "delivery_moves", r"\{DELIVERY_(\w+), DELIVERY_ON_(\w+), DELIVERY_(\w+)\}")
    names = dict(re.findall(r'X\((\w+), "(\w+)"\)', joined("src/lifecycle/delivery_lifecycle.h")
                            .split("#define DELIVERY_STATES(X)")[1].split("#define ")[0]))
    drawn = [(names[start], words(on), names[to]) for start, on, to in moves]
    return [
        "## A delivery",
        "",
        "One event on its way to one receiver ([webhooks](webhooks.md)). What is redelivered is sent anew.",
        "",
        *picture(drawn, [names["PENDING"]], []),
    ]


def lifecycle():
    """All of docs/lifecycle.md."""
    head = ["# The lives of jobs, runs, decisions and deliveries", "",
            "Every move there is; what is not here is refused. Written from `src/lifecycle/` by",
            "`tools/generate_docs.py`."]
    parts = [head, jobs(), runs(), decisions(), deliveries()]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


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
