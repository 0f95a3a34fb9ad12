"""Thousands of connections that each send a part of a large body: core's memory stays bounded, also where
the machine has little of it."""
import contextlib
import resource
import socket

import pytest

from harness import processes
from harness.weir_server import binary, wait_for

MIB = 1 << 20
CONNECTIONS = 1500
PART = 300 << 10  # of the megabyte that the head promises
ANONYMOUS_GROWTH_MAX = 48 * MIB
BODIES_MAX = 256 * MIB  # server.bodies_max_bytes
ADDRESS_SPACE = 600000 << 10


@pytest.fixture(scope="module", autouse=True)
def many_descriptors():
    """Enough for the connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, CONNECTIONS + 1000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def peak_bytes(weir):
    """The most resident memory that core ever had."""
    core, = weir.pids("core")
    line = next(line for line in processes.read_text(f"/proc/{core}/status").splitlines()
                if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


@contextlib.contextmanager
def flood(weir, key=None):
    """Connections that have sent a part of their body, or as much as the server took. Gives them."""
    head = (f"POST /v1/jobs:batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {MIB}\r\n" + (f"Authorization: Bearer {key}\r\n" if key else "") + "\r\n")
    request = head.encode() + b" " * PART
    with contextlib.ExitStack() as open_ones:
        connections = []
        for _ in range(CONNECTIONS):
            connection = open_ones.enter_context(socket.create_connection(weir.address, timeout=30))
            with contextlib.suppress(ConnectionError):  # refused while it was sending
                connection.sendall(request)
            connections.append(connection)
        yield connections


def statuses(connections):
    """Of those that were answered."""
    found = []
    for connection in connections:
        connection.settimeout(0.01)
        with contextlib.suppress(OSError):
            found.append(connection.recv(12)[9:12].decode())
    return found


def test_bodies_without_credentials_take_no_memory_and_those_with_a_key_a_bounded_part(fresh_weir):
    """The second part is the control: the same bytes with a key are kept, up to the limit."""
    weir = fresh_weir(settings={"runner.processes": 0, "server.connections_per_address": 4000})
    key = weir.new_client().api_key
    before = peak_bytes(weir)
    with flood(weir) as connections:
        answered = statuses(connections)
    assert set(answered) == {"401"} and len(answered) > CONNECTIONS // 2
    anonymous = peak_bytes(weir) - before
    with flood(weir, key) as connections:
        answered = statuses(connections)
    weir.wait_log(event="weir.pressure.transition", component="request_bodies", pressure_level="degraded")
    known = peak_bytes(weir) - before
    print(f"grew by {anonymous >> 20} MiB without credentials, by {known >> 20} MiB with a key")
    assert anonymous < ANONYMOUS_GROWTH_MAX
    assert "503" in answered
    assert BODIES_MAX // 2 < known < BODIES_MAX * 3 // 2
    weir.submit(key, queue="outside")


@pytest.mark.release_only("a sanitizer needs more address space than the test gives")
def test_core_survives_both_floods_where_memory_is_short(fresh_weir):
    """600 MB of address space, as `ulimit -v 600000` gives: nobody is restarted, work goes on."""
    weir = fresh_weir(settings={"runner.processes": 0, "server.connections_per_address": 4000},
                      program=["/usr/bin/prlimit", f"--as={ADDRESS_SPACE}", binary()])
    key = weir.new_client().api_key
    core = weir.pids("core")
    for credentials in (None, key):
        with flood(weir, credentials):
            assert weir.api("GET", "/readyz").status == 200
    series = 'weir_pressure_ratio{component="request_bodies",partition="0"}'
    wait_for(lambda: weir.metrics()[series] < 0.1, 30, "the bodies to be gone", weir)
    weir.submit(key, queue="outside")
    assert weir.pids("core") == core
    assert not weir.logs(event="process_ended")
