"""The harness must notice what it promises to notice: each of its verdicts, on a planted fault."""
import os

import pytest

from harness import processes, together, weir_server
from harness.weir_server import Weir

FAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_weir.py")


def fake(fault=""):
    """A stand-in server with one fault."""
    return Weir(program=FAKE, env={"FAKE_WEIR_FAULT": fault})


@pytest.fixture
def server(request):
    """Started; whatever it does, nothing is left of it."""
    made = fake(getattr(request, "param", ""))
    yield made.start()
    made.close()


def test_a_clean_server_passes_and_leaves_nothing(server):
    family = server.pids()
    assert len(family) == 1
    server.stop()
    assert not processes.wait_gone(family, 1)


@pytest.mark.parametrize("server", ["report"], indirect=True)
def test_a_sanitizer_report_fails_the_stop(server):
    with pytest.raises(AssertionError, match="heap-use-after-free"):
        server.stop()


@pytest.mark.parametrize("server", ["report"], indirect=True)
def test_a_sanitizer_report_fails_the_kill_too(server):
    with pytest.raises(AssertionError, match="sanitizer report"):
        server.kill9()


@pytest.mark.parametrize("server", ["exit"], indirect=True)
def test_another_exit_code_than_zero_fails_the_stop(server):
    with pytest.raises(AssertionError, match="ended with 3"):
        server.stop()


@pytest.mark.parametrize("server", ["orphan"], indirect=True)
def test_a_process_left_behind_fails_the_stop_and_is_ended(server, monkeypatch):
    monkeypatch.setattr(weir_server, "ORPHAN_SECONDS_MAX", 0.2)
    family = server.pids()
    with pytest.raises(AssertionError, match="left behind: .*weir: runner"):
        server.stop()
    assert not processes.wait_gone(family, 1)


@pytest.mark.parametrize("server", ["deaf"], indirect=True)
def test_a_server_that_ignores_sigterm_fails_the_stop(server, monkeypatch):
    monkeypatch.setattr(weir_server, "STOP_SECONDS_MAX", 0.3)
    with pytest.raises(AssertionError, match="still running"):
        server.stop()


def test_a_server_that_ends_at_start_is_reported_with_its_log():
    made = fake("early")
    with pytest.raises(AssertionError, match="cannot start"):
        made.start()
    made.close()


def test_restart_and_kill_keep_data_directory_and_port(server):
    server.restart()
    server.kill9()
    server.start()
    with open(os.path.join(server.data, "starts"), encoding="utf-8") as starts:
        assert starts.read().split() == [str(server.port)] * 3


def test_processes_are_found_by_title_and_can_be_killed_alone(server):
    pids = server.pids("runner")
    assert len(pids) == 1 and server.pids("core") == []
    assert server.kill9_kind("runner") == pids
    assert not processes.wait_gone(pids, 5)
    server.stop()


def test_two_servers_never_share_a_port():
    servers = [fake() for _ in range(20)]
    assert len({server.port for server in servers}) == 20
    for server in servers:
        server.close()


def test_settings_of_our_own_environment_do_not_reach_the_server(monkeypatch):
    monkeypatch.setenv("WEIR_SERVER_LISTEN", "0.0.0.0:1")
    assert not [name for name in weir_server.server_environment() if name.startswith("WEIR_")]


def test_callers_at_once_keep_their_order_and_pass_on_a_fault():
    assert together.at_once(8, lambda i: i * i) == [i * i for i in range(8)]
    with pytest.raises(ZeroDivisionError):
        together.at_once(3, lambda i: 1 // (i - 1))
