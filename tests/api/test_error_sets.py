"""The errors that seed 001 lists for each call, against the contract that every answer is held against."""
import pytest

from harness import contract_statuses

pytestmark = pytest.mark.sqlite_only("what the contract lists does not depend on the store")
ON_EVERY_CALL = {405, 406, 413, 415, 429, 504}  # on top of the lists (AJ-17)
BODY = {400}  # of a call that takes no body and gets one, or one that is no JSON (AJ-17)
WAIT = {400}  # of a wait_ms that is no time; the seed's call does not wait (AJ-17)
OPERATOR = {401, 403}  # where registration is the operator's: not in dev (AJ-07)
KEYS = "/v1/clients/1/keys"
SETS = {
    "[JOB-080]": ("POST", "/v1/clients", {500, 503} | BODY | OPERATOR),
    "[JOB-082]": ("POST", KEYS, {400, 401, 403, 404, 409, 500, 503}),
    "[JOB-084]": ("POST", KEYS + "/renew", {400, 401, 403, 404, 409, 500, 503}),
    "[JOB-086]": ("POST", KEYS + "/revoke", {400, 401, 403, 404, 409, 500, 503}),
    "[JOB-092]": ("POST", "/v1/jobs", {400, 401, 403, 409, 429, 500, 503}),
    "[JOB-094]": ("POST", "/v1/jobs/1/cancel", {400, 401, 403, 404, 409, 500, 503}),
    "[JOB-096]": ("POST", "/v1/jobs/1/retry", {400, 401, 403, 404, 409, 500, 503}),
    "[JOB-099]": ("GET", "/v1/jobs/1", {401, 403, 404, 500, 503} | WAIT),
    "[JOB-102]": ("GET", "/v1/jobs/1/report", {401, 403, 404, 500, 503}),
    "[JOB-104]": ("POST", "/v1/webhooks", {400, 401, 403, 409, 500, 503}),
    "[JOB-106]": ("DELETE", "/v1/webhooks/1", {401, 403, 404, 500, 503}),
}


@pytest.mark.parametrize("listed", SETS)
def test_a_call_lists_the_errors_of_the_seed_and_those_of_every_call(listed):
    """[JOB-080 JOB-082 JOB-084 JOB-086 JOB-092 JOB-094 JOB-096 JOB-099 JOB-102 JOB-104 JOB-106]"""
    method, path, wanted = SETS[listed]
    _, statuses = contract_statuses.of(method, path)
    assert {status for status in statuses if status >= 400} - ON_EVERY_CALL == wanted - ON_EVERY_CALL


def test_an_answer_outside_of_its_contract_is_seen(weir, client, monkeypatch):
    """The control: with 404 taken out of the contract's list, the test that meets one fails."""
    path = "/v1/jobs/00000000-0000-7000-8000-000000000000"
    weir.api("GET", path, key=client.api_key).expect_problem(404, "RFA_JOB_NOT_FOUND")
    kept = [(*one[:3], one[3] - {404}) for one in contract_statuses.operations()]
    monkeypatch.setattr(contract_statuses, "operations", lambda: kept)
    with pytest.raises(AssertionError, match="getJob.*was answered 404"):
        weir.api("GET", path, key=client.api_key)
