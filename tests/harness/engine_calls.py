"""The engine API in tests: tokens, plans, runs, events of an engine outside, signals.

    engine = Engine(weir, tenant="acme")
    engine.put_plan("p", "a", "b<a", queue="outside")
    run_id = engine.start("p")
    with engine.worker("outside") as worker:
        worker.drain()
    engine.wait_status(run_id, "COMPLETED")
    engine.signal(run_id, "PAUSE", {"reason": "lunch"}).expect(200)

A call is an Admin's unless `roles` says otherwise; tokens are minted once per actor (mint).
Outside(engine) is an engine elsewhere: it builds envelopes with keys of its own reckoning.
"""
import hashlib
import http.client
import json
import os
import socket
import time
import uuid
from urllib.parse import quote

import jwt

from harness import wire
from harness.weir_server import wait_for
from harness.worker_calls import Worker

RUN_FINAL = ("COMPLETED", "FAILED", "CANCELLED")
STEP_EVENTS = ("StepStarted", "StepCompleted", "StepFailed", "StepSkipped")
RUN_EVENTS = ("RunQueued", "RunStarted", "RunPaused", "RunResumed", "RunCompleted", "RunFailed",
              "RunCancelled")
# A payload of each that its schema takes, of a run that has a step a.
SIGNALS = {
    "PAUSE": {"reason": "r"}, "RESUME": {}, "CANCEL": {"reason": "r"},
    "RETRY_STEP": {"stepId": "a", "force": True},
    "RETRY_RUN": {"reason": "r", "force": False}, "UPDATE_PARAMS": {"params": {"x": 1}},
    "INJECT_OVERRIDE": {"stepId": "a", "override": {"x": 1}},
    "ESCALATE_ALERT": {"level": "INFO", "note": "n"},
    "SKIP_STEP": {"stepId": "a", "reason": "r"}, "UPDATE_TARGET": {"stepId": "a", "newTarget": {"db": "x"}},
    "EMERGENCY_STOP": {"reason": "r", "forceKill": False}}
# No limit of rate for signals: settings.
UNLIMITED = {"engine.signals_per_run_minute": 0, "engine.signals_per_tenant_minute": 0,
             "engine.refused_signals_per_actor_minute": 1000000}
DESTRUCTIVE = ("UPDATE_PARAMS", "INJECT_OVERRIDE", "UPDATE_TARGET", "EMERGENCY_STOP")


def event_key(event):
    """The idempotency key of an envelope, reckoned here from the contract's words (seed 002, 3.1)."""
    parts = [event["runId"], event.get("stepId", "RUN"), str(event["logicalAttemptId"]), event["eventType"],
             event["planId"], event["planVersion"]]
    return hashlib.sha256("|".join(parts).encode("utf-8")).hexdigest()


def path_of(run_id):
    """/runs/{runId}, whatever the id holds."""
    return "/runs/" + quote(run_id, safe="")


def steps_of(words, queue):
    """Steps from words like "a", "c<a,b", or ready-made dicts."""
    for word in words:
        if isinstance(word, dict):
            yield {"queue": queue, **word}
            continue
        name, _, needs = word.partition("<")
        yield {"stepId": name, "dependsOn": needs.split(",") if needs else [], "queue": queue}


