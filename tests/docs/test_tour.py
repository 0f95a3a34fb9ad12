"""The README's own lines."""
import os
import subprocess

import pytest

from harness.weir_server import REPOSITORY, PortReservation, binary, server_environment

TOUR_SECONDS_MAX = 280


@pytest.mark.any_store
def test_the_tour_of_the_readme_does_what_the_readme_shows(fresh_weir, tmp_path):
    """Own work first: a failure, the automatic retry, success. In a folder that looks as after `make run`."""
    weir = fresh_weir(settings={"runner.processes": 2})
    os.symlink(os.path.dirname(os.path.abspath(binary())), tmp_path / "build")
    os.symlink(weir.data, tmp_path / "data")
    receiver = PortReservation()
    port = receiver.port
    receiver.close()
    done = subprocess.run([os.path.join(REPOSITORY, "tools", "tour"), "--url", weir.url, "--receiver",
                           str(port)], cwd=tmp_path, env=server_environment(), check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=TOUR_SECONDS_MAX)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("as shown") >= 8, done.stdout
