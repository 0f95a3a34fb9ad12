"""Judges what workers were given: a task belongs to one of them at a time.

Workers write each answer to a claim into a Claims, with the times before and after the call, and each
finish or release they sent. faults() compares them: no task and token twice; no task to somebody else
while the lease of the first still ran and it had said nothing; not more than one accepted success.

Times are conservative: a lease begins after the call was made, so it ends no earlier than its length
after that; the next claim was decided before its answer was there.
"""
import threading
import time
from collections import Counter, namedtuple

Claim = namedtuple("Claim", "worker task token before after")
End = namedtuple("End", "task token sent outcome accepted")  # accepted None: cut off, unknown


class Claims:
    """Append-only; many threads write."""

    def __init__(self, lease_s):
        self.lease_s = lease_s
        self.claims, self.ends = [], []
        self.lock = threading.Lock()

    def claimed(self, worker, tasks, before):
        """The answer to a claim that was sent at `before`."""
        after = time.monotonic()
        with self.lock:
            self.claims += [Claim(worker, task["task_id"], task["token"], before, after)
                            for task in tasks]

    def ended(self, task, sent, outcome, accepted):
        """A finish or release; `accepted` is None when no answer came."""
        with self.lock:
            self.ends.append(End(task["task_id"], task["token"], sent, outcome, accepted))

    def faults(self):
        """What is wrong; an empty list when nothing is."""
        return claim_faults(self.claims, self.ends, self.lease_s)


def claim_faults(claims, ends, lease_s):
    """See the module's text."""
    pairs = Counter((claim.task, claim.token) for claim in claims)
    faults = [f"{task}: claimed {n} times under token {token}" for (task, token), n in pairs.items()
              if n > 1]
    successes = Counter(end.task for end in ends if end.accepted and end.outcome == "success")
    faults += [f"{task}: {n} successes were accepted" for task, n in successes.items() if n > 1]
    said = {(end.task, end.token) for end in ends}
    by_task = {}
    for claim in sorted(claims, key=lambda one: one.after):
        first = by_task.get(claim.task)
        if first and (first.task, first.token) not in said \
                and claim.after < first.before + lease_s:
            faults.append(f"{claim.task}: {claim.worker} got it {claim.after - first.before:.3f} s "
                          f"after {first.worker}, whose lease of {lease_s} s still ran")
        by_task[claim.task] = claim
    return faults
