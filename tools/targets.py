"""Names ninja targets of a build directory: the programs of a test suite, or those under a folder.

    tools/targets.py build-tsan --suite tsan         the test programs tagged `tsan`
    tools/targets.py build-fuzz --under tests/fuzz   the executables defined there
    tools/targets.py build-asan --quick              the test programs of make test-quick; --names their tests
"""
import argparse
import json
import os
import subprocess

# Rules and parsers: what most changes break first, and what is built and run in seconds.
QUICK_FOLDERS = ("base", "config", "jobs", "lifecycle", "runs", "tokens")


def introspect(build_dir, what):
    """One `meson introspect` table, parsed."""
    out = subprocess.run(["/usr/bin/meson", "introspect", build_dir, what],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out)


def executables_of_suite(build_dir, suite):
    """Ninja names of the programs that the tests of a suite start."""
    top = os.path.abspath(build_dir)
    names = set()
    for test in introspect(build_dir, "--tests"):
        if any(entry.split(":")[-1] == suite for entry in test["suite"]):
            for word in test["cmd"]:
                if word.startswith(top + os.sep):
                    names.add(os.path.relpath(word, top))
    return sorted(names)


def is_quick(test):
    """Whether make test-quick runs a test."""
    return (any(f"/tests/unit/{folder}/" in test["cmd"][0] for folder in QUICK_FOLDERS)
            and not any(entry.endswith(":postgres") for entry in test["suite"]))


def executables_under(build_dir, folder):
    """Ninja names of the executables whose meson.build stands in a folder."""
    top = os.path.abspath(build_dir)
    where = os.path.abspath(folder)
    return sorted(os.path.relpath(target["filename"][0], top)
                  for target in introspect(build_dir, "--targets")
                  if target["type"] == "executable"
                  and os.path.dirname(target["defined_in"]).startswith(where))


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build_dir")
    parser.add_argument("--suite")
    parser.add_argument("--under")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--names", action="store_true")
    args = parser.parse_args()
    if args.quick:
        top = os.path.abspath(args.build_dir)
        print(" ".join(sorted({test["name"] if args.names else os.path.relpath(test["cmd"][0], top)
                               for test in introspect(args.build_dir, "--tests") if is_quick(test)})))
    elif args.suite:
        print(" ".join(executables_of_suite(args.build_dir, args.suite)))
    else:
        print(" ".join(executables_under(args.build_dir, args.under)))


if __name__ == "__main__":
    main()
