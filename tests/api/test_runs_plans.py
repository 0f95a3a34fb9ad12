"""Plans and runs: putting, starting, reading, listing."""
import uuid

import pytest

from harness.engine_calls import Engine, Outside, signal_body, steps_of


@pytest.fixture(name="engine", scope="module")
def engine_of_module(weir):
    """A tenant of its own for this module."""
    return Engine(weir, "acme-plans")


def body_of(*steps, plan_id="p", version="1", **fields):
    """A plan to be put."""
    return {"planId": plan_id, "planVersion": version, "steps": list(steps_of(steps, "outside")), **fields}


# ---- plans

def test_a_plan_is_put_once_and_read_back_with_what_was_left_out(engine):
    """The same content again is 200, other content under its name 409."""
    body = {"planId": "read", "planVersion": "7", "steps": [
        {"stepId": "extract", "queue": "etl", "config": {"table": "orders", "big": 12345678901234567890},
         "maxAttempts": 3, "timeoutMs": 60000},
        {"stepId": "publish", "dependsOn": ["extract"], "delayMs": 250}]}
    first = engine.call("POST", "/plans", body).expect(201)
    assert first["steps"] == 2 and first["planId"] == "read" and first["planVersion"] == "7"
    again = engine.call("POST", "/plans",
                        {**body, "steps": [dict(reversed(s.items())) for s in body["steps"]]})
    assert again.expect(200) == first
    engine.call("POST", "/plans", {**body, "onFailure": "wait"}).expect_problem(409, "PLAN_CONFLICT")
    read = engine.call("GET", "/plans/read/versions/7").expect(200)
    assert read.pop("createdAt") == first["createdAt"]
    assert read == {"planId": "read", "planVersion": "7", "onFailure": "fail", "steps": [
        {"stepId": "extract", "dependsOn": [], "queue": "etl",
         "config": {"table": "orders", "big": 12345678901234567890}, "maxAttempts": 3, "timeoutMs": 60000,
         "delayMs": 0},
        {"stepId": "publish", "dependsOn": ["extract"], "queue": "default", "maxAttempts": 1,
         "delayMs": 250}]}


def test_versions_and_tenants_keep_their_plans_apart(engine):
    """What is another tenant's is not there."""
    engine.put_plan("apart", "a")
    engine.put_plan("apart", "a", "b", version="2")
    other = Engine(engine.weir, "acme-elsewhere")
    other.call("GET", "/plans/apart/versions/1").expect_problem(404, "PLAN_NOT_FOUND")
    other.put_plan("apart", "x", "y", "z")
    assert len(engine.call("GET", "/plans/apart/versions/1").expect(200)["steps"]) == 1
    assert len(engine.call("GET", "/plans/apart/versions/2").expect(200)["steps"]) == 2
    engine.call("GET", "/plans/apart/versions/3").expect_problem(404, "PLAN_NOT_FOUND")
    engine.call("GET", "/plans/none/versions/1").expect_problem(404, "PLAN_NOT_FOUND")


@pytest.mark.parametrize("steps, path", [
    (["d<c", "a<b", "b<c", "c<a"], "a -> b -> c -> a"),
    (["a", "b<a,other"], "step b depends on other, which is no step of the plan (/steps/1/dependsOn/1)")])
def test_what_is_wrong_with_dependencies_is_told_with_its_path(engine, steps, path):
    """The detail names the steps of a cycle in order, and the place of an unknown one; nothing is
    kept of it."""
    answer = engine.call("POST", "/plans", body_of(*steps, plan_id="path"))
    assert answer.expect_problem(400, "PLAN_INVALID")["detail"].endswith(path)
    engine.call("GET", "/plans/path/versions/1").expect_problem(404, "PLAN_NOT_FOUND")


def test_plans_are_listed_newest_first_page_by_page(engine):
    """Each version once; `planId` filters; the first of a filter is the version that was stored last."""
    lister = Engine(engine.weir, "acme-lister")
    assert lister.call("GET", "/plans").expect(200) == {"items": [], "nextCursor": None}
    for number, (plan, version) in enumerate([("x", "2"), ("y", "1"), ("x", "10"), ("x", "9")]):
        lister.put_plan(plan, *"abcd"[:number + 1], version=version)
    lister.put_plan("x", "a", "b", "c", version="10", expect=200)  # the same again makes it no newer
    stored = [("x", "9", 4), ("x", "10", 3), ("y", "1", 2), ("x", "2", 1)]

    def pages(query):
        found, cursor = [], ""
        while cursor is not None:
            page = lister.call("GET", f"/plans?limit=2{query}{cursor}").expect(200)
            assert len(page["items"]) <= 2
            found += [(p["planId"], p["planVersion"], p["steps"]) for p in page["items"]]
            cursor = page["nextCursor"] and "&cursor=" + page["nextCursor"]
        return found

    assert pages("") == stored
    assert pages("&planId=x") == [p for p in stored if p[0] == "x"]
    assert pages("&planId=none") == []
    last = lister.call("GET", "/plans?limit=4").expect(200)
    assert len(last["items"]) == 4 and last["nextCursor"] is None, "nothing is behind a full page"
    newest = lister.call("GET", "/plans?planId=x&limit=1").expect(200)["items"]
    assert [p["planVersion"] for p in newest] == ["9"] and newest[0]["createdAt"].endswith("Z")
    assert not Engine(engine.weir, "acme-nobody").call("GET", "/plans").expect(200)["items"]
    for bad in ("limit=0", "limit=201", "cursor=x", "plan=x"):
        lister.call("GET", f"/plans?{bad}").expect_problem(400, "RFA_REQUEST_MALFORMED")


