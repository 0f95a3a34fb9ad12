"""The report: latest.md for people, latest.json for programs, charts, text for the terminal.

A report is a list of blocks, rendered twice: as markdown and as plain text with aligned columns.
Text is a str; a Table and a Picture are what they say.
"""
import json
import math
import os
import textwrap
from dataclasses import dataclass

from measure import charts, processes, rows, summary
from measure.summary import NOISE_SHARE, find, number

HEAD_TO_HEAD = ["submit_1", "submit_64", "batch", "drain", "cycle", "pickup", "pickup_p99",
                "memory", "disk", "written", "cpu"]
LATENCIES = HEAD_TO_HEAD[:6]
# Columns on the terminal: a figure's heading, a row's title, words in a table, a sentence.
HEADING_WIDTH, TITLE_WIDTH, CELL_WIDTH, TEXT_WIDTH = 14, 40, 60, 110
STATEMENT_WIDTH = 120
CAVEATS = [
    "The peers' clients are Node programs, Weir's is written in C, and all share the cores with "
    "the server. Where the load's share of a core nears 100 %, the client is the limit.",
    "Each peer speaks its own protocol over a socket; Weir and Restate pay for HTTP.",
    "Weir keeps every job with all its events and its report. Restate keeps a journal and pg-boss "
    "its finished jobs; graphile-worker, BullMQ (removeOnComplete) and beanstalkd delete them.",
    "beanstalkd has no bulk command: its batch is single puts, pipelined. Restate has no bulk and "
    "no queue to fill beforehand: its cycle is submit and run to completion.",
    "What is called durable syncs before it acknowledges, by its settings; only Weir's promise is "
    "also tested with power cuts (tests/faults).",
    "Memory: the peers' processes and PostgreSQL's by their proportional share, so that a page shared by "
    "many counts once; Weir's on SQLite by all that each holds, which is the larger figure.",
    "On PostgreSQL, Weir's server is Weir and PostgreSQL together. The peers there are libraries: what Weir "
    "does in its own processes they do in the client's, which counts as load.",
    "Latency is closed-loop: with 64 in flight p50 is mostly 64 divided by the rate. A claim takes "
    "as many jobs as suits each, so its latencies are not comparable between them.",
    "A difference inside the spread is no difference. On a slower disk every figure with one sync "
    "per job falls with it, grouped ones much less.",
]


@dataclass
class Table:
    """Cells in markdown; the first column holds titles, the others figures."""
    heading: list
    lines: list
    words: bool = False  # every column holds words: none is aligned as figures are


@dataclass
class Picture:
    """A chart beside the report; the terminal leaves it out."""
    title: str
    file: str


def as_markdown(blocks):
    """The blocks for a browser."""
    out = []
    for block in blocks:
        if isinstance(block, Table):
            block = "\n".join(
                "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in
                [block.heading, ["---"] * len(block.heading), *block.lines])
        elif isinstance(block, Picture):
            block = f"![{block.title}]({block.file})"
        out.append(block)
    return "\n\n".join(out) + "\n"


def aligned(table):
    """A table in columns for the terminal; headings and titles run over several lines."""
    def plain(cell):
        return cell.replace("*", "").replace("`", "")

    wrapped = [[textwrap.wrap(plain(cell), TITLE_WIDTH if column == 0 else width,
                              break_long_words=False) or [""] for column, cell in enumerate(cells)]
               for cells, width in [(table.heading, HEADING_WIDTH),
                                    *((line, CELL_WIDTH) for line in table.lines)]]
    widths = [max(len(part) for cells in wrapped for part in cells[column])
              for column in range(len(table.heading))]
    out = []
    for index, cells in enumerate(wrapped):
        for at in range(max(len(cell) for cell in cells)):
            parts = [cell[at] if at < len(cell) else "" for cell in cells]
            padded = [part.ljust(width) if table.words or column == 0 else part.rjust(width)
                      for column, (part, width) in enumerate(zip(parts, widths))]
            out.append("  ".join(padded).rstrip())
        if index == 0:
            out.append("  ".join("-" * width for width in widths))
    return "\n".join(out)


