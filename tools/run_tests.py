#!/usr/bin/python3
"""make test: the stages of the whole suite, some at a time, and a table of seconds at the end: how long each
took, and how long it kept a core busy.

A stage is a command, the stages it needs, and how many of the machine's lanes it fills: a black-box suite
mostly waits and uses one, what keeps both cores busy three; two cores do four of the first at a time. The
first stage that fails ends the run; its output is shown. Every stage's output is kept in build-check/logs/.

A suite over the API that has at most two failed tests looks at those a second time, by themselves: three
stages beside each other on two cores make some waits too short. A test that passes then is named at the
end as unsteady, and is to be mended. What a server is found guilty of when it stops (a sanitizer's report,
a leak, a crash) is no failed test but an error and gets no second look; nor do the fault suites.

    tools/run_tests.py              everything
    tools/run_tests.py unit api     these stages and what they need; api is api-1 to api-3
    tools/run_tests.py -k ...       goes on after a failure with all that does not need what failed
"""
import glob
import os
import re
import signal
import subprocess
import sys
import time

PYTHON = "/usr/bin/python3"
MESON = "/usr/bin/meson"
LANES = 4
BUSY = 3  # lanes of a stage that uses both cores
LOGS = os.path.join("build-check", "logs")
LONG = os.environ.get("WEIR_TEST_LONG") == "1"
FUZZ_SECONDS = "60" if LONG else "1"
PYTEST = [PYTHON, "-m", "pytest", "-q", "--maxfail=3", "--durations=5"]
LOOKED_AT_AGAIN_MAX = 2  # below --maxfail: then every other test has run

# What also runs on PostgreSQL at commit size: all that speaks to a server, but for what has little to do with
# where jobs are stored. make test-long runs every black-box test on it.
OF_NO_STORE = [f"tests/{name}.py" for name in (
    "api/test_auth", "api/test_cli", "api/test_config", "api/test_errors", "api/test_http_semantics",
    "api/test_json_corpus", "api/test_logs", "api/test_submit_values", "api/test_tokens", "api/test_traces",
    "api/test_cli_run", "api/test_cli_top", "api/test_engine_contract", "api/test_policy_point",
    "api/test_runs_tokens", "webhooks/test_signatures",
    # These have, and take long: the rest is enough to see that a store is not as the other.
    "api/test_deploy", "api/test_failure_cases", "api/test_limits", "api/test_metrics", "api/test_ops",
    "api/test_pressure", "api/test_signals_authorization", "api/test_store_copy", "api/test_topology",
    "api/test_topology_gate", "api/test_webhook_delivery",
    "scenarios/test_big_plans", "scenarios/test_completion", "scenarios/test_done", "scenarios/test_load_mix",
    "scenarios/test_non_goals", "webhooks/test_broken_receivers")]
SIMULATOR = "tests/api/test_simulate.py"  # most of it is about its own table and flags
ON_POSTGRES = ["tests/api", "tests/scenarios", "tests/webhooks", "tests/harness/test_postgres.py",
               "tests/faults/test_postgres_start.py", "tests/faults/test_postgres_leases.py",
               "tests/faults/test_postgres_listener.py",
               *("--ignore=" + path for path in OF_NO_STORE + [SIMULATOR])]
# What needs a server as quick as people have it. In make test-long they run with sanitizers, too.
QUICK_ONLY = ["tests/faults/test_storm.py", "tests/faults/test_overload.py"]
# What is installed has a tighter sandbox than sanitized builds have: a little of everything, inside it.
ON_RELEASE = QUICK_ONLY + [f"tests/{name}.py" for name in (
    "faults/test_sandbox", "faults/test_service", "faults/test_restart", "api/test_policy_point",
    "api/test_store_copy", "api/test_runs_execution", *(() if not LONG else (
        "faults/test_supervision", "faults/test_disk_full", "api/test_webhook_delivery", "api/test_tokens",
        "api/test_traces")))]
BUILT = ["build-asan", "build-cuts"]  # the second configures the release build once more
PARTS = {"api": 3, "faults": 2, "postgres-api": 2}  # of a long black-box suite, run beside each other

