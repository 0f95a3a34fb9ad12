"""A flame graph as one SVG: width is share of samples, depth is the call stack, hover for the name."""
import html
import zlib

WIDTH, ROW, TOP = 1400, 17, 34
LETTER = 6.6        # average width of a letter at this size
NARROWEST = 0.0004  # share of all samples below which a frame is left out


class Frame:
    """One function in one place of the call tree."""

    def __init__(self, name):
        self.name, self.count, self.below = name, 0, {}


def call_tree(folded):
    """Folded stacks as a tree."""
    root = Frame("all")
    for stack, count in folded.items():
        root.count += count
        at = root
        for name in stack:
            at = at.below.setdefault(name, Frame(name))
            at.count += count
    return root


def placed(root):
    """(frame, depth, left edge in samples) of every frame wide enough to see."""
    waiting = [(root, 0, 0)]
    while waiting:
        frame, depth, left = waiting.pop()
        if frame.count < root.count * NARROWEST:
            continue
        yield frame, depth, left
        for below in sorted(frame.below.values(), key=lambda f: f.name):
            waiting.append((below, depth + 1, left))
            left += below.count


def colour(name):
    """Warm and always the same for the same name."""
    mixed = zlib.crc32(name.encode())
    return f"rgb({205 + mixed % 50},{90 + mixed // 50 % 120},{40 + mixed // 6000 % 40})"


def svg(folded, title):
    """The picture."""
    root = call_tree(folded)
    frames = list(placed(root))
    height = TOP + (max(depth for _, depth, _ in frames) + 1) * ROW + 8
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
           'font-family="monospace" font-size="11">',
           f'<rect width="{WIDTH}" height="{height}" fill="#fffdf8"/>',
           f'<text x="8" y="20" font-size="14">{html.escape(title)}, {root.count} samples</text>']
    for frame, depth, left in frames:
        x, width = left / root.count * WIDTH, frame.count / root.count * WIDTH
        y = height - 8 - (depth + 1) * ROW
        room = int((width - 4) / LETTER)
        label = frame.name if len(frame.name) <= room else frame.name[:room - 1] + "."
        text = (f'<text x="{x + 2:.1f}" y="{y + 12}">{html.escape(label)}</text>'
                if room >= 3 else "")
        hover = html.escape(f"{frame.name}: {frame.count} ({frame.count / root.count:.1%})")
        out.append(f'<g><title>{hover}</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" '
                   f'height="{ROW - 1}" fill="{colour(frame.name)}"/>{text}</g>')
    out.append("</svg>")
    return "\n".join(out) + "\n"
