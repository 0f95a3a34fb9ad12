"""The review gate: a failure domain that leaves out one of its six items does not pass `make check`."""
import glob
import os
import re
import shutil
import subprocess
import sys

import pytest

from harness.weir_server import REPOSITORY

TABLE = "src/runtime/domain_table.h"
DOC = "docs/operations/topology.md"
FILES = [TABLE, DOC, "src/runtime/failure_modes.h", "src/runtime/event_names.h",
         "src/runtime/process_list.h", "src/config/settings_list.h",
         "src/runtime/sandbox.h", "src/core/README.md",
         *sorted(glob.glob("src/domains/*/README.md", root_dir=REPOSITORY)),
         "tools/check_topology.py", "tools/topology_lists.py", "tools/tree.py"]


@pytest.fixture
def tree(tmp_path):
    """A copy of what the checker reads, and of the checker."""
    for path in FILES:
        target = tmp_path / path
        os.makedirs(target.parent, exist_ok=True)
        shutil.copy(os.path.join(REPOSITORY, path), target)
    return tmp_path


def judge(tree):
    """(passed, what it said)"""
    done = subprocess.run([sys.executable, str(tree / "tools/check_topology.py")], capture_output=True,
                          text=True, check=False, timeout=60)
    return done.returncode == 0, done.stdout + done.stderr


def change(tree, path, pattern, new):
    """Replaces one piece of a file; it must be there."""
    text = (tree / path).read_text(encoding="utf-8")
    changed, count = re.subn(pattern, new, text, count=1, flags=re.S)
    assert count == 1, pattern
    (tree / path).write_text(changed, encoding="utf-8")


def test_the_domains_as_they_are_pass(tree):
    """The control of the others."""
    assert judge(tree) == (True, "")


@pytest.mark.parametrize("item, pattern, new", [
    (1, r'"RoomSupervisor"', '""'),
    (1, r'"Weir.SessionManager.Supervisor"', '""'),
    (2, r"runtime_outbound_max_restarts", "no_such_setting"),
    (3, r"F\(LISTENER\) F\(ACTOR_FAILED\) F\(EXHAUSTED\)", ""),
    (3, r"F\(POISON\)", "F(NO_SUCH_MODE)"),
    (4, r'"room_id"', '""'),
    (4, r'"at least two partitions a CPU"', '""'),
    (5, r"reconnect_mttr_ms p95 <= 60000 \(warn > 30000, critical > 60000\)", "soon"),
    (6, r"E\(INSTANCE_CONNECTED\)", "E(NO_SUCH_EVENT)"),
])
def test_a_declaration_without_an_item_is_refused(tree, item, pattern, new):
    """[TOP-097] [TOP-098] [TOP-099] [TOP-100] [TOP-101] [TOP-102] [TOP-103]"""
    change(tree, TABLE, pattern, new)
    passed, said = judge(tree)
    assert not passed and f"item {item}" in said, said


@pytest.mark.parametrize("pattern, word", [
    (r"Owner: `SessionManagerSupervisor`", "item 1"), (r"`15/60s`(?=\n)", "item 2"),
    (r"`listener_disconnected` recoverable", "item 3"), (r"hash\(session_key\)", "item 4"),
    (r"reconnect_mttr_ms p95 <= 60000", "item 5"), (r"`weir.instance.connected` \(", "item 6"),
    (r"## sessions\n", "no section"),
])
def test_a_doc_without_an_item_is_refused(tree, pattern, word):
    """[TOP-103] The domain's own section; a word elsewhere on the page does not count."""
    change(tree, DOC, pattern, "")
    passed, said = judge(tree)
    assert not passed and word in said, said


def test_a_doc_names_what_it_depends_on(tree):
    """[TOP-104] The fixed line, in every section."""
    with open(tree / DOC, encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert lines.count("- Story 00: Runtime Topology And SLOs.") == 8
    change(tree, DOC, r"- Story 00: Runtime Topology And SLOs\.", "- the topology")
    passed, said = judge(tree)
    assert not passed and "depends on" in said


@pytest.mark.parametrize("folder, pattern, word", [
    ("core", r"- Story 00: Runtime Topology And SLOs\.", "depends on"),
    ("domains/runner", r"- Story 00: Runtime Topology And SLOs\.", "depends on"),
    ("domains/gateway", r"- Story 00: Runtime Topology And SLOs\.", "depends on"),
    ("domains/runner", r"10/60s", "item 2"), ("core", r"crash classes", "item 3"),
    ("domains/gateway", r"partition key, scaling", "item 4"), ("domains/runner", r"telemetry", "item 6"),
])
def test_the_folder_of_every_process_is_bound_by_it(tree, folder, pattern, word):
    """[TOP-001] Its README cites the contract and states its place in the tree, crash classes, sharding and
    telemetry; what deviates does not pass. The control: as they are they do."""
    assert judge(tree) == (True, "")
    change(tree, f"src/{folder}/README.md", pattern, "")
    passed, said = judge(tree)
    assert not passed and word in said, said


def test_a_new_process_is_bound_by_it_too(tree):
    """[TOP-001] One more line in the list of processes, and no folder that says anything of it."""
    change(tree, "src/runtime/process_list.h", r'X\(RUNNER, "runner"',
           'X(OTHER, "other", "something", OPERATIONS, 1, SANDBOX_RUNNER, false) X(RUNNER, "runner"')
    passed, said = judge(tree)
    assert not passed and "src/domains/other/README.md" in said, said


def test_a_new_domain_without_a_gate_is_refused(tree):
    """[TOP-103]"""
    row = ('X(NEW, "new", "NewOwner", "Weir.New", runtime_root_max_restarts, runtime_root_max_seconds, '
           '"alone") ' "\\\\\n    X(ROOMS,")
    change(tree, TABLE, r"X\(ROOMS,", row)
    passed, said = judge(tree)
    assert not passed
    for item in ("item 3", "item 4", "item 5", "item 6", "no section"):
        assert item in said, said
