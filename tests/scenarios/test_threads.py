"""Every kind of call at once, from many threads: what the ThreadSanitizer build must stay silent about.

HTTP loops, the commit thread, readers, streams, the key cache and the counters all meet here. The harness
fails a test whose server printed a sanitizer report, so a data race anywhere fails this one.
"""
import threading
import time

import pytest

SECONDS = 4
THREADS = 3


def submitter(weir, key, stop, errors):
    """Submits, reads, cancels and retries until told to stop."""
    n = 0
    while not stop.is_set():
        n += 1
        kind = ("SUCCESS_FAST", "FAIL_IMMEDIATE", "CANCEL_DURING_RUN")[n % 3]
        answer = weir.try_submit(key, type="EXECUTE", work_kind=kind, idempotency_key=f"k{n % 40}-{kind}")
        if answer.status != 202:
            errors.append(("submit", answer.status, answer.text))
            return
        job = answer.json["job_id"]
        weir.api("GET", f"/v1/jobs/{job}", key=key)
        if kind == "CANCEL_DURING_RUN":
            weir.api("POST", f"/v1/jobs/{job}/cancel", key=key)
        if kind == "FAIL_IMMEDIATE":
            weir.api("POST", f"/v1/jobs/{job}/retry", key=key)


def reader(weir, key, stop, errors):
    """Lists, sums up, explains and scrapes."""
    while not stop.is_set():
        page = weir.api("GET", "/v1/jobs?limit=5", key=key)
        if page.status != 200:
            errors.append(("list", page.status, page.text))
            return
        for item in page.json["items"]:
            weir.api("GET", f"/v1/jobs/{item['job_id']}/explain", key=key)
            weir.api("GET", f"/v1/jobs/{item['job_id']}/events", key=key)
        weir.api("GET", "/v1/reports/summary", key=key)
        weir.api("GET", "/metrics")
        weir.api("GET", "/readyz")


def worker(weir, key, stop, errors):
    """An outside worker that long-polls, and a submitter for it."""
    while not stop.is_set():
        weir.submit(key, type="EXECUTE", queue="outside")
        for task in weir.claim(key, most=4, wait_ms=50):
            if not weir.tell("start", key, task)["ok"]:
                errors.append(("start", task))
            weir.tell("heartbeat", key, task)
            weir.tell("finish", key, task, outcome="success")


def rotator(weir, client, key, stop, errors):
    """Makes clients and keys, so that caches are dropped while others use them."""
    while not stop.is_set():
        other, other_key = weir.new_client()
        if weir.api("POST", f"/v1/clients/{other}/keys/renew", {}, key=other_key).status != 200:
            errors.append(("renew", other))
        if weir.api("GET", "/v1/jobs", key=other_key).status != 403:
            errors.append(("a renewed key still works", other))
        if weir.api("POST", f"/v1/clients/{client}/keys", {}, key=key).status != 201:
            errors.append(("create key again", client))


def guarded(work, *args):
    """A fault in a thread is a fault of the test."""
    try:
        work(*args)
    except BaseException as fault:
        args[-1].append(fault)


@pytest.mark.tsan
@pytest.mark.limit(120)
def test_every_kind_of_call_at_once_leaves_a_sound_server(fresh_weir):
    """No race report, no refused call that should work, and the store verifies."""
    weir = fresh_weir(settings={"runner.time_scale": 0.01, "limits.requests_per_minute": 0,
                                "keys.overlap_seconds": 0})
    stop, errors, threads = threading.Event(), [], []
    for _ in range(THREADS):
        client, key = weir.new_client()
        for work in (submitter, reader, worker):
            threads.append(threading.Thread(target=guarded, args=(work, weir, key, stop, errors)))
        threads.append(threading.Thread(target=guarded, args=(rotator, weir, client, key, stop, errors)))
    for thread in threads:
        thread.start()
    time.sleep(SECONDS)  # the load itself, not a wait for something
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors, errors[:5]
    weir.stop()
    assert weir.cli("verify", "--data", weir.data).returncode == 0