def as_text(blocks):
    """The blocks for a terminal."""
    out = []
    for block in blocks:
        if isinstance(block, Table):
            out.append(aligned(block))
        elif isinstance(block, str):
            out.append("\n".join(textwrap.fill(line.lstrip("# "), TEXT_WIDTH, subsequent_indent=(
                "  " if line.startswith("- ") else "")) for line in block.splitlines()))
    return "\n\n".join(out) + "\n"


def percent(share):
    """'7%', with a mark when it makes the row doubtful."""
    if share is None:
        return ""
    return f"{share:.0%}" + (" (!)" if share > NOISE_SHARE else "")


def at_most(ratio):
    """A ratio cut, not rounded, to two digits: what misses its goal never looks like it."""
    return "" if ratio is None else f"{math.floor(ratio * 100 + 1e-9) / 100:.2f}"


def verdict(reached):
    """yes, no, or a dash for a goal nothing can be said about."""
    return "-" if reached is None else "yes" if reached else "**no**"


def latency(line, count):
    """'p50 / p99 / ...' in milliseconds, as many as asked for."""
    return " / ".join(number(x / 1000) for x in line["latency_us"][:count] if x is not None)


def load_cell(line):
    """The load's microseconds and its share of one core."""
    if line["load_cpu_us"] is None:
        return ""
    share = line["load_cpu_share"]
    return number(line["load_cpu_us"]) + (f" ({share:.0%})" if share is not None else "")


def machine_lines(results):
    """The facts as one paragraph, and how to read the figures."""
    m = results["machine"]
    versions = "; ".join(s["version"] for s in results["subjects"] if s["version"])
    syncs = ", ".join(f"{name} {sync['per_second']:,} /s (p50 {sync['p50_ms']} ms, p99 "
                      f"{sync['p99_ms']} ms)" for name, sync in m["fdatasync"].items())
    return [
        f"Measured {m['at']}, commit {m['commit']}, on {m['cores']} cores ({m['cpu']}), "
        f"{m['memory_gib']} GiB, Linux {m['kernel']}, {m['file_system']}; load average "
        f"{m['load_average']} at the start. fdatasync of 4 KiB on the same disk in the same run: "
        f"{syncs}. Versions: {versions}.",
        f"{results['round_count']} round(s), {'short' if results['quick'] else 'full'}; medians, "
        "spread = smallest and largest round. Server and load share the cores. (!) marks rows in "
        f"which others used more than {NOISE_SHARE:.0%} of the machine.",
    ]


def goal_lines(made):
    """How many goals were reached; by name those missed and those whose rounds disagree."""
    verdicts = [goal["reached"] for goal in made["goals"]]
    out = [f"Goals: {verdicts.count(True)} reached, {verdicts.count(False)} missed, "
           f"{verdicts.count(None)} not to be told."]
    disturbed = sum((line["others_cpu_share"] or 0) > NOISE_SHARE for line in made["lines"])
    if disturbed:
        out[0] += (f" {disturbed} of {len(made['lines'])} figures were disturbed by others (!): "
                   "verdicts on them, and on growth from them, mean little.")
    named = [f"- missed: {goal['text']}" for goal in made["goals"] if goal["reached"] is False]
    named += [f"- inside the spread of the rounds: {goal['text']}" for goal in made["goals"]
              if goal["reached"] is None and goal["kind"] != "peer"]
    return out + (["\n".join(named)] if named else [])


def heading(subject):
    """A subject's title over a column; in italics and marked when it is not durable."""
    return subject["title"] if subject["durable"] else f"*{subject['title']} (not durable)*"


def grid(subjects, made, row_list, keys, cell_of, tail=None):
    """Rows down, subjects across, on the empty store; rows without any figure are left out."""
    by_key = {row.key: row for row in row_list}
    lines = []
    for row in (by_key[key] for key in keys if key in by_key):
        found = [find(made["lines"], s["name"], "empty", row.key) for s in subjects]
        cells = [cell_of(line) if line else "" for line in found]
        cells = [f"*{cell}*" if cell and not s["durable"] else cell for s, cell in zip(subjects, cells)]
        if any(cells):
            title = f"{row.title}, {row.unit}" if tail else row.title
            lines.append([title, *cells, *(tail(row) if tail else [])])
    return lines


