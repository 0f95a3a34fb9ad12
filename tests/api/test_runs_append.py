"""The append authority as an engine outside meets it: envelopes, keys, duplicates, batches, event ids. Every
field, key and transition: tests/unit/runs, tests/unit/lifecycle and tests/unit/engine/test_append.c."""
import hashlib
import unicodedata
import uuid
from datetime import datetime

import pytest

from harness.engine_calls import STEP_EVENTS, Engine, Outside, path_of
from harness.together import at_once

META = ("eventId", "runSeq", "persistedAt")


@pytest.fixture(name="engine", scope="module")
def engine_of_module(weir):
    """A tenant of its own for this module."""
    return Engine(weir, "acme-append")


@pytest.fixture(name="run")
def run_of_test(engine):
    """A run nobody has heard of."""
    return Outside(engine)


def meta(answer):
    """What a duplicate must repeat."""
    return tuple(answer[name] for name in META)


# ---- the catalog


def test_a_record_is_the_write_and_two_members_more(run):
    """[RUN-089] [RUN-091] [RUN-093] [RUN-061] Whatever the payload holds, byte for byte of its meaning."""
    written = [run.event("RunStarted"),
               run.event("StepStarted", "größe ✓",
                         payload={"n": 1.5, "deep": [{"x": None}], "text": "é\u0000|"}),
               run.event("StepFailed", "größe ✓", payload={"reason": "boom"}, engineAttemptId=7)]
    for event in written:
        run.send(event).expect(201)
    records = run.engine.events(run.run_id)
    for seq, (event, record) in enumerate(zip(written, records), 1):
        extra = {name: record[name] for name in record if name not in event}
        assert {name: record[name] for name in event} == event
        assert set(extra) == {"runSeq", "persistedAt"} and extra["runSeq"] == seq
        assert extra["persistedAt"].endswith("Z") and datetime.fromisoformat(extra["persistedAt"][:-1])
    assert "payload" not in records[0]


def test_an_unknown_type_is_stored_and_changes_nothing(run):
    """[RUN-005] [RUN-019] [RUN-020] [RUN-021] [RUN-025] [RUN-090] The watermark moves on, later events
    count."""
    run.tell("RunStarted", "StepStarted s1 1")
    before = run.engine.run(run.run_id)
    answer = run.append("runstarted", payload={"level": 3, "odd": {"|": []}})
    after = run.engine.run(run.run_id)
    assert after.pop("lastRunSeq") == answer["runSeq"] == before.pop("lastRunSeq") + 1
    assert after == before and not run.engine.alerts(run.run_id)
    assert run.engine.events(run.run_id)[-1]["payload"] == {"level": 3, "odd": {"|": []}}
    run.tell("StepCompleted s1 1", "RunCompleted")
    assert run.engine.status(run.run_id) == "COMPLETED"


# ---- envelopes


@pytest.mark.any_store
@pytest.mark.parametrize("change", [{"eventId": None}, {"planVersion": 2}, {"runSeq": 7}, {"runId": "a|b"},
                                    {"emittedAt": "yesterday"}, {"stepId": "s1"}], ids=str)
def test_an_envelope_with_a_fault_is_refused(run, change):
    """[RUN-089] Nothing is written of it."""
    run.send(run.event("RunQueued", **change)).expect_problem(400, "EVENT_INVALID")
    run.engine.call("GET", path_of(run.run_id)).expect_problem(404, "RUN_NOT_FOUND")


def test_what_goes_by_time_goes_by_when_it_was_persisted(run, weir):
    """[RUN-042] What Weir tells of a run by the clock: the times of `weir run events`, when it began and
    ended, its alerts. No call slices by time itself: records are asked for by runSeq, which rises with
    persistedAt, wherever the producers' clocks are."""
    for kind, text in (("RunStarted", "2031-01-01T00:00:00Z"), ("StepCompleted", "1999-12-31T23:59:59Z"),
                       ("RunCompleted", "2015-06-01T00:00:00Z")):
        run.append(kind, "s" if kind in STEP_EVENTS else None, emittedAt=text)
    records, now = run.engine.events(run.run_id), run.engine.run(run.run_id)
    times = [record["persistedAt"] for record in records]
    assert times == sorted(times)
    assert (now["startedAt"], now["endedAt"]) == (times[0], times[2])
    assert run.engine.alerts(run.run_id)[0]["persistedAt"] == times[1]
    shown = weir.cli("run", "events", run.run_id, "-q", "--token", run.engine.token()).stdout.splitlines()
    assert [line.split()[1] for line in shown] == times
    assert not [line for line in shown if any(year in line for year in ("2031", "1999", "2015"))]


