#!/usr/bin/python3
"""make test and make test-quick: the stages of the suite, some at a time; at the end a table of seconds (how
long each took, and how long it kept a core busy), what was skipped and why, and how many tests passed,
failed and were skipped.

A stage is a command, the stages it needs, and how many cores it keeps busy by measurement; as many run at a
time as the machine has cores for, and more while it is quicker than measured and cores stand idle. The first
stage that fails ends the run; its output is shown. There is no second look: a test that fails once in a while
makes the run red, and is to be mended. Every stage's output is kept in build-check/logs/.

A command that ends with 77 is skipped; its last line says why. Tests are skipped for what the machine does
not allow (tests/harness/machine.py) and for nothing else. With WEIR_TEST_STRICT=1 whatever is skipped has
failed.

    tools/run_tests.py              everything
    tools/run_tests.py --quick      what a minute or two can tell: checks, unit tests, a look at the API
    tools/run_tests.py unit api     these stages and what they need; api is api-1 to api-3
    tools/run_tests.py -k ...       goes on after a failure with all that does not need what failed
    tools/run_tests.py --times      keeps the seconds of the last run in tests/times.tsv, for making parts
"""
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
from harness import machine  # noqa: E402  (needs the path above)

PYTHON = "/usr/bin/python3"
MESON = "/usr/bin/meson"
CORES = os.cpu_count() + 0.3  # what runs at a time may want a little more than there is
IDLE_SECONDS = 5.0  # so long the same stages have run before the next gets what they leave
BUILD = 1.0  # a compiler takes what is left (nice): it may keep every core busy, and nobody waits for it
LOGS = os.path.join("build-check", "logs")
COMPILED = os.path.join("build-check", "pycache")
TIMES = os.path.join("tests", "times.tsv")
SKIPPED = 77
STRICT = os.environ.get("WEIR_TEST_STRICT") == "1"
LONG = os.environ.get("WEIR_TEST_LONG") == "1"
PYTEST = [PYTHON, "-m", "pytest", "-q", "--maxfail=3", "--durations=5"]

# What also runs on PostgreSQL at commit size: all that speaks to a server, but for what has little to do with
# where jobs are stored. make test-long runs every black-box test on it.
OF_NO_STORE = [f"tests/{name}.py" for name in (
    "api/test_auth", "api/test_cli", "api/test_config", "api/test_errors", "api/test_http_semantics",
    "api/test_json_corpus", "api/test_logs", "api/test_submit_values", "api/test_tokens", "api/test_traces",
    "api/test_cli_run", "api/test_cli_top", "api/test_engine_contract", "api/test_policy_point",
    "api/test_runs_tokens", "webhooks/test_signatures", "api/test_addresses", "api/test_bodies",
    "api/test_issuers", "api/test_over_tls", "api/test_tls",
    # These have, and take long: the rest is enough to see that a store is not as the other.
    "api/test_deploy", "api/test_failure_cases", "api/test_limits", "api/test_metrics", "api/test_ops",
    "api/test_pressure", "api/test_signals_authorization", "api/test_store_copy", "api/test_topology",
    "api/test_topology_gate", "api/test_webhook_delivery",
    "scenarios/test_big_plans", "scenarios/test_completion", "scenarios/test_done",
    "scenarios/test_load_mix", "scenarios/test_non_goals", "scenarios/test_work_kinds",
    "webhooks/test_broken_receivers")]
TRAFFIC = "tests/api/test_traffic.py"  # most of it is about its own table and flags
ON_POSTGRES = ["tests/api", "tests/scenarios", "tests/webhooks", "tests/sample_contract",
               "tests/harness/test_postgres.py",
               "tests/faults/test_postgres_start.py", "tests/faults/test_postgres_leases.py",
               "tests/faults/test_postgres_listener.py",
               *("--ignore=" + path for path in OF_NO_STORE + [TRAFFIC])]
# What needs a server as quick as people have it. In make test-long they run with sanitizers, too.
QUICK_ONLY = [f"tests/faults/test_{name}.py" for name in ("storm", "overload", "large_bodies")]
# What is installed has a tighter sandbox than sanitized builds have: a little of everything, inside it.
ON_RELEASE = QUICK_ONLY + [f"tests/{name}.py" for name in (
    "faults/test_sandbox", "faults/test_service", "faults/test_restart", "api/test_policy_point",
    "api/test_runs_execution", *(() if not LONG else (
        "api/test_store_copy", "faults/test_supervision", "faults/test_disk_full",
        "api/test_webhook_delivery", "api/test_tokens", "api/test_traces")))]
