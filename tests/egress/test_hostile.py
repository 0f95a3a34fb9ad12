"""Receivers that hang, flood, break off or lie: each costs bounded time and memory, and has its own name."""
import time

import pytest

from egress import receivers
from egress.receivers import Receiver, answer, answering, answering_once, chunked, endless, probe, probe_one
from harness.pace import Stopwatch

OPEN = "--allow-private"
MIB = 1 << 20
# What a sender may take beyond its start with HOSTILE_AT_ONCE such receivers: TLS aside, about 20 KiB each
# (and as much again for the sanitizer's red zones).
HOSTILE_AT_ONCE = 50
GROWTH_KIB_MAX = 16 * 1024


def late_ms(watch):
    """What a busy machine may add to what a request took."""
    return watch.stalled() * 1000


def judged(character, times=1, **request):
    """The results of requests to a receiver of this character, and the receiver."""
    with Receiver(character) as receiver:
        results, summary = probe([{"url": receiver.url, "times": times, "timeout_ms": 5000, **request}], OPEN)
        grown = summary["rss_kib_peak"] - summary["rss_kib_before"]
        assert len(results) == times and grown < GROWTH_KIB_MAX, f"{grown} KiB"
        return results, receiver


@pytest.mark.parametrize("character", [
    receivers.hang, receivers.hang_inside_head, receivers.hang_after_head, receivers.trickle_body,
    receivers.trickle_head], ids=lambda c: c.__name__)
def test_a_receiver_that_takes_too_long_is_cut_off_at_the_timeout(character):
    """The attempt ends at its timeout, however bytes trickle."""
    watch = Stopwatch()
    results, _ = judged(character, times=HOSTILE_AT_ONCE, timeout_ms=700)
    assert {r["failure"] for r in results} == {"timeout"}
    assert all(700 <= r["duration_ms"] < 1700 + late_ms(watch) for r in results)


def test_the_timeout_is_the_requests_own():
    """The cut-off follows what is asked for."""
    watch = Stopwatch()
    with Receiver(receivers.hang) as receiver:
        requests = [{"url": receiver.url, "timeout_ms": ms, "label": str(ms)} for ms in (200, 1200)]
        results, _ = probe(requests, OPEN)
    took = {int(r["label"]): r["duration_ms"] for r in results}
    assert 200 <= took[200] < 900 + late_ms(watch) and 1200 <= took[1200] < 2000 + late_ms(watch)


