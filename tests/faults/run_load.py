"""Load of workflow runs for the kill tests: engines elsewhere that append with retries, clients that start
runs for runners and outside workers, operators that send signals. All of them send again until somebody
answers, under the same runId, idempotencyKey or signalId, and write down what they heard; judge_runs() then
looks for what was lost, doubled or made up."""
import random
import threading
import time
import uuid

from harness.engine_calls import RUN_FINAL, UNLIMITED, Engine, Outside, path_of, signal_body
from harness.kept import Kept
from harness.run_records import record_faults, written_faults
from harness.signal_judge import SignalBook, payload_of, signal_faults
from harness.together import Crew
from harness.weir_server import wait_for
from kill_load import CUT, SETTINGS

RESEND_SECONDS = 0.02
SKEW_SECONDS_MAX = 1.0
OUTSIDE = "steps.outside"
RUN_SETTINGS = {**SETTINGS, **UNLIMITED, "jobs.retry_cap_ms": 50}
PLAN = ({"stepId": "a", "queue": "default", "maxAttempts": 9},
        {"stepId": "b", "dependsOn": ["a"], "maxAttempts": 9},
        {"stepId": "c", "dependsOn": ["a"], "queue": "default", "config": {"work_kind": "FAIL_IMMEDIATE"}},
        {"stepId": "d", "dependsOn": ["b"], "maxAttempts": 9})
SIGNALS = ("PAUSE", "RESUME", "RESUME", "UPDATE_PARAMS", "UPDATE_PARAMS", "SKIP_STEP", "RETRY_STEP")


class RunHistory:
    """What was sent and heard; many threads write."""

    def __init__(self):
        self.lock = threading.Lock()
        self.sent = {}  # {run_id: keys}
        self.written = []  # (run_id, key, (eventId, runSeq, persistedAt))
        self.started = []  # runs of ours
        self.book = SignalBook()
        self.cuts = 0

    def sends(self, run_id, events):
        """Before they are sent."""
        with self.lock:
            self.sent.setdefault(run_id, set()).update(event["idempotencyKey"] for event in events)

    def heard(self, run_id, events, results):
        """They were acknowledged."""
        with self.lock:
            for event, result in zip(events, results):
                meta = tuple(result[name] for name in ("eventId", "runSeq", "persistedAt"))
                self.written.append((run_id, event["idempotencyKey"], meta))

    def cut(self):
        """No answer."""
        with self.lock:
            self.cuts += 1


class Caller(Crew):
    """Threads that call until they are answered. `nodes`: servers of one store."""

    def __init__(self, nodes, engine, history, threads, roles="Admin"):
        super().__init__(threads)
        self.engine, self.history = engine, history
        self.nodes = [(node, Engine(node, engine.tenant).token(roles)) for node in nodes]  # each has its keys

    def connect(self, rng):
        """To one of the nodes."""
        node, token = rng.choice(self.nodes)
        return Kept(node.address, token, timeout=10)

    def answered(self, rng, method, path, body, patience=None):
        """Sends until there is an answer below 500; None when `patience` says stop."""
        while True:
            try:
                with self.connect(rng) as kept:
                    answer = kept.call(method, "/engine/v1" + path, body() if callable(body) else body)
                if answer.status < 500:
                    return answer
            except CUT:
                self.history.cut()
            if patience and patience():
                return None
            time.sleep(RESEND_SECONDS)