BUILT = ["build-asan", "build-cuts"]  # the second configures the release build once more
PARTS = {"api": 3, "faults": 2, "postgres-api": 2}  # of a long black-box suite, run beside each other

# Of what can go wrong, a part on PostgreSQL at commit size.
FAULTS_ON_POSTGRES = ["tests/faults/test_postgres_faults.py",
                      TRAFFIC + "::test_every_kind_ends_as_the_catalog_says"] + [
    f"tests/faults/{test}" for test in (
        "test_kill.py::test_kill_of_the_whole_family_under_load_loses_nothing",
        "test_kill.py::test_verify_sees_a_row_that_is_missing",
        "test_run_kills.py::test_two_nodes_lose_no_event_and_no_signal_when_one_is_killed",
        "test_run_kills.py::test_the_judge_and_verify_see_an_event_that_is_missing",
        "test_restart.py::test_a_schedule_survives_a_kill_and_is_kept",
        "test_restart.py::test_finished_jobs_and_their_reports_are_the_same_after_kill_9",
        "test_worker_loss.py::test_workers_lost_before_the_start_give_their_jobs_back",
        "test_worker_loss.py::test_a_frozen_worker_that_wakes_up_is_not_believed")]

# make test-quick: meson's command line gets the names of the tests; and these files of the API.
QUICK_NAMES = f'exec "$0" "$@" $({PYTHON} tools/targets.py build-asan --quick --names)'
QUICK_TESTS = [f"tests/{name}.py" for name in (
    "api/test_submit", "api/test_cancel_retry", "api/test_idempotency", "api/test_auth",
    "api/test_runs_append", "scenarios/test_worker_protocol")]

MEMORY_BYTES_MIN = 4 << 30


def temporary_folder():
    """Where tests put their files: in memory where there is room. Nothing here loses power, so what a disk
    would keep is kept; and a database is a thousand files, which a disk makes slowly."""
    try:
        there = os.statvfs("/dev/shm")
    except OSError:
        return {}
    fits = there.f_bavail * there.f_frsize >= MEMORY_BYTES_MIN and not there.f_flag & os.ST_NOEXEC
    return {"TMPDIR": "/dev/shm"} if fits and "TMPDIR" not in os.environ else {}


SANITIZER_ENV = {
    "ASAN_OPTIONS": machine.without_leaks("detect_stack_use_after_return=1:strict_string_checks=1"),
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}
# The search for leaks is a quarter of what a server's start and end cost. At commit size the unit tests and
# the API on SQLite have it; most servers of the other suites are killed, or run the same code once more.
ENDS_UNSEARCHED = {} if LONG else {"ASAN_OPTIONS": SANITIZER_ENV["ASAN_OPTIONS"] + ":detect_leaks=0"}


class Stage:
    """One command of the run. `tests` says how its tests are counted: "pytest", a meson log, or it is one."""

    def __init__(self, name, command, needs=(), cores=0.5, env=None, tests=None, named_only=False):
        self.name, self.command, self.needs, self.cores = name, command, tuple(needs), cores
        self.env, self.tests, self.named_only = env or {}, tests, named_only
        self.cpu = 0.0
        self.process = None
        self.started = 0.0
        self.seconds = None
        self.result = "not run"
        self.skipped = []  # "name: reason" of each test

    @property
    def log(self):
        """Where its output goes."""
        return os.path.join(LOGS, self.name + ".log")

    @property
    def times(self):
        """Where a black-box suite says how long each file took."""
        return os.path.join(LOGS, self.name + ".times")


def build_of(target, name=None, **options):
    """A stage that builds a target of the Makefile, with what tests leave of the cores."""
    command = ["nice", "make", "--no-print-directory", "-s", target]
    return Stage(name or target, command, cores=BUILD, **options)


def meson_stage(name, build_dir, *arguments, before=(), **options):
    """`meson test` without building; slower limits, since sanitized code is slow and machines are busy."""
    command = [*before, MESON, "test", "-C", build_dir, "--no-rebuild", "--print-errorlogs",
               "--logbase", name, "--timeout-multiplier", "40" if LONG else "10", *arguments]
    return Stage(name, command, tests=os.path.join(build_dir, "meson-logs", name + ".json"), **options)


def pytest_stage(name, arguments, needs, build_dir, env=None, **options):
    """Black-box tests of the program in a build directory."""
    program = os.path.abspath(os.path.join(build_dir, "weir"))
    return Stage(name, PYTEST + arguments, needs, tests="pytest", env={"WEIR_BIN": program, **(env or {})},
                 **options)


