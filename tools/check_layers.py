#!/usr/bin/python3
"""Every #include of src/ against tools/layers.txt."""
import fnmatch
import os
import re

import tree

INCLUDE = re.compile(r'\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')


class Layers:
    """tools/layers.txt, parsed."""

    def __init__(self, root):
        self.allowed, self.narrowed, self.system = {}, [], []
        for line in tree.lines_of(root, "tools/layers.txt"):
            line = line.partition("#")[0].strip()
            if "<" in line:
                name, _, headers = line.partition("<")
                self.system.append((name.strip(), headers.split()))
            elif ":" in line:
                name, _, rest = line.partition(":")
                may, _, never = rest.partition("!")
                rule = (may.split(), never.split())
                if "*" in name:
                    self.narrowed.append((name.strip(), rule))
                else:
                    self.allowed[name.strip()] = rule

    def of(self, path):
        """The layer a path of src/ belongs to: the longest name it starts with."""
        fits = [name for name in self.allowed if path == name or path.startswith(name + "/")]
        return max(fits, key=len, default=None)

    def circles(self):
        """Layers that reach themselves."""
        def reached(start):
            seen, todo = set(), list(self.allowed[start][0])
            while todo:
                name = todo.pop()
                if name not in seen:
                    seen.add(name)
                    todo += self.allowed.get(name, ([], []))[0]
            return seen
        return [name for name in self.allowed if name in reached(name)]


def refused(layers, path, header):
    """Why the file `path` (below src/) may not include "header", or None."""
    own, other = layers.of(path), layers.of(header)
    if other is None:
        return f'"{header}" is in no layer; include our headers by their path from src/'
    if header.endswith("_internal.h") and os.path.dirname(header) != os.path.dirname(path):
        return f'"{header}" is private to src/{os.path.dirname(header)}; use its public header'
    may, never = layers.allowed[own]
    if other != own and other not in may:
        return f'{own} may not include {other} ("{header}"); see tools/layers.txt'
    if header in never:
        return f'{own} may not include "{header}"; see tools/layers.txt'
    for pattern, (narrow, forbidden) in layers.narrowed:
        if fnmatch.fnmatch(path, pattern) and (other not in narrow or header in forbidden):
            return f'{pattern} may not include "{header}": tools/layers.txt says why above its line'
    return None


def check(root):
    """Findings of the whole tree."""
    layers = Layers(root)
    for name in layers.circles():
        yield "tools/layers.txt", 1, f"{name} reaches itself; layers go one way"
    for path in tree.files(root, ["src"], [".c", ".h"]):
        below = os.path.relpath(path, "src")
        if layers.of(below) is None:
            yield path, 1, "its folder has no line in tools/layers.txt; add one"
            continue
        for number, line in enumerate(tree.lines_of(root, path), 1):
            match = INCLUDE.match(line)
            if match and match[1]:
                why = refused(layers, below, match[1])
                if why:
                    yield path, number, why
            for pattern, headers in layers.system if match and match[2] else []:
                if fnmatch.fnmatch(below, pattern) and match[2] not in headers:
                    yield path, number, (f"{pattern} may not include <{match[2]}>: "
                                         "deciders only compute")


def planted():
    """Trees that must be refused, and one that must pass."""
    rules = ("base :\nstore : base\njobs : base store\n"
             "jobs/decide_* : base jobs ! base/clock.h\njobs/decide_* < stdint.h\n")

    def tree_of(path, text, layers=rules):
        return {"tools/layers.txt": layers, path: text}

    return [
        (tree_of("src/store/a.c", '#include <time.h>\n#include "base/err.h"\n'), None),
        (tree_of("src/base/a.c", '#include "store/store.h"\n'), "base may not include store"),
        (tree_of("src/jobs/decide_x.c", '#include "store/store.h"\n'), "says why above its line"),
        (tree_of("src/jobs/decide_x.c", '#include "base/clock.h"\n'), "says why above its line"),
        (tree_of("src/jobs/decide_x.c", "#include <time.h>\n"), "deciders only compute"),
        (tree_of("src/jobs/a.c", '#include "store/row_internal.h"\n'), "private to src/store"),
        (tree_of("src/jobs/a.c", '#include "err.h"\n'), "in no layer"),
        (tree_of("src/new/a.c", ""), "has no line"),
        (tree_of("src/base/a.c", "", "base : jobs\njobs : base\n"), "reaches itself"),
    ]


if __name__ == "__main__":
    tree.run(check, planted)
