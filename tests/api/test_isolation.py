"""One client never sees or changes another's things: every operation of the contracts against every
kind of id, generated from the served contracts. An operation this file does not know fails."""
import itertools
import re
import uuid

import pytest
import yaml

from harness.weir_server import wait_for

METHODS = ("get", "put", "post", "delete", "patch")

# For every operation with an id in its path: its body, and what it must answer to the key of a client
# that does not own the thing. An operation without an id is in OWN_ONLY, OPEN or WORKER.
FOREIGN = {
    "createKey": ({"rotate": True}, 403, "RFA_AUTH_FORBIDDEN"),
    "listKeys": (None, 403, "RFA_AUTH_FORBIDDEN"),
    "renewKey": ({}, 403, "RFA_AUTH_FORBIDDEN"),
    "revokeKey": ("revoke", 403, "RFA_AUTH_FORBIDDEN"),
    "rotateWebhookSecret": (None, 403, "RFA_AUTH_FORBIDDEN"),
    "getJob": (None, 403, "RFA_AUTH_FORBIDDEN"),
    "cancelJob": (None, 403, "RFA_AUTH_FORBIDDEN"),
    "retryJob": (None, 403, "RFA_AUTH_FORBIDDEN"),
    "getReport": (None, 403, "RFA_AUTH_FORBIDDEN"),
    "getJobEvents": (None, 403, "RFA_AUTH_FORBIDDEN"),
    "explainJob": (None, 403, "RFA_AUTH_FORBIDDEN"),
    "deleteWebhook": (None, 403, "RFA_AUTH_FORBIDDEN"),
    "listJobDeliveries": (None, 403, "RFA_AUTH_FORBIDDEN"),
    "listDeliveries": (None, 403, "RFA_AUTH_FORBIDDEN"),
    "redeliver": (None, 403, "RFA_AUTH_FORBIDDEN"),
    "testWebhook": (None, 403, "RFA_AUTH_FORBIDDEN"),
    "enableWebhook": (None, 403, "RFA_AUTH_FORBIDDEN"),
    "rotateSecretOfWebhook": (None, 403, "RFA_AUTH_FORBIDDEN"),
}
# Operators only: a client's key is none of the credentials they take, whosever the id is.
OPERATORS_ONLY = {"listClients", "suspendClient", "resumeClient", "purgeJobsOfClient", "deleteClient",
                  "listJobsOfAll", "listQueuesOfAll", "listOperatorActions"}
# Answer with the caller's own things only.
OWN_ONLY = {"listJobs", "listReports", "getReportSummary", "listWebhooks", "listQueues"}
# Change the caller's own things that match a filter.
BY_FILTER = {"cancelJobs", "retryJobs"}
# A queue's name is every client's: what is in the path means the caller's own queue of that name.
OWN_QUEUE = {"getQueue": None, "setQueue": {"max_retries": 1}, "pauseQueue": None, "resumeQueue": None,
             "purgeQueue": None}
# Make a thing of the caller's own, or are nobody's.
OPEN = {"createClient", "submitJob", "submitJobBatch", "createWebhook", "getHealth", "getReadiness",
        "getStartup", "getMetrics", "getContract", "getKeySet", "getTopology", "acceptClock"}
# Ids are in the body and refusals in the items.
WORKER = {"claimTasks", "startTasks", "heartbeatTasks", "finishTasks", "releaseTasks"}