# Of what can go wrong, a part on PostgreSQL at commit size.
FAULTS_ON_POSTGRES = ["tests/faults/test_postgres_faults.py", "tests/faults/test_table_sizes.py",
                      SIMULATOR + "::test_a_seed_repeats_the_sequence"] + [
    f"tests/faults/{test}" for test in (
        "test_kill.py::test_kill_of_the_whole_family_under_load_loses_nothing",
        "test_kill.py::test_verify_sees_a_row_that_is_missing",
        "test_run_kills.py::test_two_nodes_lose_no_event_and_no_signal_when_one_is_killed",
        "test_run_kills.py::test_the_judge_and_verify_see_an_event_that_is_missing",
        "test_restart.py::test_a_schedule_survives_a_kill_and_is_kept",
        "test_restart.py::test_the_queue_survives_kill_9_in_its_order",
        "test_restart.py::test_idempotency_holds_over_a_restart",
        "test_restart.py::test_a_dead_workers_lease_ends_after_a_restart_of_core_too",
        "test_under_pressure.py::test_a_retry_waits_at_shed_and_goes_on_afterwards",
        "test_worker_loss.py::test_workers_lost_before_the_start_give_their_jobs_back",
        "test_worker_loss.py::test_a_frozen_worker_that_wakes_up_is_not_believed")]

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
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1:detect_leaks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}


class Stage:
    """One command of the run."""

    def __init__(self, name, command, needs=(), lanes=1, env=None, looks=1):
        self.name, self.command, self.needs, self.lanes = name, command, tuple(needs), lanes
        self.env, self.looks = env or {}, looks
        self.unsteady = []
        self.cpu = 0.0
        self.process = None
        self.started = 0.0
        self.seconds = None
        self.result = "not run"

    @property
    def log(self):
        """Where its output goes."""
        return os.path.join(LOGS, self.name + ".log")


def make(target):
    """A make target of this project as a command."""
    return ["make", "--no-print-directory", "-s", target]


def meson_test(build_dir, *arguments):
    """`meson test` without building; slower limits, since sanitized code is slow."""
    slower = "40" if LONG else "4"
    return [MESON, "test", "-C", build_dir, "--no-rebuild", "--print-errorlogs",
            "--timeout-multiplier", slower, *arguments]


def pytest_files(folder, holding=""):
    """The black-box tests of a folder of tests/ that hold a text."""
    found = []
    for path in glob.glob(os.path.join("tests", folder, "**", "test_*.py"), recursive=True):
        with open(path, encoding="utf-8") as file:
            if holding in file.read():
                found.append(path)
    return found


def in_parts(name, command, env):
    """A black-box suite as stages that run beside each other."""
    parts = PARTS[name]
    return [Stage(f"{name}-{part}", command + ["--part", f"{part}/{parts}"], BUILT,
                  env=env, looks=2 if "api" in name else 1) for part in range(1, parts + 1)]


def stages():
    """Every stage, in the order they are tried."""
    asan = {"WEIR_BIN": os.path.abspath("build-asan/weir")}
    tsan = {"WEIR_BIN": os.path.abspath("build-tsan/weir")}
    slow = ["tests/" + d for d in ("faults", "scenarios") if pytest_files(d)]
    ignore = ["--ignore=" + d for d in slow]
    on_postgres = PYTEST + ["--store", "postgres"] + (["tests"] if LONG else ON_POSTGRES)
    short = [] if LONG else ["--no-suite", "long"]
    found = [
        Stage("check", ["tools/check"]),
        Stage("conformance", [PYTHON, "tools/conformance.py"]),
        Stage("build-asan", make("build-asan"), lanes=BUSY),
        Stage("build-release", make("build"), lanes=BUSY),
        Stage("build-cuts", make("build-cuts"), ["build-release"], lanes=BUSY),
        Stage("unit", meson_test("build-asan", "--no-suite", "postgres"), ["build-asan"], lanes=BUSY),
        Stage("postgres", ["tools/with_postgres"] + meson_test("build-asan", "--suite", "postgres", *short),
              ["build-asan"], lanes=BUSY),
    ]
    if not LONG:
        found.append(Stage("postgres-faults", PYTEST + ["--store", "postgres"] + FAULTS_ON_POSTGRES,
                           BUILT, env=asan))
    if slow:
        left_out = [] if LONG else ["--ignore=" + path for path in QUICK_ONLY]
        found += in_parts("faults", PYTEST + slow + left_out, asan)
    found += [
        *in_parts("api", PYTEST + ["tests"] + ignore, asan),
        Stage("release", PYTEST + ON_RELEASE, BUILT,
              env={"WEIR_BIN": os.path.abspath("build/weir")}),
        *in_parts("postgres-api", on_postgres, asan),
        Stage("cuts", meson_test("build", "--suite", "cuts"), ["build-cuts"], lanes=2),
        Stage("build-tsan", make("build-tsan"), lanes=BUSY),
        Stage("tsan", meson_test("build-tsan", "--suite", "tsan"), ["build-tsan"]),
    ]
    threaded = pytest_files("", holding="mark.tsan")
    if threaded:
        found.append(Stage("tsan-api", PYTEST + ["-m", "tsan"] + threaded, ["build-tsan"],
                           env=tsan))
        found.append(Stage("tsan-postgres", PYTEST + ["--store", "postgres", "-m", "tsan"] + threaded,
                           ["build-tsan"], env=tsan))
    if glob.glob("tests/fuzz/*.c"):
        found += [
            Stage("build-fuzz", make("build-fuzz"), lanes=BUSY),
            Stage("fuzz", [PYTHON, "tools/fuzz.py", "--seconds", FUZZ_SECONDS], ["build-fuzz"],
                  lanes=BUSY),
        ]
    return found


