"""Writes docs/errors.md, docs/lifecycle.md, docs/schema.md and docs/operations/topology.md from the lists in
the source: one list per fact. Puts the programs of docs/workers into docs/write-a-worker.md.

generate_docs.py            writes them
generate_docs.py --check    exits 1 when one is out of date
"""
import re
import sys
from pathlib import Path

import topology_lists

ROOT = Path(__file__).resolve().parent.parent
WORKER_PAGE = "docs/write-a-worker.md"


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
        "stable; match on it. Codes in lower case appear in the item results of the worker API. Generated",
        "from `src/base/err.h` by `tools/generate_docs.py`.",
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
        "The move back from ASSIGNED to QUEUED is recovery. The server makes it when a lease ends before the",
        "start, or when a worker releases a task before the start.",
        "",
        *picture(drawn, [], ["SUCCEEDED", "CANCELED"]),
        "",
        *table(["from", "on", "to", "event"], rows),
        "",
        "A client makes a retry with a call. With `retry: auto` the server makes it in the transaction of a",
        "retryable failure while retries are left, so no reader sees such a job in FAILED, and there is no",
        "report until the job ends.",
        "",
        "When a worker releases a task that it has started, the job moves to FAILED, with reason `released`,",
        "and to QUEUED in one transaction. The number of the attempt does not change, and there is no report",
        "of it.",
        "",
        "`job.retries_exhausted` is a note, not a move. It follows the last failure once, with",
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
        "Only events change the status of a [run](runs.md). An event without a row here is invalid: it is",
        "kept in the log, changes no state, marks the run inconsistent and raises an alert. Weir's own",
        "engine writes no invalid event. `RunQueued` and types outside the catalog change nothing and are",
        "never invalid.",
        "",
        *picture(run_moves, ["PENDING"], finals_of(head, "RUN_STATUSES")),
        "",
        *table(["from", "event", "to"], run_rows),
        "",
        "## A step",
        "",
        "These are the moves of one attempt. After a FAILED attempt the next one can begin, in PENDING.",
        "After any other final status there is no further attempt. The status of a step is that of its last",
        "attempt.",
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
        "The answer to a [signal](signals.md). It is given at once, or held until another Admin decides.",
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
        "One event on its way to one receiver ([webhooks](webhooks.md)). A redelivery sends it again.",
        "",
        *picture(drawn, [names["PENDING"]], []),
    ]


def lifecycle():
    """All of docs/lifecycle.md."""
    head = ["# The lives of jobs, runs, decisions and deliveries", "",
            "This page has every state and every move. A move that is not here is refused. Generated from",
            "`src/lifecycle/` by `tools/generate_docs.py`."]
    parts = [head, jobs(), runs(), decisions(), deliveries()]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


TOPOLOGY_HEAD = """# Topology

This page has the failure domains and the crash policy. It is generated from
`src/runtime/domain_table.h`, `failure_modes.h` and `event_names.h` by `tools/generate_docs.py`;
`tools/check_topology.py` refuses a domain that leaves one of the six items out. [processes.md](processes.md)
says how processes start, restart and stop. `GET /ops/v1/topology` shows the running processes.

The strategy is always `one_for_one`: only the failed process is started again. `N/Ms` means that N restarts
are allowed in M seconds. One restart more ends the domain, which is one restart for root. When root has no
restart left, the program ends. A domain without a process has the state `declared`.

| domain | processes | owner | supervisor | strategy | intensity | intent |
|---|---|---|---|---|---|---|"""

TOPOLOGY_MODES = """
## Crash policy

There are three classes. A `fatal` failure needs an operator. A `recoverable` failure is tried again, with a
limit. In a `degraded` state the server goes on, and no process is restarted. Each failure is one log line
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
        own = ", ".join(f"`{p.name}`" for p in processes if p.domain == d.id)
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


PROCESSES_PAGE = "docs/operations/processes.md"
ROWS_BELOW_ROOT = re.compile(r"(^\| `weir serve .*\n)(?:^\|.*\n)*", re.M)


def with_processes(path):
    """A page with a row for each process below that of root."""
    domains, keys = {d.id: d for d in topology_lists.domains(ROOT)}, topology_lists.setting_names(ROOT)
    rows = ""
    for p in topology_lists.processes(ROOT):
        d = domains[p.domain]
        title, count = p.name + ("" if p.owns_store else " N"), keys.get(p.count)
        rows += (f"| `weir: {title}` | {p.does} | {d.name} | {d.restarts} in {d.seconds} s | "
                 f"{f'`{count}`' if count else p.count} | {', '.join(p.sandboxes)} |\n")
    return ROWS_BELOW_ROOT.sub(lambda match: match[1] + rows, (ROOT / path).read_text())


INCLUSION = re.compile(r"<!-- file: (\S+\.(\w+)) -->\n(?:```\w+\n.*?^```\n)?", re.S | re.M)
LANGUAGES = {"py": "python", "mjs": "js", "go": "go", "sh": "sh"}


def with_programs(path):
    """A page with each file that it names in a comment shown behind the comment."""
    def shown(match):
        text = (ROOT / match[1]).read_text()
        return f"<!-- file: {match[1]} -->\n```{LANGUAGES[match[2]]}\n{text}```\n"

    return INCLUSION.sub(shown, (ROOT / path).read_text())


SCHEMA_HEAD = """# Schema

