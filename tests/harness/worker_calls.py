"""An outside worker: speaks /worker/v1 over TCP with a client's API key, many tasks per call.

    with Worker(weir, key, queue="outside") as worker:
        tasks = worker.claim(most=10, wait_ms=1000)
        worker.start(tasks)
        worker.finish(tasks)

Each verb gives the list of result items; drain() runs what it claims to the end.
"""
from harness.kept import Kept


def names(task, **fields):
    """The part of a task that names it and proves the lease, and what else an item holds."""
    return {"task_id": task["task_id"], "token": task["token"], **fields}


class Worker:
    """See the module's text. One thread at a time."""

    def __init__(self, weir, key, queue="outside", worker_id="worker-1"):
        self.kept = Kept(weir.address, key, timeout=60)
        self.queues = [queue] if isinstance(queue, str) else list(queue)
        self.worker_id = worker_id

    def claim(self, most=1, wait_ms=0, **fields):
        """Claims up to `most` tasks."""
        return self.kept.call("POST", "/worker/v1/claim",
                              {"worker_id": self.worker_id, "queues": self.queues, "max": most,
                               "wait_ms": wait_ms, **fields}).expect(200)["tasks"]

    def tell(self, verb, items):
        """Any other verb with ready-made items."""
        answer = self.kept.call("POST", f"/worker/v1/{verb}", {"tasks": items}).expect(200)
        assert [r["task_id"] for r in answer["results"]] == [i["task_id"] for i in items], answer
        return answer["results"]

    def start(self, tasks):
        """start"""
        return self.tell("start", [names(task) for task in tasks])

    def heartbeat(self, tasks, **fields):
        """heartbeat, perhaps with progress"""
        return self.tell("heartbeat", [names(task, **fields) for task in tasks])

    def release(self, tasks, **fields):
        """release, perhaps with delay_ms and reason"""
        return self.tell("release", [names(task, **fields) for task in tasks])

    def finish(self, tasks, outcome="success", **fields):
        """finish, all with the same outcome"""
        return self.tell("finish", [names(task, outcome=outcome, **fields) for task in tasks])

    def fail(self, tasks, code="broken", retryable=True):
        """finish with a failure"""
        return self.finish(tasks, "failure",
                           error={"code": code, "message": "as asked", "retryable": retryable})

    def drain(self, wait_ms=500, most=64, seen=None):
        """Claims, starts and finishes until a long poll brings nothing; gives every task
        claimed."""
        seen = [] if seen is None else seen
        while tasks := self.claim(most, wait_ms):
            seen += tasks
            self.start(tasks)
            self.finish(tasks)
        return seen

    def close(self):
        """Ends the connection; the leases stay."""
        self.kept.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
