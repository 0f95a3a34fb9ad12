"""Who may call the engine API: tokens, their roles, tenants and lifetimes; the Unix socket."""
import os
import time
import uuid

import jwt
import pytest

from harness.engine_calls import Engine, Outside, path_of, signal_body

INVALID = "RFA_AUTH_INVALID_CREDENTIALS"


@pytest.fixture(name="engine", scope="module")
def engine_of_module(weir):
    """A tenant of its own for this module."""
    return Engine(weir, "acme-tokens")


def calls(run_id="r", signal_id=None):
    """(method, path, body, roles that may) of every call of the engine API."""
    some = signal_id or str(uuid.uuid4())
    everybody = {"Admin", "Engineer", "Operator", "Engine", "Worker", "Painter"}
    plan = {"planId": "tokens", "planVersion": "1", "steps": [{"stepId": "a", "queue": "never"}]}
    run = {"planId": "tokens", "planVersion": "1", "projectId": "p", "environmentId": "e"}
    return [("POST", "/plans", plan, {"Admin", "Engineer"}),
            ("GET", "/plans/tokens/versions/1", None, everybody),
            ("POST", "/runs", run, {"Admin", "Engineer"}), ("GET", "/runs", None, everybody),
            ("GET", path_of(run_id), None, everybody), ("GET", path_of(run_id) + "/events", None, everybody),
            ("POST", path_of(run_id) + "/events", {"events": [{}]}, {"Admin", "Engine"}),
            ("POST", path_of(run_id) + "/event-ids", {"idempotencyKey": "a" * 64}, {"Admin", "Engine"}),
            ("POST", path_of(run_id) + "/signals", signal_body("PAUSE"), {"Admin", "Engineer", "Operator"}),
            ("GET", path_of(run_id) + "/signals", None, everybody),
            ("GET", path_of(run_id) + f"/signals/{some}", None, everybody),
            ("POST", path_of(run_id) + f"/signals/{some}:processed", {"status": "success"},
             {"Admin", "Engine"}),
            ("GET", f"/signal-decisions/{some}", None, everybody),
            ("POST", f"/signal-decisions/{some}:approve", {}, {"Admin"}),
            ("POST", f"/signal-decisions/{some}:reject", {}, {"Admin"}), ("GET", "/alerts", None, everybody)]


def test_no_call_goes_without_a_token(weir, engine):
    """401 for none, for junk, for an API key, for a forged and a foreign one."""
    good = engine.token()
    head, claims, signature = good.split(".")
    forged = ".".join((head, claims,
                       signature[:-6] + ("AAAAAA" if not signature.endswith("AAAAAA") else "BBBBBB")))
    foreign = jwt.encode({"sub": "x"}, "secret-of-somebody-else-secret-of", algorithm="HS256")
    key = weir.new_client().api_key
    for method, path, body, _ in calls():
        for said in (None, "Bearer", "Bearer x", "Bearer " + forged, "Bearer " + foreign, "Basic " + good,
                     "Bearer " + key, "Bearer " + good + "x"):
            headers = {"Authorization": said} if said else {}
            weir.api(method, "/engine/v1" + path, body, headers=headers).expect_problem(401, INVALID)


@pytest.mark.parametrize("role", ["Admin", "Engineer", "Operator", "Engine", "Worker", "Painter"])
def test_each_call_asks_for_its_role(engine, role):
    """403 AUTHZ_DENIED without it, anything else with it."""
    run = Outside(engine)
    run.tell("RunStarted")
    for method, path, body, roles in calls(run.run_id):
        answer = engine.call(method, path, body, roles=role)
        if role in roles:
            assert answer.status in (200, 201, 404), answer
            not_found = answer.status == 404 and answer.json["code"] != "SIGNAL_NOT_FOUND"
            assert not not_found or "plans" in path, answer
        else:
            answer.expect_problem(403, "AUTHZ_DENIED")


def signed(weir, **changes):
    """A token with these claims, signed with the server's own key by another implementation; None takes one
    away."""
    kid = jwt.get_unverified_header(Engine(weir).token())["kid"]
    with open(os.path.join(weir.data, "keys", kid + ".pem"), encoding="utf-8") as file:
        secret = file.read()
    now = int(time.time())
    claims = {"iss": "weir-dev", "aud": "weir", "sub": "ada", "roles": ["Admin"], "tenant_id": "acme-tokens",
              "project_scope": "*", "iat": now, "exp": now + 600, "jti": str(uuid.uuid4()), **changes}
    return jwt.encode({name: value for name, value in claims.items() if value is not None}, secret,
                      algorithm="ES256", headers={"kid": kid})