def test_null_for_an_optional_field_is_as_if_it_were_absent(engine):
    """Of plans and starts: with it or without it is the same request. A needed one stays needed."""
    plan = body_of("a", plan_id="nulls")
    engine.call("POST", "/plans", plan).expect(201)
    steps = [{**plan["steps"][0], "config": None, "maxAttempts": None, "timeoutMs": None, "delayMs": None}]
    engine.call("POST", "/plans", {**plan, "onFailure": None, "steps": steps}).expect(200)
    engine.call("POST", "/plans", {**plan, "planId": None}).expect_problem(400, "RFA_REQUEST_MALFORMED")
    run_id = str(uuid.uuid4())
    engine.try_start("nulls", runId=run_id).expect(201)
    engine.try_start("nulls", runId=run_id, params=None).expect(200)
    kept = engine.start("nulls", params={"deep": None})
    assert engine.run(kept)["params"] == {"deep": None}  # what is the caller's own is left alone
    signal = {**signal_body("CANCEL", {"reason": "r"}), "audit": None}
    engine.call("POST", f"/runs/{kept}/signals", signal).expect(200)


@pytest.mark.parametrize("change", [
    {"planId": None}, {"steps": []}, {"onFailure": "explode"}, {"owner": "me"},
    {"steps": [{"stepId": "a", "maxAttempts": 0}]}, {"steps": [{"stepId": "a", "config": [1]}]}])
def test_a_plan_of_another_form_is_malformed(engine, change):
    """Missing, wrong and unknown fields."""
    body = {name: value for name, value in {**body_of("a", plan_id="form"), **change}.items()
            if value is not None}
    assert engine.call("POST", "/plans", body).status == 400


# ---- starting

def test_a_run_is_started_once_by_its_id(engine):
    """201, again 200 with where it is now, other content 409."""
    engine.put_plan("once", "a")
    run_id = "order 4711 ü?#%20 " + str(uuid.uuid4())
    first = engine.try_start("once", runId=run_id, params={"n": 1, "m": 2}).expect(201)
    assert first == {"runId": run_id, "status": "PENDING"}
    assert engine.try_start("once", runId=run_id, params={"m": 2, "n": 1}).expect(200) == first
    engine.try_start("once", runId=run_id, params={"n": 2}).expect_problem(409, "RUN_CONFLICT")
    engine.try_start("once", runId=run_id, params={"n": 1, "m": 2}, project="other").expect_problem(
        409, "RUN_CONFLICT")
    assert len(engine.events(run_id)) == 1


@pytest.mark.parametrize("change, status, code", [
    ({"version": "9"}, 404, "PLAN_NOT_FOUND"), ({"runId": "a|b"}, 400, "RUN_INVALID"),
    ({"runId": "a/b"}, 400, "RUN_INVALID"), ({"runId": ".."}, 400, "RUN_INVALID"),
    ({"runId": "a\u0000b"}, 400, "RUN_INVALID"), ({"runId": "x" * 257}, 400, None),
    ({"params": [1]}, 400, "RFA_REQUEST_MALFORMED")])
def test_a_run_that_cannot_be_is_refused(engine, change, status, code):
    """With what is wrong."""
    engine.call("POST", "/plans", body_of("a", plan_id="wrong"))
    answer = engine.try_start(**{"plan_id": "wrong", **change})
    assert answer.status == status, answer
    if code:
        answer.expect_problem(status, code)


# ---- reading

