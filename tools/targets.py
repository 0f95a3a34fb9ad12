"""Names ninja targets of a build directory: the programs of a test suite, or those under a folder.

    tools/targets.py build-tsan --suite tsan         the test programs tagged `tsan`
    tools/targets.py build-fuzz --under tests/fuzz   the executables defined there
"""
import argparse
import json
import os
import subprocess


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
    args = parser.parse_args()
    if args.suite:
        print(" ".join(executables_of_suite(args.build_dir, args.suite)))
    else:
        print(" ".join(executables_under(args.build_dir, args.under)))


if __name__ == "__main__":
    main()
