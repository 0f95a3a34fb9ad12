"""From rounds to medians: every subject, state and row; the best durable peer; growth; goals.

build() turns results into plain dicts and lists, so that latest.json can hold them. Subjects that are
no peers are ours: only their figures have goals. A figure nobody took is left out, never zero.

Every goal is a ratio to something measured in the same run: a peer, the disk's fdatasync, what the load
generator can send at most, or another row of ours. So a slower machine misses no goal for being slower.
"""
import statistics
from dataclasses import dataclass
from typing import Optional

NOISE_SHARE = 0.05  # others' CPU above this makes a row doubtful
PERCENTILES = ("p50_us", "p99_us", "p999_us", "max_us")
SINGLE_FIGURES = ("server_cpu_us", "load_cpu_us", "load_cpu_share", "others_cpu_share",
                  "per_commit")


def number(value):
    """Three significant digits or so, thousands grouped."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def values_of(found, *path):
    """A nested figure of every round that has it."""
    values = []
    for row in found:
        for step in path:
            row = row.get(step) if isinstance(row, dict) else None
        if row is not None:
            values.append(row)
    return values


def median_of(found, *path):
    """Median over rounds of a nested figure; None when no round has it."""
    values = values_of(found, *path)
    return statistics.median(values) if values else None


def middle(figures):
    """One dict of several of the same shape: the median of each number, the first of anything else."""
    first = figures[0]
    if isinstance(first, dict):
        return {key: middle([figure[key] for figure in figures]) for key in first
                if all(key in figure for figure in figures)}
    numbers = all(isinstance(figure, (int, float)) and not isinstance(figure, bool) for figure in figures)
    return statistics.median(figures) if numbers else first


def times_better(value, other, higher_is_better):
    """How many times better `value` is than `other`: above 1 is always good; None when unknown."""
    if not value or not other:
        return None
    return value / other if higher_is_better else other / value


def ours(subjects):
    """The subjects the goals are for, the most important first; [] when only peers ran."""
    return [s for s in subjects if not s["peer"]]


def rivals(subjects, us):
    """The peers that ours is set against: durable as it is, and where it is on a database, on the same."""
    return [s for s in subjects if s["peer"] and s["durable"]
            and us.get("database") in (None, s.get("database"))]


@dataclass(frozen=True)
class Base:
    """A goal: a figure reaches `times` times what `of` is in the same round. Where less is better, it
    stays at or below that."""
    times: float
    of: str    # the key of a row of ours, or one of FACTS
    name: str  # of the base, in tables


FACTS = {
    # The p50 of an fdatasync on the measured disk, in ms.
    "fdatasync": lambda results, _found: results["machine"]["fdatasync"]["append"]["p50_ms"],
    # Statements that one single submit takes; the idle row counts them.
    "submit_statements": lambda _results, found: per_job(found.get("stages", {}).get("submit_1")),
}


def per_job(stage):
    """Statements a job of one stage that the idle row counted."""
    return stage["statements"] / stage["count"] if stage and stage["count"] else None


@dataclass(frozen=True)
class Goals:
    """What a row of a subject should reach."""
    base: Optional[Base]
    peer: Optional[float]   # so many times as good as the best rival
    grows: bool             # may not lose much on a full store
    higher_is_better: bool

    def sign(self):
        """'>= 0.25 x ceiling' or '<= 5.00 x fdatasync'; "" without such a goal."""
        if self.base is None:
            return ""
        return f"{'>=' if self.higher_is_better else '<='} {self.base.times:.2f} x {self.base.name}"


def goals_for(us, row):
    """The row's goals, or those that a subject of ours has instead."""
    if us.get("goals") is None:
        return Goals(row.goal, row.peer_goal, row.grows, row.higher_is_better)
    base, peer = us["goals"].get(row.key, (None, None))
    return Goals(base and Base(*base), peer, False, row.higher_is_better)


def rounds_of(results, subject, state, row_key):
    """Every round's figures; [] when there are none."""
    return results["rounds"].get(subject, {}).get(state, {}).get(row_key, [])


def line_of(results, subject, state, row):
    """One row of one subject in one state as a dict; None when it was not measured."""
    found = rounds_of(results, subject, state, row.key)
    if not found:
        return None
    values = values_of(found, "value")
    line = {"subject": subject, "state": state, "row": row.key, "title": row.title,
            "unit": row.unit,
            "value": statistics.median(values) if values else None,
            "min": min(values, default=None), "max": max(values, default=None),
            "latency_us": [median_of(found, "calls", row.latency_call, p) for p in PERCENTILES],
            "change": None, "best_change": None}
    line |= {name: median_of(found, name) for name in SINGLE_FIGURES}
    if state != "empty":
        empty = median_of(rounds_of(results, subject, "empty", row.key), "value")
        changes = changes_of(found, empty, row)
        line["change"] = statistics.median(changes) if changes else None
        line["best_change"] = max(changes, default=None)
    return line


def changes_of(found, empty, row):
    """By how much each round is better than empty: than the empty store measured beside it in the same
    minute, where there is one, else than the median of all rounds on an empty store."""
    ratios = [times_better(one.get("value"), one.get("beside", empty), row.higher_is_better) for one in found]
    return [ratio - 1 for ratio in ratios if ratio is not None]


