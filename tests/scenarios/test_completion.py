"""What has to pass before work counts as complete: format, a build without warnings, tests, all at once."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from harness.weir_server import REPOSITORY

pytestmark = pytest.mark.sqlite_only("no server runs here")
PLANTED = "int planted(void);\nint planted(void)\n{\n    return 1;\n}\n"
RELEASE = os.path.join(REPOSITORY, "build")


def run(command, folder, **options):
    """(exit code, output)"""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120,
                          **options)
    return done.returncode, done.stdout + done.stderr


def recipe(target):
    """What make would run for a target, without what installs packages."""
    code, said = run(["make", "-n", "--no-print-directory", target], REPOSITORY)
    assert code == 0, said
    return [line for line in said.splitlines() if "tools/setup" not in line]


def test_the_format_check_passes_and_sees_a_planted_line(tmp_path):
    """[TOP-105] The target is the checker, which finds nothing here: so says tools/check, a stage beside this
    one. In a tree of its own it passes a file as `make fmt` leaves it and refuses the same file with one
    space more."""
    assert recipe("fmt-check") == ["tools/check_format"]
    with open(os.path.join(REPOSITORY, "tools/check"), encoding="utf-8") as file:
        assert "\nlook format tools/check_format\n" in file.read()
    for folder in ("tools", "src", "tests", "bench"):
        os.mkdir(tmp_path / folder)
    shutil.copy(os.path.join(REPOSITORY, "tools/check_format"), tmp_path / "tools")
    shutil.copy(os.path.join(REPOSITORY, ".clang-format"), tmp_path)
    planted = tmp_path / "src" / "planted.c"
    planted.write_text(PLANTED, encoding="ascii")
    assert run(["tools/check_format"], tmp_path) == (0, "")
    planted.write_text(PLANTED.replace("return 1", "return  1"), encoding="ascii")
    code, said = run(["tools/check_format"], tmp_path)
    assert code == 1 and "planted.c:4" in said and "make fmt" in said


def commands():
    """[(file, compiler command)] of the release build's own files."""
    with open(os.path.join(RELEASE, "compile_commands.json"), encoding="utf-8") as file:
        every = json.load(file)
    return [(entry["file"], shlex.split(entry["command"])) for entry in every if "/src/" in entry["file"]]


def test_every_file_is_compiled_with_warnings_as_errors(tmp_path):
    """[TOP-106] `make` builds the program so; a planted warning fails under the very command of a file of
    ours, and without it the same command passes."""
    assert any(re.search(r"ninja -C build .*weir", line) for line in recipe("build"))
    found = commands()
    assert len(found) > 100
    for name, command in found:
        assert {"-Wall", "-Wextra", "-Werror"} <= set(command), name
        assert not [word for word in command if word.startswith("-Wno-error")], name
    _, command = found[0]
    source, target = tmp_path / "planted.c", str(tmp_path / "planted.o")
    cut = command.index("-MD")
    compiler = command[:cut] + ["-o", target, "-c", str(source)]
    for text, passes in ((PLANTED, True), (PLANTED.replace("return 1", "int unused;\n    return 1"), False)):
        source.write_text(text, encoding="ascii")
        code, said = run(compiler, RELEASE)
        assert (code == 0) is passes, said
    assert "unused" in said


@pytest.fixture(name="stages")
def fixture_stages(monkeypatch):
    """tools/run_tests.py as a module."""
    monkeypatch.syspath_prepend(os.path.join(REPOSITORY, "tools"))
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.delitem(sys.modules, "run_tests", raising=False)
    import run_tests  # pylint: disable=import-outside-toplevel
    return run_tests


def noting(tmp_path, name, code):
    """A command that notes its name and arguments and whether it is to be strict, and ends so."""
    fake = tmp_path / name
    fake.parent.mkdir(exist_ok=True, parents=True)
    noted = f"echo {name} $@ ${{WEIR_TEST_STRICT:--}} >> {tmp_path}/asked"
    fake.write_text(f"#!/bin/sh\n{noted}\nexit {code}\n", encoding="ascii")
    fake.chmod(0o755)


# A machine may not be able to make a bare system (77); that is no failure.
@pytest.mark.parametrize("check, bare, make, wanted",
                         [(0, 0, 0, 0), (0, 77, 0, 0), (0, 1, 0, 1), (0, 0, 2, 2), (2, 0, 0, 2)])
@pytest.mark.parametrize("allows_all", [True, False])
def test_ci_is_checks_bare_systems_and_tests_and_ends_as_they_do(tmp_path, check, bare, make, wanted,
                                                                 allows_all):
    """[TOP-107] The test target may skip nothing where the machine allows everything."""
    os.mkdir(tmp_path / ".ci")
    shutil.copy(os.path.join(REPOSITORY, ".ci/run"), tmp_path / ".ci")
    noting(tmp_path, "tools/bare_system", bare)
    noting(tmp_path, "make", f"$(case $1 in setup) echo 0;; check) echo {check};; *) echo {make};; esac)")
    noting(tmp_path, "tests/harness/machine.py", 0 if allows_all else 1)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    env.pop("WEIR_TEST_STRICT", None)
    assert run([".ci/run"], tmp_path, env=env)[0] == wanted
    asked = (tmp_path / "asked").read_text(encoding="ascii").splitlines()
    expected = ["make setup -", "make check -", "tools/bare_system run -", "tools/bare_system test-quick -",
                "tests/harness/machine.py -", f"make test {'1' if allows_all else '-'}"]
    assert asked == expected[:2 if check else 3 if bare == 1 else None]
    assert any("tools/run_tests.py" in line for line in recipe("test"))


def test_the_test_target_fails_with_its_first_stage_that_fails(stages, monkeypatch, tmp_path):
    """[TOP-107] Real stages, small ones: all pass, or one does not and the run ends with 1."""
    monkeypatch.setattr(stages, "LOGS", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["run_tests.py"])
    for bad, wanted in ((["true"], 0), (["false"], 1)):
        small = [stages.Stage("small-first", ["true"]), stages.Stage("small-last", bad, ["small-first"])]
        monkeypatch.setattr(stages, "stages", lambda small=small: small)
        with pytest.raises(SystemExit) as ended:
            stages.main()
        assert ended.value.code == wanted
        assert small[-1].result == ("FAILED" if wanted else "ok")


@pytest.mark.parametrize("code", [0, 1])
def test_one_target_is_all_of_it_before_a_commit(stages, tmp_path, code):
    """[TOP-108] Format and doc gate (both in tools/check), conformance, build, tests; it ends as they do. It
    is the target that CI really runs on a bare system before all else."""
    assert recipe("precommit") == recipe("test-quick")
    names = {stage.name for stage in stages.chosen(stages.stages(), stages.named(["--quick"]))}
    assert names == {"check-quick", "conformance", "build-quick", "unit-quick", "smoke"}
    with open(os.path.join(REPOSITORY, "tools/check"), encoding="utf-8") as file:
        looks = file.read()
    assert all(f"\nlook {name} " in looks for name in ("format", "topology", "docs"))
    fake = tmp_path / "python"
    fake.write_text(f"#!/bin/sh\nexit {code}\n", encoding="ascii")
    fake.chmod(0o755)
    ended, said = run(["make", "precommit", f"PYTHON={fake}"], REPOSITORY)
    assert (ended == 0) == (code == 0), said
