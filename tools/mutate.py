#!/usr/bin/python3
"""make mutate: does a test fail when a rule is changed?

A copy of the tree is built under build-mutate/. One small change at a time (a mutant) is made to one of its
files: a condition negated, a comparison moved by one, a number changed, a call or an assignment dropped,
&& for ||, a bound removed. That object alone is compiled, and the C tests near it that hold it are linked
with it in the place of the original one and run until one fails (or hangs, or crashes): the mutant is
killed. What killed others of the same file is tried first. What they let live has to pass the same programs
on PostgreSQL, where the machine has one, and the black-box tests near it; --no-api leaves both out. A mutant
whose object is byte for byte the original one is no change, one that does not compile is none either;
neither counts. Every test has passed on what is not mutated before it may kill.

Survivors that change nothing anybody can notice are explained in tools/mutants_explained.txt, one a line
with tabs between: path, the line before, the line after, why. At the end there are a table and the
survivors; below --goal percent killed or explained the exit status is 1.

    tools/mutate.py                            60 mutants, drawn by --seed
    tools/mutate.py --count 300 --seed 7       as many others
    tools/mutate.py --file src/tokens/jws.c    of one file (or folder); --count 0: every one of them
    tools/mutate.py --resume                   goes on with the same draw: what was killed or is explained is
                                               not run again, what lived is
    tools/mutate.py --list                     only says which there are
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import functools
import hashlib
import json
import os
import queue
import random
import re
import resource
import shlex
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
    "src/kernel": (["kernel_*", "jobs_*"], ["kernel_*", "jobs_submit", "jobs_deliver", "jobs_share"],
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


def black_box(names, programs_at=BUILD):
    """How to run the black-box tests of some files: command, and options of run()."""
    return (([sys.executable, "-m", "pytest", "-q", "-x", *[os.path.join("tests", name) for name in names]],
             API_SECONDS, API_SECONDS),
            {"cwd": TREE,
             "env": {"WEIR_BIN": os.path.join(programs_at, "weir"), "TMPDIR": "/tmp",
                     "WEIR_TEST_STORE": "sqlite"}})


def run(command, cpu_seconds, wall_seconds, env=None, cwd=BUILD, place=PLACE):
    """(how it failed or None, CPU seconds). In memory alone where a program knows several stores."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_seconds), int(cpu_seconds) + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    scratch = os.path.join(place, "scratch")
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


@functools.lru_cache(None)
def symbols(path):
    """What an object or a program defines for others."""
    told = subprocess.run(["nm", "-g", "--defined-only", "-P", path], cwd=BUILD, capture_output=True,
                          text=True, check=True)
    return {line.split()[0] for line in told.stdout.splitlines()}


@functools.lru_cache(None)
def link_command(target):
    """How a program is linked, without its name."""
    told = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", target], capture_output=True, text=True,
                          check=True)
    command = shlex.split(told.stdout.splitlines()[-1])
    at = command.index("-o")
    return command[:at] + command[at + 2:]