def figure_cell(line):
    """The median, marked when others disturbed it; for the CPU also the load's."""
    text = number(line["value"])
    if (line["others_cpu_share"] or 0) > NOISE_SHARE:
        text += " (!)"
    if line["row"] == "cpu" and line["load_cpu_us"] is not None:  # us a life: s per million lives
        text += f" (load {number(line['load_cpu_us'])})"
    return text


def beside_table(us, subjects, made, row_list, keys):
    """The figures of some subjects, and what those of ours are beside its best rival and its goals."""
    short = {s["name"]: s["title"].partition(",")[0] for s in subjects}
    us = us or {"name": None}
    beside = {x["row"]: x for x in made["against"] if x["subject"] == us["name"]}
    goals = {(x["row"], x["kind"]): x for x in made["goals"]
             if x["state"] == "empty" and x["subject"] == us["name"]}

    def tail(row):
        best, goal = beside.get(row.key), summary.goals_for(us, row)
        if not best:
            return [""] * 4
        wanted = [(goal.sign(), "base"),
                  (f"{goal.peer:.2f} x peer" if goal.peer is not None else "", "peer")]
        judged = [(text, verdict(goals[row.key, kind]["reached"])) for text, kind in wanted
                  if (row.key, kind) in goals]
        name = best["best_peer"] and f"{short[best['best_peer']]}: {number(best['best_value'])}"
        if best["beside"] is not None:
            name += f" (in turns with Weir: {number(best['beside'])})"
        return [name or "", at_most(best["ratio"]),
                ", ".join(text for text, _ in judged), ", ".join(mark for _, mark in judged)]

    return Table(["", *map(heading, subjects), "best durable peer", "ratio", "goal", "reached"],
                 grid(subjects, made, row_list, keys, figure_cell, tail))


def head_to_head(results, made, row_list):
    """The first of ours beside every other subject, and the tables of latencies and CPU that belong to it."""
    subjects = results["subjects"]
    columns = [heading(s) for s in subjects]
    return [
        "## Head to head",
        "Empty store, medians. The ratio is how many times better Weir is than the best durable "
        "peer; above 1 is always good. What is not durable may lose what it acknowledged and is "
        "never the best peer. A peer measured in turns with Weir is set against the turns between "
        "its own.",
        Picture("Weir and its peers", "head-to-head.svg"),
        beside_table(next(iter(summary.ours(subjects)), None), subjects, made, row_list, HEAD_TO_HEAD),
        "Latencies of the same rows, p50 / p99 / p99.9 in ms:",
        Table(["", *columns], grid(subjects, made, row_list, LATENCIES, lambda line: latency(line, 3))),
        "CPU per job, server us + load us (the load's share of a core):",
        Table(["", *columns], grid(subjects, made, row_list, LATENCIES, cpu_cell)),
    ]


def on_database(results, made, row_list, us):
    """One of ours beside the peers on the same database, and what it asks that database."""
    subjects = [us, *summary.rivals(results["subjects"], us)]
    out = [f"## On {us['database']}",
           f"{us['title']}, beside the peers that keep their jobs there, on clusters with the same settings. "
           "Its CPU and memory are its own and the database's together.",
           beside_table(us, subjects, made, row_list, [*HEAD_TO_HEAD, "idle"])]
    table = budget_table(results, made, row_list, us["name"])
    if table.lines:
        out += ["What a job or a read takes: statements by the database's log, on a server of its own, and "
                "microseconds of CPU. A batch that finds nothing to do is among the commits.", table]
    idle = summary.rounds_of(results, us["name"], "empty", "idle")
    often = [[statement(x["text"]), number(x["per_second"])] for x in (idle or [{}])[-1].get("often", [])]
    if often:
        out += ["And what it asks while it is idle, the most frequent of the last round:",
                Table(["statement", "per s"], often)]
    return out


