#!/usr/bin/python3
"""Which requirement is proved by which test, from the marks in tests/.

A mark is `[JOB-122]`, `[JOB-120 JOB-121]` or `[JOB-120..JOB-126]` in a test's name line, docstring,
comment or body, in the comment right above it, or in a table at the top level of the file that the
test uses. docs/conformance/KIND.tsv lists every requirement with its status and tests; later.tsv
those (or the parts of those) that a later milestone proves.

    tools/conformance.py            counts; fails on a bad mark or when the files are out of date
    tools/conformance.py --write    brings the files up to date
    tools/conformance.py --tests    also shows the marks per test file
"""
import argparse
import ast
import os
import re
import sys

import tree

FOLDER = "docs/conformance"
LATER = FOLDER + "/later.tsv"
COLUMNS = ["id", "section", "requirement", "how_to_check", "status", "tests"]
STATUSES = ["covered", "partly", "later", "uncovered"]
ID = r"[A-Z]{3}-\d{3}"
MARK = re.compile(rf"\[({ID}(?:(?:[ ,]+|\.\.){ID})*)\]")
C_TEST = re.compile(r'^(?:static void (?=\w+\(void \*\*)|[A-Z_]*TEST[A-Z_]*\((?:"[^"]*", )?)(\w+)')
C_TABLE = re.compile(r"^(?=\S).*?\b(\w+)\[[^\]]*\]\s*=")


class Test:
    """One test function: its name and the lines it owns, comment above included."""

    def __init__(self, path, name, first, last, text):
        self.path, self.name, self.first, self.last, self.text = path, name, first, last, text

    @property
    def label(self):
        """How the tables name it."""
        return f"{self.path}:{self.name}"


def ids_of(mark):
    """The ids a mark names, ranges spelt out."""
    found = []
    for part in re.split(r"[ ,]+", mark):
        first, _, last = part.partition("..")
        if last:
            found += [f"{first[:4]}{n:03}" for n in range(int(first[4:]), int(last[4:]) + 1)]
        else:
            found.append(first)
    return found


def comment_above(lines, first, comment):
    """The first line of the comment block that stands directly above line `first`."""
    while first > 1 and comment(lines[first - 2]):
        first -= 1
    return first


def python_tests(path, lines):
    """(tests, tables): test functions, and top-level names with the lines of their values."""
    parsed = ast.parse("\n".join(lines))
    tests, tables = [], []
    for node in ast.walk(parsed):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            first = min([node.lineno] + [d.lineno for d in node.decorator_list])
            text = "\n".join(lines[first - 1:node.end_lineno])
            first = comment_above(lines, first, lambda line: line.lstrip().startswith("#"))
            tests.append(Test(path, node.name, first, node.end_lineno, text))
    for node in parsed.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            first = comment_above(lines, node.lineno, lambda line: line.startswith("#"))
            tables += [(t.id, first, node.end_lineno) for t in targets if isinstance(t, ast.Name)]
    return tests, tables


def c_tests(path, lines):
    """(tests, tables) of a C file: TEST(name) and its kin of tests/case.h, and file-scope arrays."""
    tests, tables = [], []
    number = 0
    while number < len(lines):
        line = lines[number]
        test, table = C_TEST.match(line), C_TABLE.match(line)
        if (test or table) and not line.rstrip().endswith(");"):
            ends = re.compile(r"^}|.*};\s*$" if table else r"^}|^static .*}\s*$")
            last = number
            while last + 1 < len(lines) and not ends.match(lines[last]):
                last += 1
            first = comment_above(lines, number + 1,
                                  lambda text: re.match(r"\s*(/\*|\*|//)|.*\*/\s*$", text))
            if test:
                text = "\n".join(lines[number:last + 1])
                tests.append(Test(path, test[1], first, last + 1, text))
            else:
                tables.append((table[1], first, last + 1))
            number = last
        number += 1
    return tests, tables


def owners(number, tests, tables):
    """The tests that a mark on this line belongs to."""
    inside = [test for test in tests if test.first <= number <= test.last]
    if inside:
        return inside
    names = [name for name, first, last in tables if first <= number <= last]
    return [test for test in tests if any(re.search(rf"\b{n}\b", test.text) for n in names)]


def scan_file(root, path):
    """(marks {id: [labels]}, findings) of one test file."""
    lines = tree.lines_of(root, path)
    found = [(number, match[1]) for number, line in enumerate(lines, 1)
             for match in MARK.finditer(line)]
    if not found:
        return {}, []
    try:
        tests, tables = (python_tests if path.endswith(".py") else c_tests)(path, lines)
    except SyntaxError as fault:
        return {}, [(path, fault.lineno or 1, f"does not parse: {fault.msg}")]
    marks, findings = {}, []
    for number, mark in found:
        proving = owners(number, tests, tables)
        if not proving:
            findings.append((path, number, f"[{mark}] stands in no test; move it to one"))
        for test in proving:
            for requirement in ids_of(mark):
                marks.setdefault(requirement, [])
                if test.label not in marks[requirement]:
                    marks[requirement].append(test.label)
    return marks, findings


def scan(root):
    """(marks, findings) of all of tests/."""
    marks, findings = {}, []
    for path in tree.files(root, ["tests"], [".py", ".c"]):
        some, faults = scan_file(root, path)
        findings += faults
        for requirement, labels in some.items():
            marks.setdefault(requirement, []).extend(labels)
    return marks, findings