def pytest_files(folder, holding=""):
    """The black-box tests of a folder of tests/ that hold a text."""
    found = []
    for path in glob.glob(os.path.join("tests", folder, "**", "test_*.py"), recursive=True):
        with open(path, encoding="utf-8") as file:
            if holding in file.read():
                found.append(path)
    return found


def in_parts(name, arguments, needs, **options):
    """A black-box suite as stages that run beside each other."""
    parts = PARTS[name]
    return [pytest_stage(f"{name}-{part}", arguments + ["--part", f"{part}/{parts}"], needs, "build-asan",
                         **options) for part in range(1, parts + 1)]


def quick_stages():
    """make test-quick: the rules in unit tests, and of the API what everything else stands on."""
    return [
        Stage("check-quick", ["tools/check", "--quick"], cores=1, named_only=True),
        build_of("build-quick", named_only=True),
        meson_stage("unit-quick", "build-asan", before=["sh", "-c", QUICK_NAMES], needs=["build-quick"],
                    cores=1.5, named_only=True),
        pytest_stage("smoke", QUICK_TESTS, ["build-quick"], "build-asan", cores=1, named_only=True),
    ]


def stages():
    """Every stage, in the order they are tried: what keeps cores busy beside what waits."""
    slow = ["tests/" + d for d in ("faults", "scenarios") if pytest_files(d)]
    ignore = ["--ignore=" + d for d in slow]
    on_postgres = ["--store", "postgres"] + (["tests"] if LONG else ON_POSTGRES)
    short = [] if LONG else ["--no-suite", "long"]
    left_out = [] if LONG else ["--ignore=" + path for path in QUICK_ONLY]
    threaded = pytest_files("", holding="mark.tsan")
    found = [
        build_of("build-asan"),
        Stage("conformance", [PYTHON, "tools/conformance.py"], cores=1),
        Stage("check", ["nice", "tools/check", *([] if LONG else ["--quick"])], cores=1),
        # Without it the sanitizer looks for no leaks when a program ends.
        Stage("leaks", [PYTHON, "tests/harness/machine.py", "tracing"], cores=0),
        Stage("bare", ["tools/bare_system", "configure"]),
        build_of("build", name="build-release"),
        build_of("build-cuts", needs=["build-release"]),
        build_of("build-tsan"),
        *in_parts("api", ["tests"] + ignore, BUILT, cores=0.4),
        *in_parts("faults", slow + left_out, BUILT, env=ENDS_UNSEARCHED, cores=0.3),
        *in_parts("postgres-api", on_postgres, BUILT, env=ENDS_UNSEARCHED, cores=0.4),
        # Power cuts have a stage of their own; with sanitizers they take long.
        meson_stage("unit", "build-asan", "--no-suite", "postgres", *([] if LONG else ["--no-suite", "cuts"]),
                    needs=["build-asan"], cores=1),
        meson_stage("postgres", "build-asan", "--suite", "postgres", *short, before=["tools/with_postgres"],
                    needs=["build-asan"], cores=0.9),
        pytest_stage("release", ON_RELEASE, BUILT, "build", cores=0.3),
        meson_stage("cuts", "build", "--suite", "cuts", needs=["build-cuts"], cores=1),
        meson_stage("tsan", "build-tsan", "--suite", "tsan", needs=["build-tsan"], cores=1),
        pytest_stage("tsan-api", ["-m", "tsan"] + threaded, ["build-tsan"], "build-tsan"),
        pytest_stage("tsan-postgres", ["--store", "postgres", "-m", "tsan"] + threaded, ["build-tsan"],
                     "build-tsan"),
    ]
    if LONG:
        found += [build_of("build-fuzz"),
                  Stage("fuzz", [PYTHON, "tools/fuzz.py", "--seconds", "60"], ["build-fuzz"], cores=2),
                  # A floor, for so few are drawn: of many it is 95.
                  Stage("mutate", [PYTHON, "tools/mutate.py", "--count", "60", "--goal", "85"], cores=1)]
    else:
        found.append(pytest_stage("postgres-faults", ["--store", "postgres"] + FAULTS_ON_POSTGRES, BUILT,
                                  "build-asan", env=ENDS_UNSEARCHED))
    return found + quick_stages()


