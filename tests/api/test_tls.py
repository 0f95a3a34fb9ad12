"""TLS: handshakes, client certificates, files that change, and what the command line needs for it."""
import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import threading
import time

import pytest

from harness import wire
from harness.tls import Authority, SecureAddress
from harness.weir_server import PortReservation, wait_for

DAY_SECONDS = 86400


@pytest.fixture
def authority(tmp_path):
    """One with a certificate "server"."""
    return Authority(tmp_path).issue("server")


@pytest.fixture
def secure(fresh_weir, authority):
    """A factory for servers that serve TLS beside plain; `secure` of each is the address of it."""
    held = []

    def make(settings=None, client_ca=None, **options):
        held.append(PortReservation())
        weir = fresh_weir(settings={**authority.settings(held[-1].port, client_ca), **(settings or {})},
                          **options)
        weir.tls_port = held[-1].port
        if weir.process:
            weir.secure = SecureAddress("127.0.0.1", weir.tls_port, authority.context())
        return weir

    yield make
    for one in held:
        one.close()


def ready(address, **options):
    """/readyz over a new connection."""
    return wire.call(address, "GET", "/readyz", **options).expect(200)


@contextlib.contextmanager
def connection(weir, context):
    """A TLS connection to the server."""
    with socket.create_connection(("127.0.0.1", weir.tls_port), timeout=30) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as wrapped:
            yield wrapped


def certificate(weir, context):
    """What a new connection is shown."""
    with connection(weir, context) as wrapped:
        return wrapped.getpeercert()


# ---- serving

@pytest.fixture(scope="module")
def both(module_weir, tmp_path_factory):
    """A server of plain and TLS that tests leave as it is, and its authority."""
    authority, held = Authority(tmp_path_factory.mktemp("tls")).issue("server"), PortReservation()
    weir = module_weir(settings=authority.settings(held.port))
    weir.tls_port, weir.secure = held.port, SecureAddress("127.0.0.1", held.port, authority.context())
    yield weir, authority
    held.close()


def test_plain_and_tls_are_served_side_by_side(both):
    weir, _ = both
    client = weir.new_client()
    weir.submit(client.api_key, queue="outside")
    page = wire.call(weir.secure, "GET", "/v1/jobs", key=client.api_key).expect(200)
    assert page == weir.api("GET", "/v1/jobs", key=client.api_key).expect(200)
    assert f"https://127.0.0.1:{weir.tls_port}" in weir.greeting("serves http://")


def test_a_server_may_serve_tls_only(fresh_weir, authority):
    weir = fresh_weir(authority=authority)
    client = weir.new_client()
    job = weir.submit(client.api_key, work_kind="SUCCESS_FAST")
    weir.wait_state(client.api_key, job["job_id"], "SUCCEEDED")
    assert wire.send_raw(("127.0.0.1", weir.port), b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")[:4] != b"HTTP"


def test_http_1_1_is_agreed_on_and_other_protocols_are_refused(both):
    weir, authority = both
    for offer, chosen in ((["http/1.1"], "http/1.1"), (["h2", "http/1.1"], "http/1.1"), ([], None)):
        context = authority.context()
        if offer:
            context.set_alpn_protocols(offer)
        with connection(weir, context) as wrapped:
            assert wrapped.selected_alpn_protocol() == chosen
    context, refused = authority.context(), weir.metric("weir_tls_handshakes_total", end="refused")
    context.set_alpn_protocols(["h2"])
    with pytest.raises(ssl.SSLError, match="no application protocol|NO_APPLICATION_PROTOCOL"):
        certificate(weir, context)
    wait_for(lambda: weir.metric("weir_tls_handshakes_total", end="refused") == refused + 1, 30,
             "the refusal to be counted", weir)


def test_a_body_of_a_mebibyte_and_an_answer_of_several_records_arrive_whole(both):
    weir, _ = both
    client = weir.new_client()
    payload = {"text": "x" * 200000}
    jobs = [{"type": "EXECUTE", "queue": "outside", "payload": payload} for _ in range(5)]
    made = wire.call(weir.secure, "POST", "/v1/jobs:batch", {"jobs": jobs}, client.api_key)
    assert made.status == 202, made
    big = wire.call(weir.secure, "POST", "/v1/jobs", b"x" * (1 << 20), client.api_key)
    assert big.status == 400
    assert wire.call(weir.secure, "POST", "/v1/jobs", b"x" * ((1 << 20) + 1), client.api_key).status == 413
    contract = weir.api("GET", "/openapi/jobs.yaml").body
    assert len(contract) > 16384 and wire.call(weir.secure, "GET", "/openapi/jobs.yaml").body == contract


def test_a_stream_of_events_is_followed_over_tls(both):
    weir, _ = both
    key = weir.new_client().api_key
    job_id = weir.submit(key, queue="outside", retry="manual")["job_id"]
    stream = wire.follow(weir.secure, f"/v1/jobs/{job_id}/events", key)
    assert [next(stream)["event"] for _ in range(2)] == ["job.created", "job.queued"]
    weir.end_outside(key, job_id)
    rest = [message["event"] for message in stream]
    assert rest[:2] == ["job.assigned", "job.running"] and len(rest) == 3


# ---- who may come

def test_with_an_authority_of_clients_only_their_certificates_are_served(secure, authority, tmp_path):
    authority.issue("worker")
    os.mkdir(tmp_path / "other")
    other = Authority(tmp_path / "other").issue("intruder")
    weir = secure(client_ca=authority.cert("ca"))
    shown = SecureAddress("127.0.0.1", weir.tls_port, authority.context(show="worker"))
    assert ready(shown)["status"] == "ready"
    assert ready(weir.address)["status"] == "ready"  # plain is another listener
    other_authority = authority.context()
    other_authority.load_cert_chain(other.cert("intruder"), other.key("intruder"))
    for context, alert in ((authority.context(), "CERTIFICATE_REQUIRED"), (other_authority, "UNKNOWN_CA")):
        with pytest.raises(ssl.SSLError, match=alert):
            ready(SecureAddress("127.0.0.1", weir.tls_port, context))


def test_half_handshakes_are_closed_at_their_deadline(secure):
    weir = secure(settings={"server.request_timeout_ms": 300})
    with socket.create_connection(("127.0.0.1", weir.tls_port), timeout=30) as silent, \
            socket.create_connection(("127.0.0.1", weir.tls_port), timeout=30) as slow:
        slow.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        assert silent.recv(1) == b"" and slow.recv(1) == b""
    wait_for(lambda: weir.metric("weir_tls_handshakes_total", end="late") == 2, 30, "two late ones", weir)
    assert ready(weir.secure)["status"] == "ready"


# ---- files that change

def test_sighup_reads_the_files_again(secure, authority):
    weir = secure()
    before = certificate(weir, authority.context())
    authority.issue("server")
    weir.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(weir.logs(event="tls_loaded")) == 2, 30, "the reload", weir)
    assert weir.logs(event="reload_requested")
    assert certificate(weir, authority.context())["serialNumber"] != before["serialNumber"]


