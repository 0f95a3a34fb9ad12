"""A job's events: JSON pages, and the live stream that can be resumed."""
import contextlib
import threading

from harness import wire


def stream(weir, key, job_id, last=None, query="", timeout=20):
    """Messages of the live stream."""
    headers = {"Last-Event-ID": str(last)} if last is not None else {}
    return wire.follow(weir.address, f"/v1/jobs/{job_id}/events{query}", key, headers, timeout)


def test_pages_of_events_join_without_gap(weir, client):
    job_id = weir.failed_job(client.api_key)
    whole = weir.events(client.api_key, job_id)
    assert [e["event_name"] for e in whole] == ["job.created", "job.queued", "job.assigned",
                                                "job.running", "job.failed"]
    found, query = [], "?limit=2"
    while query:
        got = weir.api("GET", f"/v1/jobs/{job_id}/events{query}", key=client.api_key).expect(200)
        assert len(got["items"]) <= 2
        found += got["items"]
        query = f"?limit=2&cursor={got['next_cursor']}" if got["next_cursor"] else None
    assert found == whole


def test_events_once_written_never_change(weir, client):
    """[JOB-007] The same bytes before and after later transitions and a retry."""
    key = client.api_key
    job_id = weir.submit(key, queue="outside", retry="manual")["job_id"]
    early = weir.events(key, job_id)
    weir.end_outside(key, job_id)
    middle = weir.events(key, job_id)
    weir.retry(key, job_id).expect(200)
    late = weir.events(key, job_id)
    assert middle[:len(early)] == early and late[:len(middle)] == middle
    assert len(early) < len(middle) < len(late)


def test_bad_paging_is_malformed(weir, client):
    job_id = weir.submit(client.api_key, queue="o")["job_id"]
    for query in ("?limit=0", "?limit=x", "?cursor=x", "?cursor=-1", "?cursor=99999999999"):
        weir.api("GET", f"/v1/jobs/{job_id}/events{query}", key=client.api_key).expect_problem(
            400, "RFA_REQUEST_MALFORMED")
    beyond = weir.api("GET", f"/v1/jobs/{job_id}/events?cursor=500", key=client.api_key)
    assert beyond.expect(200) == {"items": [], "next_cursor": None}


def test_a_finished_job_streams_its_history_and_ends(weir, client):
    job_id = weir.failed_job(client.api_key)
    messages = list(stream(weir, client.api_key, job_id))
    assert [m["data"] for m in messages] == weir.events(client.api_key, job_id)
    assert [m["id"] for m in messages] == [str(n) for n in range(1, 6)]
    assert [m["event"] for m in messages] == [m["data"]["event_name"] for m in messages]


def test_a_live_stream_sees_each_change_as_it_happens_and_then_ends(weir, client):
    key = client.api_key
    job_id = weir.submit(key, queue="outside")["job_id"]
    with contextlib.closing(stream(weir, key, job_id)) as messages:
        assert [next(messages)["event"] for _ in range(2)] == ["job.created", "job.queued"]
        task = weir.claim(key)[0]
        assert next(messages)["event"] == "job.assigned"
        weir.tell("start", key, task)
        assert next(messages)["event"] == "job.running"
        weir.cancel(key, job_id).expect(200)
        last = next(messages)
        assert last["event"] == "job.canceled"
        assert last["data"] == weir.events(key, job_id)[-1]
        assert next(messages, None) is None


def test_last_event_id_resumes_behind_it(weir, client):
    key = client.api_key
    job_id = weir.submit(key, queue="outside")["job_id"]
    with contextlib.closing(stream(weir, key, job_id)) as messages:
        seen = [next(messages)["id"] for _ in range(2)]
    task = weir.claim(key)[0]
    weir.tell("start", key, task)
    with contextlib.closing(stream(weir, key, job_id, last=seen[-1])) as messages:
        assert [next(messages)["event"] for _ in range(2)] == ["job.assigned", "job.running"]
        weir.tell("finish", key, task, outcome="success", result={})
        assert [m["event"] for m in messages] == ["job.succeeded"]
    assert not list(stream(weir, key, job_id, last=5))
    assert [m["id"] for m in stream(weir, key, job_id, last=3)] == ["4", "5"]
    for bad in ("x", "-1", "1.5", "99999999999999"):
        weir.api("GET", f"/v1/jobs/{job_id}/events", key=key, headers={
            "Accept": "text/event-stream", "Last-Event-ID": bad}).expect_problem(
                400, "RFA_REQUEST_MALFORMED")


def test_many_followers_see_the_same(weir, client):
    """A dozen followers, some of them leaving early, all see every event in order."""
    key = client.api_key
    job_id = weir.submit(key, queue="outside")["job_id"]
    seen = [[] for _ in range(12)]
    ready = threading.Barrier(13)

    def follower(i):
        with contextlib.closing(stream(weir, key, job_id)) as messages:
            for message in messages:
                seen[i].append(message["event"])
                if len(seen[i]) == 2:
                    ready.wait(timeout=20)
                    if i % 4 == 3:
                        return

    threads = [threading.Thread(target=follower, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    ready.wait(timeout=20)
    weir.end_outside(key, job_id, "success", result={})
    for thread in threads:
        thread.join()
    names = weir.event_names(key, job_id)
    for i, events in enumerate(seen):
        assert events == (names[:2] if i % 4 == 3 else names)


def test_a_stream_of_a_foreign_or_unknown_job_is_refused_as_json(weir, client):
    other = weir.new_client()
    job_id = weir.submit(client.api_key, queue="o")["job_id"]
    accept = {"Accept": "text/event-stream"}
    weir.api("GET", f"/v1/jobs/{job_id}/events", key=other.api_key, headers=accept).expect_problem(
        403, "RFA_AUTH_FORBIDDEN")
    weir.api("GET", "/v1/jobs/nonsense/events", key=other.api_key, headers=accept).expect_problem(
        404, "RFA_JOB_NOT_FOUND")


def test_streams_end_when_the_server_stops(fresh_weir):
    """A follower does not hold up the stop, and can resume after the restart."""
    weir = fresh_weir(settings={"runner.processes": 0})
    key = weir.new_client().api_key
    job_id = weir.submit(key)["job_id"]
    with contextlib.closing(stream(weir, key, job_id)) as messages:
        last = [next(messages)["id"] for _ in range(2)][-1]
        weir.stop()
        assert next(messages, None) is None
    weir.start()
    weir.cancel(key, job_id).expect(200)
    assert [m["event"] for m in stream(weir, key, job_id, last=last)] == ["job.canceled"]


def test_the_answer_says_what_it_is(weir, client):
    job_id = weir.failed_job(client.api_key)
    path = f"/v1/jobs/{job_id}/events"
    for accept, kind in (("text/event-stream", "text/event-stream"), ("*/*", "application/json"),
                         ("text/event-stream, application/json", "text/event-stream"),
                         ("application/json, text/event-stream", "application/json")):
        answer = weir.api("GET", path, key=client.api_key, headers={"Accept": accept})
        assert answer.status == 200
        assert answer.headers["content-type"].split(";")[0] == kind
    head = weir.api("HEAD", path, key=client.api_key, headers={"Accept": "text/event-stream"})
    assert head.status == 200 and head.body == b""
