"""Fixtures of every black-box test. What they stand on: tests/harness/README.md.

weir        one server for the whole run: no rate limit, catalog work 100 times faster, two runners
module_weir a factory for servers with settings of their own that live as long as the module; whoever asks for
            the same options there gets the same server
fresh_weir  a factory for a test that needs settings of its own, restarts or kills
client      a new client of `weir`: (client_id, api_key)
receiver    a receiver of webhooks that answers 200 until told otherwise
long_run    True under make test-long; tests scale their counts by it

A test has 300 seconds, or @pytest.mark.limit(seconds). @pytest.mark.long runs only in make
test-long, @pytest.mark.tsan also against the ThreadSanitizer build.

--store postgres (or WEIR_TEST_STORE=postgres) gives every server a database of its own in a PostgreSQL
started for the run. @pytest.mark.sqlite_only("why") is left out then, @pytest.mark.postgres_only else;
@pytest.mark.any_store, in which the store plays no part, runs with PostgreSQL in make test-long only.
--part 1/3 runs a third of the files, by the seconds that tests/times.tsv says they take, so that several
runs beside each other do all and end together.

A test is skipped for what the machine does not allow (harness/machine.py); each is named at the end, and
fails with WEIR_TEST_STRICT=1. What another run of the suite does (long, the other store) is no skip: it is
left out.
"""
import collections
import os
import resource
import signal
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import machine  # noqa: E402  (needs the path above)
from harness.pace import Stopwatch  # noqa: E402
from harness.postgres import NoPostgres  # noqa: E402
from harness.receiver import Receiver  # noqa: E402
from harness.weir_server import REPOSITORY, Weir, is_sanitized, server_environment  # noqa: E402

TEST_SECONDS_MAX = 300  # nothing is judged by it: it ends what hangs, on a busy machine too
DESCRIPTORS = 20000  # hundreds of connections are of this process; a plain user has 1,024 at first
LONG = os.environ.get("WEIR_TEST_LONG") == "1"
STRICT = os.environ.get("WEIR_TEST_STRICT") == "1"
# The search for leaks is a quarter of what a server's start and end cost: at commit size those that tests
# share have it, and get every kind of call.
ENDS_UNSEARCHED = {} if LONG else {"ASAN_OPTIONS": ":".join(
    (server_environment()["ASAN_OPTIONS"], "detect_leaks=0"))}
KEEP = os.environ.get("WEIR_TEST_KEEP") == "1"
STORE_VARIABLE = "WEIR_TEST_STORE"
TIMES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "times.tsv")
UNKNOWN_SECONDS = 0.6  # of each test of a file that the table does not have
taken = {}  # seconds by file
running = []  # servers of the tests under way, for the report of a failure


def pytest_addoption(parser):
    """Which store the servers use."""
    parser.addoption("--store", choices=("sqlite", "postgres"),
                     default=os.environ.get(STORE_VARIABLE, "sqlite"),
                     help="the store of every server that does not say another")
    parser.addoption("--part", default="1/1", help="I/N: the I-th of N parts, by files")


def have_descriptors():
    """As many as the machine allows, up to what is enough."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def pytest_configure(config):
    """Names the marks, so that a misspelt one is an error; readies the process."""
    os.environ[STORE_VARIABLE] = config.getoption("--store")  # harness/weir_server.py reads it
    have_descriptors()
    config.addinivalue_line("markers", "sqlite_only(why): not with --store postgres")
    config.addinivalue_line("markers", "postgres_only: only with --store postgres")
    config.addinivalue_line("markers", "any_store: with --store postgres only in make test-long")
    config.addinivalue_line("markers", "release_only(why): not with a sanitizer; a stage of make test has it")
    config.addinivalue_line("markers", "long: only in make test-long")
    config.addinivalue_line("markers", "tsan: also runs against the ThreadSanitizer build")
    config.addinivalue_line("markers", "limit(seconds): how long the test may take")


def seconds_of_files(store):
    """What the files took, by the table that `tools/run_tests.py --times` keeps."""
    found = {}
    if os.path.exists(TIMES):
        with open(TIMES, encoding="utf-8") as table:
            for line in table:
                of, path, seconds = line.split("\t")
                if of == store:
                    found[path] = float(seconds)
    return found


def keep_part(config, items):
    """Leaves the files of our part; the others are not even reported as left out. The longest file goes to
    the part with the least to do, then the next: every run of a part comes to the same parts."""
    part, parts = (int(number) for number in config.getoption("--part").split("/"))
    assert 1 <= part <= parts, "--part is I/N, I from 1 to N"
    known = seconds_of_files(config.getoption("--store"))
    tests = collections.Counter(map(file_of, items))
    seconds = {path: known.get(path, 1 + UNKNOWN_SECONDS * count) for path, count in tests.items()}
    load, chosen = [0.0] * parts, {}
    for path in sorted(seconds, key=lambda path: (-seconds[path], path)):
        chosen[path] = load.index(min(load))
        load[chosen[path]] += seconds[path]
    items[:] = [item for item in items if chosen[file_of(item)] == part - 1]


def file_of(item):
    """The path of a test's file, from the top of the repository."""
    return os.path.relpath(item.path, REPOSITORY)