def read_table(root, path):
    """Rows of a .tsv as dicts, by its header line."""
    lines = tree.lines_of(root, path)
    header = lines[0].split("\t")
    return [dict(zip(header, line.split("\t"))) for line in lines[1:] if line]


def tables(root):
    """The requirement files."""
    return [path for path in tree.files(root, [FOLDER], [".tsv"]) if path != LATER]


def status_of(requirement, marks, later):
    """One of STATUSES. `TOP-*` in later.tsv stands for what is not marked of a whole kind."""
    if requirement in marks:
        return "partly" if requirement in later else "covered"
    whole_kind = requirement[:4] + "*"
    return "later" if requirement in later or whole_kind in later else "uncovered"


def updated(root, marks):
    """({path: text as it should be}, rows, findings)."""
    later = {row["id"]: row for row in read_table(root, LATER)}
    texts, every, findings = {}, [], []
    for path in tables(root):
        rows = read_table(root, path)
        for row in rows:
            row["status"] = status_of(row["id"], marks, later)
            row["tests"] = " ".join(sorted(marks.get(row["id"], []))) or "-"
            row["file"] = os.path.basename(path)
        lines = ["\t".join(COLUMNS)] + ["\t".join(row[c] for c in COLUMNS) for row in rows]
        texts[path] = "\n".join(lines) + "\n"
        every += rows
    known = {row["id"] for row in every} | {row["id"][:4] + "*" for row in every}
    for requirement, labels in sorted(marks.items()):
        if requirement not in known:
            findings.append((labels[0].split(":")[0], 1, f"[{requirement}] is no requirement"))
    for number, requirement in enumerate(later, 2):
        if requirement not in known:
            findings.append((LATER, number, f"{requirement} is no requirement"))
    return texts, every, findings


def check(root):
    """Findings: bad marks, and tables that are out of date."""
    marks, findings = scan(root)
    texts, _, faults = updated(root, marks)
    findings += faults
    for path, text in texts.items():
        if "\n".join(tree.lines_of(root, path)) + "\n" != text:
            findings.append((path, 1, "out of date; run tools/conformance.py --write"))
    return findings


def planted():
    """Trees that must be refused, and three that must pass."""
    head = "\t".join(COLUMNS) + "\n"

    def tree_of(tests, covered="uncovered\t-", path="tests/api/test_a.py", later=""):
        return {FOLDER + "/jobs.tsv": head + f"JOB-001\t1\tIt works.\tTry.\t{covered}\n",
                LATER: "id\twhat_is_left\n" + later, path: tests}

    in_test = 'def test_a():\n    """It is. [JOB-001]"""\n'
    in_table = "KINDS = [\n    1,  # [JOB-001]\n]\n\n\ndef test_k():\n    assert KINDS\n"
    c_code = "/* [JOB-001] */\nRIG_TEST(it_is, r)\n{\n}\n"
    return [
        (tree_of(in_test, "covered\ttests/api/test_a.py:test_a"), None),
        (tree_of(in_table, "covered\ttests/api/test_a.py:test_k"), None),
        (tree_of(c_code, "covered\ttests/unit/a.c:it_is", "tests/unit/a.c"), None),
        (tree_of(in_test, "partly\ttests/api/test_a.py:test_a", later="JOB-001\tdelivery\n"), None),
        (tree_of(in_test, "covered\ttests/api/test_a.py:test_a", later="JOB-*\trest\n"), None),
        (tree_of("", "later\t-", later="JOB-*\trest\n"), None),
        (tree_of(in_test), "out of date"),
        (tree_of("", "covered\ttests/api/test_a.py:test_gone"), "out of date"),
        (tree_of('"""[JOB-001]"""\n'), "stands in no test"),
        (tree_of("def test_a():\n    pass  # [JOB-002]\n"), "is no requirement"),
        (tree_of("", later="JOB-009\tx\n"), "JOB-009 is no requirement"),
    ]


def show(rows, marks, per_file):
    """The counts, and what is neither proved nor planned."""
    for name in sorted({row["file"] for row in rows}):
        mine = [row for row in rows if row["file"] == name]
        counts = [f"{sum(row['status'] == s for row in mine)} {s}" for s in STATUSES]
        print(f"{name}: {len(mine)} requirements: {', '.join(counts)}")
        missing = [row["id"] for row in mine if row["status"] == "uncovered"]
        for start in range(0, len(missing), 12):
            print("  uncovered: " + " ".join(missing[start:start + 12]))
    if per_file:
        files = {}
        for requirement, labels in marks.items():
            for label in labels:
                files.setdefault(label.split(":")[0], set()).add(requirement)
        for path, ids in sorted(files.items()):
            print(f"  {path}: {len(ids)}: {' '.join(sorted(ids))}")


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--tests", action="store_true")
    args = parser.parse_args()
    root = tree.REPOSITORY
    if args.write:
        for path, text in updated(root, scan(root)[0])[0].items():
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
    tree.prove(check, planted)
    marks, _ = scan(root)
    show(updated(root, marks)[1], marks, args.tests)
    findings = check(root)
    for path, line, what in findings:
        print(f"{path}:{line}: {what}")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