# ---- keys


def digest(parts, delimiter="|", encoding="utf-8", algorithm="sha256"):
    """A key reckoned in some way; 64 digits."""
    return hashlib.new(algorithm, delimiter.join(parts).encode(encoding)).hexdigest()[:64].ljust(64, "0")


def test_a_key_reckoned_in_another_way_is_refused(engine):
    """[RUN-075] Another order, delimiter, encoding, algorithm, normal form, a field more or less; the right
    way is taken."""
    run = Outside(engine, plan_id="pl\u00e4ne")
    event = run.event("StepStarted", "schritt-\u00fc")
    parts = [event["runId"], event["stepId"], "1", event["eventType"], event["planId"], event["planVersion"]]
    assert digest(parts) == event["idempotencyKey"]
    decomposed = [unicodedata.normalize("NFD", part) for part in parts]
    wrong = [digest(parts[::-1]), digest(parts[1:] + parts[:1]), digest(parts, ":"), digest(parts, "||"),
             digest(parts, ""), digest(parts, encoding="utf-16-le"), digest(parts, encoding="latin-1"),
             digest(parts, algorithm="sha1"), digest(parts, algorithm="sha512"),
             digest(parts, algorithm="sha3_256"), digest(decomposed),
             digest([part.upper() for part in parts]), digest(parts[:-1]),
             digest(parts + [run.engine.tenant]), digest([part + " " for part in parts])]
    assert len(set(wrong)) == len(wrong)
    for key in wrong:
        run.send({**event, "idempotencyKey": key}).expect_problem(422, "IDEMPOTENCY_KEY_MISMATCH")
    run.engine.call("GET", path_of(run.run_id)).expect_problem(404, "RUN_NOT_FOUND")
    run.send(event).expect(201)


# ---- duplicates

def test_a_duplicate_gets_what_is_stored_and_writes_nothing(run):
    """[RUN-047] [RUN-048] [RUN-049] [RUN-076] [RUN-077] [RUN-078] [RUN-079] Also with another eventId,
    payload, time and engine attempt: the first record wins."""
    first = run.append("RunStarted", payload={"by": "me"})
    for fields in ({}, {"eventId": str(uuid.uuid4())}, {"payload": {"by": "you"}}, {"engineAttemptId": 9},
                   {"emittedAt": "2027-01-01T00:00:00Z"}):
        again = run.append("RunStarted", expect=200, **fields)
        assert meta(again) == meta(first) and again["duplicate"] is True
    record, = run.engine.events(run.run_id)
    assert record["payload"] == {"by": "me"} and record["eventId"] == first["eventId"]


def test_appends_at_once_are_numbered_without_repeats(engine):
    """[RUN-092] [RUN-130] Two runs, each with numbers of its own."""
    runs = [Outside(engine), Outside(engine)]
    engine.token("Engine")
    answers = at_once(40, lambda i: runs[i % 2].append("FooHappened", attempt=i + 1))
    for n in (0, 1):
        assert sorted(a["runSeq"] for a in answers[n::2]) == list(range(1, 21))
        records = engine.events(runs[n].run_id)
        assert [r["runSeq"] for r in records] == list(range(1, 21))
        assert {(r["logicalAttemptId"], r["runSeq"]) for r in records} == {
            (i + 1, a["runSeq"]) for i, a in enumerate(answers) if i % 2 == n}


def test_an_event_id_under_another_key_is_a_conflict(run, engine):
    """In the same run; another run is another matter."""
    first = run.append("RunStarted")
    run.send(run.event("RunCompleted", eventId=first["eventId"])).expect_problem(409, "EVENT_ID_CONFLICT")
    assert run.engine.names(run.run_id) == ["RunStarted"]
    Outside(engine).append("RunStarted", eventId=first["eventId"])


@pytest.mark.parametrize("change", [{"projectId": "other"}, {"environmentId": "prod"}])
def test_an_event_of_another_envelope_is_refused(run, change):
    """The run's first record says which they are."""
    run.append("RunStarted")
    run.send(run.event("RunCompleted", **change)).expect_problem(409, "ENVELOPE_MISMATCH")
    run.append("RunStarted", planVersion="3")  # another plan is another key, no other envelope
    assert [r["planVersion"] for r in run.engine.events(run.run_id)] == ["2", "3"]