class Workshop:
    """Tries mutants: as many at a time as it has places to compile and link in. The copy and its build stay
    as they are."""
    def __init__(self, folders, api, places):
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
        with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
            self.units = {os.path.relpath(os.path.join(BUILD, unit["file"]), TREE): unit
                          for unit in json.load(file)}
        self.originals, self.kills = {}, collections.defaultdict(collections.Counter)
        self.places = queue.Queue()
        for number in range(places):
            self.places.put(os.path.join(PLACE, f"place{number}"))

    def compiled(self, path, text, place):
        """The object of a file with another text, made in a place; None: it does not compile."""
        words, command = iter(shlex.split(self.units[path]["command"])), []
        for word in words:
            if word in ("-o", "-c", "-MQ", "-MF"):
                next(words)
            elif word.startswith("-I"):
                command.append("-I" + os.path.join(BUILD, word[2:]))
            elif word != "-MD":
                command.append(word)
        os.makedirs(os.path.join(place, os.path.dirname(path)), exist_ok=True)
        write(os.path.join(place, path), text)
        # Without ccache: nobody compiles it again.
        command += ["-o", "mutant.o", "-c", path]
        if quiet(command, cwd=place, env={**os.environ, "CCACHE_DISABLE": "1"}):
            return None
        with open(os.path.join(place, "mutant.o"), "rb") as file:
            return file.read()

    def link(self, target, name, place):
        """A program with the object of the place: what stands before the libraries is taken instead of
        what is in them. True: it is there."""
        os.makedirs(os.path.dirname(name), exist_ok=True)
        command = link_command(target)
        return not quiet([command[0], "-o", name, os.path.join(place, "mutant.o"), *command[1:]], cwd=BUILD)

    def judge(self, mutant):
        """killed, alive, same (the object has not changed) or broken (does not compile), and by what."""
        place = self.places.get()
        try:
            with open(os.path.join(TREE, mutant.path), encoding="utf-8") as file:
                text = file.read()
            if mutant.path not in self.originals:
                self.originals[mutant.path] = self.compiled(mutant.path, text, place)
            lines = text.split("\n")
            lines[mutant.line - 1] = mutant.after
            unit = self.compiled(mutant.path, "\n".join(lines), place)
            if unit is None:
                return "broken", ""
            if unit == self.originals[mutant.path]:
                return "same", ""
            return self.kill(mutant, place)
        finally:
            self.places.put(place)

    def holds(self, target, path):
        """Whether a program has the object of a file in it."""
        return not symbols(self.units[path]["output"]).isdisjoint(symbols(target))

    def near(self, path):
        """The programs that may kill in a file: those that did, those of its name, then nearest first; those
        on PostgreSQL behind all others."""
        folder, kills = os.path.dirname(path), self.kills[path]
        of_file = os.path.basename(folder) + "_" + os.path.basename(path).removesuffix(".c")

        def distance(program):
            names = FOLDERS[folder][program.on_postgres]
            nearest = next(at for at, name in enumerate(names) if fnmatch.fnmatch(program.name, name))
            return (program.on_postgres, -kills[program.name], program.name != of_file, nearest,
                    program.seconds)
        return sorted((program for program in self.programs
                       if program.may_kill_in(folder) and self.holds(program.target, path)), key=distance)

    def kill(self, mutant, place):
        """Runs what may kill it."""
        name = os.path.join(place, "test")
        for program in self.near(mutant.path):
            if not self.link(program.target, name, place):
                return "broken", ""
            verdict, _ = run([name, *program.command[1:]], *program.limits(), env=program.env, place=place)
            if verdict:
                self.kills[mutant.path][program.name] += 1
                return "killed", f"{program.name}{' on PostgreSQL' * program.on_postgres}: {verdict}"
        return self.kill_black_box(mutant, place) if self.api else ("alive", "")

    def kill_black_box(self, mutant, place):
        """The same with whole programs."""
        for target in API_TARGETS:
            name = os.path.join(place, target)
            if not self.holds(target, mutant.path):
                os.makedirs(os.path.dirname(name), exist_ok=True)
                shutil.copy(os.path.join(BUILD, target), name)
            elif not self.link(target, name, place):
                return "broken", ""
        kills = self.kills[mutant.path]
        names = sorted(FOLDERS[os.path.dirname(mutant.path)][2], key=lambda name: -kills[name])
        command, options = black_box(names, place)
        verdict, _ = run(*command, place=place, **options)
        if not verdict:
            return "alive", ""
        kills[verdict.split("::")[0].removeprefix("tests/")] += 1
        return "killed", f"api: {verdict}"


def write(path, text):
    """A file with this text."""
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


def is_known(mutant, known):
    """Whether it is explained."""
    return (mutant.path, mutant.before.strip(), mutant.after.strip()) in known


def report(results, known, goal):
    """The table, then who lives. True: the goal is met."""
    states = ("killed", "explained", "alive", "same", "broken")
    table, alive = collections.defaultdict(collections.Counter), []
    for mutant, state, _ in results:
        if state == "alive" and is_known(mutant, known):
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
    parser.add_argument("--jobs", type=int, default=1, help="so many at a time")
    parser.add_argument("--list", action="store_true", help="only list them")
    return parser.parse_args()


def tried(found, known, asked):
    """(mutant, state, by what) of each that has a result or gets one in time."""
    done, began = earlier(), time.monotonic()
    names = {mutant: name_of(mutant) for mutant in found}
    left = [mutant for mutant in found if names[mutant] not in done
            or done[names[mutant]][0] == "alive" and not is_known(mutant, known)]
    folders = sorted({os.path.dirname(mutant.path) for mutant in left})
    workshop = Workshop(folders, not asked.no_api, asked.jobs) if left else None

    def judge(mutant):
        late = asked.minutes and time.monotonic() - began > 60 * asked.minutes
        return None if late else workshop.judge(mutant)
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        for number, (mutant, result) in enumerate(zip(left, pool.map(judge, left)), 1):
            if not result:
                print(f"{asked.minutes} minutes are over: {len(left) - number + 1} mutants were not tried")
                break
            done[names[mutant]] = result
            with open(RESULTS, "a", encoding="utf-8") as file:
                file.write("\t".join((names[mutant], *result, f"{mutant.path}:{mutant.line}")) + "\n")
            print(f"{number}/{len(left)} {result[0]:<7} {mutant.path}:{mutant.line} {mutant.operator} "
                  f"{result[1]}", flush=True)
    return [(mutant, *done[names[mutant]]) for mutant in found if names[mutant] in done]


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
    known = explained()
    return 0 if report(tried(found, known, asked), known, asked.goal) else 1


if __name__ == "__main__":
    sys.exit(main())