class Owner:
    """A client with one thing of every kind, and everything another client must not see of it."""

    def __init__(self, weir, name):
        self.weir, self.name = weir, name
        self.client_id, self.key = weir.new_client()
        created = weir.api("POST", f"/v1/clients/{self.client_id}/keys", {}, self.key).expect(201)
        self.key_id = created["key_id"]
        mark = {"payload": {"secret": f"of-{name}"}, "callback": f"http://{name}.example/cb"}
        self.queued = weir.submit(self.key, queue=f"queue-{name}", **mark)["job_id"]
        self.failed = weir.submit(self.key, queue="outside", retry="manual", **mark)["job_id"]
        weir.end_outside(self.key, self.failed)
        self.leased = weir.submit(self.key, queue="outside", **mark)["job_id"]
        self.task = weir.claim(self.key)[0]
        self.running = weir.submit(self.key, queue="outside", **mark)["job_id"]
        self.running_task = weir.claim(self.key)[0]
        weir.tell("start", self.key, self.running_task)
        hook = {"url": f"http://{name}.example/hook", "events": ["job.failed"]}
        self.webhook = weir.api("POST", "/v1/webhooks", hook, self.key).expect(201)["webhook_id"]
        test = weir.api("POST", f"/v1/webhooks/{self.webhook}:test", {}, self.key).expect(202)
        self.delivery = test["delivery_id"]
        # Nobody is there to receive it. From the first failure on nothing of the webhook changes by itself.
        wait_for(self.webhook_fails, 60, "the webhook to fail", weir)
        self.ids = {"job_id": [self.queued, self.failed, self.leased, self.running],
                    "client_id": [self.client_id], "webhook_id": [self.webhook],
                    "key_id": [self.key_id]}

    def webhook_fails(self):
        """Since when; None: it does not yet."""
        hook, = self.weir.api("GET", "/v1/webhooks", key=self.key).expect(200)["items"]
        return hook["failing_since"]

    def everything(self):
        """All that exists of this client, to compare before and after."""
        weir, found = self.weir, []
        for path in ("/v1/jobs?limit=200", "/v1/reports", "/v1/reports/summary", "/v1/webhooks"):
            found.append(weir.api("GET", path, key=self.key).expect(200))
        for q in weir.api("GET", "/v1/queues", key=self.key).expect(200)["items"]:
            found.append((q["queue"], q["depth"], q["running"], q["paused"]))
        for job_id in self.ids["job_id"]:
            found.append(weir.events(self.key, job_id))
        path = f"/v1/clients/{self.client_id}/keys"
        found.append(weir.api("POST", path, {}, self.key).expect(201))
        return found

    def assert_hidden(self, answer, asked=()):
        """Nothing of this client stands in an answer but the ids the other client asked with."""
        text = answer.text + repr(answer.headers)
        marks = [f"of-{self.name}", f"{self.name}.example", f"queue-{self.name}", self.key]
        for word in marks + [i for ids in self.ids.values() for i in ids]:
            assert word in asked or word not in text, f"{word} shows in {answer!r}"


@pytest.fixture(scope="module")
def operations(weir):
    """(operationId, METHOD, path) of every operation in every contract the server serves."""
    found = []
    for name in ("jobs", "worker", "ops"):
        contract = yaml.safe_load(weir.api("GET", f"/openapi/{name}.yaml").text)
        for path, item in contract["paths"].items():
            found += [(item[m]["operationId"], m.upper(), path) for m in METHODS if m in item]
    return found


@pytest.fixture(scope="module")
def owner(weir):
    """Client A."""
    return Owner(weir, "alpha")


@pytest.fixture(scope="module")
def other_client(weir):
    """Client B, with things of its own."""
    return Owner(weir, "beta")


def test_the_matrix_knows_every_operation(operations):
    """A new route has to say here how it treats another client."""
    known = set(FOREIGN) | OWN_ONLY | OPEN | WORKER | OPERATORS_ONLY | set(OWN_QUEUE) | BY_FILTER
    served = {operation for operation, _, _ in operations}
    assert served == known
    for operation, _, path in operations:
        has_id = set(re.findall(r"{(\w+)}", path)) - {"name", "queue"}
        if operation not in OPERATORS_ONLY:
            assert bool(has_id) == (operation in FOREIGN), f"{operation} {path}"