class Engines(Caller):
    """Engines elsewhere, each with one run after another; some events are sent twice without need, and after
    a cut some have forgotten which eventId they had."""

    def __init__(self, nodes, engine, history, threads=2):
        super().__init__(nodes, engine, history, threads, "Engine")

    def run(self, n):
        """One of them."""
        rng = random.Random(n)
        while not self.stopping.is_set():
            run = Outside(self.engine)
            for batch in self.batches(run, rng):
                self.append(run, batch, rng)
                if rng.random() < 0.2:
                    self.append(run, batch, rng)

    @staticmethod
    def batches(run, rng):
        """A legal life of a run, in calls of one to three events."""
        words = ["RunQueued", "RunStarted"]
        for step in ("x", "y", "z"):
            words += [f"StepStarted {step} 1", f"StepFailed {step} 1", f"StepStarted {step} 2",
                      f"StepCompleted {step} 2"]
        words.append(rng.choice(("RunCompleted", "RunFailed", "RunCancelled")))
        while words:
            count = rng.randint(1, 3)
            parts, words = [word.split() for word in words[:count]], words[count:]
            yield [run.event(part[0], *(part[1:2] or [None]), int((part[2:3] or [1])[0])) for part in parts]

    def append(self, run, events, rng):
        """Until it is acknowledged."""
        first = [True]

        def body():
            if not first[0] and rng.random() < 0.5:  # its registry was lost
                for event in events:
                    event["eventId"] = str(uuid.uuid4())
            first[0] = False
            return {"events": events}

        self.history.sends(run.run_id, events)
        answer = self.answered(rng, "POST", path_of(run.run_id) + "/events", body)
        self.history.heard(run.run_id, events, answer.expect(200)["results"])


class Starters(Caller):
    """Clients that start runs of our own and send them signals."""

    def run(self, n):
        """One of them."""
        rng = random.Random(100 + n)
        while not self.stopping.is_set():
            run_id = f"run-{uuid.uuid4()}"
            body = {"runId": run_id, "planId": "mixed", "planVersion": "1", "projectId": "shop",
                    "environmentId": "dev"}
            assert self.answered(rng, "POST", "/runs", body).status in (200, 201)
            with self.history.lock:
                self.history.started.append(run_id)
            for _ in range(3):
                self.signal(rng, run_id)

    def signal(self, rng, run_id, kind=None):
        """One, until it is answered; now and then once more."""
        kind, signal_id = kind or rng.choice(SIGNALS), str(uuid.uuid4())
        body = signal_body(kind, payload_of(kind, signal_id, rng.choice("abcd")), "because", signal_id)
        for _ in range(rng.choice((1, 1, 2))):
            self.history.book.sends(run_id, signal_id)
            answer = self.answered(rng, "POST", path_of(run_id) + "/signals", body)
            assert answer.status in (200, 409), answer
            self.history.book.heard(run_id, signal_id, answer)


class StepWorkers(Caller):
    """Outside workers: some finish, some fail a step, some take it and say nothing more."""

    def __init__(self, nodes, engine, history, threads=2):
        super().__init__(nodes, engine, history, threads, "Worker")
        self.careful = threading.Event()  # from now on nothing is dropped

    def run(self, n):
        """One of them."""
        rng = random.Random(200 + n)
        while not self.stopping.is_set():
            for task in self.tell(rng, "claim", {"worker_id": f"w{n}", "queues": [OUTSIDE], "max": 4,
                                                 "wait_ms": 100}).get("tasks", []):
                what = rng.choice(("success", "success", "failure", "none"))
                what = "success" if self.careful.is_set() else what
                item = {"task_id": task["task_id"], "token": task["token"]}
                if what == "none":
                    continue
                self.tell(rng, "start", {"tasks": [item]})
                if what == "failure":
                    item["error"] = {"code": "broken", "message": "as asked", "retryable": True}
                self.tell(rng, "finish", {"tasks": [{**item, "outcome": what}]})

    def tell(self, rng, verb, body):
        """One call; {} when nobody answers."""
        try:
            with self.connect(rng) as kept:
                answer = kept.call("POST", "/worker/v1/" + verb, body)
        except CUT:
            time.sleep(RESEND_SECONDS)
            return {}
        assert answer.status == 200 or answer.status >= 500, answer
        return answer.json if answer.status == 200 else {}