def statement(text):
    """A statement's beginning in one line."""
    line = " ".join(text.replace("`", "'").split())
    return f"`{line if len(line) <= STATEMENT_WIDTH else line[:STATEMENT_WIDTH - 3] + '...'}`"


def statement_figures(stage):
    """A stage's statements and jobs in proportion; reads commit nothing."""
    found = {"per_job": stage["statements"] / stage["count"]}
    if stage["commits"]:
        found |= {"jobs_a_commit": stage["count"] / stage["commits"],
                  "a_commit": stage["statements"] / stage["commits"]}
    return found


def cpu_parts(found):
    """Microseconds each of the database's processes and of ours. What has ended is the database's, which ends
    a process after each vacuum; ours stay."""
    parts = {"database": 0, "ours": 0}
    for thread, spent in found["server_threads"].items():
        part = "database" if thread.startswith("postgres") or thread == processes.ENDED else "ours"
        parts[part] += spent["user_s"] + spent["system_s"]
    return {part: total * 1e6 / (found.get("jobs") or found.get("requests") or 1)
            for part, total in parts.items()}


def budget_table(results, made, row_list, name):
    """What a job takes in each row: statements, and whose CPU; medians over rounds."""
    stages = [one.get("stages", {}) for one in summary.rounds_of(results, name, "empty", "idle")]
    out = Table(["", "statements per job", "jobs per commit", "statements per commit", "Weir us",
                 "PostgreSQL us", "load us"], [])
    for row in (row for row in row_list if row.run):
        asked = [statement_figures(one[row.key]) for one in stages if row.key in one]
        spent = [cpu_parts(one) for one in summary.rounds_of(results, name, "empty", row.key)
                 if one.get("server_threads")]
        if asked or spent:
            line = find(made["lines"], name, "empty", row.key)
            out.lines.append([row.title] + [number(x) for x in (
                *(summary.median_of(asked, key) for key in ("per_job", "jobs_a_commit", "a_commit")),
                *(summary.median_of(spent, key) for key in ("ours", "database")),
                line and line["load_cpu_us"])])
    return out


def cpu_cell(line):
    """Server and load side by side."""
    if line["server_cpu_us"] is None:
        return ""
    load = load_cell(line)
    return number(line["server_cpu_us"]) + (f" + {load}" if load else "")


def settings_table(results):
    """What each subject promises and how it was set."""
    return Table(["subject", "durable when acknowledged", "settings", "version"],
                 [[heading(s), "yes" if s["durable"] else "*no*", s["settings"], s["version"]]
                  for s in results["subjects"]], words=True)


def detail(made, row_list, us, state):
    """Our own table of one state: spread, latencies, who used the CPU, jobs per commit."""
    full = state != "empty"
    out = Table(["", "goal", "reached", "median", "spread", "p50 / p99 / p99.9 / max ms",
                 "server CPU us", "load CPU us (share of a core)", "per commit", "others' CPU"]
                + ["change"] * full, [])
    for row in row_list:
        line = find(made["lines"], us["name"], state, row.key)
        if not line or line["value"] is None:
            continue
        judged = next((x for x in made["goals"] if (x["subject"], x["row"], x["state"], x["kind"]) ==
                       (us["name"], row.key, state, "base")), None)
        out.lines.append([
            row.title, summary.goals_for(us, row).sign() if judged else "",
            verdict(judged["reached"]) if judged else "",
            f"**{number(line['value'])}** {row.unit}",
            f"{number(line['min'])} to {number(line['max'])}", latency(line, 4),
            number(line["server_cpu_us"]), load_cell(line), number(line["per_commit"]),
            percent(line["others_cpu_share"])]
            + [f"{line['change']:+.0%}" if line["change"] is not None else ""] * full)
    return out


def growth_cell(line, grows, made):
    """The figure and its change; bold when the change is more than allowed."""
    if not line or line["value"] is None:
        return ""
    if line["change"] is None:
        return number(line["value"])
    text = f"{number(line['value'])} ({line['change']:+.0%})"
    return f"**{text}**" if grows and line["change"] < -made["worse_max"] else text


