"""Webhooks and their deliveries over the API, as a client asks for them.

    webhook_id, secret = new_webhook(weir, key, receiver.url, ["job.failed"])
    job_deliveries(weir, key, job_id)         those of its callback
    Letters(weir, receiver)                   deliveries that can be sent again
"""
from harness.weir_server import wait_for

# Short pauses between attempts, so that a test sees several of them.
QUICK_ATTEMPTS = {"webhooks.base_ms": 20, "webhooks.cap_ms": 100, "webhooks.timeout_ms": 1000}


def new_client_with_secret(weir):
    """(key, secret of its callbacks)."""
    made = weir.api("POST", "/v1/clients", body={}).expect(201)
    key = weir.api("POST", f"/v1/clients/{made['client_id']}/keys", body={}).expect(201)["api_key"]
    return key, made["webhook_secret"]


def new_webhook(weir, key, url, events):
    """(webhook_id, secret)."""
    made = weir.api("POST", "/v1/webhooks", {"url": url, "events": events}, key).expect(201)
    return made["webhook_id"], made["secret"]


def webhooks(weir, key):
    """{webhook_id: what is told of it}."""
    items = weir.api("GET", "/v1/webhooks", key=key).expect(200)["items"]
    return {item["webhook_id"]: item for item in items}


def job_deliveries(weir, key, job_id):
    """Of the job's callback, oldest first."""
    return weir.api("GET", f"/v1/jobs/{job_id}/deliveries", key=key).expect(200)["items"][::-1]


def webhook_deliveries(weir, key, webhook_id):
    """Of the webhook, oldest first."""
    path = f"/v1/webhooks/{webhook_id}/deliveries?limit=200"
    return weir.api("GET", path, key=key).expect(200)["items"][::-1]


class Letters:
    """Deliveries of a webhook of a client of its own that were sent, and can be sent again."""

    def __init__(self, weir, receiver, path="/letters"):
        self.weir = weir
        self.key, _ = new_client_with_secret(weir)
        self.hook, _ = new_webhook(weir, self.key, receiver.url + path, ["job.retries_exhausted"])
        self.ids = []

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