def test_files_that_change_are_read_again_inside_the_sandbox(secure, authority, tmp_path):
    """The second time by a link into another folder, as a cluster mounts its secrets."""
    os.mkdir(tmp_path / "mounted")
    for name in ("server.pem", "server.key"):
        shutil.copy(tmp_path / name, tmp_path / "mounted" / name)
        os.unlink(tmp_path / name)
        os.symlink(tmp_path / "mounted" / name, tmp_path / name)
    weir = secure()
    seen = {certificate(weir, authority.context())["serialNumber"]}
    authority.issue("server", days=20)  # files instead of the links
    wait_for(lambda: len(weir.logs(event="tls_loaded")) == 2, 30, "the reload", weir)
    seen.add(certificate(weir, authority.context())["serialNumber"])
    authority.issue("server", days=10)
    for name in ("server.pem", "server.key"):
        os.rename(tmp_path / name, tmp_path / "mounted" / name)
        os.symlink(tmp_path / "mounted" / name, tmp_path / name)
    wait_for(lambda: len(weir.logs(event="tls_loaded", level="warn")) == 1, 30, "the reload", weir)
    seen.add(certificate(weir, authority.context())["serialNumber"])
    assert len(seen) == 3
    left = weir.metric("weir_tls_certificate_expires_at_seconds") - time.time()
    assert 9 * DAY_SECONDS < left <= 10 * DAY_SECONDS


def test_files_that_cannot_be_used_keep_the_old_ones_in_force(secure, authority):
    weir = secure()
    before = certificate(weir, authority.context())
    authority.issue("another")
    os.rename(authority.key("another"), authority.key("server"))
    told = weir.wait_log(30, event="tls_not_loaded")
    assert "is not the key of server.tls_cert" in told["error_message"] and told["level"] == "error"
    with open(authority.cert("server"), "w", encoding="utf-8") as file:
        file.write("-----BEGIN CERTIFICATE-----\nAAAA\n")
    weir.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(weir.logs(event="tls_not_loaded")) >= 2, 30, "the second refusal", weir)
    assert "server.tls_cert" in weir.logs(event="tls_not_loaded")[-1]["error_message"]
    assert certificate(weir, authority.context()) == before
    authority.issue("server")
    wait_for(lambda: len(weir.logs(event="tls_loaded")) == 2, 30, "the reload", weir)
    assert certificate(weir, authority.context()) != before


# ---- starting

