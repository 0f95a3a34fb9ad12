"""What goes over the wire, how fast, and what a sender refuses to take."""
import os
import subprocess

import pytest

from egress import receivers
from egress.receivers import (Receiver, answer, answering, certificate, probe, probe_one, seconds_of,
                              tls_context)
from harness.pace import Stopwatch

OPEN = "--allow-private"


@pytest.fixture(name="good")
def good_receiver():
    """Answers 200."""
    with Receiver(answering(answer(200))) as receiver:
        yield receiver


def test_a_request_is_a_plain_post(good):
    """With the caller's headers, our name, and nothing else that curl would add."""
    probe_one(good.url + "?a=b%20c", OPEN, body='{"a":1}',
              headers=["content-type: application/json", "webhook-id: 7"])
    head, body = good.requests[0]
    lines = head.split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in lines[1:])
    assert lines[0] == "POST /hook?a=b%20c HTTP/1.1" and body == b'{"a":1}'
    assert fields.pop("user-agent").startswith("weir/")
    assert fields == {"host": f"127.0.0.1:{good.port}", "accept": "*/*", "content-type": "application/json",
                      "webhook-id": "7", "content-length": "7"}


@pytest.mark.parametrize("body", ["", "x" * (2 << 20)], ids=["empty", "large"])
def test_bodies_of_any_allowed_size_arrive_whole(good, body):
    """Without waiting for a 100 Continue first."""
    (result, took) = seconds_of(lambda: probe_one(good.url, OPEN, body=body))
    head, received = good.requests[0]
    assert result["status"] == 200 and received == body.encode() and took < 10
    assert "expect" not in head.lower() and "content-type" not in head.lower()


@pytest.mark.parametrize("header", [
    "", "x", ": v", "x:", "x: ", "x;", "a b: c", "x: a\r\nEvil: yes", "x: a\nEvil: yes", "x: \u0000",
    "x: \u007f",
    "Host: evil", "host: evil", "Content-Length: 0", "Transfer-Encoding: chunked", "Connection: close",
    "Expect: 100-continue", "\u00fc: v"])
def test_a_header_that_breaks_or_frames_the_message_is_refused(good, header):
    """Nothing is sent."""
    assert probe_one(good.url, OPEN, headers=[header])["code"] == "RFA_REQUEST_MALFORMED"
    assert good.connections == 0


@pytest.mark.parametrize("request_", [
    {"headers": ["a: b"] * 33}, {"timeout_ms": 0}, {"timeout_ms": -1}, {"timeout_ms": 3600001},
    {"connect_timeout_ms": 0}, {"body": "x" * ((4 << 20) + 1)}])
def test_what_is_beyond_a_bound_is_refused(good, request_):
    """At once, by name."""
    assert probe_one(good.url, OPEN, **request_)["code"] == "RFA_REQUEST_MALFORMED"


def test_requests_beyond_those_in_flight_are_refused_and_the_others_unharmed(good):
    """By count and by bytes."""
    results, _ = probe([{"url": good.url, "times": 12}], OPEN, "--in-flight", "10")
    refused = [r for r in results if "refused" in r]
    assert len(refused) == 2 and refused[0]["code"] == "RFA_EXEC_QUEUE_FULL"
    assert sum(r.get("status") == 200 for r in results) == 10
    results, _ = probe([{"url": good.url, "body": "x" * 1000, "times": 12}], OPEN, "--bytes", "10500")
    assert sum("refused" in r for r in results) == 2


def test_requests_in_flight_can_be_cancelled():
    """Each has its result."""
    with Receiver(receivers.hang) as receiver:
        results, _ = probe([{"url": receiver.url, "times": 30}], OPEN, "--cancel")
    assert [r["failure"] for r in results] == ["cancelled"] * 30


def test_ten_thousand_requests_use_few_connections(capsys):
    """The rate is shown, not judged: a sanitizer build, a shared machine, a receiver in Python."""
    with Receiver(answering(answer(200))) as receiver:
        _, summary = probe([{"url": receiver.url, "body": "x" * 300, "times": 10000, "quiet": True}], OPEN,
                           "--at-once", "32", "--connections", "512")
    with capsys.disabled():
        print(f"\n  10,000 requests: {summary['rate']:.0f}/s on {receiver.connections} connections")
    assert summary["successes"] == 10000 and receiver.connections <= 40
    assert summary["rss_kib_peak"] - summary["rss_kib_before"] < 32 * 1024


def test_a_kept_connection_that_has_died_is_replaced():
    """The receiver closes behind each answer without saying so."""
    with Receiver(receivers.answering_once(answer(200))) as receiver:
        results, _ = probe([{"url": receiver.url, "times": 5}], OPEN, "--at-once", "1")
        assert [r["status"] for r in results] == [200] * 5 and receiver.connections >= 5