def chosen(every, names):
    """The named stages and what they need; when none is named, all but those only made to be named."""
    if not names:
        return [stage for stage in every if not stage.named_only]
    by_name = {stage.name: stage for stage in every}
    wanted = set()
    todo = []
    for name in names:
        todo += [f"{name}-{part}" for part in range(1, PARTS[name] + 1)] if name in PARTS else [name]
    while todo:
        name = todo.pop()
        if name not in by_name:
            sys.exit(f"no stage {name}; there are: {' '.join(by_name)}")
        if name not in wanted:
            wanted.add(name)
            todo += by_name[name].needs
    return [stage for stage in every if stage.name in wanted]


def start(stage):
    """Starts a stage, in a process group of its own, so that it can be ended as a whole."""
    os.makedirs(LOGS, exist_ok=True)
    stage.started = time.monotonic()
    with open(stage.log, "wb") as log:
        stage.process = subprocess.Popen(stage.command, stdout=log, stderr=subprocess.STDOUT,
                                         stdin=subprocess.DEVNULL, start_new_session=True,
                                         env={**os.environ, **temporary_folder(), **SANITIZER_ENV,
                                              # Python compiles a file once for all stages, beside the logs.
                                              "PYTHONDONTWRITEBYTECODE": "",
                                              "PYTHONPYCACHEPREFIX": os.path.abspath(COMPILED),
                                              "WEIR_TEST_TIMES": os.path.abspath(stage.times), **stage.env})


def has_ended(stage):
    """Whether its process has, and what that and all it waited for took of the cores."""
    pid, status, used = os.wait4(stage.process.pid, os.WNOHANG)
    if not pid:
        return False
    stage.process.returncode = os.waitstatus_to_exitcode(status)
    stage.cpu += used.ru_utime + used.ru_stime
    return True


def read_log(stage):
    """What a stage has printed."""
    with open(stage.log, encoding="utf-8", errors="replace") as log:
        return log.read()


def counted_by_pytest(said):
    """(passed, failed, skipped) of the summary that pytest ends with."""
    summary = (re.findall(r"^=*\s*(\d+ \w+(?:, \d+ \w+)*) in [\d.]+s", said, re.MULTILINE) or [""])[-1]
    found = {word.rstrip("s"): int(number) for number, word in re.findall(r"(\d+) (\w+)", summary)}
    return found.get("passed", 0), found.get("failed", 0) + found.get("error", 0), found.get("skipped", 0)


def program_outputs(path):
    """What each program of a meson log has printed."""
    with open(path, encoding="utf-8") as log:
        return [program.get("stdout", "") + program.get("stderr", "") for program in map(json.loads, log)]


def counted_by_meson(path):
    """(passed, failed, skipped) of the tests inside the programs of a meson log; a program that does not say
    how many it has is one. What a program leaves out by itself, for the store it runs on, is neither."""
    passed = failed = skipped = 0
    with open(path, encoding="utf-8") as log:
        for line in log:
            program = json.loads(line)
            said = program.get("stdout", "") + program.get("stderr", "")
            inside = {word: sum(int(n) for n in re.findall(rf"\[ +{word} +\] (\d+) test", said))
                      for word in ("PASSED", "FAILED")}
            good = program["result"] in ("OK", "EXPECTEDFAIL")
            passed += inside["PASSED"] if inside["PASSED"] or not good else 1
            failed += 0 if good or program["result"] == "SKIP" else max(1, inside["FAILED"])
            skipped += len(SKIPPED_LINE.findall(said)) or program["result"] == "SKIP"
    return passed, failed, skipped


SKIPPED_LINE = re.compile(r"^skipped: (.*)$", re.MULTILINE)


def count(stage):
    """(passed, failed, skipped) of a stage that has ended. A stage without tests of its own is one."""
    if stage.result == "skipped":
        return 0, 0, 1
    bad = stage.result == "FAILED"
    try:
        found = (counted_by_pytest(read_log(stage)) if stage.tests == "pytest"
                 else counted_by_meson(stage.tests) if stage.tests else (0 if bad else 1, 0, 0))
    except OSError:
        found = 0, 0, 0
    return found[0], max(found[1], 1) if bad else found[1], found[2]


def finish(stage):
    """Takes the result of a stage that has ended; True when it did not fail."""
    stage.seconds = time.monotonic() - stage.started
    code = stage.process.returncode
    said = read_log(stage)
    if stage.tests not in (None, "pytest") and os.path.exists(stage.tests):
        said += "\n".join(program_outputs(stage.tests))
    stage.skipped = SKIPPED_LINE.findall(said)
    if code == SKIPPED:
        stage.skipped = [f"{stage.name}: {(said.strip().splitlines() or [''])[-1]}"]
    stage.result = "ok" if code == 0 else "FAILED" if code != SKIPPED or STRICT else "skipped"
    print(f"{stage.name:16} {stage.result:7} {stage.seconds:6.1f} s", flush=True)
    return stage.result != "FAILED"


