#!/usr/bin/python3
"""make mutate: does a test fail when a rule is changed?

One small change at a time (a mutant) is made to a copy of the tree under build-mutate/: a condition
negated, a comparison moved by one, a number changed, a call or an assignment dropped, && for ||, a bound
removed. The object is compiled, the C tests near it are linked and run one after the other until one
fails (or hangs, or crashes): the mutant is killed. What they let live has to pass the same programs on
PostgreSQL, where the machine has one, and the black-box tests near it; --no-api leaves both out. A mutant
whose object is byte for byte the original one is no change, one that does not compile is none either;
neither counts. Every test has passed on what is not mutated before it may kill.

Survivors that change nothing anybody can notice are explained in tools/mutants_explained.txt, one a line
with tabs between: path, the line before, the line after, why. At the end there are a table and the
survivors; below --goal percent killed or explained the exit status is 1.

    tools/mutate.py                            60 mutants, drawn by --seed
    tools/mutate.py --count 300 --seed 7       as many others
    tools/mutate.py --file src/tokens/jws.c    of one file (or folder); --count 0: every one of them
    tools/mutate.py --resume                   goes on with the same draw: what has a result is not run again
    tools/mutate.py --list                     only says which there are
"""
import argparse
import collections
import fnmatch
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLACE = os.path.join(ROOT, "build-mutate")
TREE, BUILD = os.path.join(PLACE, "tree"), os.path.join(PLACE, "build")
RESULTS, PASSED = os.path.join(PLACE, "results.tsv"), os.path.join(PLACE, "passed.tsv")
EXPLAINED = os.path.join(ROOT, "tools", "mutants_explained.txt")
WALL_SECONDS = 60  # more than a C test waits, beside what it takes: a busy machine must not kill a mutant
API_SECONDS = 600

# Folder: the C tests that may kill, by name, nearest first; those of them that run on PostgreSQL, too; and
# black-box tests, below tests/.
FOLDERS = {
    "src/lifecycle": (["lifecycle_*", "engine_*", "jobs_*"], [],
                      ["api/test_signals.py", "api/test_runs_append.py"]),
    "src/tokens": (["tokens_*", "key_files_faults"], [],
                   ["api/test_tokens.py", "api/test_runs_tokens.py", "api/test_issuers.py"]),
    "src/egress": (["egress_*"], [], ["egress/test_sending.py", "egress/test_guard.py",
                                      "egress/test_hostile.py", "api/test_webhook_delivery.py"]),
    "src/kernel": (["kernel_*", "jobs_*"], ["kernel_*"],
                   ["api/test_submit.py", "api/test_limits.py", "api/test_pressure.py",
                    "scenarios/test_worker_protocol.py"]),
    "src/jobs": (["jobs_*", "kernel_*"], ["jobs_submit", "jobs_deliver", "jobs_share"],
                 ["api/test_submit.py", "api/test_submit_values.py", "api/test_cancel_retry.py",
                  "api/test_clients_and_keys.py", "api/test_webhook_registration.py",
                  "api/test_webhook_delivery.py"]),
    "src/engine": (["engine_*"], [],
                   ["api/test_signals.py", "api/test_signals_authorization.py", "api/test_policy_point.py",
                    "api/test_runs_execution.py", "api/test_runs_append.py", "api/test_runs_plans.py"]),
}
API_TARGETS = ("weir", "tests/egress/egress_probe")  # what black-box tests run

Mutant = collections.namedtuple("Mutant", "path line before after operator")


# ---- which there are

