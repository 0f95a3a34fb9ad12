"""Load on several nodes at once: clients and workers that go to another node when one fails them.

A submit that got no answer from one node is sent again to the next, with the same key: that is where
two nodes could make two jobs of it. Workers take what any node gives them and write it all down."""
import random
import time

from harness.kept import Kept
from harness.together import Crew
from kill_load import CUT, Load

CALL_SECONDS_MAX = 3  # a node that stands still for longer has lost its clients to the other
CLAIM_WAIT_MS = 200
OUTSIDE = "outside"


class AnyNode:
    """Calls like Kept, over one connection to each node; after a failure the next node's turn."""

    def __init__(self, nodes, key, rng):
        self.kepts = [Kept(node.address, key, timeout=CALL_SECONDS_MAX) for node in nodes]
        self.rng = rng
        self.at = rng.randrange(len(self.kepts))

    def call(self, method, path, body=None):
        """One call; now and then to another node without a reason."""
        if self.rng.random() < 0.2:
            self.turn()
        kept = self.kepts[self.at]
        try:
            answer = kept.call(method, path, body)
        except CUT:
            self.turn()
            raise
        if answer.status >= 500:
            self.turn()
        return answer

    def turn(self):
        """The next node."""
        self.at = (self.at + 1) % len(self.kepts)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for kept in self.kepts:
            kept.close()


def outside_half(name):
    """Every second job is for outside workers, the others for the nodes' own runners."""
    return {"queue": OUTSIDE} if int(name.rpartition("-")[2]) % 2 else {}


class NodesLoad(Load):
    """Clients of all nodes."""

    def __init__(self, nodes, key, history, more=outside_half, **options):
        super().__init__(nodes[0], key, history, more=more, **options)
        self.nodes = nodes

    def connect(self, n):
        """Client n's way to the nodes."""
        return AnyNode(self.nodes, self.key, random.Random(1000 + n))


class Workers(Crew):
    """Outside workers of all nodes until the end of the `with`; what they got is in `claims`.

    Some finish, some fail a task, some take it and say nothing more, as if they had died."""

    def __init__(self, nodes, key, claims, threads=3):
        super().__init__(threads)
        self.nodes, self.key, self.claims = nodes, key, claims

    def run(self, n):
        """One worker."""
        rng, name = random.Random(n), f"worker-{n}"
        with AnyNode(self.nodes, self.key, rng) as node:
            while not self.stopping.is_set():
                for task in self.claim(node, name):
                    self.work(node, task, rng)

    def claim(self, node, name):
        """Some tasks; none when nobody answers."""
        before = time.monotonic()
        body = {"worker_id": name, "queues": [OUTSIDE], "max": 4, "wait_ms": CLAIM_WAIT_MS}
        answer = self.call(node, "claim", body)
        if answer is None:
            time.sleep(0.05)
            return []
        self.claims.claimed(name, answer["tasks"], before)
        return answer["tasks"]

    def work(self, node, task, rng):
        """To one end or another."""
        what = rng.choice(("success", "success", "success", "failure", "release", "silence"))
        item = {"task_id": task["task_id"], "token": task["token"]}
        if what == "silence" and not self.stopping.is_set():
            return
        if what == "release":
            self.end(node, task, "release", item)
            return
        self.call(node, "start", {"tasks": [item]})
        if what == "failure":
            item["error"] = {"code": "broken", "message": "as asked", "retryable": True}
        self.end(node, task, "finish", {**item, "outcome": "failure" if what == "failure"
                                        else "success"})

    def end(self, node, task, verb, item):
        """finish or release, with what came of it."""
        sent = time.monotonic()
        answer = self.call(node, verb, {"tasks": [item]})
        accepted = None if answer is None else answer["results"][0]["ok"]
        self.claims.ended(task, sent, item.get("outcome", verb), accepted)

    @staticmethod
    def call(node, verb, body):
        """The answer, or None when there was none or it was a refusal of the whole call."""
        try:
            answer = node.call("POST", f"/worker/v1/{verb}", body)
        except CUT:
            return None
        assert answer.status == 200 or answer.status >= 500, answer
        return answer.json if answer.status == 200 else None