def test_a_run_is_read_as_it_was_at_every_record(engine):
    """?at=0 is before the first record, beyond the last one the latest. [RUN-022]"""
    engine.put_plan("past", "a", "b<a")
    run_id = engine.start("past", params={"deep": {"x": 1.50}})
    with engine.worker() as worker:
        worker.drain(wait_ms=200)
    now = engine.wait_status(run_id, "COMPLETED")
    assert now["lastRunSeq"] == 7 and now["external"] is False and now["params"] == {"deep": {"x": 1.50}}
    assert now["metadata"] == {"inconsistent": False, "originalRunId": None}
    history = [(engine.run(run_id, at)["status"], engine.steps(run_id, at)["a"],
                engine.steps(run_id, at)["b"])
               for at in range(8)]
    nothing, running, done = ("PENDING", 0), ("RUNNING", 1), ("SUCCESS", 1)
    assert history == [("PENDING", nothing, nothing)] * 2 + [
        ("RUNNING", nothing, nothing), ("RUNNING", running, nothing), ("RUNNING", done, nothing),
        ("RUNNING", done, running), ("RUNNING", done, done), ("COMPLETED", done, done)]
    assert [engine.run(run_id, at)["lastRunSeq"] for at in (0, 3, 7, 99)] == [0, 3, 7, 7]
    assert engine.run(run_id, 99) == now


def test_a_run_of_an_engine_outside_shows_the_steps_it_was_heard_of(engine):
    """As of a record: those heard of by then."""
    run = Outside(engine)
    run.tell("RunStarted", "StepStarted a 1", "StepStarted b 1", "StepCompleted a 1")
    assert engine.steps(run.run_id) == {"a": ("SUCCESS", 1), "b": ("RUNNING", 1)}
    assert engine.steps(run.run_id, 2) == {"a": ("RUNNING", 1)}
    assert engine.steps(run.run_id, 1) == {} == engine.steps(run.run_id, 0)
    assert engine.run(run.run_id)["external"] is True


@pytest.mark.parametrize("query", ["?at=-1", "?at=x", "?at=1.5", "?at="])
def test_a_wrong_place_is_malformed(engine, query):
    """at is a runSeq."""
    run = Outside(engine)
    run.tell("RunStarted")
    engine.call("GET", f"/runs/{run.run_id}{query}").expect_problem(400, "RFA_REQUEST_MALFORMED")


def test_an_unknown_run_and_another_tenants_run_are_not_found_alike(engine):
    """For every way of reading."""
    run = Outside(engine)
    run.tell("RunStarted")
    other = Engine(engine.weir, "acme-curious")
    for run_id in (run.run_id, str(uuid.uuid4())):
        for path in ("", "/events", "/signals", f"/signals/{uuid.uuid4()}"):
            problem = other.call("GET", f"/runs/{run_id}{path}").expect_problem(404, "RUN_NOT_FOUND")
            assert engine.tenant not in str(problem)
        other.call("GET", f"/runs/{run_id}/events", headers={"Accept": "text/event-stream"}).expect_problem(
            404, "RUN_NOT_FOUND")


# ---- listing

@pytest.fixture(name="many", scope="module")
def many_runs(weir):
    """(engine, {run id: status}) with runs of two plans, two projects, several states."""
    engine = Engine(weir, "acme-lists")
    engine.put_plan("one", "a")
    engine.put_plan("two", "a", queue="never")
    made = {}
    for n in range(6):
        made[engine.start("one", project="red" if n % 2 else "blue")] = "COMPLETED"
    with engine.worker() as worker:
        worker.drain(wait_ms=200)
    for n in range(5):
        made[engine.start("two", project="red")] = "PENDING"
    run = Outside(engine, project="green")
    run.tell("RunStarted", "RunFailed")
    made[run.run_id] = "FAILED"
    return engine, made


@pytest.mark.parametrize("query, wanted", [
    ("", 12), ("status=COMPLETED", 6), ("status=PENDING", 5), ("status=FAILED", 1), ("status=RUNNING", 0),
    ("planId=two", 5), ("projectId=red", 8), ("projectId=blue&planId=one", 3),
    ("projectId=green&status=PENDING", 0)])
def test_runs_are_listed_newest_first_by_filters(many, query, wanted):
    """Whatever the page size, each once and in the same order."""
    engine, made = many
    for limit in (200, 2):
        items = engine.pages(f"/runs?limit={limit}&{query}")
        assert len(items) == wanted
        ids = [item["runId"] for item in items]
        newest = [run_id for run_id in reversed(made) if run_id in ids]
        assert ids == newest
        assert all(item["status"] == made[item["runId"]] for item in items)


def test_a_wrong_filter_is_malformed(many):
    """And a cursor that is none."""
    for query in ("status=BROKEN", "limit=0", "limit=201", "limit=x", "cursor=x", "cursor=-5"):
        many[0].call("GET", f"/runs?{query}").expect_problem(400, "RFA_REQUEST_MALFORMED")


def test_a_tenant_without_runs_has_an_empty_list(engine):
    """Also one nobody has heard of."""
    other_tenant = Engine(engine.weir, "acme-other")
    for path in ("/runs", "/alerts"):
        assert other_tenant.call("GET", path).expect(200) == {"items": [], "nextCursor": None}