def masked(text):
    """The same text with comments, strings and preprocessor lines blanked, so that columns stay."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    text = re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.M)


def closing(code, at):
    """Where the parenthesis that opens at `at` closes in this line; None: not in it."""
    depth = 0
    for place in range(at, len(code)):
        depth += (code[place] == "(") - (code[place] == ")")
        if not depth:
            return place
    return None


def negated(code):
    """`if (x)` and `while (x)` of one line."""
    for match in re.finditer(r"\b(?:if|while) \(", code):
        end = closing(code, match.end() - 1)
        if end:
            yield "negate", [(match.end(), match.end(), "!("), (end, end, ")")]


def replaced(code, pattern, words, operator):
    """Each match of the pattern becomes another word."""
    for match in re.finditer(pattern, code):
        yield operator, [(match.start(), match.end(), words(match.group(0)))]


def bounded(code):
    """`a < b ? a : b`: one side always."""
    term = r"[\w>.\-\[\]]+(?:\([^()]*\))?"
    for match in re.finditer(rf"({term}) [<>]=? ({term}) \? ({term}) : ({term})", code):
        if {match.group(1), match.group(2)} == {match.group(3), match.group(4)}:
            for side in (3, 4):
                yield "bound", [(match.start(), match.end(), match.group(side))]


def dropped(code):
    """A statement of one line that calls or assigns."""
    name = r"[a-z_][\w>.\-\[\]]*"
    match = re.match(rf"( +)(?:[a-z_]\w*\(.*\)|\*?{name} [-+|&]?= .*|{name}(?:\+\+|--));$", code)
    if match and not re.match(r" +(?:MUST|free|pthread|\w+_free|memcpy|va_)\w*\(|.* (?:return|goto) ", code):
        yield "drop", [(len(match.group(1)), len(code), ";")]


SWAP = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
        "true": "false", "false": "true"}


# No rules: a buffer that is one larger; a descriptor is never 0 here, standard input being open; what makes
# room ahead of need; what wipes memory that nobody looks at again.
ROOM = re.compile(r"^ +(?!return|else|case)(?:static |const |unsigned )*(?:struct )?\w+ \w+\[[^\]]*\]"
                  r"|\barena_new\([^()]*\)|^ +strbuf_reserve\(.*|^ +OPENSSL_cleanse\(.*")
DESCRIPTOR = re.compile(r"\b(?:\w*fd|lock) (?:<|>=) 0")


def changes(code):
    """(operator, edits) of one line of masked code."""
    for pattern in (ROOM, DESCRIPTOR):
        code = pattern.sub(lambda match: "_" * len(match.group(0)), code)
    yield from negated(code)
    yield from replaced(code, r"(?<=\w|\)|\]) (?:<=|>=|<|>)(?= [\w(*&-])", lambda w: " " + SWAP[w[1:]],
                        "relation")
    yield from replaced(code, r"(?<= )(?:==|!=)(?= )", SWAP.get, "equality")
    yield from replaced(code, r"(?<= )(?:&&|\|\|)(?= |$)", SWAP.get, "logic")
    yield from replaced(code, r"(?<![\w.{])(?:0|[1-9][0-9]*)(?![\w.])", lambda w: str(int(w) + 1), "number")
    yield from replaced(code, r"(?<=return )(?:true|false)(?=;)", SWAP.get, "answer")
    yield from bounded(code)
    yield from dropped(code)


def mutants_of(path):
    """Every mutant of a file."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as source:
        text = source.read()
    inside = False  # a function: tables and prototypes outside are left alone, but for limits in an enum
    for number, (line, code) in enumerate(zip(text.split("\n"), masked(text).split("\n")), 1):
        if code == "{" or code == "}":
            inside = code == "{"
        limit = re.match(r"(?:enum \{)? +\w+ = [0-9]+,|enum \{ .*= [0-9]", code)
        if not (inside or limit) or re.match(r" *(?:MUST|_Static_assert|X)\(", code):
            continue
        for operator, edits in changes(code):
            after = line
            for start, end, new in sorted(edits, reverse=True):
                after = after[:start] + new + after[end:]
            yield Mutant(path, number, line, after, operator)


def every_mutant(only):
    """Of the folders above, or of a file or folder."""
    listed = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True)
    for path in listed.stdout.split():
        if not path.endswith(".c") or os.path.dirname(path) not in FOLDERS or path.endswith("_shared.c"):
            continue  # what is of a shared store alone runs on PostgreSQL, and not here
        names = only or [path]
        if any(fnmatch.fnmatch(path, name) or path.startswith(name.rstrip("/") + "/") for name in names):
            yield from mutants_of(path)


