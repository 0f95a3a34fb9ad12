#!/usr/bin/python3
"""Sizes: functions of at most 70 lines, .c 800, headers 250, Python 800, 110 columns.

Exceptions are tools/ratchet.txt, which may only shrink.
"""
import re
import subprocess

import tree

FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 110
FILE_LINES_MAX = {".c": 800, ".h": 250, ".py": 800}
FOLDERS = ["src", "tests", "bench", "tools"]
SIGNATURE = re.compile(r"^(?:[A-Z_]*TEST[A-Z_]*\((\w+)|[A-Za-z_].*?([A-Za-z_]\w*)\s*\()")
RATCHET = "tools/ratchet.txt"


def c_functions(lines):
    """(name, first line, length) of each C function: signature and braces stand at the margin."""
    name = start = None
    inside = False
    for number, line in enumerate(lines, 1):
        if inside:
            if line.startswith("}"):
                yield name, start, number - start + 1
                inside, name = False, None
        elif line.startswith("{") and name:
            inside = True
        elif SIGNATURE.match(line) and not line.endswith(";"):
            name, start = "".join(filter(None, SIGNATURE.match(line).groups())), number
        elif line.endswith(";") or (line and not line[0].isspace()):
            name = None


def python_functions(lines):
    """(name, first line, length) of each def, up to the last line that is indented deeper."""
    for number, line in enumerate(lines, 1):
        match = re.match(r"(\s*)def (\w+)", line)
        if match:
            last = number
            for below, text in enumerate(lines[number:], number + 1):
                if text.strip() and len(text) - len(text.lstrip()) <= len(match[1]) \
                        and not text.lstrip().startswith(")"):
                    break
                if text.strip():
                    last = below
            yield match[2], number, last - number + 1


def code_widths(lines):
    """The width of each line; 0 inside a table that clang-format is told to leave alone."""
    table = False
    for line in lines:
        table = (table or "clang-format off" in line) and "clang-format on" not in line
        yield 0 if table else len(line)


def measures(root):
    """(path, line, what, size, limit) of everything over its limit."""
    for path in tree.files(root, FOLDERS, FILE_LINES_MAX):
        lines = tree.lines_of(root, path)
        ending = path[path.rindex("."):]
        if len(lines) > FILE_LINES_MAX[ending]:
            yield path, 1, "lines", len(lines), FILE_LINES_MAX[ending]
        widths = list(code_widths(lines))
        widest = max(range(len(widths)), key=lambda i: widths[i], default=None)
        if widest is not None and widths[widest] > COLUMNS_MAX:
            yield path, widest + 1, "columns", widths[widest], COLUMNS_MAX
        functions = python_functions(lines) if ending == ".py" else c_functions(lines)
        for name, line, length in functions:
            if length > FUNCTION_LINES_MAX:
                yield path, line, name, length, FUNCTION_LINES_MAX


def parse_ratchet(text):
    """{(path, what): (size, line number)} and the numbers of the lines that are not understood."""
    entries, bad = {}, []
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.partition("#")[0].split(None, 3)
        if not fields:
            continue
        if len(fields) < 4 or not fields[2].isdigit():
            bad.append(number)
        else:
            entries[fields[0], fields[1]] = int(fields[2]), number
    return entries, bad


def committed_ratchet(root):
    """The entries of the last commit, or None when it has no such file."""
    shown = subprocess.run(["git", "-C", root, "show", "HEAD:./" + RATCHET], check=False,
                           capture_output=True, text=True)
    return parse_ratchet(shown.stdout)[0] if shown.returncode == 0 else None


def judge(over, entries, before):
    """Findings from what is too large, the exceptions now, and those committed before."""
    for path, line, what, size, limit in over:
        allowed, number = entries.get((path, what), (None, None))
        label = what if what in ("lines", "columns") else f"lines in {what}()"
        if allowed is None:
            advice = "run `make fmt`, then break it by hand" if what == "columns" else "split it"
            yield path, line, f"{size} {label}, at most {limit}; {advice}"
        elif size > allowed:
            yield path, line, f"{size} {label}, its exception allows {allowed}; it may only shrink"
        elif size < allowed:
            yield RATCHET, number, f"{path} {what} is down to {size}; lower its exception"
    present = {(path, what) for path, _, what, _, _ in over}
    for (path, what), (size, number) in entries.items():
        if (path, what) not in present:
            yield RATCHET, number, f"{path} {what} fits by now; remove its exception"
        if before is not None and size > before.get((path, what), (0, 0))[0]:
            yield RATCHET, number, f"{path} {what}: exceptions may only shrink; split it instead"


def check(root):
    """Findings of the whole tree."""
    entries, bad = parse_ratchet("\n".join(tree.lines_of(root, RATCHET)))
    for number in bad:
        yield RATCHET, number, "write: PATH WHAT SIZE reason"
    yield from judge(list(measures(root)), entries, committed_ratchet(root))


def planted():
    """Trees that must be refused, and two that must pass."""
    long_function = "int f(int a,\n      int b)\n{\n" + "    a++;\n" * 68 + "}\n"
    long_def = "def f():\n" + "    g()\n" * 70
    exact = "static int f(int a)\n{\n" + "    a++;\n" * 67 + "}\n"

    def tree_of(path, text, ratchet=""):
        return {RATCHET: ratchet, path: text}

    return [
        (tree_of("src/a.c", exact), None),
        (tree_of("src/a.c", long_function, "src/a.c f 72 one table of cases\n"), None),
        (tree_of("src/a.c", long_function), "72 lines in f()"),
        (tree_of("tools/a.py", long_def), "71 lines in f()"),
        (tree_of("src/a.c", "/* */\n" * 801), "801 lines"),
        (tree_of("src/a.h", "/* */\n" * 251), "251 lines"),
        (tree_of("src/a.c", "/*" + " " * 108 + "*/\n"), "112 columns"),
        (tree_of("src/a.c", long_function, "src/a.c f 71 x\n"), "may only shrink"),
        (tree_of("src/a.c", long_function, "src/a.c f 90 x\n"), "down to 72"),
        (tree_of("src/a.c", exact, "src/a.c f 72 x\n"), "fits by now"),
        (tree_of("src/a.c", exact, "src/a.c f\n"), "write: PATH"),
    ]


def prove_history():
    """The part that needs a commit: an exception that grew or joined is refused."""
    over = [("a.c", 1, "f", 80, FUNCTION_LINES_MAX)]
    entries = {("a.c", "f"): (80, 1)}
    assert not list(judge(over, entries, None))
    assert not list(judge(over, entries, {("a.c", "f"): (81, 1)}))
    assert list(judge(over, entries, {("a.c", "f"): (79, 1)}))
    assert list(judge(over, entries, {}))


if __name__ == "__main__":
    prove_history()
    tree.run(check, planted)
