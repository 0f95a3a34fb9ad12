"""A run's records: pages, and the live stream that can be resumed and ends behind the last record."""
import contextlib
import json
import threading

import pytest

from harness.engine_calls import Engine, Outside, event_words, path_of
from harness.worker_calls import names


@pytest.fixture(name="engine", scope="module")
def engine_of_module(weir):
    """A tenant of its own for this module."""
    return Engine(weir, "acme-events")


@pytest.fixture(name="run")
def run_of_test(engine):
    """A run nobody has heard of."""
    return Outside(engine)


def test_pages_join_without_gap(run, engine):
    """[RUN-022] From any record on, in order of runSeq."""
    run.send({"events": [run.event("FooHappened", attempt=n + 1) for n in range(25)]}).expect(200)
    whole = engine.events(run.run_id)
    assert [record["runSeq"] for record in whole] == list(range(1, 26))
    for name in ("cursor", "after"):  # as all lists have it, and as a watermark is called
        found, after = [], 0
        while after is not None:
            page = engine.call("GET", path_of(run.run_id) + f"/events?limit=7&{name}={after}").expect(200)
            assert len(page["items"]) <= 7 and len(found) < 25
            found += page["items"]
            after = page["nextCursor"]
        assert found == whole
    assert engine.pages(path_of(run.run_id) + "/events?limit=7&after=3") == whole[3:]  # the cursor wins
    assert engine.events(run.run_id, 20) == whole[20:] and not engine.events(run.run_id, 99)


@pytest.mark.parametrize("query", ["after=-1", "after=x", "after=1.5", "after=1&cursor=x", "limit=0",
                                   "limit=1001", "limit=x"])
def test_bad_paging_is_malformed(run, engine, query):
    """In pages and streams."""
    run.tell("RunStarted")
    engine.call("GET", path_of(run.run_id) + f"/events?{query}").expect_problem(400, "RFA_REQUEST_MALFORMED")
    if "after" in query:
        engine.call("GET", path_of(run.run_id) + f"/events?{query}", headers={
            "Accept": "text/event-stream"}).expect_problem(400, "RFA_REQUEST_MALFORMED")


def test_an_ended_runs_stream_tells_its_history_and_ends(run, engine):
    """Each message is the record; its id the runSeq, its event the type."""
    run.tell("RunStarted", "StepStarted a 1", "StepCompleted a 1", "RunCompleted")
    messages = list(engine.follow(run.run_id))
    assert [m["data"] for m in messages] == engine.events(run.run_id)
    assert [m["id"] for m in messages] == ["1", "2", "3", "4"]
    assert [m["event"] for m in messages] == ["RunStarted", "StepStarted", "StepCompleted", "RunCompleted"]
    assert not list(engine.follow(run.run_id, last=4))
    assert [m["id"] for m in engine.follow(run.run_id, last=2)] == ["3", "4"]
    assert [m["id"] for m in engine.follow(run.run_id, query="?after=3")] == ["4"]


def test_a_long_history_is_streamed_in_parts(run, engine):
    """Several megabytes, some records large; more than a stream may have unsent at a time."""
    for first in (1, 1001, 2001):
        run.send({"events": [run.event("Foo", attempt=n) for n in range(first, first + 1000)]}).expect(200)
    large = {"text": "x" * 200000}
    run.send({"events": [run.event("Foo", attempt=5000 + n, payload=large) for n in range(4)]}).expect(200)
    run.tell("RunStarted", "RunCompleted")
    assert [m["id"] for m in engine.follow(run.run_id)] == [str(n) for n in range(1, 3007)]


def test_what_comes_after_the_end_is_in_the_stream_of_whoever_comes_later(run, engine):
    """Records behind the final one are records like any other."""
    run.tell("RunStarted", "RunCompleted", "FooHappened")
    assert [m["data"]["eventType"] for m in engine.follow(run.run_id)] == ["RunStarted", "RunCompleted",
                                                                           "FooHappened"]


def test_a_stream_follows_a_run_to_its_end(engine):
    """Live, by a worker's hand and by signals."""
    engine.put_plan("live", "a")
    run_id = engine.start("live")
    with contextlib.closing(engine.follow(run_id)) as messages, engine.worker() as worker:
        assert next(messages)["event"] == "RunQueued"
        tasks = worker.claim(wait_ms=5000)
        worker.start(tasks)
        assert [next(messages)["event"] for _ in range(2)] == ["RunStarted", "StepStarted"]
        engine.signal(run_id, "PAUSE", {"reason": "look"}).expect(200)
        paused = next(messages)
        assert paused["event"] == "RunPaused" and paused["data"]["payload"] == {"reason": "look"}
        worker.finish(tasks, result={"n": 1})
        assert next(messages)["data"]["payload"] == {"output": {"n": 1}}
        engine.signal(run_id, "RESUME").expect(200)
        assert [m["event"] for m in messages] == ["RunResumed", "RunCompleted"]


