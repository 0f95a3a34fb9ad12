"""The two charts of a report as SVG: Weir beside its peers, and each row as the store grows.

They bring their own background, so that they read the same on a light and on a dark page. Widths of
words are estimated from a wide font: what fits here fits in any other.
"""
import html
import math

from measure import summary
from measure.summary import find, number, times_better

WIDTH, MARGIN = 900, 20
LETTER = 0.64  # width of a letter at size 1 in a wide font
INK, MUTED, LINE, PAPER, ALARM = "#1f2328", "#59636e", "#d0d7de", "#ffffff", "#cf222e"
OURS, PEER = ("#0969da", "#8fbcf0"), ("#7d8792", "#c4cad1")  # (median or p50, p99)
BAND = "#ddf4e4"  # of changes that are no loss
STATE_COLOURS = ["#0969da", "#bc4c00", "#8250df", "#1a7f37"]
# One panel each: the rows in it, its title. Two rows in a panel are p50 and p99 of the same thing.
PANELS = [(["submit_64"], "Single submits, 64 in flight"), (["batch"], "Submits in bulk"),
          (["drain"], "Claim to finish, queue filled before"),
          (["cycle"], "Full lifecycle: bulk submit, then drain"),
          (["pickup", "pickup_p99"], "Pickup by an idle worker"),
          (["memory"], "Memory of the server")]
PANEL_WIDTH = (WIDTH - 3 * MARGIN) // 2
LABEL_WIDTH, VALUE_WIDTH, BAR_ROW, PANEL_HEAD = 168, 84, 30, 46


def text_width(content, size):
    """Pixels a text takes at most."""
    return len(content) * size * LETTER


def shortened(content, size, room):
    """The text, cut with an ellipsis when it is wider than the room."""
    fitting = int(room / (size * LETTER))
    return content if len(content) <= fitting else content[:fitting - 1].rstrip(" ,") + "…"


def text(x, y, content, size=12, anchor="start", colour=INK, style=""):
    """One line of text."""
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{colour}"{" " + style if style else ""}>{html.escape(content)}</text>')


def rect(x, y, width, height, fill, more=""):
    """A filled rectangle."""
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(0.0, width):.1f}" height="{height:.1f}" '
            f'fill="{fill}"{" " + more if more else ""}/>')


def stroke(x1, y1, x2, y2, colour=INK, width=1.0):
    """A straight line."""
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
            f'stroke-width="{width}"/>')


def whisker(left, right, y, half, colour=INK):
    """Smallest to largest round, with caps."""
    return [stroke(left, y, right, y, colour), stroke(left, y - half, left, y + half, colour),
            stroke(right, y - half, right, y + half, colour)]


def picture(height, title, parts):
    """The whole SVG: background, hatching for what is not durable, parts."""
    hatch = "".join(
        f'<pattern id="{name}" width="5" height="5" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)"><rect width="5" height="5" fill="#f3f4f6"/>'
        f'<rect width="1.6" height="5" fill="{fill}"/></pattern>'
        for name, fill in (("loose0", PEER[0]), ("loose1", PEER[1])))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
        f'viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        "font-family=\"-apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif\">",
        f"<title>{html.escape(title)}</title><defs>{hatch}</defs>",
        rect(0.5, 0.5, WIDTH - 1, height - 1, PAPER, f'rx="8" stroke="{LINE}"'),
        *parts, "</svg>"]) + "\n"


def fill_of(subject, shade):
    """Weir in colour, durable peers solid, the others hatched."""
    if not subject["durable"]:
        return f"url(#loose{shade})"
    return (PEER if subject["peer"] else OURS)[shade]


def in_order(subjects):
    """Ours, then durable peers, those on a database of ours first, then the others: the same place in every
    panel."""
    databases = {s.get("database") for s in summary.ours(subjects)} - {None}
    return sorted(subjects, key=lambda s: (s["peer"], not s["durable"],
                                           s["peer"] and s.get("database") not in databases))


def legend(entries, y):
    """(colour, word) pairs in a line, wrapped when it is full; returns parts and the next y."""
    parts, x = [], MARGIN
    for fill, word in entries:
        needed = 18 + text_width(word, 11) + 14
        if x > MARGIN and x + needed > WIDTH - MARGIN:
            x, y = MARGIN, y + 18
        parts += [rect(x, y - 9, 12, 10, fill, f'stroke="{MUTED}" stroke-width="0.5"'),
                  text(x + 18, y, shortened(word, 11, WIDTH - 2 * MARGIN - 18), 11, colour=MUTED)]
        x += needed
    return parts, y + 18