@pytest.mark.parametrize("changes, code", [
    ({"exp": 1000, "iat": 900}, "RFA_AUTH_TOKEN_EXPIRED"), ({"tenant_id": None}, INVALID),
    ({"sub": None}, INVALID),
    ({"project_scope": None}, INVALID), ({"aud": "bank"}, INVALID), ({"iss": "evil"}, INVALID),
    ({"roles": None}, INVALID), ({"roles": "Admin"}, INVALID), ({"jti": None}, INVALID),
    ({"exp": int(time.time()) + 10 * 86400}, INVALID), ({"iat": int(time.time()) + 3600}, INVALID)], ids=str)
def test_a_token_that_says_too_little_or_too_much_is_refused(weir, engine, changes, code):
    """Signed rightly, and still 401."""
    engine.call("GET", "/runs", token=signed(weir)).expect(200)
    engine.call("GET", "/runs", token=signed(weir, **changes)).expect_problem(401, code)


def test_nobody_outside_is_the_system(weir, engine):
    """[SIG-025] [SIG-026] A token that says so is any token without that role; the record says NONE."""
    run = Outside(engine)
    run.tell("RunStarted")
    token = signed(weir, roles=["System"])
    engine.call("GET", "/runs", token=token).expect(200)
    body = signal_body("ESCALATE_ALERT", {"level": "P1"})
    problem = engine.call("POST", path_of(run.run_id) + "/signals", body, token=token).expect_problem(
        403, "AUTHZ_DENIED")
    record = engine.decision(run.run_id, body["signalId"])
    assert record["decision"] == "REJECTED" and record["audit"]["actorRole"] == "NONE"
    assert record["policyDecisionId"] == problem["policyDecisionId"]
    both = signed(weir, roles=["System", "Operator"])
    body = signal_body("PAUSE")
    engine.call("POST", path_of(run.run_id) + "/signals", body, token=both).expect(200)
    assert engine.decision(run.run_id, body["signalId"])["audit"]["actorRole"] == "Operator"


def test_a_token_without_roles_reads_and_does_nothing(weir, engine):
    """roles may be empty; role alone is one role."""
    empty, one = signed(weir, roles=[]), signed(weir, roles=None, role="Engineer")
    engine.call("GET", "/runs", token=empty).expect(200)
    body = calls()[0][2]
    engine.call("POST", "/plans", body, token=empty).expect_problem(403, "AUTHZ_DENIED")
    assert engine.call("POST", "/plans", body, token=one).status in (200, 201)


def test_the_unix_socket_sends_signals_and_nothing_else_of_the_engine(engine):
    """The built-in domains have no tenant to read for."""
    run = Outside(engine)
    run.tell("RunStarted")
    body = signal_body("ESCALATE_ALERT", {"level": "WARNING"})
    engine.system("POST", path_of(run.run_id) + "/signals", body).expect(200)
    for method, path, said, _ in calls(run.run_id):
        if not path.endswith("/signals") or method == "GET":
            assert engine.system(method, path, said).status == 401


def test_a_revoked_key_ends_its_tokens(fresh_weir):
    """At once for whoever asks next."""
    weir = fresh_weir()
    engine = Engine(weir)
    token = engine.token()
    engine.call("GET", "/runs").expect(200)
    kid = jwt.get_unverified_header(token)["kid"]
    weir.cli("token", "rotate")
    engine.call("GET", "/runs").expect(200)
    assert weir.cli("token", "revoke-key", kid).returncode == 0
    deadline = time.monotonic() + 60
    while engine.call("GET", "/runs").status == 200:
        assert time.monotonic() < deadline, "the token of a revoked key is still taken"
        time.sleep(0.1)
    engine.call("GET", "/runs").expect_problem(401, INVALID)


def test_a_token_of_another_key_set_is_refused(fresh_weir, engine):
    """Two servers do not trust each other."""
    other = Engine(fresh_weir(), engine.tenant)
    engine.call("GET", "/runs", token=other.token()).expect_problem(401, INVALID)


@pytest.mark.parametrize("method, path", [("GET", "/engine/v1/runs"), ("POST", "/engine/v1/plans")])
def test_problems_name_what_is_missing(weir, method, path):
    """A new user reads what to do."""
    problem = weir.api(method, path, {} if method == "POST" else None).expect_problem(401, INVALID)
    assert "weir token mint" in problem["detail"]