def test_last_event_id_resumes_without_skip_or_repeat(run, engine):
    """[RUN-023] A consumer's checkpoint is the id of the last message it has done with."""
    run.tell("RunStarted", "StepStarted a 1")
    seen = []
    with contextlib.closing(engine.follow(run.run_id)) as messages:
        seen += [next(messages) for _ in range(2)]
    run.tell("StepCompleted a 1")
    with contextlib.closing(engine.follow(run.run_id, last=seen[-1]["id"])) as messages:
        seen.append(next(messages))
        run.tell("FooHappened")
        seen.append(next(messages))
    run.tell("RunCompleted")
    seen += engine.follow(run.run_id, last=seen[-1]["id"])
    assert [m["data"] for m in seen] == engine.events(run.run_id)


@pytest.mark.parametrize("bad", ["x", "-1", "1.5", "99999999999999999999"])
def test_a_wrong_last_event_id_is_malformed(run, engine, bad):
    """It is a runSeq."""
    run.tell("RunStarted")
    engine.call("GET", path_of(run.run_id) + "/events", headers={
        "Accept": "text/event-stream", "Last-Event-ID": bad}).expect_problem(400, "RFA_REQUEST_MALFORMED")


def test_a_type_cannot_break_out_of_its_message(run, engine):
    """Whoever names a type with line ends in it writes no messages of his own."""
    evil = "Foo\n\nid: 99\nevent: RunCompleted\ndata: {}\n\n"
    run.append(evil)
    run.tell("RunStarted", "RunCompleted")
    messages = list(engine.follow(run.run_id))
    assert [m["id"] for m in messages] == ["1", "2", "3"] and messages[0]["data"]["eventType"] == evil


PRETTY = json.dumps({"a": [1, {"b": "x\ny\r"}], "c": None}, indent=2).replace("\n", "\r\n", 3)


def one_of_several_lines(run):
    """Appends RunStarted with a payload of several lines, and RunCompleted."""
    event = run.event("RunStarted", payload={"here": 0})
    body = json.dumps(event).replace('{"here": 0}', PRETTY)
    run.engine.call("POST", path_of(run.run_id) + "/events", body.encode(),
                    {"Content-Type": "application/json"}, roles="Engine").expect(201)
    run.tell("RunCompleted")


def test_a_payload_of_several_lines_is_one_message(run, engine):
    """As an engine sends it that writes its JSON for people to read."""
    one_of_several_lines(run)
    messages = list(engine.follow(run.run_id))
    assert [m["data"] for m in messages] == engine.events(run.run_id)
    assert messages[0]["data"]["payload"] == json.loads(PRETTY)


def test_a_stream_has_what_is_in_the_log_and_nothing_else(run, engine):
    """[RUN-024] There is no stream beside the log to publish on. What is refused is not told; what is told
    can be read and is in the state by then; what nobody stored changes none."""
    run.tell("RunStarted")
    with contextlib.closing(engine.follow(run.run_id)) as messages:
        next(messages)
        before = engine.run(run.run_id)
        taken = engine.events(run.run_id)[0]["eventId"]
        for refused, status in ((run.event("RunCompleted", idempotencyKey="0" * 64), 422),
                                (run.event("RunCompleted", eventId=taken), 409),
                                (run.event("RunCompleted", projectId="other"), 409),
                                (run.event("RunCompleted", planId=""), 400), (run.event("RunStarted"), 200)):
            assert run.send(refused).status == status
        assert engine.run(run.run_id) == before
        for n, (kind, then) in enumerate((("RunPaused", "PAUSED"), ("RunResumed", "RUNNING")), 2):
            run.tell(kind)
            told = next(messages)
            assert told["id"] == str(n) and told["data"] == engine.events(run.run_id)[-1]
            assert engine.status(run.run_id) == then


def test_reading_a_stream_changes_nothing(run, engine):
    """[RUN-024] Nor is there a way to write by it."""
    run.tell("RunStarted")
    before = engine.run(run.run_id)
    with contextlib.closing(engine.follow(run.run_id)) as messages:
        next(messages)
    assert engine.run(run.run_id) == before
    engine.call("PUT", path_of(run.run_id) + "/events", run.event("RunCompleted")).expect_problem(
        405, "RFA_REQUEST_METHOD_NOT_ALLOWED")
    engine.call("DELETE", path_of(run.run_id) + "/events").expect_problem(
        405, "RFA_REQUEST_METHOD_NOT_ALLOWED")
    assert engine.run(run.run_id) == before


def test_many_followers_see_the_same(run, engine):
    """A dozen of them, some leaving early, while batches are appended."""
    run.tell("RunStarted")
    seen = [[] for _ in range(12)]
    ready = threading.Barrier(13)

    def follower(i):
        with contextlib.closing(engine.follow(run.run_id)) as messages:
            for message in messages:
                seen[i].append(event_words(message["data"]) + " " + message["id"])
                if len(seen[i]) == 1:
                    ready.wait(timeout=60)
                    if i % 4 == 3:
                        return

    threads = [threading.Thread(target=follower, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    ready.wait(timeout=60)
    for n in range(5):
        run.send({"events": [run.event("FooHappened", attempt=100 * n + k)
                             for k in range(1, 61)]}).expect(200)
    run.tell("RunCompleted")
    for thread in threads:
        thread.join()
    whole = [event_words(r) + f" {r['runSeq']}" for r in engine.events(run.run_id)]
    assert len(whole) == 302
    for i, messages in enumerate(seen):
        assert messages == (whole[:1] if i % 4 == 3 else whole)