@pytest.mark.parametrize("broken, words", [
    ("server.key", "server.tls_key {}: No such file or directory"),
    ("server.pem", "server.tls_cert {}: "),
    ("ca.pem", "server.tls_client_ca {}: ")])
def test_a_start_with_files_that_cannot_be_used_fails_with_one_line(secure, authority, tmp_path, broken,
                                                                    words):
    path = tmp_path / broken
    if broken.endswith(".key"):
        path.unlink()
    else:
        path.write_text("nothing\n")
    weir = secure(client_ca=authority.cert("ca"), start=False)
    weir.spawn()
    assert weir.process.wait(timeout=60) == 78
    weir.process = None
    said = [line for line in weir.log_text().splitlines() if line.startswith("weir: cannot start")]
    assert len(said) == 1 and words.format(path) in said[0]


@pytest.mark.parametrize("settings, words", [
    ({"server.tls_listen": "127.0.0.1:0"}, "server.tls_listen needs server.tls_cert and server.tls_key"),
    ({"server.tls_cert": "a"}, "server.tls_cert is set, but nothing is served over TLS"),
    ({"server.listen": "off"}, "server.listen is off: set server.tls_listen")])
def test_settings_that_do_not_go_together_are_refused(fresh_weir, settings, words):
    weir = fresh_weir(start=False)
    given = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    done = weir.cli("serve", *given)
    assert done.returncode == 2 and words in done.stderr


# ---- the command line

def test_the_command_line_calls_a_server_over_tls(secure, authority):
    authority.issue("worker")
    weir = secure(client_ca=authority.cert("ca"))
    url = f"https://localhost:{weir.tls_port}"
    shown = ("--client-cert", authority.cert("worker"), "--client-key", authority.key("worker"))
    trusted = ("--url", url, "--ca", authority.cert("ca"))
    made = weir.cli("client", "create", "--with-key", "-q", *trusted, *shown)
    assert made.returncode == 0 and made.stdout.startswith("export WEIR_API_KEY="), made
    key = made.stdout.strip().partition("=")[2]
    done = weir.cli("job", "submit", "--work-kind", "SUCCESS_FAST", "--wait", "--url", url, "--ca",
                    authority.cert("ca"), *shown, key=key)
    assert done.returncode == 0, done
    untrusted = weir.cli("job", "list", "--url", url, key=key)
    assert untrusted.returncode == 1 and "--ca FILE" in untrusted.stderr
    bare = weir.cli("job", "list", "--url", url, "--ca", authority.cert("ca"), key=key)
    assert bare.returncode == 4 and "--client-cert FILE" in bare.stderr
    wrong = weir.cli("job", "list", "--url", url, "--ca", authority.cert("nobody"), key=key)
    assert wrong.returncode == 2 and "cannot be used" in wrong.stderr


def told_of_alert(weir, number):
    """A call of a server that answers the first bytes with this TLS alert."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        def refuse():
            with server.accept()[0] as peer:
                peer.recv(65536)
                peer.sendall(bytes((21, 3, 3, 0, 2, 2, number)))
                while peer.recv(65536):
                    pass
        thread = threading.Thread(target=refuse)
        thread.start()
        done = weir.cli("job", "list", "--url", f"https://127.0.0.1:{server.getsockname()[1]}", key="k")
        thread.join()
    return done


def test_an_alert_is_told_as_it_is_and_only_certificates_are_blamed_on_the_client(weir):
    for number, reason in ((42, "bad certificate"), (48, "unknown ca"), (116, "certificate required")):
        done = told_of_alert(weir, number)
        assert done.returncode == 4 and reason in done.stderr and "--client-cert FILE" in done.stderr, done
    for number, reason in ((40, "handshake failure"), (70, "protocol version"), (80, "internal error")):
        done = told_of_alert(weir, number)
        assert done.returncode == 1 and reason in done.stderr and "--url" in done.stderr, done
        assert "certificate" not in done.stderr


@pytest.mark.parametrize("days, result", [(30, "ok"), (5, "warn")])
def test_the_doctor_tells_when_the_certificate_expires(fresh_weir, authority, days, result):
    authority.issue("server", days=days)
    weir = fresh_weir(start=False)
    given = [word for key, value in authority.settings(0).items() for word in ("--set", f"{key}={value}")]
    done = weir.cli("doctor", "-o", "json", *given)
    found = next(c for c in json.loads(done.stdout)["checks"] if c["check"] == "TLS certificate")
    assert found["result"] == result
    assert found["found"] in (f"expires in {days} days", f"expires in {days - 1} days")
    os.unlink(authority.key("server"))
    done = weir.cli("doctor", "-o", "json", *given)
    found = next(c for c in json.loads(done.stdout)["checks"] if c["check"] == "TLS certificate")
    assert found["result"] == "fail" and "No such file" in found["found"] and done.returncode == 1