@pytest.mark.parametrize("character, status", [
    (receivers.reset, 0), (receivers.close_at_once, 0),
    (answering_once(b"HTTP/1.1 200 OK\r\n"), 0),
    (answering_once(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"), 200),
    (answering_once(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n"), 200),
], ids=["reset", "close", "in-head", "in-body", "in-chunks"])
def test_a_connection_that_ends_too_early_is_a_failure(character, status):
    """Also when the status was 200: nobody knows what else the receiver wanted to say."""
    results, _ = judged(character)
    assert (results[0]["failure"], results[0]["status"]) == ("closed", status)


def test_a_port_where_nobody_listens_is_a_failed_connect():
    """Told apart from a denied or an unknown host."""
    with Receiver(receivers.hang) as receiver:
        port = receiver.port
    assert probe_one(f"http://127.0.0.1:{port}/", OPEN)["failure"] == "connect"


@pytest.mark.parametrize("piece", [b"X-Filler: " + b"x" * 1000 + b"\r\n", b"x" * 65536, b"X: y\r\n" * 1000,
                                   b"\r\nHTTP/1.1 100 Continue\r\n" * 100],
                         ids=["fields", "one-line", "small", "1xx"])
def test_an_endless_head_is_cut_off(piece):
    """Fields without end, one field without end, 1xx answers without end."""
    watch = Stopwatch()
    results, receiver = judged(endless(b"HTTP/1.1 100 Continue\r\n", piece), times=HOSTILE_AT_ONCE)
    assert {r["failure"] for r in results} == {"too_large"} and {r["status"] for r in results} == {0}
    assert all(r["duration_ms"] < 5000 + late_ms(watch) for r in results)
    assert receiver.bytes_sent < HOSTILE_AT_ONCE * 8 * MIB


@pytest.mark.parametrize("start", [b"Content-Length: 1073741824\r\n\r\n", b"\r\n"],
                         ids=["length", "until-close"])
def test_an_endless_body_is_read_up_to_its_bound_and_the_status_counts(start):
    """1 GB is offered; what was sent is what the kernel's buffers took."""
    watch = Stopwatch()
    flood = endless(b"HTTP/1.1 200 OK\r\n" + start, receivers.PIECE)
    results, receiver = judged(flood, times=HOSTILE_AT_ONCE)
    assert {(r["failure"], r["status"], r["cut"]) for r in results} == {("none", 200, True)}
    assert {r["excerpt"] for r in results} == {"x" * 1024}
    assert receiver.bytes_sent < HOSTILE_AT_ONCE * 8 * MIB


def test_a_body_in_endless_tiny_chunks_is_cut_off_too():
    """One byte each."""
    head = b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n"
    results, _ = judged(endless(head, b"1\r\nx\r\n" * 1000))
    assert (results[0]["failure"], results[0]["status"], results[0]["cut"]) == ("none", 500, True)


def test_a_body_of_exactly_the_bound_is_whole():
    """And its connection is used again, which a cut one is not."""
    for extra, connections in ((0, 1), (1, 2)):
        with Receiver(answering(answer(200, body=b"y" * (65536 + extra)))) as receiver:
            results, _ = probe([{"url": receiver.url, "times": 2}], OPEN, "--at-once", "1")
            assert [(r["failure"], r["cut"]) for r in results] == [("none", bool(extra))] * 2
            assert receiver.connections == connections


@pytest.mark.parametrize("fields, packed", [
    (["Content-Encoding: gzip"], False), (["Content-Encoding: gzip, gzip, gzip"], False),
    (["Transfer-Encoding: gzip, chunked"], True)], ids=["content", "nested", "transfer"])
def test_a_compressed_bomb_stays_small(fields, packed):
    """100 MB in 100 KB, fifty times at once."""
    bomb = receivers.gzip_bomb(100)
    head = "\r\n".join(["HTTP/1.1 200 OK", *fields, "" if packed else f"Content-Length: {len(bomb)}\r\n"])
    data = head.encode() + b"\r\n" + (chunked(bomb) if packed else bomb)
    results, _ = judged(answering_once(data), times=HOSTILE_AT_ONCE)
    assert len({(r["failure"], r["status"]) for r in results}) == 1
    assert results[0]["failure"] in ("none", "protocol")
    if not packed:
        assert (results[0]["failure"], results[0]["cut"]) == ("none", True)


@pytest.mark.parametrize("data", [
    b"SSH-2.0-OpenSSH_9.2\r\n", b"\x00\x01\x02\x03" * 10, b"HTTP/1.1 abc\r\n\r\n", b"<html>hello</html>",
    b"HTTP/1.1 200 OK\r\nContent-Length: banana\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nbanana\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 20 + b"\r\n"])
def test_an_answer_that_is_not_http_is_a_failure(data):
    """No crash, no success, no waiting for more."""
    results, _ = judged(answering_once(data))
    assert results[0]["failure"] in ("protocol", "closed", "too_large")


@pytest.mark.parametrize("field", ["Content-Length: 99999999999999999999999", "Transfer-Encoding: banana"])
def test_a_length_that_cannot_be_used_means_until_the_connection_ends(field):
    """Curl's reading. The head is complete, so the status counts; the body is bounded as ever."""
    results, _ = judged(answering_once(f"HTTP/1.1 200 OK\r\n{field}\r\n\r\nabc".encode()))
    assert (results[0]["failure"], results[0]["status"]) == ("none", 200)


def test_answers_of_every_class_come_back_as_they_are():
    """What is a success is the caller's to say."""
    for status in (200, 204, 299, 400, 404, 410, 429, 500, 503):
        data = b"HTTP/1.1 204 No Content\r\n\r\n" if status == 204 else answer(status, body=b"b")
        results, _ = judged(answering(data))
        assert (results[0]["failure"], results[0]["status"]) == ("none", status)


@pytest.mark.parametrize("fields, wanted", [
    (["Retry-After: 7"], 7000), (["retry-AFTER:120 "], 120000), ([], -1), (["Retry-After: soon"], -1),
    (["Retry-After: 0"], 0), (["X-Retry-After: 7"], -1)])
def test_retry_after_in_seconds(fields, wanted):
    """Absent, unreadable and zero are three things."""
    results, _ = judged(answering(answer(503, *fields)))
    assert results[0]["retry_after_ms"] == wanted


def test_retry_after_as_a_date():
    """Measured from now."""
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 100))
    results, _ = judged(answering(answer(429, "Retry-After: " + date)))
    assert 90000 < results[0]["retry_after_ms"] <= 100000


def test_a_retry_after_of_a_trailer_or_of_a_1xx_answer_does_not_count():
    """Only the head of the answer does."""
    data = b"HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nRetry-After: 9\r\n\r\n"
    assert judged(answering(data))[0][0]["retry_after_ms"] == -1
    data = b"HTTP/1.1 103 Hints\r\nRetry-After: 9\r\n\r\nHTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"
    assert judged(answering(data))[0][0]["retry_after_ms"] == -1


def test_fifty_hostile_receivers_of_each_kind_do_not_delay_a_healthy_one():
    """All in one sender, the healthy one asked last."""
    watch = Stopwatch()
    flood = endless(b"HTTP/1.1 200 OK\r\n\r\n", receivers.PIECE)
    with Receiver(receivers.hang) as hanging, Receiver(receivers.trickle_body) as slow, \
            Receiver(flood) as big, Receiver(answering(answer(200))) as healthy:
        requests = [{"url": r.url, "times": 50, "timeout_ms": 3000} for r in (hanging, slow, big)]
        results, _ = probe(requests + [{"url": healthy.url, "label": "healthy", "times": 20}], OPEN)
    took = [r["duration_ms"] for r in results if r["label"] == "healthy" and r["status"] == 200]
    assert len(took) == 20 and max(took) < 1500 + late_ms(watch)