def name_of(subject, x, y):
    """A subject's name beside its bars; what follows a comma or a bracket stands smaller below."""
    name, _, more = subject["title"].replace(" (", ", ").replace(")", "").partition(", ")
    if not subject["durable"]:
        more = "not durable" + (", " + more if more else "")
    style = "" if subject["peer"] else 'font-weight="bold"'
    style += ' font-style="italic"' if not subject["durable"] else ""
    room = LABEL_WIDTH - 8
    parts = [text(x, y + (12 if more else 18), shortened(name, 12, room), 12, style=style)]
    if more:
        parts.append(text(x, y + 24, shortened(more, 9, room), 9, colour=MUTED, style=style))
    return parts


def bar(subject, line, shade, box, prefix):
    """A bar with its whisker and its figure; box is (x, y, height, pixels per unit)."""
    x, y, height, scale = box
    if line is None:
        return [text(x + 6, y + height / 2 + 4, f"{prefix}not measured", 10, colour=MUTED,
                     style='font-style="italic"')]
    outline = f'stroke="{PEER[0]}" stroke-width="0.8"' if not subject["durable"] else ""
    parts = [rect(x, y, line["value"] * scale, height, fill_of(subject, shade), outline)]
    if line["max"] > line["min"]:
        parts += whisker(x + line["min"] * scale, x + line["max"] * scale, y + height / 2, 3)
    weight = "" if subject["peer"] else 'font-weight="bold"'
    return parts + [text(x + line["max"] * scale + 6, y + height / 2 + 4,
                         prefix + number(line["value"]), 11, style=weight)]


def panel(results, lines, row_list, keys, title, left, top):
    """One small chart: a bar, or one for p50 and one for p99, of every subject."""
    wanted = [row for row in row_list if row.key in keys]
    subjects = in_order(results["subjects"])
    found = {}
    for subject in subjects:
        for row in wanted:
            line = find(lines, subject["name"], "empty", row.key)
            found[subject["name"], row.key] = line if line and line["value"] is not None else None
    highest = max((line["max"] for line in found.values() if line), default=0) or 1
    scale = (PANEL_WIDTH - LABEL_WIDTH - VALUE_WIDTH) / highest
    better = "higher" if wanted and wanted[0].higher_is_better else "lower"
    parts = [text(left, top + 16, shortened(title, 14, PANEL_WIDTH), 14,
                  style='font-weight="bold"'),
             text(left, top + 32, f"{wanted[0].unit}, {better} is better" if wanted else "", 11,
                  colour=MUTED)]
    for index, subject in enumerate(subjects):
        y = top + PANEL_HEAD + index * BAR_ROW
        parts += name_of(subject, left, y)
        height = 16 if len(wanted) == 1 else 11
        for shade, row in enumerate(wanted):
            at = y + (5 if len(wanted) == 1 else 2 + shade * 13)
            prefix = f"p{(50, 99)[shade]} " if len(wanted) == 2 else ""
            parts += bar(subject, found[subject["name"], row.key], shade,
                         (left + LABEL_WIDTH, at, height, scale), prefix)
    bottom = top + PANEL_HEAD + len(subjects) * BAR_ROW
    parts.append(stroke(left + LABEL_WIDTH, top + PANEL_HEAD, left + LABEL_WIDTH, bottom, MUTED))
    return parts