def test_tenant_of_token_event_and_run_are_one(run, weir):
    """Who appends for another is refused; in a run of its own it is the envelope that is wrong (AR-09)."""
    run.append("RunStarted")
    run.send(run.event("RunCompleted", tenantId="other")).expect_problem(409, "ENVELOPE_MISMATCH")
    unopened = Outside(run.engine)
    first = unopened.event("RunStarted", tenantId="other")
    unopened.send(first).expect_problem(403, "AUTHZ_TENANT_FORBIDDEN")
    run.engine.call("GET", path_of(unopened.run_id)).expect_problem(404, "RUN_NOT_FOUND")
    thief = Outside(Engine(weir, "thief"), run.run_id)
    thief.send(thief.event("RunCompleted")).expect_problem(403, "AUTHZ_TENANT_FORBIDDEN")
    run.send(run.event("RunCompleted", runId="other")).expect_problem(400, "EVENT_INVALID")
    assert run.engine.names(run.run_id) == ["RunStarted"]


def test_weirs_own_runs_are_not_appended_to(engine):
    """Neither one by one nor in a batch."""
    engine.put_plan("own", "a", queue="never")
    run = Outside(engine, engine.start("own"), "own", "1")
    run.send(run.event("RunStarted")).expect_problem(409, "RUN_NOT_EXTERNAL")
    run.send({"events": [run.event("RunStarted")]}).expect_problem(409, "RUN_NOT_EXTERNAL")
    assert engine.names(run.run_id) == ["RunQueued"]


# ---- batches

def test_each_item_of_a_batch_stands_alone(run):
    """200; results in order; the good ones are written."""
    events = [run.event("RunStarted"), run.event("StepStarted", "a"), run.event("StepStarted", "a"),
              run.event("StepCompleted"), run.event("StepCompleted", "a", idempotencyKey="0" * 64),
              run.event("RunCompleted", tenantId="other"), 5, run.event("StepCompleted", "a")]
    results = run.send({"events": events}).expect(200)["results"]
    assert [r.get("runSeq") for r in results] == [1, 2, 2, None, None, None, None, 3]
    assert [r.get("duplicate") for r in results] == [False, False, True, None, None, None, None, False]
    assert [r["error"]["code"] for r in results if "error" in r] == [
        "EVENT_INVALID", "IDEMPOTENCY_KEY_MISMATCH", "ENVELOPE_MISMATCH", "EVENT_INVALID"]
    assert {r["error"]["status"] for r in results if "error" in r} == {400, 422, 409}
    assert run.engine.names(run.run_id) == ["RunStarted", "StepStarted a 1", "StepCompleted a 1"]
    again = run.send({"events": events}).expect(200)["results"]
    assert [r.get("duplicate") for r in again] == [True, True, True, None, None, None, None, True]
    assert [meta(r) for r in again if "runSeq" in r] == [meta(r) for r in results if "runSeq" in r]


def test_a_batch_has_one_to_a_thousand_events(run):
    """And stands alone in its body."""
    for body in ({"events": []}, {"events": {}}, {"events": [run.event("RunStarted")], "more": 1},
                 {"events": [run.event("RunStarted")] * 1001}, {**run.event("RunStarted"), "events": []}):
        answer = run.send(body)
        assert answer.status == 400, answer
    events = [run.event("FooHappened", attempt=n + 1) for n in range(1000)]
    results = run.send({"events": events}).expect(200)["results"]
    assert [r["runSeq"] for r in results] == list(range(1, 1001))
    assert run.engine.run(run.run_id)["lastRunSeq"] == 1000


# ---- states and alerts


def test_an_invalid_event_is_stored_flagged_and_told_once(run):
    """[RUN-104] [RUN-117] [RUN-118] [RUN-119] [RUN-120] [RUN-122] [RUN-123] [RUN-124] [RUN-125] [RUN-126]
    [RUN-127] Policy A: state as before, the run inconsistent, one alert with every field; later events
    count."""
    run.tell("RunStarted", "StepStarted a 1")
    invalid = run.append("StepCompleted", "b")
    again = run.append("StepCompleted", "b", expect=200)
    assert meta(again) == meta(invalid)
    now = run.engine.run(run.run_id)
    assert now["status"] == "RUNNING" and now["metadata"]["inconsistent"] is True
    assert run.engine.steps(run.run_id)["a"] == ("RUNNING", 1)
    assert run.engine.steps(run.run_id).get("b", ("PENDING", 0)) == ("PENDING", 0)
    alert, = run.engine.alerts(run.run_id)
    assert uuid.UUID(alert.pop("alertId")) and alert.pop("createdAt")
    assert alert == {"code": "INVALID_TRANSITION", "severity": "CRITICAL", "category": "transition",
                     "runId": run.run_id, "tenantId": run.engine.tenant, "projectId": "shop",
                     "environmentId": "dev", "eventId": invalid["eventId"], "eventType": "StepCompleted",
                     "runSeq": 3, "persistedAt": invalid["persistedAt"], "priorState": "PENDING",
                     "attemptedState": "SUCCESS"}
    run.tell("StepCompleted a 1", "RunCompleted")
    late = run.append("StepStarted", "c")
    now = run.engine.run(run.run_id)
    assert now["status"] == "COMPLETED" and now["metadata"]["inconsistent"]
    assert now["lastRunSeq"] == late["runSeq"]
    assert [a["eventId"] for a in run.engine.alerts(run.run_id)] == [late["eventId"], invalid["eventId"]]
    assert not run.engine.run(run.run_id, 2)["metadata"]["inconsistent"]
    assert run.engine.run(run.run_id, 3)["metadata"]["inconsistent"]


