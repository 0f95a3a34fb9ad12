"""Signal storms: 64 clients at once on one run, the same signals and others, held ones approved and rejected
by many. One decision per signal, every answer is the record, effects in the order of records, one P1 alert
each; who is refused for the rate leaves nothing behind."""
import os
import random
import uuid
from collections import Counter

import pytest

from harness.engine_calls import UNLIMITED, Engine, path_of, signal_body
from harness.kept import Kept
from harness.signal_judge import SignalBook, payload_of, signal_faults
from harness.together import at_once

CLIENTS = 64
EACH = 60 if os.environ.get("WEIR_TEST_LONG") == "1" else 5
KINDS = ("PAUSE", "RESUME", "RESUME", "UPDATE_PARAMS", "SKIP_STEP", "RETRY_STEP", "INJECT_OVERRIDE",
         "UPDATE_TARGET")
HELD = "UPDATE_TARGET"
# All want the same row: on a busy machine they wait long for their turn.
STORM = {**UNLIMITED, "engine.approval_required": HELD, "store.timeout_ms": 60000}
PER_MINUTE = 20


class Storm:
    """One run, and all that was said about it."""

    def __init__(self, weir):
        self.weir, self.engine, self.book = weir, Engine(weir, "acme"), SignalBook()
        self.engine.put_plan("storm", "a", "b<a", "free", queue="nobody.works.here")
        self.run_id = self.engine.start("storm")
        self.shared = [self.made() for _ in range(CLIENTS // 2)]
        self.tokens = [self.engine.token(sub="ada"), self.engine.token(sub="bob")]

    @staticmethod
    def made(kind=None):
        """(signalId, body) of any kind."""
        signal_id, kind = str(uuid.uuid4()), kind or random.choice(KINDS)
        step = "free" if kind == "SKIP_STEP" else "b"
        return signal_id, signal_body(kind, payload_of(kind, signal_id, step), "because", signal_id)

    def send(self, kept, signal_id, body):
        """One; what was heard goes into the book."""
        self.book.sends(self.run_id, signal_id)
        answer = kept.call("POST", "/engine/v1" + path_of(self.run_id) + "/signals", body)
        assert answer.status in (200, 202, 403, 409, 429), answer
        self.book.heard(self.run_id, signal_id, answer)
        return answer

    def client(self, n):
        """One of many: own signals, shared ones, and an id that was used for something else."""
        rng, heard = random.Random(n), []
        with Kept(self.weir.address, self.tokens[0]) as kept:
            for _ in range(EACH):
                own = self.made()
                for signal_id, body in (own, rng.choice(self.shared), own):
                    heard.append(self.send(kept, signal_id, body).status)
                other = signal_body("UPDATE_PARAMS", {"params": {"stolen": 1}}, "because", own[0])
                kept.call("POST", "/engine/v1" + path_of(self.run_id) + "/signals", other) \
                    .expect_problem(409, "SIGNAL_DUPLICATE")
        return heard

    def settle(self, n, held):
        """Approves or rejects what is held, like seven others, each in an order of its own, so that none
        of them is first everywhere; {policyDecisionId: what it heard}."""
        words, heard = "approve" if n % 2 else "reject", {}
        with Kept(self.weir.address, self.tokens[1]) as kept:
            for policy_id in random.Random(n).sample(held, len(held)):
                answer = kept.call("POST", f"/engine/v1/signal-decisions/{policy_id}:{words}", {})
                heard[policy_id] = words, answer.status, answer.json.get("code")
        return heard

    def records(self):
        """All decisions."""
        return self.engine.decisions(self.run_id)

    def faults(self, records=None, alerts=None, events=None):
        """What is wrong."""
        return signal_faults(self.book, self.run_id, self.records() if records is None else records,
                             self.engine.run(self.run_id),
                             self.engine.events(self.run_id) if events is None else events,
                             self.engine.alerts(self.run_id) if alerts is None else alerts)


def check_settled(storm, outcomes):
    """Of eight who settle one decision, those who agree with the record are heard, the others are not."""
    by_policy = {record["policyDecisionId"]: record for record in storm.records()}
    for policy_id in outcomes[0]:
        record = by_policy[policy_id]
        accepted = record["decision"] == "ACCEPTED"
        assert record["decision"] in ("ACCEPTED", "REJECTED") and record["approvedBy"] == "bob"
        for words, status, code in (heard[policy_id] for heard in outcomes):
            if (words == "approve") == accepted:
                assert status == 200 or code in ("STEP_TERMINAL", "STEP_NOT_TERMINAL", "RUN_TERMINAL"), code
            else:
                assert (status, code) == (409, "SIGNAL_DUPLICATE")


def check_target(storm):
    """The step has what the last one that was applied gave it."""
    applied = [r for r in storm.records() if r["signalType"] == HELD
               and r.get("engineResult", {}).get("status") == "success"]
    latest = max(r["engineProcessedAt"] for r in applied)
    last = [r["signalPayload"]["newTarget"] for r in applied if r["engineProcessedAt"] == latest]
    step, = [s for s in storm.engine.run(storm.run_id)["steps"] if s["stepId"] == "b"]
    assert step["target"] in last


def test_a_storm_of_64_clients_on_one_run_keeps_the_rules(fresh_weir):
    """[SIG-028] [SIG-051] [SIG-052] [SIG-053] [SIG-058] [SIG-079] [SIG-100] [SIG-123] Mixed types, same and
    different ids, approvals; with the negative control on what was really seen."""
    storm = Storm(fresh_weir(settings=STORM))
    statuses = Counter(sum(at_once(CLIENTS, storm.client), []))
    held = [r["policyDecisionId"] for r in storm.records() if r["decision"] == "REVISION_REQUIRED"]
    outcomes = at_once(8, lambda n: storm.settle(n, held))
    check_settled(storm, outcomes)
    assert not storm.faults(), storm.faults()[:10]
    check_target(storm)
    print(f"{CLIENTS} clients, {sum(statuses.values())} answers {dict(statuses)}, {len(held)} held")
    assert statuses[200] and statuses[202] and statuses[409] and len(held) > 10
    the_judge_sees_planted_faults(storm)


def the_judge_sees_planted_faults(storm):
    """The negative control: each doctored copy is blamed."""
    records, alerts = storm.records(), storm.engine.alerts(storm.run_id)
    events = storm.engine.events(storm.run_id)
    early = next(n for n, r in enumerate(records) if r["signalType"] == "PAUSE" and "engineResult" in r)
    moved = {**records[early], "engineProcessedAt": "2000-01-01T00:00:00.000Z"}
    p1 = next(n for n, alert in enumerate(alerts) if alert["severity"] == "P1")
    assert not storm.faults(records, alerts, events)
    assert storm.faults(records[:-1], alerts, events)
    assert storm.faults(records + records[:1], alerts, events)
    assert storm.faults(records[:early] + [moved] + records[early + 1:], alerts, events)
    assert storm.faults(records, alerts[:p1] + alerts[p1 + 1:], events)
    assert storm.faults(records, alerts + alerts[p1:p1 + 1], events)
    assert storm.faults(records, alerts, [e for e in events if e["eventType"] != "RunPaused"])


@pytest.mark.parametrize("key", ["engine.signals_per_run_minute", "engine.signals_per_tenant_minute"])
def test_who_is_refused_for_the_rate_leaves_nothing_behind(fresh_weir, key):
    """[SIG-129] [SIG-130] [SIG-131] 64 clients, one signal each, at once: some are taken, each with its
    record; the others hear when to come again and have none."""
    storm = Storm(fresh_weir(settings={**STORM, key: PER_MINUTE}))
    made = [storm.made("UPDATE_PARAMS") for _ in range(CLIENTS)]

    def once(n):
        with Kept(storm.weir.address, storm.tokens[0]) as kept:
            return storm.send(kept, *made[n])

    answers = at_once(CLIENTS, once)
    refused = [answer for answer in answers if answer.status == 429]
    assert all(int(answer.headers["retry-after"]) > 0 for answer in refused)
    assert {r["signalId"] for r in storm.records()} == \
        {made[n][0] for n, answer in enumerate(answers) if answer.status == 200}
    assert PER_MINUTE <= CLIENTS - len(refused) <= 2 * PER_MINUTE
    assert not storm.faults(), storm.faults()[:10]
