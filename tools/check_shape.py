#!/usr/bin/python3
"""The shape of the tree: a README per folder, every .c built and guarded, no dead reference."""
import os
import re

import tree

REFERENCE = re.compile(
    r"(?<![\w/.-])((?:docs|tools|tests|src|contracts|bench)/[\w./-]+\.(?:md|txt|tsv|py|yaml|c|h))\b"
    r"|(?<![\w/.-])([\w-]+\.md)\b")
README_LINES_MAX = 60


def folders_of(root, top):
    """Folders below `top` that hold C files."""
    return sorted({os.path.dirname(path) for path in tree.files(root, [top], [".c", ".h"])})


def readmes(root):
    """Each folder of src/ says what it is for (its parent may speak for a subfolder), in a page."""
    for folder in folders_of(root, "src"):
        if folder == "src":
            continue
        own, parent = (os.path.join(f, "README.md") for f in (folder, os.path.dirname(folder)))
        if not any(os.path.exists(os.path.join(root, readme)) for readme in (own, parent)):
            yield folder, 1, "no README.md; say purpose, owner, invariants, where to start reading"
    for path in tree.files(root, ["src"], ["README.md"]):
        length = len(tree.lines_of(root, path))
        if length > README_LINES_MAX:
            yield path, 1, f"{length} lines; a folder's README is a page, {README_LINES_MAX} lines"


def guards(root):
    """Every .c of src/ includes base/banned.h, last."""
    for path in tree.files(root, ["src"], [".c"]):
        includes = [(number, line) for number, line in enumerate(tree.lines_of(root, path), 1)
                    if re.match(r"\s*#\s*include\b", line)]
        if not includes or '"base/banned.h"' not in includes[-1][1]:
            line = includes[-1][0] if includes else 1
            yield path, line, 'the last include must be "base/banned.h"'


def built(root):
    """Every .c is named by the meson.build of its folder or of one above it."""
    for path in tree.files(root, ["src", "tests", "bench"], [".c"]):
        folder, name = os.path.dirname(path), os.path.basename(path)
        # A loop may build the name: 'test_' + name + '.c'.
        stem, found = re.sub(r"^(test|fuzz|bench)_", "", name[:-2]), False
        while not found:
            description = os.path.join(root, folder, "meson.build")
            if os.path.exists(description):
                with open(description, encoding="utf-8") as file:
                    text = file.read()
                found = re.search(rf"(\b|_){re.escape(stem)}\b", text) is not None
            if not folder:
                break
            folder = os.path.dirname(folder)
        if not found:
            yield path, 1, "no meson.build names it; it is not built"


def references(root):
    """A file named in a comment or a document exists."""
    names = {os.path.basename(path) for path in tree.files(root, ["."], [".md"])}
    sources = tree.files(root, ["src", "tests", "bench", "docs", "tools", "contracts", "README.md",
                                "ARCHITECTURE.md", "CONTRIBUTING.md", "Makefile", "meson.build"],
                         [".c", ".h", ".md", ".yaml", ".build", "Makefile", ".txt"])
    for path in sources:
        for number, line in enumerate(tree.lines_of(root, path), 1):
            for whole, bare in REFERENCE.findall(line):
                missing = (whole and not os.path.exists(os.path.join(root, whole))) or \
                          (bare and bare not in names)
                if missing and "://" not in line:
                    yield path, number, f"{whole or bare} does not exist; fix the reference"


def check(root):
    """Findings of the whole tree."""
    yield from readmes(root)
    yield from guards(root)
    yield from built(root)
    yield from references(root)


def planted():
    """Trees that must be refused, and one that must pass."""
    sound = {"src/base/README.md": "# base\n", "src/base/meson.build": "'a.c'\n",
             "src/base/a.c": '#include "base/banned.h"\n/* see src/base/README.md */\n'}
    return [
        (sound, None),
        ({**sound, "src/jobs/meson.build": "'b.c'", "src/jobs/b.c": '#include "base/banned.h"\n'},
         "src/jobs:1: no README.md"),
        ({**sound, "src/base/README.md": "x\n" * 61}, "61 lines"),
        ({**sound, "src/base/a.c": '#include "base/banned.h"\n#include <stdio.h>\n'},
         "last include"),
        ({**sound, "src/base/meson.build": ""}, "it is not built"),
        ({**sound, "src/base/a.h": "/* see docs/gone.md */\n"}, "docs/gone.md does not exist"),
        ({**sound, "src/base/a.h": "/* (design.md 2.4) */\n"}, "design.md does not exist"),
    ]


if __name__ == "__main__":
    tree.run(check, planted)
