"""The report: latest.md for people, latest.json for programs, charts, text for the terminal.

A report is a list of blocks, rendered twice: as markdown and as plain text with aligned columns.
Text is a str; a Table and a Picture are what they say.
"""
import json
import math
import os
import textwrap
from dataclasses import dataclass

from measure import charts, rows, summary
from measure.summary import NOISE_SHARE, find, number

HEAD_TO_HEAD = ["submit_1", "submit_64", "batch", "drain", "cycle", "pickup", "pickup_p99",
                "memory", "disk", "written", "cpu"]
# Columns on the terminal: a figure's heading, a row's title, words in a table, a sentence.
HEADING_WIDTH, TITLE_WIDTH, CELL_WIDTH, TEXT_WIDTH = 14, 40, 60, 110
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
    "Memory: the peers' processes by their proportional share, so that a page shared by many "
    "counts once; Weir's by all that each holds, which is the larger figure.",
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
              if goal["reached"] is None and goal["kind"] == "growth"]
    return out + (["\n".join(named)] if named else [])


def heading(subject):
    """A subject's title over a column; in italics and marked when it is not durable."""
    return subject["title"] if subject["durable"] else f"*{subject['title']} (not durable)*"


def grid(results, made, row_list, keys, cell_of, tail=None):
    """Rows down, subjects across, on the empty store; rows without any figure are left out."""
    by_key = {row.key: row for row in row_list}
    lines = []
    for row in (by_key[key] for key in keys if key in by_key):
        found = [find(made["lines"], s["name"], "empty", row.key) for s in results["subjects"]]
        cells = [cell_of(line) if line else "" for line in found]
        cells = [f"*{cell}*" if cell and not s["durable"] else cell
                 for s, cell in zip(results["subjects"], cells)]
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


def head_to_head(results, made, row_list):
    """Ours beside every peer, and the tables of latencies and CPU that belong to it."""
    short = {s["name"]: s["title"].partition(",")[0] for s in results["subjects"]}
    beside = {x["row"]: x for x in made["against"]}
    goals = {(x["row"], x["kind"]): x for x in made["goals"] if x["state"] == "empty"}

    def tail(row):
        best = beside[row.key]
        wanted = [(summary.goal_sign(row), "absolute"),
                  (f"{row.peer_goal:.2f} x peer" if row.peer_goal is not None else "", "peer")]
        judged = [(text, verdict(goals[row.key, kind]["reached"])) for text, kind in wanted
                  if (row.key, kind) in goals]
        name = best["best_peer"] and f"{short[best['best_peer']]}: {number(best['best_value'])}"
        if best["beside"] is not None:
            name += f" (in turns with Weir: {number(best['beside'])})"
        return [name or "", at_most(best["ratio"]),
                ", ".join(text for text, _ in judged), ", ".join(mark for _, mark in judged)]

    columns = [heading(s) for s in results["subjects"]]
    return [
        "## Head to head",
        "Empty store, medians. The ratio is how many times better Weir is than the best durable "
        "peer; above 1 is always good. What is not durable may lose what it acknowledged and is "
        "never the best peer. A peer measured in turns with Weir is set against the turns between "
        "its own.",
        Picture("Weir and its peers", "head-to-head.svg"),
        Table(["", *columns, "best durable peer", "ratio", "goal", "reached"],
              grid(results, made, row_list, HEAD_TO_HEAD, figure_cell, tail)),
        "Latencies of the same rows, p50 / p99 / p99.9 in ms:",
        Table(["", *columns], grid(results, made, row_list, HEAD_TO_HEAD[:6],
                                   lambda line: latency(line, 3))),
        "CPU per job, server us + load us (the load's share of a core):",
        Table(["", *columns], grid(results, made, row_list, HEAD_TO_HEAD[:6], cpu_cell)),
    ]


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


def detail(made, row_list, name, state):
    """Our own table of one state: spread, latencies, who used the CPU, jobs per commit."""
    full = state != "empty"
    out = Table(["", "goal", "reached", "median", "spread", "p50 / p99 / p99.9 / max ms",
                 "server CPU us", "load CPU us (share of a core)", "per commit", "others' CPU"]
                + ["change"] * full, [])
    for row in row_list:
        line = find(made["lines"], name, state, row.key)
        if not line or line["value"] is None:
            continue
        goal = summary.goal_sign(row)
        out.lines.append([
            row.title, goal, verdict(row.reached(line["value"])) if goal else "",
            f"**{number(line['value'])}** {row.unit}",
            f"{number(line['min'])} to {number(line['max'])}", latency(line, 4),
            number(line["server_cpu_us"]), load_cell(line), number(line["per_commit"]),
            percent(line["others_cpu_share"])]
            + [f"{line['change']:+.0%}" if line["change"] is not None else ""] * full)
    return out


def growth_cell(line, row, made):
    """The figure and its change; bold when the change is more than allowed."""
    if not line or line["value"] is None:
        return ""
    if line["change"] is None:
        return number(line["value"])
    text = f"{number(line['value'])} ({line['change']:+.0%})"
    return f"**{text}**" if row.grows and line["change"] < -made["worse_max"] else text


def growth(results, made, row_list, name):
    """Rows down, states across; [] when only the empty store was measured."""
    states = [s for s in results["states"] if s["key"] in results["rounds"].get(name, {})]
    if len(states) < 2:
        return []
    lines = []
    for row in row_list:
        found = [find(made["lines"], name, s["key"], row.key) for s in states]
        if any(line and line["change"] is not None for line in found):
            lines.append([f"{row.title}, {row.unit}", *(growth_cell(x, row, made) for x in found),
                          f"-{made['worse_max']:.0%} at worst" if row.grows else ""])
    return ["## Growth", "Change against the empty store: + is better, - is worse, also for times "
            "and memory. A rate that has a goal is set against an empty store measured beside it, "
            "a moment before or after; other rows against the round's first. Bold is worse than "
            "the goal allows.",
            Picture("Each row in percent of the empty store", "growth.svg"),
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
    us = summary.ours(results["subjects"])
    out = ["# Results", *machine_lines(results), *goal_lines(made)]
    if results.get("notes"):
        out.append("\n".join(f"- {note}" for note in results["notes"]))
    out += [*head_to_head(results, made, row_list), "## Durability and settings",
            settings_table(results)]
    for state in results["states"] if us else []:
        table = detail(made, row_list, us["name"], state["key"])
        if table.lines:
            out += [f"## {us['title']}: {state['title']}", table]
    if us:
        out += growth(results, made, row_list, us["name"])
        out += ["## Server CPU by thread", thread_table(results, row_list, us["name"])]
    return out + ["## Rows that join later", "\n".join(later_lines()), "## Caveats",
                  "\n".join(f"- {caveat}" for caveat in CAVEATS)]


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