def head_to_head(results, made, row_list):
    """Small multiples: Weir and every peer on the empty store."""
    parts = [text(MARGIN, 32, "Weir and its peers, same machine, same run", 18,
                  style='font-weight="bold"')]
    key = [(OURS[0], "Weir"), (PEER[0], "durable peer"), ("url(#loose0)", "not durable: may lose "
                                                          "acknowledged jobs")]
    drawn, top = legend(key, 54)
    parts += drawn + [text(MARGIN, top, f"Median of {results['round_count']} round(s); whiskers: "
                           "smallest and largest round.", 11, colour=MUTED)]
    top += 20
    height = PANEL_HEAD + len(results["subjects"]) * BAR_ROW + 18
    measured = {row.key for row in row_list}
    shown = [(keys, title) for keys, title in PANELS if measured & set(keys)]
    for index, (keys, title) in enumerate(shown):
        left = MARGIN + index % 2 * (PANEL_WIDTH + MARGIN)
        parts += panel(results, made["lines"], row_list, keys, title, left,
                       top + index // 2 * height)
    return picture(top + math.ceil(len(shown) / 2) * height, "Weir and its peers", parts)


GROWTH_LABEL, GROWTH_VALUE, LANE = 270, 76, 15


def growth_points(results, made, row_list, states):
    """[(row, {state: (share, smallest, largest)})]: 1.1 is a tenth better than the empty store."""
    us = next(iter(summary.ours(results["subjects"])), None)
    points = []
    for row in row_list:
        empty = find(made["lines"], us["name"], "empty", row.key) if us else None
        shares = {}
        for state in states if empty else []:
            line = find(made["lines"], us["name"], state["key"], row.key)
            ends = [times_better(line[end], empty["value"], row.higher_is_better)
                    for end in ("value", "min", "max")] if line else [None]
            if None not in ends:
                shares[state["key"]] = (ends[0], min(ends), max(ends))
        if shares:
            points.append((row, shares))
    return sorted(points, key=lambda point: not point[0].grows)


def axis(points):
    """(lowest, highest, step) in percent, of the rows that have the goal: a start-up three times as
    long would leave them no room. What lies further out is drawn at the edge."""
    ends = [100 * end for row, shares in points if row.grows for share in shares.values()
            for end in share]
    lowest = max(0, math.floor(min([*ends, 80]) / 10) * 10)
    highest = min(160, math.ceil(max([*ends, 120]) / 10) * 10)
    return lowest, highest, 10 if highest - lowest <= 80 else 20


def title_lines(row, top, height):
    """A row's title in one or two lines, in the middle of its lanes."""
    words, rows_of_text = row.title.split(), [""]
    for word in words:
        joined = f"{rows_of_text[-1]} {word}".strip()
        if text_width(joined, 11) > GROWTH_LABEL - 14 and rows_of_text[-1]:
            rows_of_text.append(word)
        else:
            rows_of_text[-1] = joined
    if len(rows_of_text) > 2:
        rows_of_text = [rows_of_text[0], " ".join(rows_of_text[1:])]
    first = top + height / 2 + 4 - 7 * (len(rows_of_text) - 1)
    return [text(MARGIN, first + 14 * at, shortened(line, 11, GROWTH_LABEL - 14), 11)
            for at, line in enumerate(rows_of_text)]


def lane(share, row, worse_max, place, colour, y):
    """One state of one row: dot, whisker, and the change in words."""
    middle, low, high = share
    change = middle - 1
    parts = whisker(place(low), place(high), y, 2.5, colour) if high > low else []
    parts.append(f'<circle cx="{place(middle):.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
    missed = row.grows and change < -worse_max
    return parts + [text(max(place(high), place(middle) + 4) + 6, y + 4, f"{change:+.0%}", 10,
                         colour=ALARM if missed else INK,
                         style='font-weight="bold"' if missed else "")]


def growth_rows(points, colours, worse_max, first):
    """The rows with the band of the goal and the axis behind them; returns parts and their end."""
    lowest, highest, step = axis(points)
    left, right = GROWTH_LABEL + MARGIN, WIDTH - MARGIN - GROWTH_VALUE

    def place(share):
        inside = min(max(share * 100, lowest), highest)
        return left + (inside - lowest) / (highest - lowest) * (right - left)

    top, behind, marks = first, [], []
    for row, shares in points:
        height = max(LANE * len(shares) + 10, 34)  # at least a title of two lines
        if row.grows:
            behind.append(rect(place(1 - worse_max), top,
                               place(1 + worse_max) - place(1 - worse_max), height, BAND))
        marks += title_lines(row, top, height)
        for index, (state, share) in enumerate(shares.items()):
            y = top + (height - LANE * len(shares)) / 2 + LANE * (index + 0.5)
            marks += lane(share, row, worse_max, place, colours[state], y)
        top += height
        marks.append(stroke(MARGIN, top, WIDTH - MARGIN, top, LINE))
    for tick in range(math.ceil(lowest / step) * step, highest + 1, step):
        behind += [stroke(place(tick / 100), first, place(tick / 100), top,
                          MUTED if tick == 100 else LINE),
                   text(place(tick / 100), first - 6, f"{tick} %", 10, "middle", MUTED)]
    return behind + marks, top


def growth(results, made, row_list):
    """Every row of ours in percent of its figure on the empty store, one lane a state."""
    states = [s for s in results["states"] if s["key"] != "empty"]
    points = growth_points(results, made, row_list, states)
    parts = [text(MARGIN, 32, "As the store grows: percent of the empty store", 18,
                  style='font-weight="bold"')]
    if not points:
        parts.append(text(MARGIN, 58, "Only the empty store was measured."))
        return picture(80, "Growth", parts)
    worse_max = made["worse_max"]
    colours = {s["key"]: STATE_COLOURS[i % len(STATE_COLOURS)] for i, s in enumerate(states)}
    drawn, top = legend([(colours[s["key"]], s["title"]) for s in states]
                        + [(BAND, f"goal: within {worse_max:.0%}")], 54)
    parts += drawn + [text(MARGIN, top, "Right of 100 % is better, also for times and memory. "
                           "Whiskers: smallest and largest round. Further out: at the edge.", 11,
                           colour=MUTED)]
    drawn, bottom = growth_rows(points, colours, worse_max, top + 34)
    return picture(bottom + 16, "Growth", parts + drawn)
