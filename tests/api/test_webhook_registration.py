"""Webhooks: register, list, unregister. Delivering them is another matter."""
import uuid

import pytest

from harness.together import at_once

NAMES = ["job.created", "job.queued", "job.assigned", "job.running", "job.succeeded", "job.failed",
         "job.canceled", "job.lease_expired", "job.timed_out", "job.retries_exhausted"]


def register(weir, key, url="http://example.com/hook", events=("job.failed",)):
    """The answer to a registration."""
    return weir.api("POST", "/v1/webhooks", {"url": url, "events": list(events)}, key)


def listed(weir, key):
    """The client's webhooks."""
    return weir.api("GET", "/v1/webhooks", key=key).expect(200)["items"]


def test_a_webhook_is_registered_and_listed_without_its_secret(weir, client):
    """[JOB-103] 201 with webhook_id, created_at and the secret, once."""
    made = register(weir, client.api_key, events=["job.succeeded", "job.failed"]).expect(201)
    assert set(made) == {"webhook_id", "created_at", "secret"}
    assert made["secret"].startswith("whsec_")
    found = listed(weir, client.api_key)
    assert len(found) == 1 and found[0]["webhook_id"] == made["webhook_id"]
    assert found[0]["url"] == "http://example.com/hook"
    assert sorted(found[0]["events"]) == ["job.failed", "job.succeeded"]
    assert "secret" not in found[0]
    body = weir.api("GET", "/v1/webhooks", key=client.api_key).text
    assert made["secret"] not in body


@pytest.mark.parametrize("events", [[n] for n in NAMES] + [["*"], ["job.*"], NAMES])
def test_every_event_name_and_both_patterns_are_taken(weir, client, events):
    register(weir, client.api_key, events=events).expect(201)
    assert sorted(listed(weir, client.api_key)[0]["events"]) == sorted(events)


@pytest.mark.any_store
@pytest.mark.parametrize("url", ["not a url", "", "ftp://example.com/", "example.com/hook",
                                 "http://", "file:///etc/passwd", "http://a b/", "//example.com",
                                 "http://example.com/#x", "http://u:p@example.com/",
                                 "http://bücher.example/", "http://example.com:0/", "http://127.1/"])
def test_a_bad_url_is_refused(weir, client, url):
    """[JOB-104 JOB-187] 400, and nothing is registered."""
    problem = register(weir, client.api_key, url=url).expect_problem(
        400, "RFA_JOB_VALIDATION_FAILED")
    assert "url" in problem["detail"]
    assert listed(weir, client.api_key) == []


@pytest.mark.any_store
@pytest.mark.parametrize("events", [["job.exploded"], ["JOB.FAILED"], ["job."], [""], ["job"],
                                    ["job.failed", "nope"], ["**"], ["job.*x"]])
def test_an_unknown_event_name_is_refused(weir, client, events):
    """[JOB-104]"""
    problem = register(weir, client.api_key, events=events).expect_problem(
        400, "RFA_JOB_VALIDATION_FAILED")
    assert "events" in problem["detail"]
    assert listed(weir, client.api_key) == []


@pytest.mark.any_store
@pytest.mark.parametrize("body", [
    {}, {"url": "http://example.com/"}, {"events": ["*"]}, {"url": None, "events": ["*"]},
    {"url": 1, "events": ["*"]}, {"url": "http://example.com/", "events": []},
    {"url": "http://example.com/", "events": "*"}, {"url": "http://example.com/", "events": [1]},
    {"url": "http://example.com/", "events": ["*"] * 65},
    {"url": "http://example.com/", "events": ["*"], "secret": "mine"},
])
def test_a_malformed_registration_is_refused(weir, client, body):
    """[JOB-104 JOB-187] Missing url or events, empty list, wrong type, unknown field."""
    weir.api("POST", "/v1/webhooks", body, client.api_key).expect_problem(
        400, "RFA_REQUEST_MALFORMED")
    assert listed(weir, client.api_key) == []