def lines_of(results, row_list):
    """All lines there are, in the order of subjects, states and rows."""
    made = (line_of(results, subject["name"], state["key"], row) for subject in results["subjects"]
            for state in results["states"] for row in row_list)
    return [line for line in made if line]


def find(lines, subject, state, row_key):
    """The line of that subject, state and row, or None."""
    return next((x for x in lines if (x["subject"], x["state"], x["row"]) ==
                 (subject, state, row_key)), None)


def against_peers(results, lines, us, row):
    """A row of ours beside the best rival; the ratio is None without one. Where the peer was measured in
    turns with us, the ratio is that of the pairs, and `beside` is our figure in them."""
    mine = find(lines, us["name"], "empty", row.key)
    best = None
    for peer in rivals(results["subjects"], us):
        line = find(lines, peer["name"], "empty", row.key)
        if line and line["value"] is not None and (
                best is None or (line["value"] > best["value"]) == row.higher_is_better):
            best = line
    pairs = best and [one for one in rounds_of(results, best["subject"], "empty", row.key)
                      if "beside" in one and one.get("beside_subject", us["name"]) == us["name"]]
    ratio = None
    if mine and pairs:
        ratio = statistics.median(
            times_better(one["beside"], one["value"], row.higher_is_better) for one in pairs)
    elif mine and best:
        ratio = times_better(mine["value"], best["value"], row.higher_is_better)
    goal = goals_for(us, row).peer
    return {"subject": us["name"], "row": row.key, "best_peer": best and best["subject"],
            "best_value": best and best["value"], "beside": median_of(pairs or [], "beside"),
            "ratio": ratio, "peer_goal": goal,
            "reached": None if goal is None or ratio is None else ratio >= goal}


def growth_reached(line, worse_max):
    """True or False; None when the median is too low but a round was not: the spread is no verdict."""
    if line["change"] >= -worse_max:
        return True
    return None if line["best_change"] >= -worse_max else False


def shares_of_base(results, us, state, row):
    """The row's figure divided by its base, of every round that has both. Both are of the same round: the
    machine's ups and downs of minutes are in both of them."""
    base = goals_for(us, row).base
    shares = []
    for number, found in enumerate(rounds_of(results, us["name"], state, row.key)):
        if base.of in FACTS:
            under = FACTS[base.of](results, found)
        else:
            others = rounds_of(results, us["name"], state, base.of)
            under = others[number].get("value") if number < len(others) else None
        if under and found.get("value") is not None:
            shares.append(found["value"] / under)
    return shares


def base_goal(results, us, state, row):
    """(text, verdict) of a goal that is a ratio to a base; None where the base was not measured. As with
    growth, a goal that some round reaches and the median does not is no verdict."""
    goal, shares = goals_for(us, row), shares_of_base(results, us, state, row)
    if not shares:
        return None

    def enough(share):
        return share >= goal.base.times if goal.higher_is_better else share <= goal.base.times

    share = statistics.median(shares)
    reached = True if enough(share) else None if any(map(enough, shares)) else False
    return f"{share:.3f} x {goal.base.name}, goal {goal.sign()}", reached


def goals_of(results, lines, us, against, row_list, worse_max):
    """Every goal of a subject of ours as a sentence with its verdict: True, False, or None where nothing can
    be said. A subject that is not the first of ours is named, and has goals on the empty store alone."""
    titles = {state["key"]: state["title"] for state in results["states"]}
    first = us is ours(results["subjects"])[0]
    goals = []

    def add(row, state, kind, text, reached):
        goals.append({"subject": us["name"], "row": row.key, "state": state, "kind": kind, "reached": reached,
                      "text": f"{'' if first else us['title'] + ': '}{row.title}, "
                              f"{titles.get(state, state)}: {text}"})

    for row, beside in zip(row_list, against):
        goal = goals_for(us, row)
        mine = [x for x in lines if x["subject"] == us["name"] and x["row"] == row.key
                and x["value"] is not None]
        for line in mine:
            judged = goal.base and (us.get("goals") is None or line["state"] == "empty") and \
                base_goal(results, us, line["state"], row)
            if judged:
                add(row, line["state"], "base", f"{number(line['value'])} {row.unit}, {judged[0]}", judged[1])
            if goal.grows and line["change"] is not None:
                add(row, line["state"], "growth",
                    f"{line['change']:+.1%} against empty (best round {line['best_change']:+.1%}), "
                    f"goal -{worse_max:.0%} at worst", growth_reached(line, worse_max))
        if mine and goal.peer is not None:
            shown = (f"{beside['ratio']:.3f} times the best durable peer ({beside['best_peer']})"
                     if beside["ratio"] is not None else "no durable peer measured")
            add(row, "empty", "peer", f"{shown}, goal {goal.peer:.2f}", beside["reached"])
    return goals


def build(results, row_list, worse_max):
    """{"lines", "against", "goals"}: all that the report and the charts show."""
    lines, against, goals = lines_of(results, row_list), [], []
    for us in ours(results["subjects"]):
        beside = [against_peers(results, lines, us, row) for row in row_list]
        against += beside
        goals += goals_of(results, lines, us, beside, row_list, worse_max)
    return {"lines": lines, "against": against, "worse_max": worse_max, "goals": goals}


def all_reached(summary):
    """False as soon as one goal is missed; a goal nothing can be said about is not missed."""
    return all(goal["reached"] is not False for goal in summary["goals"])