def test_alerts_are_not_doubled_by_a_restart(fresh_weir):
    """[RUN-127] [RUN-056] [RUN-060] And state, records and event ids are the same after it; verify reduces
    all anew."""
    weir = fresh_weir()
    engine = Engine(weir)
    run = Outside(engine)
    run.tell("RunStarted", "StepCompleted a 1", "RunPaused", "StepStarted b 1")
    key = run.event("RunCompleted")["idempotencyKey"]
    known = run.event_id(key).expect(200)
    before = engine.run(run.run_id), engine.alerts(), engine.events(run.run_id)
    assert len(before[1]) == 2
    weir.restart()
    assert (engine.run(run.run_id), engine.alerts(), engine.events(run.run_id)) == before
    assert run.event_id(key).expect(200) == known
    weir.stop()
    done = weir.cli("verify")
    assert done.returncode == 0, done.stdout


# ---- layer 2

def test_with_validation_an_invalid_event_is_refused_for_good(module_weir):
    """[RUN-111] [RUN-112] [RUN-113] [RUN-114] [RUN-115] [RUN-116] In the same words, nothing written, also
    when it would be valid by then; what was there before stays a duplicate."""
    weir = module_weir(settings={"engine.append_validation": "on"})
    run = Outside(Engine(weir))
    started = run.append("RunStarted")
    early = run.event("StepCompleted", "a")
    answers = [run.send(early) for _ in range(2)]
    run.append("StepStarted", "a")
    answers += [run.send(early), run.send({**early, "eventId": str(uuid.uuid4())})]
    problems = [a.expect_problem(409, "INVALID_TRANSITION") for a in answers]
    assert len({(p["detail"], p["title"], p["type"]) for p in problems}) == 1
    batch = run.send({"events": [early, run.event("StepFailed", "a")]}).expect(200)["results"]
    assert batch[0]["error"]["code"] == "INVALID_TRANSITION"
    assert batch[0]["error"]["detail"] == problems[0]["detail"]
    assert batch[1]["runSeq"] == 3
    assert meta(run.append("RunStarted", expect=200)) == meta(started)
    run.append("FooHappened")
    now = run.engine.run(run.run_id)
    assert now["lastRunSeq"] == 4 and not now["metadata"]["inconsistent"] and not run.engine.alerts()


# ---- event ids

def test_the_registry_gives_one_id_per_run_and_key(engine):
    """[RUN-051] [RUN-052] [RUN-054] [RUN-057] Version 4; another run or key has another."""
    one, two = Outside(engine), Outside(engine)
    key, other = one.event("RunStarted")["idempotencyKey"], one.event("RunCompleted")["idempotencyKey"]
    ids = [one.event_id(key).expect(200)["eventId"] for _ in range(3)]
    assert len(set(ids)) == 1 and uuid.UUID(ids[0]).version == 4
    assert uuid.UUID(ids[0]).variant == uuid.RFC_4122
    assert len({ids[0], one.event_id(other).json["eventId"], two.event_id(key).json["eventId"]}) == 3
    engine.token("Engine")
    fresh = Outside(engine)
    race = at_once(20, lambda _: fresh.event_id(key).expect(200)["eventId"])
    assert len(set(race)) == 1
    engine.call("GET", f"/runs/{fresh.run_id}").expect_problem(404, "RUN_NOT_FOUND")  # it is no event


@pytest.mark.parametrize("body",
                         [{}, {"idempotencyKey": "x"}, {"idempotencyKey": "g" * 64}, {"idempotencyKey": 5},
                          {"idempotencyKey": "A" * 64}, {"idempotencyKey": "a" * 64, "more": 1}])
def test_the_registry_wants_a_key(run, body):
    """64 lower-case digits of hex, nothing else."""
    answer = run.engine.call("POST", f"/runs/{run.run_id}/event-ids", body, roles="Engine")
    assert answer.status == 400, answer