def chosen(every, names):
    """The named stages and what they need; all when none is named."""
    if not names:
        return every
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


def spawn(stage, command, mode="wb"):
    """Runs a command of a stage in a process group of its own, so that it can be ended as a whole."""
    with open(stage.log, mode) as log:
        stage.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT,
                                         stdin=subprocess.DEVNULL, start_new_session=True,
                                         env={**os.environ, **temporary_folder(), **SANITIZER_ENV,
                                              **stage.env})


def start(stage):
    """Starts a stage."""
    os.makedirs(LOGS, exist_ok=True)
    stage.started = time.monotonic()
    spawn(stage, stage.command)


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


def look_again(stage):
    """Starts the second look at the few tests that failed; False when there is none."""
    if stage.process.returncode == 0 or stage.looks < 2 or stage.unsteady:
        return False
    said = read_log(stage)
    failed, errors = (re.findall(rf"^{word} (tests/\S+::.+?)(?: - .*)?$", said, re.MULTILINE)
                      for word in ("FAILED", "ERROR"))
    if errors or "Sanitizer" in said or not 0 < len(failed) <= LOOKED_AT_AGAIN_MAX:
        return False
    stage.unsteady = failed
    options = [word for word in stage.command if not word.startswith(("tests", "--ignore"))]
    if "--part" in options:  # the names say it all
        del options[options.index("--part"):options.index("--part") + 2]
    spawn(stage, options + failed, mode="ab")
    return True


def finish(stage):
    """Takes the result of a stage that has ended; True when it passed."""
    stage.seconds = time.monotonic() - stage.started
    passed = stage.process.returncode == 0
    stage.result = "ok" if passed else "FAILED"
    print(f"{stage.name:16} {stage.result:7} {stage.seconds:6.1f} s", flush=True)
    return passed


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


def next_to_start(waiting, running, passed):
    """The first waiting stage whose needs are met and for which lanes are free."""
    free = LANES - sum(stage.lanes for stage in running)
    for stage in waiting:
        if stage.lanes <= free and all(need in passed for need in stage.needs):
            return stage
    return None


def run(todo, keep_going):
    """Runs the stages; returns those that failed."""
    waiting, running, passed, failed = list(todo), [], set(), []
    try:
        while running or next_to_start(waiting, running, passed):
            stage = next_to_start(waiting, running, passed)
            while stage:
                waiting.remove(stage)
                start(stage)
                running.append(stage)
                stage = next_to_start(waiting, running, passed)
            time.sleep(0.05)
            for stage in [s for s in running if has_ended(s)]:
                if look_again(stage):
                    continue
                running.remove(stage)
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
    """What failed, the table of seconds, and the tests that needed a second look."""
    for stage in failed:
        print(f"\n--- {stage.name}: {' '.join(stage.command)}\n{read_log(stage)[-20000:]}")
    print("\nstage            result   seconds    cores")
    for stage in todo:
        shown = "" if stage.seconds is None else f"{stage.seconds:7.1f}  {stage.cpu:7.1f}"
        print(f"{stage.name:16} {stage.result:8} {shown}")
    busy = sum(stage.cpu for stage in todo)
    print(f"{'all':16} {'FAILED' if failed else 'ok':8} {seconds:7.1f}  {busy:7.1f}")
    for stage in todo:
        for test in stage.unsteady if stage.result == "ok" else []:
            print(f"unsteady: {test} ({stage.name})")


def main():
    """Command line."""
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    started = time.monotonic()
    names = sys.argv[1:]
    todo = chosen(stages(), [name for name in names if name != "-k"])
    failed = run(todo, keep_going="-k" in names)
    report(todo, failed, time.monotonic() - started)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