class UnixConnection(http.client.HTTPConnection):
    """HTTP over core's Unix socket."""

    def __init__(self, path, timeout=30):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        """To the socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Engine:
    """See the module's text. One tenant's view of a server."""

    def __init__(self, weir, tenant="acme", roles="Admin"):
        self.weir, self.tenant, self.roles, self.tokens = weir, tenant, roles, {}

    def token(self, roles=None, sub=None, project=None, tenant=None):
        """A token of this actor; minted the first time it is asked for."""
        roles = self.roles if roles is None else roles
        key = roles, sub or f"{roles.replace(',', '-') or 'nobody'}-1", project, tenant or self.tenant
        if key not in self.tokens:
            self.tokens[key] = mint(self.weir, *key)
        return self.tokens[key]

    def forget_tokens(self):
        """The key they were signed with is used no more."""
        self.tokens, self.weir.first_token = {}, None

    def call(self, method, path, body=None, headers=None, token=None, **actor):
        """One call under /engine/v1; a wire.Response."""
        return self.weir.api(method, "/engine/v1" + path, body, token or self.token(**actor), headers)

    def system(self, method, path, body=None):
        """The same over the Unix socket, where the caller is the System."""
        connection = UnixConnection(os.path.join(self.weir.data, "core.sock"))
        try:
            payload, kind = wire.encode(body)
            connection.request(method, "/engine/v1" + path, payload, {"Content-Type": kind} if kind else {})
            answer = connection.getresponse()
            return wire.Response(answer.status, {n.lower(): v for n, v in answer.getheaders()}, answer.read(),
                                 f"{method} {path}")
        finally:
            connection.close()

    # ---- plans and runs

    def put_plan(self, plan_id, *steps, version="1", queue="outside", expect=201, **fields):
        """Puts a plan of steps like "a", "c<a,b" or dicts."""
        body = {"planId": plan_id, "planVersion": version, "steps": list(steps_of(steps, queue)), **fields}
        return self.call("POST", "/plans", body).expect(expect)

    def try_start(self, plan_id, version="1", project="shop", environment="dev", actor=None, **fields):
        """Starts a run; the answer, whatever it is."""
        body = {"planId": plan_id, "planVersion": version, "projectId": project, "environmentId": environment,
                **fields}
        return self.call("POST", "/runs", body, **(actor or {}))

    def start(self, plan_id, **fields):
        """Starts a run; its id."""
        return self.try_start(plan_id, **fields).expect(201)["runId"]

    def run(self, run_id, at=None, **actor):
        """GET the run."""
        return self.call("GET", path_of(run_id) + ("" if at is None else f"?at={at}"), **actor).expect(200)

    def status(self, run_id):
        """Its status."""
        return self.run(run_id)["status"]

    def steps(self, run_id, at=None):
        """{stepId: (status, logicalAttemptId)}"""
        return {s["stepId"]: (s["status"], s["logicalAttemptId"]) for s in self.run(run_id, at)["steps"]}

    def wait_status(self, run_id, statuses, timeout=60):
        """Polls until the run has one of these; gives the run."""
        wanted = (statuses,) if isinstance(statuses, str) else statuses
        last = {}

        def reached():
            last.update(self.run(run_id))
            return dict(last) if last["status"] in wanted else None

        try:
            return wait_for(reached, timeout, f"run {run_id} in {wanted}", self.weir)
        except AssertionError as late:
            raise AssertionError(f"{late}\nlast seen: {last}\nevents: {self.names(run_id)}") from None

    def wait_step(self, run_id, step, status, timeout=60):
        """Polls until the step has this status."""
        wait_for(lambda: self.steps(run_id)[step][0] == status, timeout, f"{step} in {status}", self.weir)

    # ---- events

    def events(self, run_id, after=0):
        """Every record behind `after`."""
        items = []
        while True:
            page = self.call("GET", path_of(run_id) + f"/events?limit=1000&after={after}").expect(200)
            items += page["items"]
            if page["nextCursor"] is None:
                return items
            after = int(page["nextCursor"])

    def names(self, run_id):
        """What happened, as "RunStarted" and "StepStarted a 1"."""
        return [event_words(event) for event in self.events(run_id)]

    def follow(self, run_id, last=None, query="", timeout=60):
        """Messages of the live stream."""
        headers = {} if last is None else {"Last-Event-ID": str(last)}
        return wire.follow(self.weir.address, "/engine/v1" + path_of(run_id) + "/events" + query,
                           self.token(), headers, timeout)

    # ---- signals

    def signal(self, run_id, kind, payload=None, reason=None, signal_id=None, **actor):
        """Sends one; the answer, whatever it is."""
        return self.call("POST", path_of(run_id) + "/signals", signal_body(kind, payload, reason, signal_id),
                         **actor)

    def decision(self, run_id, signal_id, **actor):
        """The record of a signal."""
        return self.call("GET", path_of(run_id) + f"/signals/{signal_id}", **actor).expect(200)

    def decisions(self, run_id, query=""):
        """All records of a run, newest first."""
        return self.pages(path_of(run_id) + f"/signals{query or '?limit=200'}")

    def alerts(self, run_id=None, category=None):
        """Alerts, newest first: of a run, or of all."""
        found = self.pages("/alerts?limit=200" + (f"&runId={run_id}" if run_id else ""))
        return [alert for alert in found if category in (None, alert["category"])]

    def pages(self, path):
        """All items of a list that has a query already."""
        items, cursor = [], ""
        while True:
            page = self.call("GET", path + cursor).expect(200)
            items += page["items"]
            if page["nextCursor"] is None:
                return items
            cursor = "&cursor=" + page["nextCursor"]

    # ---- workers

    def worker(self, queue="outside", worker_id="worker-1"):
        """A worker of the tenant, with a token of role Worker."""
        return Worker(self.weir, self.token("Worker"), queue, worker_id)


def mint(weir, roles, sub, project, tenant):
    """One token: the first of a server by `weir token mint`, the others like it, by the same key."""
    if not weir.first_token:
        done = weir.cli("token", "mint", "--sub", "first", "--role", "Admin", "--tenant", "first")
        assert done.returncode == 0, done.stderr
        weir.first_token = done.stdout.strip()
    header = jwt.get_unverified_header(weir.first_token)
    claims = jwt.decode(weir.first_token, options={"verify_signature": False})
    now, said = int(time.time()), roles.split(",")
    claims |= {"sub": sub, "role": said[0], "roles": said, "tenant_id": tenant, "iat": now,
               "exp": now + claims["exp"] - claims["iat"], "jti": str(uuid.uuid4()),
               "session_id": str(uuid.uuid4()), "project_scope": project.split(",") if project else "*"}
    with open(os.path.join(weir.data, "keys", header["kid"] + ".pem"), encoding="ascii") as key:
        return jwt.encode(claims, key.read(), algorithm=header["alg"], headers=header)


def event_words(event):
    """An event as a few words."""
    words = [event["eventType"]]
    if "stepId" in event:
        words += [event["stepId"], str(event["logicalAttemptId"])]
    return " ".join(words)


def signal_body(kind, payload=None, reason=None, signal_id=None):
    """A SignalRequest."""
    body = {"signalId": signal_id or str(uuid.uuid4()), "signalType": kind, "payload": payload or {}}
    return {**body, "audit": {"reason": reason}} if reason is not None else body


class Outside:
    """A run of an engine elsewhere."""

    def __init__(self, engine, run_id=None, plan_id="plan_abc", version="2", project="shop",
                 environment="dev"):
        self.engine, self.run_id = engine, run_id or str(uuid.uuid4())
        self.head = {"runId": self.run_id, "tenantId": engine.tenant, "projectId": project,
                     "environmentId": environment, "planId": plan_id, "planVersion": version}

    def event(self, kind, step=None, attempt=1, **fields):
        """A complete RunEventWrite; `fields` beat what is made here, None leaves one out."""
        made = {"eventId": str(uuid.uuid4()), "eventType": kind, **self.head, "engineAttemptId": 1,
                "logicalAttemptId": attempt, "emittedAt": "2026-02-16T10:00:00.000Z"}
        if step is not None:
            made["stepId"] = step
        made.update(fields)
        made = {name: value for name, value in made.items() if value is not None}
        if "idempotencyKey" not in fields:
            try:
                made["idempotencyKey"] = event_key(made)
            except (KeyError, TypeError):  # a part of it is missing or no text: any will do
                made["idempotencyKey"] = "0" * 64
        return made

    def send(self, body, roles="Engine", **actor):
        """POST as it is; the answer."""
        return self.engine.call("POST", path_of(self.run_id) + "/events", body, roles=roles, **actor)

    def append(self, kind, step=None, attempt=1, expect=201, **fields):
        """One event; what was answered."""
        return self.send(self.event(kind, step, attempt, **fields)).expect(expect)

    def tell(self, *words):
        """Several events, from words like "RunStarted" or "StepStarted a 1"; the results."""
        events = []
        for word in words:
            kind, _, rest = word.partition(" ")
            step, _, attempt = rest.partition(" ")
            events.append(self.event(kind, step or None, int(attempt or 1)))
        return self.send({"events": events}).expect(200)["results"]

    def event_id(self, key, **actor):
        """The registry's id for a key; the answer."""
        return self.engine.call("POST", path_of(self.run_id) + "/event-ids", {"idempotencyKey": key},
                                **{"roles": "Engine", **actor})


def vectors(repository):
    """The golden vectors of the contract."""
    path = os.path.join(repository, "contracts", "vectors", "RunEvents.v2.0.1.idempotency_vectors.json")
    with open(path, encoding="utf-8") as file:
        return json.load(file)