def end_all(running):
    """Ends the stages still under way."""
    for stage in running:
        stage.result = "ended"
        stage.seconds = time.monotonic() - stage.started
        os.killpg(stage.process.pid, signal.SIGTERM)
    for stage in running:
        try:
            stage.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(stage.process.pid, signal.SIGKILL)
            stage.process.wait()


def idle_seconds():
    """How long the cores had nothing to do since the machine started, all of them added up."""
    with open("/proc/stat", encoding="ascii") as file:
        return int(file.readline().split()[4]) / os.sysconf("SC_CLK_TCK")


class Idle:
    """The cores that the stages under way leave, from where it is made."""

    def __init__(self):
        self.since, self.idle = time.monotonic(), idle_seconds()

    def cores(self):
        """0 until it is sure, and after each look: the next one is over as long again."""
        seconds = time.monotonic() - self.since
        if seconds < IDLE_SECONDS:
            return 0.0
        before, self.since, self.idle = self.idle, time.monotonic(), idle_seconds()
        return (self.idle - before) / seconds


def next_to_start(waiting, running, passed, idle=0.0):
    """The first waiting stage whose needs are met and for which cores are free."""
    free = max(CORES - sum(stage.cores for stage in running), idle)
    for stage in waiting:
        if (stage.cores <= free or not running) and all(need in passed for need in stage.needs):
            return stage
    return None


def run(todo, keep_going):
    """Runs the stages; returns those that failed."""
    waiting, running, passed, failed, idle = list(todo), [], set(), [], Idle()
    try:
        while running or next_to_start(waiting, running, passed):
            stage = next_to_start(waiting, running, passed, idle.cores())
            while stage:
                waiting.remove(stage)
                start(stage)
                running.append(stage)
                idle = Idle()
                stage = next_to_start(waiting, running, passed)
            time.sleep(0.05)
            for stage in [s for s in running if has_ended(s)]:
                running.remove(stage)
                idle = Idle()
                if finish(stage):
                    passed.add(stage.name)
                    continue
                failed.append(stage)
                if not keep_going:
                    return failed
    finally:
        end_all(running)
    return failed


def report(todo, failed, seconds):
    """What failed, the table of seconds, what was skipped, and the counts as the last line."""
    for stage in failed:
        print(f"\n--- {stage.name}: {' '.join(stage.command)}\n{read_log(stage)[-20000:]}")
    print("\nstage            result   seconds    cores")
    for stage in todo:
        shown = "" if stage.seconds is None else f"{stage.seconds:7.1f}  {stage.cpu:7.1f}"
        print(f"{stage.name:16} {stage.result:8} {shown}")
    busy = sum(stage.cpu for stage in todo)
    print(f"{'all':16} {'FAILED' if failed else 'ok':8} {seconds:7.1f}  {busy:7.1f}")
    for stage in todo:
        for what in stage.skipped:
            print(f"skipped: {what} ({stage.name})")
    counts = [count(stage) for stage in todo if stage.result in ("ok", "FAILED", "skipped")]
    passed, bad, skipped = (sum(numbers) for numbers in zip(*counts, (0, 0, 0)))
    print(f"{passed} passed, {bad} failed, {skipped} skipped")


def keep_times():
    """Writes what the files of the last run took to the table that parts are made by."""
    found = {}
    for path in [TIMES, *sorted(glob.glob(os.path.join(LOGS, "*.times")))]:
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for line in file:
                    store, name, seconds = line.split("\t")
                    if os.path.exists(name):
                        found[store, name] = seconds
    with open(TIMES, "w", encoding="utf-8") as file:
        file.writelines("\t".join((*key, found[key])) for key in sorted(found))


def named(arguments):
    """The names of stages that the command line asks for; --quick stands for its own."""
    quick = ["conformance", *(stage.name for stage in quick_stages())] if "--quick" in arguments else []
    return quick + [name for name in arguments if name not in ("--quick", "-k")]


def main():
    """Command line."""
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    started = time.monotonic()
    names = sys.argv[1:]
    if names == ["--times"]:
        keep_times()
        return
    todo = chosen(stages(), named(names))
    failed = run(todo, keep_going="-k" in names)
    report(todo, failed, time.monotonic() - started)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
