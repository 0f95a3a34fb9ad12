"""What the machine does not allow is found out by trying, and told with the reason."""
import os
import subprocess
import sys

import pytest

from harness import machine
from harness.weir_server import REPOSITORY

pytestmark = pytest.mark.sqlite_only("no server runs here")
LOOK = os.path.join(REPOSITORY, "tests", "harness", "machine.py")
CONFINED = os.path.join(REPOSITORY, "tests", "harness", "confined.py")
TAKEN = {"mounts", "network_namespace", "hidden_processes", "tracing", "bare_system"}


def not_allowed(*before):
    """(exit code, abilities that are not there) as a process after these words sees the machine."""
    done = subprocess.run([*before, sys.executable, LOOK], capture_output=True, text=True, check=False)
    told = {line.split(" here: ")[0].removeprefix("no ").replace(" ", "_"): line.split(" here: ")[1]
            for line in done.stdout.splitlines() if " here: " in line}
    return done.returncode, told


def test_a_container_without_privileges_is_seen_for_what_it_is():
    """The control: what is taken from us there was not missing before, unless it is missing here, too."""
    code, told = not_allowed(sys.executable, CONFINED)
    assert code == 1 and TAKEN <= set(told) and all(told.values()), told
    here, missing = not_allowed()
    assert here == (1 if missing else 0)
    assert set(missing) == {ability for ability in machine.PROBES if machine.cannot(ability)}