def growth(results, made, row_list, us):
    """Rows down, states across; [] when only the empty store was measured."""
    name, first = us["name"], us is summary.ours(results["subjects"])[0]
    states = [s for s in results["states"] if s["key"] in results["rounds"].get(name, {})]
    if len(states) < 2:
        return []
    lines = []
    for row in row_list:
        found = [find(made["lines"], name, s["key"], row.key) for s in states]
        if any(line and line["change"] is not None for line in found):
            grows = summary.goals_for(us, row).grows
            lines.append([f"{row.title}, {row.unit}", *(growth_cell(x, grows, made) for x in found),
                          f"-{made['worse_max']:.0%} at worst" if grows else ""])
    return ["## Growth" if first else f"## Growth: {us['title']}",
            "Change against the empty store: + is better, - is worse, also for times "
            "and memory. A rate that may not fall is set against an empty store measured beside it, "
            "a moment before or after; other rows against the round's first. Bold is worse than "
            "the goal allows.",
            *([Picture("Each row in percent of the empty store", "growth.svg")] if first else []),
            Table(["", *(s["title"] for s in states), "goal"], lines)]


def thread_table(results, row_list, name):
    """Server CPU by thread, microseconds a job (or request), from the scheduler's own account."""
    out = Table(["row", "thread", "user us", "system us"], [])
    for row in (row for row in row_list if row.run):  # a derived row has another's threads
        found = [x for x in summary.rounds_of(results, name, "empty", row.key)
                 if x.get("server_threads")]
        for thread in sorted({n for x in found for n in x["server_threads"]}):
            cells = []
            for part in ("user_s", "system_s"):
                per_round = [{"us": x["server_threads"].get(thread, {}).get(part, 0) * 1e6
                              / (x.get("jobs") or x.get("requests") or 1)} for x in found]
                cells.append(summary.median_of(per_round, "us"))
            if sum(cells) >= 0.05:
                out.lines.append([row.key, thread, f"{cells[0]:.2f}", f"{cells[1]:.2f}"])
    return out


def later_lines():
    """Rows that are planned; each is a title, or a title and what it joins with."""
    return ["- " + (item if isinstance(item, str) else ": joins with ".join(item))
            for item in rows.LATER]


def document(results, made, row_list):
    """All blocks of the report, in reading order."""
    ours = summary.ours(results["subjects"])
    out = ["# Results", *machine_lines(results), *goal_lines(made)]
    if results.get("notes"):
        out.append("\n".join(f"- {note}" for note in results["notes"]))
    out += head_to_head(results, made, row_list)
    for us in (us for us in ours if us.get("database")):
        out += on_database(results, made, row_list, us)
    out += ["## Durability and settings", settings_table(results)]
    for us in ours:
        for state in results["states"]:
            table = detail(made, row_list, us, state["key"])
            if table.lines:
                out += [f"## {us['title']}: {state['title']}", table]
        out += growth(results, made, row_list, us)
        out += ["## Server CPU by thread" + ("" if us is ours[0] else f": {us['title']}"),
                thread_table(results, row_list, us["name"])]
    if rows.LATER:
        out += ["## Rows that join later", "\n".join(later_lines())]
    return out + ["## Caveats", "\n".join(f"- {caveat}" for caveat in CAVEATS)]


def write(results, folder, row_list=None):
    """latest.json, latest.md and the charts; returns the text for the terminal and whether every
    goal was reached."""
    row_list = rows.ROWS if row_list is None else row_list
    made = summary.build(results, row_list, rows.SHARE_WORSE_MAX)
    blocks = document(results, made, row_list)
    files = {"latest.json": json.dumps(results | {"summary": made}, indent=1) + "\n",
             "latest.md": as_markdown(blocks),
             "head-to-head.svg": charts.head_to_head(results, made, row_list),
             "growth.svg": charts.growth(results, made, row_list)}
    os.makedirs(folder, exist_ok=True)
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    return as_text(blocks), summary.all_reached(made)