def test_the_same_url_and_set_is_a_conflict(weir, client):
    """[JOB-104] Order and repetition do not make another set; another url or set does."""
    register(weir, client.api_key, events=["job.failed", "job.queued"]).expect(201)
    for events in (["job.failed", "job.queued"], ["job.queued", "job.failed"],
                   ["job.queued", "job.failed", "job.queued"]):
        register(weir, client.api_key, events=events).expect_problem(409, "RFA_WEBHOOK_CONFLICT")
    register(weir, client.api_key, events=["job.failed"]).expect(201)
    register(weir, client.api_key, "http://example.com/hook2", ["job.failed"]).expect(201)
    register(weir, weir.new_client().api_key, events=["job.failed", "job.queued"]).expect(201)
    assert len(listed(weir, client.api_key)) == 3


def test_a_client_has_so_many_webhooks_and_no_more(fresh_weir):
    """webhooks.max_per_client: one more is refused and leaves nothing behind; deleting one makes room; other
    clients have their own count, and a restart keeps it."""
    weir = fresh_weir(settings={"webhooks.max_per_client": 2})
    key, other = weir.new_client().api_key, weir.new_client().api_key
    first = register(weir, key, "http://example.com/1").expect(201)["webhook_id"]
    register(weir, key, "http://example.com/2").expect(201)
    problem = register(weir, key, "http://example.com/3").expect_problem(409, "RFA_WEBHOOK_CONFLICT")
    assert "no more" in problem["detail"]
    register(weir, other).expect(201)
    weir.restart()
    register(weir, key, "http://example.com/3").expect_problem(409, "RFA_WEBHOOK_CONFLICT")
    assert len(listed(weir, key)) == 2
    weir.api("DELETE", f"/v1/webhooks/{first}", key=key).expect(200)
    register(weir, key, "http://example.com/3").expect(201)


def test_registration_needs_a_valid_key(weir, client):
    """[JOB-104] No key 401, revoked key 403."""
    register(weir, None).expect_problem(401, "RFA_AUTH_INVALID_CREDENTIALS")
    keys = f"/v1/clients/{client.client_id}/keys"
    key_id = weir.api("GET", keys, key=client.api_key).expect(200)["items"][0]["key_id"]
    weir.api("POST", f"{keys}/revoke", {"key_id": key_id}, client.api_key).expect(200)
    register(weir, client.api_key).expect_problem(403, "RFA_AUTH_API_KEY_DISABLED")


@pytest.mark.tsan
def test_of_parallel_equal_registrations_one_wins(weir, client):
    answers = at_once(16, lambda _: register(weir, client.api_key))
    assert sorted(a.status for a in answers) == [201] + [409] * 15
    assert len(listed(weir, client.api_key)) == 1


def test_a_webhook_is_unregistered_once(weir, client):
    """[JOB-105 JOB-106] 200 {"deleted": true}; the second time 404; it may be registered again."""
    made = register(weir, client.api_key).expect(201)
    path = "/v1/webhooks/" + made["webhook_id"]
    assert weir.api("DELETE", path, key=client.api_key).expect(200) == {"deleted": True}
    assert listed(weir, client.api_key) == []
    weir.api("DELETE", path, key=client.api_key).expect_problem(404, "RFA_WEBHOOK_NOT_FOUND")
    again = register(weir, client.api_key).expect(201)
    assert again["webhook_id"] != made["webhook_id"]


def test_unregistering_refuses_what_it_must(weir, client):
    """[JOB-106] No key 401, foreign 403, unknown or malformed 404; it stays."""
    made = register(weir, client.api_key).expect(201)
    path = "/v1/webhooks/" + made["webhook_id"]
    weir.api("DELETE", path).expect_problem(401, "RFA_AUTH_INVALID_CREDENTIALS")
    weir.api("DELETE", path, key=weir.new_client().api_key).expect_problem(
        403, "RFA_AUTH_FORBIDDEN")
    for unknown in (uuid.uuid4(), "nonsense", made["webhook_id"][:-1]):
        weir.api("DELETE", f"/v1/webhooks/{unknown}", key=client.api_key).expect_problem(
            404, "RFA_WEBHOOK_NOT_FOUND")
    assert len(listed(weir, client.api_key)) == 1


def test_webhooks_outlive_a_restart(fresh_weir):
    weir = fresh_weir(settings={"runner.processes": 0})
    key = weir.new_client().api_key
    register(weir, key).expect(201)
    before = listed(weir, key)
    weir.kill9()
    weir.start()
    assert listed(weir, key) == before
    register(weir, key).expect_problem(409, "RFA_WEBHOOK_CONFLICT")
