#!/usr/bin/python3
"""Words that may not stand in the repository: tools/words.txt."""
import re

import tree

WORDS = "tools/words.txt"
FOLDERS = ["src", "tests", "bench", "tools", "docs", "contracts", "ui", "sdk", ".ci",
           "Makefile", "meson.build", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
ENDINGS = [".c", ".h", ".py", ".sh", ".md", ".txt", ".tsv", ".yaml", ".yml", ".sql", ".build",
           ".js", ".ts", ".css", ".html", "Makefile", "/run", "/setup", "/check"]


def rules(root):
    """(compiled expression, advice) of each line of the list."""
    found = []
    for line in tree.lines_of(root, WORDS):
        if line.strip() and not line.startswith("#"):
            expression, _, advice = line.partition("  ")
            found.append((re.compile(expression), advice.strip()))
    return found


def check(root):
    """Findings of the whole tree; the list itself is left out."""
    wanted = rules(root)
    for path in tree.files(root, FOLDERS, [ending.strip("/") for ending in ENDINGS]):
        if path == WORDS:
            continue
        for number, line in enumerate(tree.lines_of(root, path), 1):
            for expression, advice in wanted:
                match = expression.search(line)
                if match:
                    yield path, number, f'"{match[0]}": {advice}'


def planted():
    """Each rule of the real list on a line it must refuse, and lines it must let pass."""
    here = tree.lines_of(tree.REPOSITORY, WORDS)
    words = "\n".join(here)
    bad = ["TO" + "DO later", "a place" + "holder", "this is un" + "implemented",
           "coming" + " soon", "/wo" + "rk/main/src", "/tmp/" + "build-x",
           "/ho" + "me/someone/x"]
    good = 'mkstemp("weir-XXXXXX"); see docs/work/ and network/root/ and the agents domain\n'
    return ([({WORDS: words, "src/a.c": f"/* {text} */\n"}, "src/a.c:1") for text in bad]
            + [({WORDS: words, "src/a.c": good}, None)])


if __name__ == "__main__":
    tree.run(check, planted)
