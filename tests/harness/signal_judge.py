"""Whether the signals of a run were handled as the contract says, after whatever storm.

    book = SignalBook()
    book.sends(run_id, signal_id)
    book.heard(run_id, signal_id, answer)           each answer, also repeated ones
    faults = signal_faults(book, run_id, records, run, events, alerts)

The payloads are made so that an effect tells which signal it is of (payload_of): a RunPaused gives its signal
as the reason, params are named by it. Records come in the order of their effects."""
import threading
from collections import Counter

DESTRUCTIVE = ("UPDATE_PARAMS", "INJECT_OVERRIDE", "UPDATE_TARGET", "EMERGENCY_STOP")


def payload_of(kind, signal_id, step="a"):
    """One that names its signal."""
    return {"PAUSE": {"reason": signal_id}, "CANCEL": {"reason": signal_id}, "RESUME": {},
            "UPDATE_PARAMS": {"params": {signal_id: 1}}, "RETRY_STEP": {"stepId": step},
            "SKIP_STEP": {"stepId": step, "reason": signal_id},
            "UPDATE_TARGET": {"stepId": step, "newTarget": {signal_id: 1}},
            "INJECT_OVERRIDE": {"stepId": step, "override": {signal_id: 1}}}[kind]


class SignalBook:
    """What senders heard; many threads write."""

    def __init__(self):
        self.lock = threading.Lock()
        self.answers = []  # (run_id, signal_id, what a record has to say)
        self.limited = set()  # signals that were refused for their rate, (run_id, signal_id)
        self.asked = set()

    def sends(self, run_id, signal_id):
        """Before it is sent: it may have arrived even when nothing is heard of it."""
        with self.lock:
            self.asked.add((run_id, signal_id))

    def heard(self, run_id, signal_id, answer):
        """An answer of status 200, 202, 4xx."""
        with self.lock:
            if answer.status == 429:
                self.limited.add((run_id, signal_id))
                return
            self.answers.append((run_id, signal_id, said(answer)))

    def of(self, run_id):
        """{signal_id: set of what was said}"""
        found = {}
        for run, signal_id, words in self.answers:
            if run == run_id:
                found.setdefault(signal_id, set()).add(words)
        return found


def said(answer):
    """(policyDecisionId, what became of it): the part of an answer that its record has to repeat; a held one
    may be settled later."""
    body = answer.json
    if answer.status in (200, 202):
        result = body.get("engineResult")
        return body["policyDecisionId"], body["decision"] if not result else \
            "success" if result["status"] == "success" else result["errorCode"]
    return body.get("policyDecisionId"), body["code"]


def written(record):
    """The same of a record."""
    result = record.get("engineResult")
    if not result:
        return record["policyDecisionId"], record["decision"]
    return record["policyDecisionId"], "success" if result["status"] == "success" else result["errorCode"]


def answer_faults(book, run_id, records):
    """One record a signal, and every answer is it."""
    faults = [f"{run_id}: {n} records of signal {signal_id}"
              for signal_id, n in Counter(r["signalId"] for r in records).items() if n > 1]
    by_signal = {record["signalId"]: record for record in records}
    for signal_id, heard in book.of(run_id).items():
        if signal_id not in by_signal:
            faults.append(f"{run_id}: signal {signal_id} was answered with {heard} and has no record")
            continue
        record = by_signal[signal_id]
        may_be = {written(record)}
        if record.get("approvalRequired"):  # before it was settled
            may_be |= {(record["policyDecisionId"], "REVISION_REQUIRED"),
                       (record["policyDecisionId"], "AUTHZ_DENIED")}
        if not heard <= may_be:
            faults.append(f"{run_id}: signal {signal_id} was answered with {heard}, its record says {may_be}")
    faults += [f"{run_id}: a record of {signal_id}, which nobody sent" for signal_id in by_signal
               if (run_id, signal_id) not in book.asked]
    answered = set(book.of(run_id))
    faults += [f"{run_id}: {signal_id} was refused for its rate and has a record" for signal_id in by_signal
               if (run_id, signal_id) in book.limited and signal_id not in answered]
    return faults


def succeeded(records, kind):
    """signalIds of a kind that had their effect, in the order of records."""
    return [r["signalId"] for r in records if r["signalType"] == kind
            and r.get("engineResult", {}).get("status") == "success"]


def in_order_of_effect(records):
    """As they were applied: one that was held for approval when it was approved."""
    return sorted(records, key=lambda r: r.get("engineProcessedAt") or "")


def pauses_wanted(records):
    """What pausing and resuming must have written, from the records alone."""
    paused, wanted = False, []
    for record in records:
        if record.get("engineResult", {}).get("status") != "success":
            continue
        if record["signalType"] == "PAUSE" and not paused:
            paused = True
            wanted.append(("RunPaused", record["signalId"]))
        elif record["signalType"] == "RESUME" and paused:
            paused = False
            wanted.append(("RunResumed", None))
    return wanted


def pause_faults(run_id, records, events, ordered):
    """Pausing and resuming. Not `ordered`: several nodes do not agree about the time of records to the
    millisecond, so it is only asked that no effect is without its signal, nor there twice."""
    seen = [(e["eventType"], e.get("payload", {}).get("reason")) for e in events
            if e["eventType"] in ("RunPaused", "RunResumed")]
    wanted = pauses_wanted(records)
    if ordered:
        return [] if seen == wanted else [f"{run_id}: paused and resumed {seen}, its records say {wanted}"]
    paused = [reason for kind, reason in seen if kind == "RunPaused"]
    if len(set(paused)) == len(paused) and set(paused) <= set(succeeded(records, "PAUSE")):
        return []
    return [f"{run_id}: paused by {paused}, its records say {succeeded(records, 'PAUSE')}"]


def effect_faults(run_id, records, run, events, ordered=True):
    """Every effect once, in the order of the records, and none without a record."""
    faults = pause_faults(run_id, records, events, ordered)
    params = list(run["params"] or {})
    if sorted(params) != sorted(succeeded(records, "UPDATE_PARAMS")):
        faults.append(f"{run_id}: params {params}, its records say {succeeded(records, 'UPDATE_PARAMS')}")
    skipped = [e["payload"]["reason"] for e in events if e["eventType"] == "StepSkipped"]
    if sorted(skipped) != sorted(succeeded(records, "SKIP_STEP")):
        faults.append(f"{run_id}: skipped by {skipped}, its records say {succeeded(records, 'SKIP_STEP')}")
    return faults


def alert_faults(run_id, records, alerts):
    """One P1 alert for each destructive signal that was let pass or held, none else."""
    wanted = Counter(r["signalDecisionId"] for r in records if r["signalType"] in DESTRUCTIVE
                     and (r["decision"] != "REJECTED" or r.get("approvalRequired")))
    found = Counter(a["signalDecisionId"] for a in alerts if a["category"] == "destructive_signal")
    if found == wanted:
        return []
    return [f"{run_id}: P1 alerts {found - wanted} too many, {wanted - found} missing"]


def signal_faults(book, run_id, records, run, events, alerts, ordered=True):
    """All of it."""
    return answer_faults(book, run_id, records) + \
        effect_faults(run_id, records, run, events, ordered) + alert_faults(run_id, records, alerts)
