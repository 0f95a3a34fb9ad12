"""Whether the signals of a run were handled as the contract says, after whatever storm.

    book = SignalBook()
    book.sends(run_id, signal_id)
    book.heard(run_id, signal_id, answer)           each answer, also repeated ones
    faults = signal_faults(book, run_id, records, run, events, alerts)

The payloads are made so that an effect tells which signal it is of (payload_of): a RunPaused gives its signal
as the reason, params are named by it."""
import threading
from collections import Counter

FOREVER = "9999"  # behind every time
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


def succeeded_at(records, kind):
    """{signalId: when it had its effect} of a kind."""
    return {r["signalId"]: r["engineProcessedAt"] for r in records if r["signalType"] == kind
            and r.get("engineResult", {}).get("status") == "success"}


def paused_times(changes):
    """[(from, to)]; the last one may be open."""
    times = [at for _, at, _ in changes] + [FOREVER]
    return list(zip(times[::2], times[1::2]))


def pause_faults(run_id, records, events, one_clock):
    """Pausing and resuming follow the records: each change is one signal's and has its time, a PAUSE without
    one found the run paused, a RESUME never left it so. Not `one_clock`: several nodes do not agree about the
    time to the millisecond, so it is only asked that no effect is without its signal, nor there twice."""
    changes = [(e["eventType"], e["persistedAt"], e.get("payload", {}).get("reason")) for e in events
               if e["eventType"] in ("RunPaused", "RunResumed")]
    pauses, resumes = succeeded_at(records, "PAUSE"), succeeded_at(records, "RESUME")
    by = [reason for kind, _, reason in changes if kind == "RunPaused"]
    faults = []
    if len(set(by)) != len(by) or not set(by) <= set(pauses):
        faults.append(f"{run_id}: paused by {by}, its records say {list(pauses)}")
    if any(kind != ("RunPaused", "RunResumed")[n % 2] for n, (kind, _, _) in enumerate(changes)):
        faults.append(f"{run_id}: pauses and resumes do not take turns: {changes}")
    if faults or not one_clock:
        return faults
    spans = paused_times(changes)
    faults += [f"{run_id}: paused at {at}, signal {reason} was processed at {pauses[reason]}"
               for kind, at, reason in changes if kind == "RunPaused" and pauses[reason] != at]
    faults += [f"{run_id}: resumed at {at}, when no signal was" for kind, at, _ in changes
               if kind == "RunResumed" and at not in resumes.values()]
    faults += [f"{run_id}: PAUSE {signal_id} at {at} did nothing, and the run was not paused"
               for signal_id, at in pauses.items() if signal_id not in by
               and not any(start <= at <= end for start, end in spans)]
    faults += [f"{run_id}: RESUME {signal_id} at {at} did nothing, and the run was paused"
               for signal_id, at in resumes.items() if any(start < at < end for start, end in spans)]
    return faults


def effect_faults(run_id, records, run, events, one_clock):
    """Every effect once, in the order of the records, and none without a record."""
    faults = pause_faults(run_id, records, events, one_clock)
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


def signal_faults(book, run_id, records, run, events, alerts, one_clock=True):
    """All of it."""
    return answer_faults(book, run_id, records) + \
        effect_faults(run_id, records, run, events, one_clock) + alert_faults(run_id, records, alerts)
