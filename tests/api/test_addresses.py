"""What a source address may do: requests without credentials, clients, log lines, connections; and which
Host a caller on this machine may name."""
import contextlib
import http.client
import json
import itertools
import select
import socket

import pytest

from harness import processes
from harness.weir_server import binary, wait_for

LIMITED = "RFA_REQUEST_RATE_LIMITED"
BAD = "RFA_AUTH_INVALID_CREDENTIALS"
HERE, THERE = "127.0.0.1", "127.0.0.2"
UNUSED_ADDRESSES = (f"127.0.1.{number}" for number in itertools.count(1))


def ask(weir, path, source=HERE, method="GET", headers=None):
    """(status, code of the problem, headers), asked from a source address."""
    connection = http.client.HTTPConnection(*weir.address, timeout=30, source_address=(source, 0))
    try:
        connection.request(method, path, headers={"Content-Length": "0", **(headers or {})})
        answer = connection.getresponse()
        body = answer.read()
        code = json.loads(body).get("code") if answer.status >= 400 and body else None
        return answer.status, code, dict(answer.getheaders())
    finally:
        connection.close()


def first_refusal(weir, path, **options):
    """How many were not answered 429 before the first that was; and that one."""
    for count in range(100):
        answer = ask(weir, path, **options)
        if answer[0] == 429:
            return count, answer
    raise AssertionError(f"100 times {path}, and never 429")


@pytest.mark.parametrize("path,method,headers", [
    ("/.well-known/jwks.json", "GET", None), ("/openapi/jobs.yaml", "GET", None), ("/nothing", "GET", None),
    ("/v1/jobs", "GET", None), ("/v1/jobs", "GET", {"Authorization": "Bearer nonsense"}),
    ("/engine/v1/runs", "GET", {"Authorization": "Bearer a.b.c"}), ("/v1/clients", "POST", None)])
def test_requests_without_good_credentials_are_so_many_a_minute_from_one_address(strict, path, method,
                                                                                   headers):
    """Any of these paths; another address, probes and good credentials have their own."""
    weir, key = strict
    here, there = next(UNUSED_ADDRESSES), next(UNUSED_ADDRESSES)
    assert ask(weir, "/v1/clients", here, "POST")[0] == 201  # one of the ten
    count, (_, code, told) = first_refusal(weir, path, source=here, method=method, headers=headers)
    assert count == 9 and code == LIMITED
    assert 1 <= int(told["Retry-After"]) <= 60
    assert ask(weir, path, there, method, headers)[0] != 429
    assert ask(weir, "/v1/jobs", here, headers={"Authorization": f"Bearer {key}"})[0] == 200
    for probe in ("/healthz", "/readyz", "/startupz"):
        assert [ask(weir, probe, here)[0] for _ in range(15)] == [200] * 15


@pytest.fixture(name="strict", scope="module")
def one_for_unauthenticated(module_weir):
    """A server that takes ten such requests a minute from an address, and the key of a client."""
    weir = module_weir(settings={"server.unauthenticated_per_minute": 10, "runner.processes": 0})
    return weir, weir.new_client().api_key


def test_clients_are_so_many_a_minute_from_one_address(fresh_weir):
    """[default 60] The operator's do not count, nor do those from another address."""
    weir = fresh_weir(settings={"clients.per_address_minute": 3, "runner.processes": 0})
    count, (_, code, told) = first_refusal(weir, "/v1/clients", method="POST")
    assert (count, code) == (3, LIMITED) and int(told["Retry-After"]) >= 1
    assert ask(weir, "/v1/clients", THERE, "POST")[0] == 201
    assert ask(weir, "/v1/nothing")[0] == 404


def test_repeated_lines_of_nobodys_requests_are_left_out_and_counted(fresh_weir):
    """At most 30 lines a minute for an address, which they name; what is told of the others, and when:
    tests/unit/api/test_address_limits.c."""
    weir = fresh_weir(settings={"runner.processes": 0})
    for _ in range(80):
        assert ask(weir, "/v1/jobs", THERE)[1] == BAD
    key = weir.new_client().api_key
    weir.api("GET", "/v1/jobs/nothing", key=key)  # what has a key is logged as ever
    wait_for(lambda: weir.logs(event="request", status=404), 20, "a line of a client", weir)
    lines = weir.logs(event="request", peer=THERE)
    assert len(lines) == 30 and {line["status"] for line in lines} == {401}
    assert weir.logs(event="request", status=404)[0]["peer"] == HERE


