#!/usr/bin/python3
"""Words that may not stand in the repository: tools/words.txt, and tools/retired_words.txt."""
import re

import tree

WORDS, RETIRED = "tools/words.txt", "tools/retired_words.txt"
FOLDERS = ["src", "tests", "bench", "tools", "docs", "contracts", "ui", "sdk", ".ci",
           "Makefile", "meson.build", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
ENDINGS = [".c", ".h", ".py", ".sh", ".mjs", ".md", ".txt", ".tsv", ".yaml", ".yml", ".sql", ".build",
           ".js", ".ts", ".css", ".html", "Makefile", "/run", "/setup", "/check"]
# Released migrations are never edited. The wording of requirements is not ours.
WITH_OLD_WORDS = ("src/store/migrations/", "docs/conformance/", "bench/results/")


def entries(root, path):
    """The fields of each line of a list."""
    return [[field.strip() for field in line.split("  ") if field.strip()]
            for line in tree.lines_of(root, path) if line.strip() and not line.startswith("#")]


def rules(root):
    """(compiled expression, advice, is retired) of each line of both lists."""
    return ([(re.compile(expression), advice, False) for expression, advice in entries(root, WORDS)]
            + [(re.compile(expression), f"retired; say: {advice}", True)
               for expression, _, advice in entries(root, RETIRED)])


def check(root):
    """Findings of the whole tree; the lists themselves are left out."""
    wanted = rules(root)
    for path in tree.files(root, FOLDERS, [ending.strip("/") for ending in ENDINGS]):
        if path in (WORDS, RETIRED):
            continue
        lines = tree.lines_of(root, path)
        text = "\n".join(lines)
        for expression, advice, is_retired in wanted:
            if is_retired and path.startswith(WITH_OLD_WORDS) or not expression.search(text):
                continue
            for number, line in enumerate(lines, 1):
                for match in expression.finditer(line):
                    yield path, number, f'"{match[0]}": {advice}'


def planted():
    """Each rule of the real lists on a line it must refuse, and lines it must let pass."""
    lists = {path: "\n".join(tree.lines_of(tree.REPOSITORY, path)) for path in (WORDS, RETIRED)}
    bad = ["TO" + "DO later", "a place" + "holder", "this is un" + "implemented",
           "coming" + " soon", "/wo" + "rk/main/src", "/tmp/" + "build-x",
           "/ho" + "me/someone/x"]
    good = ('mkstemp("weir-XXXXXX"); see docs/work/ and network/root/ and the agents domain\n'
            "silent equivalents; a request needs a key and is set aside; the rest of the restarts\n")
    retired = entries(tree.REPOSITORY, RETIRED)
    return ([({**lists, "src/a.c": f"/* {text} */\n"}, "src/a.c:1") for text in bad]
            + [({**lists, "src/a.c": f"/* {example} */\n"}, f"retired; say: {advice}")
               for _, example, advice in retired]
            + [({**lists, "src/a.c": good}, None),
               ({**lists, "src/store/migrations/001_a.sql": f"-- {retired[0][1]}\n"}, None)])


if __name__ == "__main__":
    tree.run(check, planted)