class RunLoad:
    """All of them at once, until the end of the `with`; then runs are led to their end by settle()."""

    def __init__(self, nodes):
        self.nodes = nodes if isinstance(nodes, list) else [nodes]
        self.engine, self.history = Engine(self.nodes[0], "acme"), RunHistory()
        self.engine.put_plan("mixed", *PLAN, queue=OUTSIDE, onFailure="fail")
        self.workers = StepWorkers(self.nodes, self.engine, self.history)
        self.crews = [Engines(self.nodes, self.engine, self.history),
                      Starters(self.nodes, self.engine, self.history, 2)]

    def __enter__(self):
        for crew in (self.workers, *self.crews):
            crew.__enter__()
        return self

    def __exit__(self, *error):
        faults = []
        for crew in self.crews:
            try:
                crew.__exit__(*error)
            except BaseException as fault:
                faults.append(fault)
        try:
            if not faults and not error[0]:
                self.finish()
        finally:
            self.workers.__exit__(*error)
        if faults:
            raise faults[0]

    def finish(self):
        """No faults any more: every run comes to its end."""
        self.workers.careful.set()
        starter, rng = self.crews[1], random.Random(1)
        for node in self.nodes:
            node.wait_ready()
        for run_id in list(self.history.started):
            def over(run_id=run_id):
                run = self.engine.run(run_id)
                if run["status"] == "PAUSED":
                    starter.signal(rng, run_id, "RESUME")
                return run["status"] in ("COMPLETED", "FAILED", "CANCELLED")
            wait_for(over, 60, f"the end of {run_id}", self.nodes[0])


def read_all(load):
    """({run_id: records}, {run_id: run}, {run_id: decisions}, {run_id: alerts})"""
    engine, history = load.engine, load.history
    ids = list(history.sent) + list(history.started)
    return ({i: engine.events(i) for i in ids if i not in history.sent or history.written},
            {i: engine.run(i) for i in ids},
            {i: engine.decisions(i) for i in history.started},
            {i: engine.alerts(i) for i in history.started})


def judge_runs(load, seen):
    """Faults; empty: none."""
    records, runs, decisions, alerts = seen
    history = load.history
    one_clock = len(load.nodes) == 1
    faults = written_faults(history.sent, history.written, records)
    for run_id, found in records.items():
        faults += record_faults(run_id, found, runs[run_id], 0 if one_clock else SKEW_SECONDS_MAX)
    for run_id in history.started:
        if runs[run_id]["metadata"]["inconsistent"]:  # `weir verify` holds it against the events
            faults.append(f"{run_id}: our engine wrote what is no valid transition")
        if runs[run_id]["status"] not in RUN_FINAL:
            faults.append(f"{run_id}: stuck in {runs[run_id]['status']}")
        faults += signal_faults(history.book, run_id, decisions[run_id], runs[run_id], records[run_id],
                                alerts[run_id], one_clock=one_clock)
    return faults


def the_judge_sees_planted_faults(load, seen):
    """The negative control on what was really seen: each doctored copy of it is blamed."""
    records, runs, decisions, alerts = seen
    run_id, key, meta = load.history.written[0]
    at = next(n for n, record in enumerate(records[run_id]) if record["idempotencyKey"] == key)
    lost = records[run_id][:at] + records[run_id][at + 1:]
    doubled = records[run_id] + [dict(records[run_id][at], runSeq=len(records[run_id]) + 1)]
    changed = [dict(r, eventId=str(uuid.uuid4())) if n == at else r for n, r in enumerate(records[run_id])]
    assert not judge_runs(load, seen)
    for doctored in (lost, doubled, changed):
        assert judge_runs(load, ({**records, run_id: doctored}, runs, decisions, alerts)), meta
    ours = next(i for i in load.history.started
                if any(e["eventType"] == "RunPaused" for e in records[i]) and decisions[i])
    for doctored in (decisions[ours][1:], decisions[ours] + decisions[ours][:1]):
        assert judge_runs(load, (records, runs, {**decisions, ours: doctored}, alerts))
    twice = [e for e in records[ours] if e["eventType"] == "RunPaused"][:1]
    assert judge_runs(load, ({**records, ours: records[ours] + twice}, runs, decisions, alerts))
    marked = next(i for i in load.history.started if alerts[i])
    assert judge_runs(load, (records, runs, decisions, {**alerts, marked: alerts[marked][1:]}))