def left_out(item, on_postgres):
    """Whether this run is not the one that has the test."""
    return (not LONG and item.get_closest_marker("long")
            or on_postgres and item.get_closest_marker("sqlite_only")
            or on_postgres and not LONG and item.get_closest_marker("any_store")
            or not on_postgres and item.get_closest_marker("postgres_only")
            or item.get_closest_marker("release_only") and is_sanitized())


def pytest_collection_modifyitems(config, items):
    """Leaves out other parts, the long tests at commit size, and those of the other store."""
    on_postgres = config.getoption("--store") == "postgres"
    out = [item for item in items if left_out(item, on_postgres)]
    items[:] = [item for item in items if not left_out(item, on_postgres)]
    config.hook.pytest_deselected(items=out)
    keep_part(config, items)


def pytest_sessionfinish(session):
    """Writes how long each file took where WEIR_TEST_TIMES says."""
    if os.environ.get("WEIR_TEST_TIMES"):
        with open(os.environ["WEIR_TEST_TIMES"], "w", encoding="utf-8") as file:
            for path in sorted(taken):
                file.write(f"{session.config.getoption('--store')}\t{path}\t{taken[path]:.1f}\n")


def pytest_runtest_logreport(report):
    """Adds up the seconds of each file."""
    path = os.path.relpath(os.path.join(os.path.dirname(TIMES), report.nodeid.split("::")[0]), REPOSITORY)
    taken[path] = taken.get(path, 0.0) + report.duration


def pytest_terminal_summary(terminalreporter):
    """Names every skipped test and the reason, one line each: tools/run_tests.py shows them at its end."""
    for report in terminalreporter.stats.get("skipped", []):
        why = report.longrepr[2].removeprefix("Skipped: ")
        terminalreporter.line(f"skipped: tests/{report.nodeid}: {why}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Adds the end of each server's log to the report of a failed test; one that found nobody to run
    PostgreSQL is skipped; with WEIR_TEST_STRICT=1 a skipped test has failed."""
    report = (yield).get_result()
    if report.failed and call.excinfo.errisinstance(NoPostgres) and machine.cannot("second_user"):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, machine.cannot("second_user"))
    if STRICT and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome, report.longrepr = "failed", f"WEIR_TEST_STRICT=1: {report.longrepr[2]}"
    if report.failed:
        for server in running:
            report.sections.append((f"log of {server.url}", server.log_tail(8)))


@pytest.fixture(autouse=True)
def time_limit(request):
    """Ends a test that hangs, with its traceback."""
    mark = request.node.get_closest_marker("limit")
    seconds = mark.args[0] if mark else TEST_SECONDS_MAX * (10 if LONG else 1)

    def too_late(_signal, _frame):
        if not watch.is_over(seconds):  # as a quiet machine has them
            signal.alarm(max(1, int(seconds - watch.quiet())))
            return
        raise TimeoutError(f"the test took more than {seconds} s")

    watch = Stopwatch()
    previous = signal.signal(signal.SIGALRM, too_late)
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


@pytest.fixture(scope="session")
def long_run():
    """True under make test-long."""
    return LONG


def start_server(**options):
    """A server that the report of a failure knows about."""
    server = Weir(**options)
    running.append(server)
    return server


def end_server(server):
    """Stops and judges a server, and frees everything whatever the verdict."""
    keep = KEEP
    try:
        server.stop()
    except BaseException:
        keep = True
        raise
    finally:
        running.remove(server)
        server.close(keep=keep)


def end_all(servers):
    """Ends every one of them, then fails with the first fault."""
    faults = []
    for server in servers:
        try:
            end_server(server)
        except AssertionError as fault:
            faults.append(fault)
    if faults:
        raise faults[0]


@pytest.fixture(scope="session")
def weir():
    """The server that most tests share, each with its own clients; its end is part of the run's verdict."""
    server = start_server(settings={"runner.processes": 2})
    try:
        server.start()
    except BaseException:
        running.remove(server)
        server.close()
        raise
    yield server
    end_server(server)


@pytest.fixture(scope="module", autouse=True)
def no_report_of_a_sanitizer():
    """What went wrong in a server that others go on with is told at the end of the module it happened in."""
    yield
    for server in running:
        server.assert_no_sanitizer_report()


@pytest.fixture
def client(weir):  # pylint: disable=redefined-outer-name
    """A new client of `weir`: (client_id, api_key)."""
    return weir.new_client()


@pytest.fixture
def receiver():
    """One that answers 200 until told otherwise."""
    with Receiver() as made:
        yield made


@pytest.fixture
def fresh_weir():
    """A factory: fresh_weir(settings={...}, args=[...], start=False) gives a Weir of its own."""
    made = []

    def make(start=True, env=None, **options):
        server = start_server(env=ENDS_UNSEARCHED | (env or {}), **options)
        made.append(server)
        return server.start() if start else server

    yield make
    end_all(made)


@pytest.fixture(scope="module")
def module_weir():
    """A factory for servers that live as long as the module, one for each options that are asked for."""
    made = {}

    def make(**options):
        wanted = repr(options)
        if wanted not in made:
            made[wanted] = start_server(**options)
            made[wanted].start()
        return made[wanted]

    yield make
    end_all(made.values())