@pytest.mark.parametrize("host,status", [
    *((known, 200) for known in ("localhost", "LOCALHOST:80", "weir.localhost:1", "localhost.", "127.0.0.1",
                                 "10.1.2.3:99", "[::1]:80", "named.example:80")),
    *((unknown, 421) for unknown in ("evil.example", "evil.example:8080", "localhost.evil.example",
                                     "127.0.0.1.evil.example", "[evil.example]", "notlocalhost"))])
def test_in_dev_a_caller_on_this_machine_names_an_address_or_a_known_host(host_weir, host, status):
    """A page whose name points to 127.0.0.1 names itself, and is refused whatever it asks."""
    for path in ("/healthz", "/ops/v1/topology", "/metrics"):
        answer = ask(host_weir, path, headers={"Host": host})
        assert answer[:2] == (status, "RFA_REQUEST_HOST_UNKNOWN" if status == 421 else None), path


@pytest.fixture(name="host_weir", scope="module")
def one_for_hosts(module_weir):
    """A server in dev with one more name."""
    return module_weir(settings={"server.hosts": "other.example, named.example", "runner.processes": 0})


def test_outside_dev_any_host_will_do_and_metrics_need_the_operator(fresh_weir):
    """[operator token, or a token of role owner or Admin]"""
    weir = fresh_weir(settings={"environment": "prod", "operator.token": "a-token-of-the-operator",
                                "runner.processes": 0})
    operator = {"Authorization": "Bearer a-token-of-the-operator"}
    assert ask(weir, "/healthz", headers={"Host": "jobs.example"})[0] == 200
    for path in ("/metrics", "/ops/v1/topology"):
        assert ask(weir, path)[:2] == (401, BAD)
        assert ask(weir, path, headers=operator)[0] == 200
    for role, expected in (("Admin", (200, None)), ("Viewer", (403, "AUTHZ_DENIED"))):
        token = weir.cli("token", "mint", "--role", role, "--tenant", "t1", "--sub", "somebody",
                         "--set", "environment=prod").stdout.strip()
        assert ask(weir, "/metrics", headers={"Authorization": f"Bearer {token}"})[:2] == expected


def test_a_full_address_closes_its_longest_idle_connection(fresh_weir):
    """Ten connections of one address where eight may be: two that were idle close, the newest is served;
    another address is not touched. Which of them was idle longest is the unit test's (test_peers.c): here
    it is a matter of microseconds."""
    weir = fresh_weir(settings={"server.connections_per_address": 8, "runner.processes": 0})
    with contextlib.ExitStack() as all_of_them:
        other = all_of_them.enter_context(
            socket.create_connection(weir.address, timeout=30, source_address=(THERE, 0)))
        idle = []
        for _ in range(10):
            idle.append(all_of_them.enter_context(socket.create_connection(weir.address, timeout=30)))
            idle[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert idle[-1].recv(4096).startswith(b"HTTP/1.1 200")
        wait_for(lambda: len(select.select(idle, [], [], 0)[0]) == 2, 30, "two to be closed", weir)
        closed = select.select(idle, [], [], 0)[0]
        assert [connection.recv(1) for connection in closed] == [b"", b""] and idle[-1] not in closed
        for connection in [one for one in idle if one not in closed] + [other]:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("sent", [b"", b"GET /v1/jobs HTTP/1.1\r\nHo"])
def test_where_descriptors_are_few_nobody_waits_for_nothing(fresh_weir, sent):
    """`ulimit -n 64` and 200 connections, idle ones or half a request each: whoever comes next is served or
    refused at once."""
    weir = fresh_weir(settings={"runner.processes": 0},
                      program=["/usr/bin/prlimit", "--nofile=64", binary()])
    with contextlib.ExitStack() as all_of_them:
        for _ in range(200):
            connection = all_of_them.enter_context(socket.create_connection(weir.address, timeout=30))
            with contextlib.suppress(ConnectionError):
                connection.sendall(sent)
        # Those still to be accepted would take the places of those that ask.
        wait_for(lambda: not processes.accept_queue(weir.address[1]), 60, "all to be accepted", weir)
        statuses = []
        for _ in range(20):
            with contextlib.suppress(ConnectionError, http.client.BadStatusLine):
                statuses.append(ask(weir, "/healthz")[0])
        assert set(statuses) <= {200, 503} and len(statuses) >= (10 if sent else 20)
        assert sent or statuses == [200] * 20
    wait_for(lambda: ask(weir, "/healthz")[0] == 200, 30, "room again", weir)
    weir.submit(weir.new_client().api_key, queue="outside")
