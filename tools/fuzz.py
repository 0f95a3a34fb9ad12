#!/usr/bin/python3
"""Runs every fuzz target of build-fuzz for a while, starting from tests/fuzz/corpus/TARGET.

New inputs go to build-fuzz/corpus/TARGET; a crash leaves its input there and fails the run.
To keep what was learnt: tools/fuzz.py --merge writes the inputs that add coverage back to tests/.
"""
import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import targets

BUILD = "build-fuzz"


def folders(name):
    """(found, saved) input folders of a target; `found` is made when missing."""
    found = os.path.join(BUILD, "corpus", name)
    os.makedirs(found, exist_ok=True)
    saved = os.path.join("tests", "fuzz", "corpus", name)
    return found, saved if os.path.isdir(saved) else None


def command(target, name, arguments):
    """The target's command line with its dictionary, if it has one."""
    line = [os.path.join(BUILD, target), *arguments, "-print_final_stats=0", "-verbosity=0"]
    dictionary = os.path.join("tests", "fuzz", name + ".dict")
    if os.path.exists(dictionary):
        line.append("-dict=" + dictionary)
    return line


def run_one(target, seconds):
    """Fuzzes one target; True when nothing was found."""
    name = os.path.basename(target)
    found, saved = folders(name)
    line = command(target, name, [f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048",
                                  "-artifact_prefix=" + found + "/", found])
    started = time.monotonic()
    done = subprocess.run(line + ([saved] if saved else []), capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        print(done.stdout[-8000:] + done.stderr[-8000:])
        print(f"{name}: found a failing input in {found}; run it with {BUILD}/{target} INPUT")
        return False
    inputs = sum(len(os.listdir(d)) for d in (found, saved) if d)
    print(f"  fuzz {name:24} {time.monotonic() - started:5.1f} s  {inputs} inputs, nothing found")
    return True


def merge_one(target):
    """Copies the inputs that add coverage into tests/fuzz/corpus."""
    name = os.path.basename(target)
    found, _ = folders(name)
    saved = os.path.join("tests", "fuzz", "corpus", name)
    os.makedirs(saved, exist_ok=True)
    return subprocess.run(command(target, name, ["-merge=1", saved, found]), check=False,
                          capture_output=True).returncode == 0


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--merge", action="store_true")
    parser.add_argument("names", nargs="*", help="targets; default all")
    args = parser.parse_args()
    wanted = [t for t in targets.executables_under(BUILD, "tests/fuzz")
              if not args.names or os.path.basename(t) in args.names]
    if not wanted:
        sys.exit("no such fuzz target in tests/fuzz")
    if args.merge:
        sys.exit(0 if all([merge_one(t) for t in wanted]) else 1)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        clean = list(pool.map(lambda target: run_one(target, args.seconds), wanted))
    sys.exit(0 if all(clean) else 1)


if __name__ == "__main__":
    main()
