"""Webhooks and their deliveries over the API, as a client asks for them.

    webhook_id, secret = new_webhook(weir, key, receiver.url, ["job.failed"])
    job_deliveries(weir, key, job_id)         those of its callback
"""
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