def test_no_clients_key_opens_an_operators_route(weir, operations, owner, other_client):
    """Not even for the client's own id."""
    before, tried = owner.everything(), 0
    for operation, method, path in operations:
        if operation not in OPERATORS_ONLY:
            continue
        for key in (owner.key, other_client.key):
            answer = weir.api(method, path.replace("{client_id}", owner.client_id), key=key)
            answer.expect_problem(401, "RFA_AUTH_INVALID_CREDENTIALS")
            owner.assert_hidden(answer, asked=(owner.client_id,))
            tried += 1
    assert tried == 2 * len(OPERATORS_ONLY)
    assert owner.everything() == before


def body_for(operation, victim):
    """The body that would do harm if it were let through."""
    body = FOREIGN[operation][0]
    return {"key_id": victim.key_id} if body == "revoke" else body


def test_a_foreign_id_is_refused_without_effect_or_data(weir, operations, owner, other_client):
    """[JOB-152 JOB-160 JOB-208 JOB-082 JOB-084 JOB-086 JOB-094 JOB-096 JOB-099 JOB-102 JOB-106]
    B's key against each of A's ids, on every operation that takes one."""
    before, tried = owner.everything(), 0
    for operation, method, path in operations:
        if operation not in FOREIGN:
            continue
        parameter = re.search(r"{(\w+)}", path).group(1)
        path = path.replace("{delivery_id}", owner.delivery)
        for one in owner.ids[parameter]:
            answer = weir.api(method, path.replace("{%s}" % parameter, one),
                              body_for(operation, owner), other_client.key)
            answer.expect_problem(*FOREIGN[operation][1:])
            owner.assert_hidden(answer, asked=(one,))
            tried += 1
    assert tried == 5 + 7 * 4 + 6
    assert owner.everything() == before


def test_a_name_of_a_queue_is_the_callers_own_queue(weir, operations, owner, other_client):
    """B asks about, pauses, sets and purges A's queue by its name, and cancels and retries by filters."""
    queue, before = "queue-" + owner.name, owner.everything()
    for operation, method, path in operations:
        if operation in OWN_QUEUE:
            answer = weir.api(method, path.replace("{queue}", queue), OWN_QUEUE[operation], other_client.key)
            assert answer.status == 200 and owner.queued not in answer.text
    for verb, state in (("cancel", "QUEUED"), ("retry", "FAILED")):
        body = {"filter": {"state": state, "queue": queue}}
        answer = weir.api("POST", f"/v1/jobs:{verb}", body, other_client.key).expect(200)
        assert (answer["matched"], answer["changed"]) == (0, 0)
    found = weir.api("GET", "/v1/queues", key=other_client.key)
    assert {q["depth"] for q in found.expect(200)["items"] if q["queue"] == queue} == {0}
    weir.api("POST", f"/v1/queues/{queue}", {}, other_client.key).expect(200)
    assert owner.everything() == before


def test_an_id_of_another_kind_finds_nothing(weir, operations, owner):
    """The owner's own key: a job id is no webhook, a key id no job, a client id no key."""
    before = owner.everything()
    for operation, method, path in operations:
        if operation not in FOREIGN:
            continue
        parameter = re.search(r"{(\w+)}", path).group(1)
        path = path.replace("{delivery_id}", owner.delivery)
        wrong = [i for kind, ids in owner.ids.items() if kind != parameter for i in ids]
        for one in wrong + [str(uuid.uuid4())]:
            answer = weir.api(method, path.replace("{%s}" % parameter, one),
                              body_for(operation, owner), owner.key)
            assert answer.status == 404, f"{operation} with {one}: {answer!r}"
            assert answer.json["code"].endswith("_NOT_FOUND")
            owner.assert_hidden(answer, asked=(one,))
    assert owner.everything() == before