The tables of a store, for people who look into its database. SQLite and PostgreSQL have the same tables and
columns. Nothing but Weir may write to them, except `weir_inbox` on PostgreSQL. A release may change any of
them: programs use the APIs. Generated from the descriptions in `src/store/*_tables.h` by
`tools/generate_docs.py`; besides these tables a database has some that are its own (`src/store/README.md`).

Times are in UTC, `_ms` in milliseconds and `_us` in microseconds since 1970. Numbers are never absent. A
column marked "personal" may hold data about a person: a name, an address, or content that a caller sent."""


def prose(comment):
    """The text of a C comment."""
    return re.sub(r"\s*\n \*\s?", " ", comment).strip()


def table_columns(body):
    """Rows for the columns of a list: name, type, use, meaning."""
    types = {"INT": "number", "TEXT": "text", "BLOB": "bytes", "TEXT_OR_NULL": "text or absent",
             "BLOB_OR_NULL": "bytes or absent"}
    uses = {"KEY": "key", "FIXED": "never changes", "CHANGING": "changes"}
    rows = []
    # What follows the name is words of store/table.h, with parentheses at most two deep.
    for role, kind, name, words_of, comment in re.findall(
            r"X\(row, (\w+), (\w+), (\w+)((?:[^()]|\([^()]*\))*)\)\s*(?:/\*(.*?)\*/)?", body):
        notes = [comment.strip()] if comment.strip() else []
        limits = re.search(r"(?:RANGE|STATES)\((.*?)\)", words_of)
        if limits:
            notes.append("from `{}` to `{}`".format(*re.split(r",\s*", limits.group(1))))
        if "PERSONAL" in words_of:
            notes.append("personal")
        rows.append((f"`{name}`", types[kind], uses[role], "; ".join(notes).replace("|", "\\|")))
    return rows


def schema():
    """Every table, in the order of the lists."""
    lines = [SCHEMA_HEAD]
    for path in ("client_tables.h", "job_tables.h", "run_tables.h"):
        text = (ROOT / "src/store" / path).read_text()
        text = re.sub(r"[ ]*\\\n", "\n", text)
        comment = r"(?:/\*((?:(?!\*/).)*)\*/\n)?"
        found = re.findall(comment + r"#define (\w+)_COLUMNS\(X, row\)\n(.*?)\n" + comment +
                           r"#define \2_TABLE\(T\)\s(.*?)\n\n", text, re.S)
        if len(found) != text.count("_COLUMNS(X, row)"):
            sys.exit(f"{path}: a table is not described as the others; mend tools/generate_docs.py")
        for comment, _, columns, _, about in found:
            name = re.search(r'T\(\w+, "(\w+)"', about).group(1)
            kept = re.search(r'RETENTION\(\s*"([^"]*)"\s*\)', about).group(1)
            lines += ["", f"## {name}", ""]
            lines += [prose(comment), ""] if comment else []
            lines += [f"Kept: {kept}.", ""]
            lines += table(["column", "type", "use", "meaning"], table_columns(columns))
    return "\n".join(lines) + "\n"


def main():
    check = "--check" in sys.argv[1:]
    stale = []
    for path, text in (("docs/errors.md", errors()), ("docs/lifecycle.md", lifecycle()),
                       ("docs/schema.md", schema()),
                       ("docs/operations/topology.md", topology()),
                       (PROCESSES_PAGE, with_processes(PROCESSES_PAGE)),
                       (WORKER_PAGE, with_programs(WORKER_PAGE))):
        target = ROOT / path
        if check and (not target.exists() or target.read_text() != text):
            stale.append(path)
        elif not check:
            target.write_text(text)
    for path in stale:
        print(f"{path}: out of date; run tools/generate_docs.py")
    return 1 if stale else 0


sys.exit(main())
