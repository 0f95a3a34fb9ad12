"""Clients that are slow, idle, many or boundless: memory stays bounded and everybody else is served
at once."""
import contextlib
import resource
import signal
import socket
import threading
import time

import pytest

from conftest import end_server, start_server
from harness import processes
from harness.kept import Kept
from harness.pace import Stopwatch
from harness.weir_server import wait_for

PATIENCE_SECONDS = 60
FAST_SECONDS_MAX = 0.25  # a request beside the slow ones, on a shared machine under sanitizers
IDLE_CONNECTIONS = 10000
RSS_PER_CONNECTION_MAX = 2 << 10
RSS_SLACK = 24 << 20
READ_SECONDS = 1.0  # a request has to be there within twice the request timeout

# A sanitizer keeps freed memory for a while; not here, where memory is measured.
HONEST_MEMORY = {"ASAN_OPTIONS": "quarantine_size_mb=1:thread_local_quarantine_size_kb=64"}


@pytest.fixture(scope="module")
def weir():
    """Short limits for slow requests; no runner. Started with the usual soft limit of 1024
    descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    server = start_server(settings={"runner.processes": 0, "server.request_timeout_ms": 500,
                                    "server.connections_per_address": 2 * IDLE_CONNECTIONS},
                          env=HONEST_MEMORY).start()
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, IDLE_CONNECTIONS + 2000)), hard))
    yield server
    end_server(server)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def rss_bytes(weir):
    """Resident memory of core."""
    core, = weir.pids("core")
    for line in processes.read_text(f"/proc/{core}/status").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("core is gone")


def longest_call(weir, key, count=30):
    """The longest of some submits and reads by a well-behaved client, in seconds of a quiet machine."""
    longest = 0
    with Kept(weir.address, key) as kept:
        for _ in range(count):
            watch = Stopwatch()
            job = kept.call("POST", "/v1/jobs", {"type": "EXECUTE", "queue": "outside"}).expect(202)
            kept.call("GET", f"/v1/jobs/{job['job_id']}").expect(200)
            longest = max(longest, watch.quiet() / 2)
    return longest


@contextlib.contextmanager
def connections(weir, count, first_bytes=b"", receive_bytes=0):
    """Open connections, each with a few bytes sent; a small receive buffer keeps answers at the
    server."""
    opened = []
    try:
        for _ in range(count):
            opened.append(socket.socket())
            opened[-1].settimeout(10)
            if receive_bytes:
                opened[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            opened[-1].connect(weir.address)
            if first_bytes:
                opened[-1].sendall(first_bytes)
        yield opened
    finally:
        for connection in opened:
            connection.close()


def closed_by_server(connection, seconds):
    """Reads to the end; True when the server closed within that time."""
    connection.settimeout(seconds)
    try:
        while connection.recv(65536):
            pass
        return True
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def wait_closed(weir, opened, count):
    """Waits until the server has closed so many. Which ones is a matter of when each loop accepted them."""
    wait_for(lambda: sum(closed_by_server(c, 0.02) for c in opened) >= count, PATIENCE_SECONDS,
             f"{count} of {len(opened)} to be closed", weir)


def test_ten_thousand_idle_connections_cost_little_and_slow_nobody(weir, client):
    """Core raises its own descriptor limit, holds all of them in bounded memory, answers others
    fast, and lets go of everything afterwards."""
    longest_call(weir, client.api_key)
    before = rss_bytes(weir)
    with connections(weir, IDLE_CONNECTIONS):
        wait_for(lambda: weir.metric("weir_http_connections") >= IDLE_CONNECTIONS, 20, "all of them", weir)
        grown = rss_bytes(weir) - before
        longest = longest_call(weir, client.api_key)
    assert grown <= IDLE_CONNECTIONS * RSS_PER_CONNECTION_MAX + RSS_SLACK, f"grew by {grown >> 20} MiB"
    assert longest <= FAST_SECONDS_MAX, f"{longest:.3f} s"
    wait_for(lambda: weir.metric("weir_http_connections") < 10, 20, "the end of them", weir)


def test_connections_that_have_sent_half_a_head_are_bounded_too(weir, client):
    """A thousand heads of 8 KB that never end: bounded memory, and all are closed when their time
    is over."""
    longest_call(weir, client.api_key)
    before = rss_bytes(weir)
    half = b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\nX-Filling: " + b"y" * 8000
    with connections(weir, 1000, half) as opened:
        grown = rss_bytes(weir) - before
        assert longest_call(weir, client.api_key, 10) <= FAST_SECONDS_MAX
        watch = Stopwatch()
        assert all(closed_by_server(connection, PATIENCE_SECONDS) for connection in opened)
        assert watch.quiet() <= READ_SECONDS + 4
    assert grown <= 1000 * (16 << 10) + RSS_SLACK, f"grew by {grown >> 20} MiB"


def test_a_head_that_trickles_is_cut_off_and_others_do_not_wait(weir, client):
    """Slowloris: a byte every 50 ms keeps no connection beyond the limit for a request."""
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: b\r\n" * 100
    with connections(weir, 50) as opened:
        watch, sent, gone = Stopwatch(), 0, set()
        while len(gone) < len(opened) and not watch.is_over(READ_SECONDS + 4):
            for connection in set(opened) - gone:
                try:
                    connection.setblocking(False)
                    connection.send(head[sent:sent + 1])
                    if connection.recv(4096, socket.MSG_PEEK) == b"":
                        gone.add(connection)
                except BlockingIOError:
                    pass
                except OSError:
                    gone.add(connection)
                else:
                    gone.add(connection)  # an answer: it ends with it
            sent += 1
            time.sleep(0.05)
        took = watch.seconds()
        assert longest_call(weir, client.api_key, 5) <= FAST_SECONDS_MAX
    assert len(gone) == 50 and took >= READ_SECONDS * 0.8


def test_the_control_a_head_that_arrives_in_pieces_in_time_is_answered(weir):
    """The negative control of the cut: slow is allowed, too slow is not."""
    with socket.create_connection(weir.address, timeout=5) as connection:
        for piece in (b"GET /heal", b"thz HTTP/1.1\r\nHos",
                      b"t: localhost\r\nConnection: close\r\n\r", b"\n"):
            connection.sendall(piece)
            time.sleep(0.1)
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")


def test_a_body_that_never_comes_is_cut_off(weir):
    """Content-Length promised, one byte sent: the connection ends within the limit."""
    request = b"POST /v1/clients HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" \
              b"Content-Length: 100\r\n\r\n{"
    with connections(weir, 20, request) as opened:
        watch = Stopwatch()
        assert all(closed_by_server(connection, PATIENCE_SECONDS) for connection in opened)
        assert watch.quiet() <= READ_SECONDS + 4


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_a_boundless_body_is_refused_and_never_held(weir, client, chunked):
    """A gigabyte announced, or endless chunks: 413 and the end of the connection; memory
    does not follow."""
    before, sent = rss_bytes(weir), 0
    head = f"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.api_key}\r\n" \
           "Content-Type: application/json\r\n"
    head += "Transfer-Encoding: chunked\r\n\r\n" if chunked else "Content-Length: 1073741824\r\n\r\n"
    piece = b"10000\r\n" + b"x" * 65536 + b"\r\n" if chunked else b"x" * 65536
    with socket.create_connection(weir.address, timeout=10) as connection:
        answer = []
        reader = threading.Thread(target=lambda: answer.append(read_all(connection)))
        reader.start()
        try:
            connection.sendall(head.encode())
            while sent < 64 << 20:
                connection.sendall(piece)
                sent += len(piece)
        except OSError:
            pass  # it has closed: that is what we want
        reader.join(timeout=60)
    assert sent < 64 << 20, "the server read on and on"
    assert answer and answer[0].startswith(b"HTTP/1.1 413"), answer
    assert rss_bytes(weir) - before <= RSS_SLACK


def read_all(connection):
    """Everything until the end or a reset."""
    received = b""
    try:
        while chunk := connection.recv(65536):
            received += chunk
    except OSError:
        pass
    return received


def test_clients_that_do_not_read_their_answers_hold_up_nobody(weir, client):
    """Fifty ask for a large job four times over and never read: what waits for them is bounded, and
    others are served."""
    with Kept(weir.address, client.api_key) as kept:
        job = kept.call("POST", "/v1/jobs", {"type": "EXECUTE", "queue": "slow",
                                             "payload": {"x": "y" * 200000}}).expect(202)
    before = rss_bytes(weir)
    ask = f"GET /v1/jobs/{job['job_id']} HTTP/1.1\r\nHost: localhost\r\n" \
          f"Authorization: Bearer {client.api_key}\r\n\r\n".encode()
    with connections(weir, 50, ask * 4, receive_bytes=4096):
        # Making fifty large answers takes a moment of both CPUs; from then on they only wait.
        wait_for(lambda: longest_call(weir, client.api_key, 1) <= FAST_SECONDS_MAX, 5, "the burst", weir)
        assert longest_call(weir, client.api_key) <= FAST_SECONDS_MAX
        grown = rss_bytes(weir) - before
    assert grown <= 50 * (512 << 10) + RSS_SLACK, f"grew by {grown >> 20} MiB"


def test_a_full_house_does_not_keep_a_new_runner_out(fresh_weir):
    """Clients hold every place of server.connections_max, those of a killed runner too. Its successor reaches
    core all the same, and does what becomes due. Root is held meanwhile, so that clients come first."""
    weir = fresh_weir(settings={"server.connections_max": 32, "runner.processes": 1})
    _, key = weir.new_client()
    weir.wait_pids("runner", 1)
    job = weir.submit(key, type="DEFERRED", work_kind="SUCCESS_FAST", execution_at=weir.soon(3))["job_id"]
    weir.process.send_signal(signal.SIGSTOP)
    with contextlib.ExitStack() as root_goes_on:
        root_goes_on.callback(weir.process.send_signal, signal.SIGCONT)
        assert not processes.wait_gone(weir.kill9_kind("runner"), PATIENCE_SECONDS)
        with connections(weir, 64) as opened:
            wait_closed(weir, opened, 32)  # the control: every place is taken, the longest idle makes room
            root_goes_on.close()
            wait_for(lambda: weir.job(key, job)["state"] == "SUCCEEDED", PATIENCE_SECONDS,
                     "the work of the new runner", weir)


def test_a_full_house_turns_some_away_and_serves_those_inside(fresh_weir):
    """server.connections_max is kept: those inside are served, and there is room again when one leaves."""
    weir = fresh_weir(settings={"server.connections_max": 32, "runner.processes": 0})
    with connections(weir, 40) as opened:
        wait_closed(weir, opened, 8)
        inside = next(c for c in reversed(opened) if not closed_by_server(c, 0.02))
        inside.settimeout(60)
        inside.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert inside.recv(4096).startswith(b"HTTP/1.1 200")
    assert weir.api("GET", "/healthz").status == 200


def test_idle_connections_end(fresh_weir):
    """server.idle_timeout_ms is kept."""
    weir = fresh_weir(settings={"server.idle_timeout_ms": 1500, "runner.processes": 0})
    with connections(weir, 8) as opened:
        assert all(closed_by_server(c, 60) for c in opened)