def explained():
    """(path, before, after) of those that are explained."""
    found = {}
    with open(EXPLAINED, encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                path, before, after, why = line.rstrip("\n").split("\t")
                found[path, before, after] = why
    return found


# ---- the copy and its build

def quiet(command, **options):
    """Runs a command; its output if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          **options)
    return None if done.returncode == 0 else done.stdout


def copy_tree():
    """The files git knows, as they are now; what has not changed keeps its time."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, check=True)
    wanted = set(listed.stdout.decode().split("\0")) - {""}
    for name in wanted:
        source, target = os.path.join(ROOT, name), os.path.join(TREE, name)
        if not os.path.isfile(source):
            continue
        with open(source, "rb") as file:
            data = file.read()
        if os.path.isfile(target):
            with open(target, "rb") as file:
                if file.read() == data:
                    continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(source, target)
        shutil.copymode(source, target)


def set_up():
    """The copy, and a build of it without warnings as errors, with the tests that are linked to it."""
    copy_tree()
    if not os.path.exists(os.path.join(BUILD, "build.ninja")):
        # As the tests are built, but for what writes the places of the source into the object.
        failed = quiet(["meson", "setup", BUILD, TREE, "-Doptimization=1", "-Ddebug=false", "-Dwerror=false",
                        "-Db_lundef=false", "-Db_sanitize=address", "-Dtests=true"])
        if failed:
            sys.exit(failed)
    ninja("build.ninja")  # what tests there are is read from it


def ninja(*targets):
    """What ninja says when it fails; else None."""
    return quiet(["ninja", "-C", BUILD, "-j", str(os.cpu_count() or 1), "--quiet", *targets])


class Program:
    """A C test program: how to run it, and how many CPU seconds it takes unmutated. On PostgreSQL it is
    another test, which has the name of the first behind `postgres_`."""
    def __init__(self, test):
        self.target = os.path.relpath(test["cmd"][0], BUILD)
        self.command, self.env = test["cmd"], test["env"]
        self.name = test["name"].removeprefix("postgres_")
        self.on_postgres = any(suite.endswith("postgres") for suite in test["suite"])
        self.seconds = 0

    def may_kill_in(self, folder):
        """Whether it is among the tests of a folder of src/."""
        return any(fnmatch.fnmatch(self.name, name) for name in FOLDERS[folder][self.on_postgres])

    def limits(self):
        """Seconds of CPU, and of the wall, after which it hangs."""
        return 10 * self.seconds + 5, 30 * self.seconds + WALL_SECONDS


def files_print(*paths):
    """Of what is in files."""
    digest = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()[:16]


def unmutated(what, key, *command, **options):
    """CPU seconds of a test on what is not mutated; ends the program when it fails. Remembered: a test of
    the same files is not run again."""
    if os.path.exists(PASSED):
        with open(PASSED, encoding="utf-8") as lines:
            for line in lines:
                if line.split("\t")[:2] == [what, key]:
                    return float(line.split("\t")[2])
    verdict, seconds = run(*command, **options)
    if verdict:
        sys.exit(f"{what} fails without a change: {verdict}")
    with open(PASSED, "a", encoding="utf-8") as file:
        file.write(f"{what}\t{key}\t{seconds:.2f}\n")
    return seconds


def programs(folders, postgres):
    """The C test programs of the folders, quickest first; each has passed once on what is not mutated."""
    told = subprocess.run(["meson", "introspect", "--tests", BUILD], capture_output=True, text=True,
                          check=True)
    found = [program for program in map(Program, json.loads(told.stdout))
             if (postgres or not program.on_postgres) and any(map(program.may_kill_in, folders))]
    failed = ninja(*[program.target for program in found])
    if failed:
        sys.exit(failed)
    for program in found:
        program.env = {**program.env, **(postgres if program.on_postgres else {})}
        where = " on PostgreSQL" if program.on_postgres else ""
        program.seconds = unmutated(program.name + where, files_print(*program.command), program.command, 600,
                                    API_SECONDS, env=program.env)
    return sorted(found, key=lambda program: program.seconds)


def black_box(names):
    """How to run the black-box tests of some files: command, and options of run()."""
    return (([sys.executable, "-m", "pytest", "-q", "-x", *[os.path.join("tests", name) for name in names]],
             API_SECONDS, API_SECONDS),
            {"cwd": TREE,
             "env": {"WEIR_BIN": os.path.join(BUILD, "weir"), "TMPDIR": "/tmp", "WEIR_TEST_STORE": "sqlite"}})


def run(command, cpu_seconds, wall_seconds, env=None, cwd=BUILD):
    """(how it failed or None, CPU seconds). In memory alone where a program knows several stores."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_seconds), int(cpu_seconds) + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    scratch = os.path.join(PLACE, "scratch")
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(command, cwd=cwd, preexec_fn=limit, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
                               env={**os.environ, "TMPDIR": scratch, "WEIR_TEST_STORE": "memory",
                                    **(env or {})})
    try:
        output = process.communicate(timeout=wall_seconds)[0]
        verdict = None if process.returncode == 0 else first_failure(output, process.returncode)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        verdict = "hangs"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return verdict, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_failure(output, status):
    """The name of the test that failed, or how the program ended."""
    match = re.search(r"\[  FAILED  \] (\w+)$|^FAILED (\S+)|^SUMMARY: (\w+: [a-z][\w-]+|.* leaked)", output,
                      flags=re.M)
    if match and not (match.group(1) or "").isdigit():
        return next(filter(None, match.groups()))
    return "ends by signal %d" % -status if status < 0 else "fails"


# ---- one mutant

def postgres_url():
    """What leads test programs to a PostgreSQL that lives as long as we do; {}: there is none here."""
    sys.path.insert(0, os.path.join(ROOT, "tests"))
    from harness.postgres import NoPostgres, session  # pylint: disable=import-outside-toplevel
    try:
        return {"WEIR_TEST_POSTGRES": session().url()}
    except NoPostgres as why:
        print(f"without PostgreSQL: {why}")
        return {}


class Workshop:
    """Tries mutants in the copy."""
    def __init__(self, folders, api):
        set_up()
        self.programs, self.api = programs(folders, postgres_url() if api else {}), api
        for folder in folders if api else ():
            names = FOLDERS[folder][2]
            failed = ninja(*API_TARGETS)
            if failed:
                sys.exit(failed)
            command, options = black_box(names)
            files = [os.path.join(BUILD, name) for name in API_TARGETS]
            files += [os.path.join(TREE, "tests", name) for name in names]
            unmutated(f"black-box tests of {folder}", files_print(*files), *command, **options)

    def object_of(self, path):
        """The object a source file becomes."""
        folder = os.path.dirname(path)
        library = os.path.join(BUILD, folder, "lib" + os.path.basename(folder) + ".a.p")
        return os.path.join(library, os.path.relpath(path, folder).replace("/", "_") + ".o")

    def judge(self, mutant):
        """killed, alive, same (the object has not changed) or broken (does not compile), and by what."""
        target = os.path.join(TREE, mutant.path)
        with open(target, encoding="utf-8") as file:
            original = file.read()
        unit = self.object_of(mutant.path)
        with open(unit, "rb") as file:
            was = file.read()
        lines = original.split("\n")
        lines[mutant.line - 1] = mutant.after
        try:
            write(target, "\n".join(lines))
            if ninja(os.path.relpath(unit, BUILD)):
                return "broken", ""
            with open(unit, "rb") as file:
                if file.read() == was:
                    return "same", ""
            return self.kill(mutant)
        finally:
            write(target, original)

    def near(self, folder):
        """The programs that may kill in a folder: nearest first, those on PostgreSQL behind all others."""
        for on_postgres in (False, True):
            for name in FOLDERS[folder][on_postgres]:
                for program in self.programs:
                    if program.on_postgres == on_postgres and fnmatch.fnmatch(program.name, name):
                        yield program

    def kill(self, mutant):
        """Runs what may kill it."""
        folder = os.path.dirname(mutant.path)
        for program in self.near(folder):
            if ninja(program.target):
                return "broken", ""
            verdict, _ = run(program.command, *program.limits(), env=program.env)
            if verdict:
                return "killed", f"{program.name}{' on PostgreSQL' * program.on_postgres}: {verdict}"
        if self.api and not ninja(*API_TARGETS):
            command, options = black_box(FOLDERS[folder][2])
            verdict, _ = run(*command, **options)
            if verdict:
                return "killed", f"api: {verdict}"
        return "alive", ""


def write(path, text):
    """A file with a time that ninja sees."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# ---- results

def name_of(mutant):
    """Of a mutant in a file as it is now: a change of the file makes others of all its mutants."""
    with open(os.path.join(ROOT, mutant.path), "rb") as file:
        digest = hashlib.sha256(file.read())
    digest.update(f"{mutant.line}\0{mutant.after}".encode())
    return digest.hexdigest()[:16]


def earlier():
    """Results that are there, by name."""
    if not os.path.exists(RESULTS):
        return {}
    with open(RESULTS, encoding="utf-8") as lines:
        fields = (line.rstrip("\n").split("\t") for line in lines)
        return {name: (state, by) for name, state, by, *_ in fields}


def report(results, known, goal):
    """The table, then who lives. True: the goal is met."""
    states = ("killed", "explained", "alive", "same", "broken")
    table, alive = collections.defaultdict(collections.Counter), []
    for mutant, state, _ in results:
        if state == "alive" and (mutant.path, mutant.before.strip(), mutant.after.strip()) in known:
            state = "explained"
        if state == "alive":
            alive.append(mutant)
        for row in (os.path.dirname(mutant.path), "all"):
            table[row][state] += 1
    print(f"\n{'folder':<16}" + "".join(f"{state:>11}" for state in states) + f"{'rate':>9}")
    rate = 100.0
    for row in sorted(table, key=lambda name: (name == "all", name)):
        counts = table[row]
        good = counts["killed"] + counts["explained"]
        rate = 100.0 * good / (good + counts["alive"]) if good + counts["alive"] else 100.0
        print(f"{row:<16}" + "".join(f"{counts[state]:>11}" for state in states) + f"{rate:>8.1f}%")
    for mutant in sorted(alive):
        print(f"\n{mutant.path}:{mutant.line}: {mutant.operator}")
        print(f"  - {mutant.before.strip()}\n  + {mutant.after.strip()}")
    return rate >= goal


def arguments():
    """What was asked for."""
    parser = argparse.ArgumentParser(description="Does a test fail when a rule is changed?")
    parser.add_argument("--count", type=int, default=60, help="so many mutants; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--file", action="append", default=[], help="a file, folder or pattern; repeatable")
    parser.add_argument("--resume", action="store_true", help="keep the results of earlier runs")
    parser.add_argument("--no-api", action="store_true", help="C tests without PostgreSQL alone")
    parser.add_argument("--goal", type=float, default=95.0, help="percent to be killed or explained")
    parser.add_argument("--minutes", type=float, default=0, help="start no mutant after so long; 0: no end")
    parser.add_argument("--list", action="store_true", help="only list them")
    return parser.parse_args()


def main():
    """Draws, tries, tells."""
    asked = arguments()
    found = list(every_mutant(asked.file))
    if asked.count and asked.count < len(found):
        found = random.Random(asked.seed).sample(found, asked.count)
    if asked.list:
        for mutant in found:
            print(f"{mutant.path}:{mutant.line}: {mutant.operator}: "
                  f"{mutant.before.strip()} -> {mutant.after.strip()}")
        print(f"{len(found)} mutants")
        return 0
    os.makedirs(PLACE, exist_ok=True)
    if not asked.resume and os.path.exists(RESULTS):
        os.remove(RESULTS)
    done, results, workshop = earlier(), [], None
    folders = sorted({os.path.dirname(mutant.path) for mutant in found})
    began = time.monotonic()
    for number, mutant in enumerate(found, 1):
        name = name_of(mutant)
        if name not in done:
            if asked.minutes and time.monotonic() - began > 60 * asked.minutes:
                print(f"{asked.minutes} minutes are over: {len(found) - number + 1} mutants were not tried")
                break
            workshop = workshop or Workshop(folders, not asked.no_api)
            done[name] = workshop.judge(mutant)
            with open(RESULTS, "a", encoding="utf-8") as file:
                file.write("\t".join((name, *done[name], f"{mutant.path}:{mutant.line}")) + "\n")
            print(f"{number}/{len(found)} {done[name][0]:<7} {mutant.path}:{mutant.line} {mutant.operator} "
                  f"{done[name][1]}", flush=True)
        results.append((mutant, *done[name]))
    return 0 if report(results, explained(), asked.goal) else 1


if __name__ == "__main__":
    sys.exit(main())