def test_connections_kept_are_bounded():
    """64 at a time to one receiver, to another, to the first again: only 8 of its connections were kept."""
    with Receiver(receivers.answering_together(64, answer(200))) as first, \
            Receiver(receivers.answering_together(64, answer(200))) as other:
        requests = [{"url": receiver.url, "times": 64} for receiver in (first, other, first)]
        results, _ = probe(requests, OPEN, "--at-once", "64", "--connections", "8")
        assert [r["status"] for r in results] == [200] * 192
        assert first.connections >= 64 + 64 - 8


def test_a_slow_lookup_delays_nobody_else(good):
    """Twenty names that take three seconds, given up after 0.3 s, beside a healthy receiver."""
    watch = Stopwatch()
    requests = [{"url": "http://slow.test/", "times": 20, "connect_timeout_ms": 300, "label": "slow"},
                {"url": good.url, "times": 20, "label": "good"}]
    results, summary = probe(requests, OPEN, "--resolve", "slow.test=3000:127.0.0.1")
    assert {r["failure"] for r in results if r["label"] == "slow"} == {"timeout"}
    assert max(r["duration_ms"] for r in results if r["label"] == "good") < 1000 + watch.stalled() * 1000
    assert summary["seconds"] < 2 + watch.stalled(), "giving up a lookup must not wait for it"


def test_lookups_under_way_are_bounded(good):
    """The fifth of four fails at once and says why; hosts that need none are served."""
    watch = Stopwatch()
    requests = [{"url": "http://slow.test/", "times": 6, "connect_timeout_ms": 500, "label": "slow"},
                # Eight, one for each lane or nearly: which of them is served first is chance.
                *({"url": f"http://127.0.0.{n}:{good.port}/", "label": "good"} for n in range(1, 9))]
    results, summary = probe(requests, OPEN, "--lookups", "4", "--resolve", "slow.test=1000:127.0.0.1")
    failures = sorted(r["failure"] for r in results if r["label"] == "slow")
    assert failures == ["dns"] * 2 + ["timeout"] * 4 and summary["lookups"] == 4
    # Only 127.0.0.1 listens; the others must get as far as finding that out.
    good_failures = {r["failure"] for r in results if r["label"] == "good"}
    assert good_failures == {"none", "connect"}


@pytest.fixture(scope="module", name="pki")
def certificates(tmp_path_factory):
    """An authority, and certificates that are right, of another host, expired, and of nobody."""
    folder = str(tmp_path_factory.mktemp("pki"))
    ca = certificate(folder, "ca", None, 10)
    return {"ca": ca[0], "right": certificate(folder, "right", "DNS:tls.test", 10, ca),
            "other-host": certificate(folder, "other", "DNS:other.test", 10, ca),
            "expired": certificate(folder, "expired", "DNS:tls.test", -1, ca),
            "self-signed": certificate(folder, "self", "DNS:tls.test", 10)}


@pytest.mark.parametrize("kind, failure", [("right", "none"), ("other-host", "tls"), ("expired", "tls"),
                                           ("self-signed", "tls")])
def test_certificates_are_checked(pki, kind, failure):
    """Nothing of the request is sent to whoever cannot prove the name."""
    with Receiver(answering(answer(200)), tls=tls_context(pki[kind])) as receiver:
        result = probe_one(f"https://tls.test:{receiver.port}/", OPEN, "--ca", pki["ca"], "--resolve",
                           "tls.test=127.0.0.1")
        assert result["failure"] == failure, result
        assert len(receiver.requests) == (failure == "none")


def test_an_authority_nobody_trusts_is_not_trusted_by_default(pki):
    """Without --ca the system's authorities count."""
    with Receiver(answering(answer(200)), tls=tls_context(pki["right"])) as receiver:
        result = probe_one(f"https://tls.test:{receiver.port}/", OPEN, "--resolve", "tls.test=127.0.0.1")
        assert result["failure"] == "tls" and not receiver.requests


def test_https_to_a_plain_port_is_a_tls_failure(good):
    """And not a hang."""
    url = f"https://127.0.0.1:{good.port}/"
    assert probe_one(url, OPEN, timeout_ms=1000)["failure"] in ("tls", "timeout")


def test_the_probe_refuses_a_bad_policy():
    """So that a misspelt network never means none."""
    done = subprocess.run([receivers.probe_path(), "--allow", "10.0.0.0/40"], input="", text=True,
                          capture_output=True, check=False, env=dict(os.environ))
    assert done.returncode == 2 and "10.0.0.0/40" in done.stderr