def test_a_foreign_key_id_in_the_body_finds_nothing(weir, owner, other_client):
    """[JOB-086 JOB-069] B revokes A's key under B's own client: 404, and A's key works."""
    path = f"/v1/clients/{other_client.client_id}/keys/revoke"
    answer = weir.api("POST", path, {"key_id": owner.key_id}, other_client.key)
    answer.expect_problem(404, "RFA_AUTH_KEY_NOT_FOUND")
    weir.api("GET", "/v1/jobs", key=owner.key).expect(200)


@pytest.mark.parametrize("query", ["", "?limit=200", "?state=QUEUED", "?state=FAILED",
                                   "?queue=queue-alpha", "?outcome=FAILED"])
def test_lists_hold_the_callers_own_things_only(weir, operations, owner, other_client, query):
    """[JOB-152] Whatever the filter, and with a cursor of another client too. A list without such a filter
    refuses it."""
    paths = {operation: path for operation, _, path in operations if operation in OWN_ONLY}
    assert set(paths) == OWN_ONLY
    for path in paths.values():
        answer = weir.api("GET", path + query, key=other_client.key)
        if answer.status == 400:
            assert path not in ("/v1/jobs", "/v1/reports") and "no query parameter" in answer.json["detail"]
        else:
            answer.expect(200)
        owner.assert_hidden(answer)
    page = weir.api("GET", "/v1/jobs?limit=1", key=owner.key).expect(200)
    answer = weir.api("GET", f"/v1/jobs?cursor={page['next_cursor']}", key=other_client.key)
    assert {j["job_id"] for j in answer.expect(200)["items"]} <= set(other_client.ids["job_id"])


def test_the_summary_counts_own_jobs_only(weir, owner):
    fresh = weir.new_client()
    summary = weir.api("GET", "/v1/reports/summary", key=fresh.api_key).expect(200)
    assert summary["total"] == 0 and not any(summary["by_state"].values())
    assert weir.total(owner.key) == 4


def test_a_worker_gets_and_touches_its_own_clients_tasks_only(weir, operations, owner, other_client):
    """[JOB-152] Claims of B see no job of A; A's tasks and tokens in B's hand are lease_lost."""
    verbs = {path.rsplit("/", 1)[1] for operation, _, path in operations if operation in WORKER}
    assert verbs == {"claim", "start", "heartbeat", "finish", "release"}
    before = owner.everything()
    for queue in ("queue-alpha", "outside", "default"):
        assert weir.claim(other_client.key, queue, most=256) == []
    for verb, task in itertools.product(sorted(verbs - {"claim"}),
                                        (owner.task, owner.running_task)):
        fields = {"outcome": "success", "result": {}} if verb == "finish" else {}
        for token in (task["token"], "1", "2", "x"):
            told = weir.tell(verb, other_client.key, {**task, "token": token}, **fields)
            assert told["ok"] is False and told["code"] == "lease_lost", f"{verb}: {told}"
    assert owner.everything() == before
    assert weir.tell("heartbeat", owner.key, owner.running_task)["ok"] is True


def test_a_stream_of_a_foreign_job_is_refused(weir, owner, other_client):
    for one in owner.ids["job_id"]:
        answer = weir.api("GET", f"/v1/jobs/{one}/events", key=other_client.key,
                          headers={"Accept": "text/event-stream"})
        answer.expect_problem(403, "RFA_AUTH_FORBIDDEN")
        owner.assert_hidden(answer, asked=(one,))


def test_public_pages_show_no_clients_data(weir, owner):
    """Metrics, probes and contracts hold counts and names, never ids or payloads. Only metrics, which are for
    operators, name queues."""
    owner.assert_hidden(weir.api("GET", "/metrics"), asked=("queue-" + owner.name,))
    for path in ("/healthz", "/readyz", "/startupz", "/openapi/jobs.yaml",
                 "/.well-known/jwks.json", "/ops/v1/topology"):
        owner.assert_hidden(weir.api("GET", path))
    owner.assert_hidden(weir.api("POST", "/ops/v1/clock:accept"))
