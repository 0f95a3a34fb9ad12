"""Two programs, measured in turns: which rows are slower in the second?

A machine has ups and downs of a third that last minutes, so figures of two hours say little about a few
percent. Both programs run in each round, one right behind the other, and what counts is the median of the
rounds' ratios. A row is slower when that median says so and so do three rounds of four.
"""
from collections import namedtuple
from statistics import median

SHARE_OF_ROUNDS = 0.75
CPU = ".cpu"
Cost = namedtuple("Cost", "key unit higher_is_better")


def values_of(results):
    """{(subject, state, row): value} of one run of one round."""
    return {(line["subject"], line["state"], line["row"]): line["value"]
            for line in results["summary"]["lines"] if line["value"]}


def costs_of(results):
    """The server's CPU of each unit of work, as values of rows of their own: it trembles less than a rate."""
    return {(line["subject"], line["state"], line["row"] + CPU): line["server_cpu_us"]
            for line in results["summary"]["lines"] if line["server_cpu_us"]}


def compare(rounds, rows, loss_max):
    """[(subject, state, row, median before, median now, ratios, is slower)] of rounds of two runs' values,
    before and now. Above 1 a ratio is in favour of now."""
    found = []
    for key in rounds[0][0]:
        row = (Cost(key[2], "us", False) if key[2].endswith(CPU)
               else next((row for row in rows if row.key == key[2]), None))
        pairs = [(before[key], now[key]) for before, now in rounds if key in before and key in now]
        if not row or not pairs:
            continue
        ratios = [now / before if row.higher_is_better else before / now for before, now in pairs]
        worse = sum(ratio < 1 for ratio in ratios) >= SHARE_OF_ROUNDS * len(ratios)
        found.append((*key[:2], row, median(b for b, _ in pairs), median(n for _, n in pairs), ratios,
                      worse and median(ratios) < 1 - loss_max))
    return found


def table(compared):
    """What people read."""
    lines = [f"{'subject':<14} {'row':<20} {'before':>12} {'now':>12} {'unit':<10} {'ratio':>6}  of rounds"]
    for subject, _state, row, before, now, ratios, slower in compared:
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        lines.append(f"{subject:<14} {row.key:<20} {before:>12,.1f} {now:>12,.1f} {row.unit:<10} "
                     f"{median(ratios):>6.3f}  {spread}{'  SLOWER' if slower else ''}")
    return "\n".join(lines)
