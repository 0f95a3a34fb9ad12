"""What the checkers share: walking the source tree, printing findings, planting violations.

A checker has two functions. check(root) gives findings (path, line, what to do). planted() gives
(files, expected) pairs: a small tree and a word that must appear among its findings, or None for a
tree that must pass. run() first proves the checker on the planted trees, then judges this
repository: a checker that no longer sees its violation fails by itself.
"""
import os
import sys
import tempfile

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SKIPPED_FOLDERS = {".git", "__pycache__", ".pytest_cache", "node_modules", "data", "corpus"}


def files(root, folders, endings):
    """Paths below root/folders with one of the endings, relative to root; no build output."""
    found = []
    for folder in folders:
        start = os.path.join(root, folder)
        if os.path.isfile(start):
            found.append(folder)
        for where, below, names in os.walk(start):
            below[:] = [d for d in below if d not in SKIPPED_FOLDERS and not d.startswith("build")]
            found += [os.path.relpath(os.path.join(where, name), root)
                      for name in names if name.endswith(tuple(endings))]
    return sorted(os.path.normpath(path) for path in found)


def lines_of(root, path):
    """A file's lines without their ends."""
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


def plant(root, planted_files):
    """Writes {path: text} below root."""
    for path, text in planted_files.items():
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)


def prove(check, planted):
    """Fails unless each planted tree gives exactly the verdict it was planted for."""
    for planted_files, expected in planted():
        with tempfile.TemporaryDirectory() as root:
            plant(root, planted_files)
            found = [f"{path}:{line}: {what}" for path, line, what in check(root)]
        if expected is None and found:
            sys.exit(f"{sys.argv[0]}: self-test: sound tree refused: {found}")
        if expected is not None and not any(expected in text for text in found):
            sys.exit(f"{sys.argv[0]}: self-test: planted violation not seen: {expected} in {found}")


def run(check, planted):
    """Self-test, then the repository. Exits 1 with one line per finding."""
    prove(check, planted)
    found = list(check(REPOSITORY))
    for path, line, what in found:
        print(f"{path}:{line}: {what}")
    sys.exit(1 if found else 0)
