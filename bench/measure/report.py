"""From rounds to medians, a table for people and a file for programs."""
import json
import os
import statistics

from measure import rows

NOISE_SHARE = 0.05  # others' CPU above this makes a row doubtful


def number(value):
    """Three significant digits or so, thousands grouped."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def median_of(found, *path):
    """Median over rounds of a nested figure; None when no round has it."""
    values = []
    for row in found:
        for step in path:
            row = row.get(step) if isinstance(row, dict) else None
        if row is not None:
            values.append(row)
    return statistics.median(values) if values else None


def main_call(row_key):
    """The call whose latency stands in the table."""
    return {"null": "healthz", "submit_1": "submit", "submit_64": "submit",
            "submit_keyed": "submit", "drain": "claim", "lifecycle": "claim"}.get(row_key, row_key)


def summary(results):
    """[one dict per row and store state]: median, spread, latency, CPU; goal and verdict."""
    lines = []
    for state, by_row in results["rounds"].items():
        for row in rows.ROWS:
            found = by_row.get(row.key)
            if not found:
                continue
            values = [r["value"] for r in found]
            value = statistics.median(values)
            call = main_call(row.key)
            lines.append({
                "state": state, "row": row.key, "title": row.title, "unit": row.unit,
                "goal": row.goal, "value": value, "min": min(values), "max": max(values),
                "reached": row.reached(value),
                "latency_us": [median_of(found, "calls", call, p)
                               for p in ("p50_us", "p99_us", "p999_us", "max_us")],
                "server_cpu_us": median_of(found, "server_cpu_us"),
                "load_cpu_us": median_of(found, "load_cpu_us"),
                "load_cpu_share": median_of(found, "load_cpu_share"),
                "others_cpu_share": median_of(found, "others_cpu_share"),
                "per_commit": median_of(found, "per_commit"),
                "change": change(row, value, results["rounds"].get("empty", {}), state),
            })
    return lines


def change(row, value, empty, state):
    """Share by which a row on a full store is better (+) or worse (-) than on an empty one."""
    if state == "empty" or row not in rows.TRAFFIC or row.key not in empty:
        return None
    before = statistics.median(r["value"] for r in empty[row.key])
    ratio = value / before if row.higher_is_better else before / value
    return round(ratio - 1, 3)


def goal_text(line):
    """'>= 30,000' with the verdict."""
    if line["goal"] is None:
        return "", ""
    row = next(r for r in rows.ROWS if r.key == line["row"])
    sign = ">=" if row.higher_is_better else "<"
    return f"{sign} {number(line['goal'])}", "yes" if line["reached"] else "**no**"


def table(lines, state):
    """The markdown table of one store state."""
    out = ["| | goal | reached | median | spread | p50 / p99 / p99.9 / max ms | server CPU us | "
           "load CPU us (share of a core) | per commit | others' CPU |" + (
               " change |" if state != "empty" else ""),
           "|---" * (10 if state == "empty" else 11) + "|"]
    for line in (x for x in lines if x["state"] == state):
        goal, reached = goal_text(line)
        latency = [number(x / 1000) for x in line["latency_us"] if x is not None]
        load = line["load_cpu_us"]
        cells = [line["title"], goal, reached, f"**{number(line['value'])}** {line['unit']}",
                 f"{number(line['min'])} to {number(line['max'])}", " / ".join(latency),
                 number(line["server_cpu_us"]),
                 f"{number(load)} ({line['load_cpu_share']:.0%})" if load is not None else "",
                 number(line["per_commit"]), percent(line["others_cpu_share"])]
        if state != "empty":
            cells.append(f"{line['change']:+.0%}" if line["change"] is not None else "")
        out.append("| " + " | ".join(cells) + " |")
    return out


def percent(share):
    """'7 %', with a mark when it makes the row doubtful."""
    if share is None:
        return ""
    return f"{share:.0%}" + (" (!)" if share > NOISE_SHARE else "")


def thread_table(results):
    """Server CPU by thread, microseconds a job (or request), from the scheduler's own account."""
    out = ["| row | thread | user us | system us |", "|---|---|---|---|"]
    for row in rows.TRAFFIC:
        found = results["rounds"]["empty"].get(row.key, [])
        for name in sorted({n for r in found for n in r["server_threads"]}):
            cells = []
            for part in ("user_s", "system_s"):
                cells.append(statistics.median(
                    r["server_threads"].get(name, {}).get(part, 0) * 1e6
                    / (r["jobs"] or r["requests"] or 1) for r in found))
            if sum(cells) >= 0.05:
                out.append(f"| {row.key} | {name} | {cells[0]:.2f} | {cells[1]:.2f} |")
    return out


def machine_lines(results):
    """The facts as sentences."""
    m = results["machine"]
    sync = m["fdatasync"]
    return [
        f"Measured {m['at']} with {results['version']}, commit {m['commit']}, on {m['cores']} cores "
        f"({m['cpu']}), {m['memory_gib']} GiB, Linux {m['kernel']}, {m['file_system']}; load average "
        f"{m['load_average']} at the start.",
        "",
        "fdatasync of 4 KiB on the same disk in the same run: "
        + ", ".join(f"{name} {sync[name]['per_second']:,} /s (p50 {sync[name]['p50_ms']} ms, p99 "
                    f"{sync[name]['p99_ms']} ms)" for name in sync) + ".",
        "",
        f"{results['round_count']} round(s), {'short' if results['quick'] else 'full'}; medians, "
        "spread = smallest and largest round. Server and load share the cores. (!) marks rows in "
        f"which others used more than {NOISE_SHARE:.0%} of the machine.",
    ]


def markdown(results, lines):
    """The whole report."""
    out = ["# Results", "", *machine_lines(results), "", "## Empty store", "",
           *table(lines, "empty")]
    for state in results["rounds"]:
        if state != "empty":
            out += ["", f"## {state}", "",
                    f"Goal: no row worse by more than {rows.SHARE_WORSE_MAX:.0%}.", "",
                    *table(lines, state)]
    out += ["", "## Server CPU by thread", "", *thread_table(results), ""]
    return "\n".join(out)


def write(results, folder):
    """latest.json and latest.md; returns the text and whether every goal was reached."""
    lines = summary(results)
    results["summary"] = lines
    text = markdown(results, lines)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "latest.json"), "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    with open(os.path.join(folder, "latest.md"), "w", encoding="utf-8") as file:
        file.write(text)
    return text, all(x["reached"] is not False and (x["change"] or 0) >= -rows.SHARE_WORSE_MAX
                     for x in lines)
