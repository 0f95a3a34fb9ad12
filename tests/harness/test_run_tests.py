"""What tools/run_tests.py says at its end, on small stages with planted results; what conftest.py makes of a
skipped test, and of parts."""
import json
import os
import subprocess
import sys

import pytest

from harness.weir_server import REPOSITORY

pytestmark = pytest.mark.sqlite_only("no server runs here")
TESTS = os.path.join(REPOSITORY, "tests")
SUITE = """
import pytest
def test_good(): pass
def test_once_in_a_while():
    import os
    seen = os.path.exists("seen")
    open("seen", "w").close()
    assert seen, "a second look would pass"
@pytest.mark.skip(reason="no such thing here")
def test_of_a_thing(): pass
@pytest.mark.long
def test_of_the_night(): pass
"""


@pytest.fixture(name="runner")
def fixture_runner(monkeypatch, tmp_path):
    """tools/run_tests.py as a module, in a folder of its own."""
    monkeypatch.syspath_prepend(os.path.join(REPOSITORY, "tools"))
    monkeypatch.delitem(sys.modules, "run_tests", raising=False)
    monkeypatch.delenv("WEIR_TEST_STRICT", raising=False)
    monkeypatch.delenv("WEIR_TEST_LONG", raising=False)
    monkeypatch.setenv("PYTHONPATH", TESTS)
    import run_tests  # pylint: disable=import-outside-toplevel
    monkeypatch.setattr(run_tests.os, "chdir", lambda path: None)
    monkeypatch.setattr(run_tests, "LOGS", str(tmp_path / "logs"))
    (tmp_path / "test_planted.py").write_text(SUITE, encoding="ascii")
    return run_tests


def run(runner, monkeypatch, capsys, *stages):
    """(exit code, lines printed) of a run of these stages."""
    monkeypatch.setattr(runner, "stages", lambda: list(stages))
    monkeypatch.setattr(sys, "argv", ["run_tests.py", "-k"])
    with pytest.raises(SystemExit) as ended:
        runner.main()
    return ended.value.code, capsys.readouterr().out.splitlines()


def planted(runner, tmp_path, *arguments):
    """The stage of SUITE, run as black-box tests are."""
    return runner.Stage("planted", [*runner.PYTEST, "-p", "conftest", "-p", "no:cacheprovider",
                                    *arguments, str(tmp_path / "test_planted.py")], tests="pytest")


def test_the_last_line_counts_and_what_was_skipped_is_named(runner, monkeypatch, capsys, tmp_path):
    """A test that would pass at a second look has failed. What belongs to another run is not counted."""
    monkeypatch.setattr(runner, "PYTEST", [*runner.PYTEST, "--rootdir", str(tmp_path)])
    stage = planted(runner, tmp_path)
    stage.command = ["env", "-C", str(tmp_path), *stage.command]
    code, lines = run(runner, monkeypatch, capsys, stage)
    assert code == 1 and lines[-1] == "1 passed, 1 failed, 1 skipped"
    assert [line for line in lines if line.startswith("skipped: ") and "test_of_a_thing" in line
            and "no such thing here" in line and line.endswith("(planted)")]


def test_with_strict_whatever_is_skipped_has_failed(runner, monkeypatch, capsys, tmp_path):
    """A test, and a whole stage that ends with 77; without it the stage is skipped and the run passes."""
    skips = ["sh", "-c", "echo no such machine; exit 77"]
    code, lines = run(runner, monkeypatch, capsys, runner.Stage("whole", skips))
    assert code == 0 and lines[-1] == "0 passed, 0 failed, 1 skipped"
    assert "skipped: whole: no such machine (whole)" in lines
    monkeypatch.setenv("WEIR_TEST_STRICT", "1")
    monkeypatch.setattr(runner, "STRICT", True)
    code, lines = run(runner, monkeypatch, capsys, runner.Stage("whole", skips),
                      planted(runner, tmp_path, "-k", "thing"))
    assert code == 1 and lines[-1] == "0 passed, 2 failed, 0 skipped"


def test_tests_inside_c_programs_are_counted(runner, tmp_path):
    """By what cmocka says on stderr; a program that says nothing is one test, and one that crashed failed."""
    cases = [("OK", "[  PASSED  ] 12 test(s).\n"), ("OK", ""), ("TIMEOUT", ""),
             ("FAIL", "[  PASSED  ] 3 test(s).\n[  FAILED  ] 2 test(s), listed below:\n"),
             ("OK", "skipped: trace_another: no tracing here\n[  PASSED  ] 4 test(s).\n")]
    log = tmp_path / "log.json"
    log.write_text("".join(json.dumps({"name": "x", "result": result, "stderr": said}) + "\n"
                           for result, said in cases), encoding="ascii")
    assert runner.counted_by_meson(str(log)) == (12 + 1 + 3 + 4, 1 + 2, 1)


def test_a_failed_stage_without_tests_of_its_own_counts(runner, monkeypatch, capsys):
    """A build that breaks is a failure; one that never says how many tests it had, too."""
    code, lines = run(runner, monkeypatch, capsys, runner.Stage("build", ["false"]),
                      runner.Stage("crashed", ["false"], tests="pytest"), runner.Stage("check", ["true"]))
    assert code == 1 and lines[-1] == "1 passed, 2 failed, 0 skipped"


def test_cores_that_stand_idle_are_given_to_the_next_stage(runner, monkeypatch):
    """What the stages under way were measured at counts until it is sure that they need less."""
    busy, small, large = (runner.Stage(name, ["true"], cores=cores)
                          for name, cores in (("busy", runner.CORES), ("small", 0.4), ("large", 1.0)))
    assert runner.next_to_start([large, small], [busy], set()) is None
    assert runner.next_to_start([large, small], [busy], set(), idle=0.3) is None
    assert runner.next_to_start([large, small], [busy], set(), idle=0.5) is small
    assert runner.next_to_start([large, small], [], set(), idle=0.0) is large
    now = [100.0]
    monkeypatch.setattr(runner.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(runner, "idle_seconds", lambda: now[0] / 2)
    idle = runner.Idle()
    now[0] += runner.IDLE_SECONDS - 0.1
    assert idle.cores() == 0
    now[0] += 0.1
    assert idle.cores() == pytest.approx(0.5)
    assert idle.cores() == 0


def test_parts_together_hold_every_file_once():
    listed = []
    for part in (1, 2, 3):
        said = subprocess.run([sys.executable, "-m", "pytest", "--collect-only", "-q", "--part", f"{part}/3",
                               os.path.join(TESTS, "harness"), os.path.join(TESTS, "bench")], check=True,
                              capture_output=True, text=True, cwd=REPOSITORY).stdout
        listed.append({line.split("::")[0] for line in said.splitlines() if "::" in line})
        assert listed[-1]
    assert sum(map(len, listed)) == len(set.union(*listed))
