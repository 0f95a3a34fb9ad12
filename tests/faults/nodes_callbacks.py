"""Callbacks of jobs on several nodes: to one receiver that fails part of the time, judged at the end."""
import random
import time

from harness.deliveries import arrival_of, delivery_faults, read_logs
from harness.history import check_client
from harness.receiver import Receiver, hang_up, is_signed, one_of, take_and_reset
from harness.weir_server import wait_for
from kill_load import the_judge_sees_planted_deliveries
from nodes_load import outside_half

SHARE = 3  # one job of so many has a callback
NAME = "callback"
PATIENCE_SECONDS = 300
SILENCE_SECONDS_MAX = 60  # without another one taken: what is behind catches up, what is stuck does not


class Callbacks:
    """The receiver, and a client of the nodes whose jobs call it."""

    def __init__(self, node, seed):
        made = node.api("POST", "/v1/clients", body={}).expect(201)
        self.key = node.api("POST", f"/v1/clients/{made['client_id']}/keys", body={}).expect(201)["api_key"]
        self.secret = made["webhook_secret"]
        self.receiver = Receiver()
        self.receiver.answers = [one_of(random.Random(seed), *(200,) * 8, 500, hang_up, take_and_reset)]

    def __enter__(self):
        self.receiver.__enter__()
        return self

    def __exit__(self, *_):
        self.receiver.__exit__()

    def fields(self, name):
        """Of the job of this name: its queue, and the callback if it has one."""
        has_one = int(name.rpartition("-")[2]) % SHARE == 0
        return {**outside_half(name), **({"callback": self.receiver.url} if has_one else {})}

    def taken(self):
        """How many deliveries the receiver took."""
        return len({call.id for call in list(self.receiver.calls) if call.status == 200})

    def waiting(self, node, jobs):
        """Deliveries that are not over, for the message of a failure."""
        log = read_logs(node, self.key, dict.fromkeys(jobs, NAME), {}).get(NAME, [])
        told = {delivery["event_id"] for delivery in log}
        unknown = [event for events in jobs.values() for event in events if event["event_id"] not in told]
        return [one for one in log if one["state"] != "delivered"][:10], "not in the log:", unknown[:10]

    def expect_sound(self, node):
        """Every event of every job that has a callback was taken, signed, in order, under one id, and is
        told so; how many, and how many requests it took."""
        jobs = {job_id: events for job_id, (job, events) in check_client(node, self.key).items()
                if job["callback"]}
        count = sum(map(len, jobs.values()))
        print(f"{self.taken()} of {count} deliveries taken when the last job had ended", flush=True)
        while (before := self.taken()) < count:
            try:
                wait_for(lambda: self.taken() > before, SILENCE_SECONDS_MAX, "the next event to be taken")
            except AssertionError as late:
                raise AssertionError(f"{late}, {before} of {count}: {self.waiting(node, jobs)}") from None
            time.sleep(1)

        def told():
            log = read_logs(node, self.key, dict.fromkeys(jobs, NAME), {}).get(NAME, [])
            return log if all(delivery["state"] == "delivered" for delivery in log) else None

        log = wait_for(told, PATIENCE_SECONDS, "every delivery to be told", node)
        known = {delivery["delivery_id"]: (NAME, delivery["event_id"]) for delivery in log}
        arrivals = [arrival_of(NAME, call, is_signed(call, self.secret))
                    for call in list(self.receiver.calls)]
        faults = delivery_faults({NAME: jobs}, known, arrivals)
        assert not faults, f"{len(faults)} faults, the first: {faults[:20]}"
        the_judge_sees_planted_deliveries({NAME: jobs}, known, arrivals)
        return count, len(arrivals)
