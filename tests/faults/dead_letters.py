"""Deliveries that are wanted once more: what wakes the process `weir: replay`."""
from harness.webhook_calls import new_client_with_secret, new_webhook, webhook_deliveries
from harness.weir_server import wait_for


class Letters:
    """Deliveries of a webhook of a client of its own that were sent, and can be sent again."""

    def __init__(self, weir, receiver, path="/letters"):
        self.weir = weir
        self.key, _ = new_client_with_secret(weir)
        self.hook, _ = new_webhook(weir, self.key, receiver.url + path, ["job.created"])
        self.ids = []

    def send_of_jobs(self, count, batch):
        """One of each of so many jobs, which nobody runs. Who they were the receiver knows."""
        jobs = [{"type": "EXECUTE", "queue": "nobody"}] * batch
        for _ in range(count // batch):
            told = self.weir.api("POST", "/v1/jobs:batch", {"jobs": jobs}, self.key).expect(202)
            assert all("job_id" in item for item in told["results"]), told

    def send(self):
        """A test, which is a delivery like any other; its id."""
        told = self.weir.api("POST", f"/v1/webhooks/{self.hook}:test", key=self.key, body={}).expect(202)
        self.ids.append(told["delivery_id"])
        return told["delivery_id"]

    def ask_again(self, delivery):
        """Asks for it once more; the answer, whatever it is."""
        path = f"/v1/webhooks/{self.hook}/deliveries/{delivery}:redeliver"
        return self.weir.api("POST", path, key=self.key, body={})

    def again(self, delivery):
        """The same; it is accepted."""
        return self.ask_again(delivery).expect(202)

    def state(self, delivery):
        """Of one of the newest."""
        log = webhook_deliveries(self.weir, self.key, self.hook)
        return {d["delivery_id"]: d["state"] for d in log}[delivery]

    def wait(self, delivery, state="delivered", seconds=20):
        """Until it is so."""
        wait_for(lambda: self.state(delivery) == state, seconds, state, self.weir)


def wake_replay(weir, receiver):
    """The pid of the process that sends dead letters again. It stays for the ten seconds in which it may find
    nothing to do."""
    letters = Letters(weir, receiver)
    letter = letters.send()
    letters.wait(letter)
    letters.again(letter)
    return weir.wait_pids("replay", 1)[0]
