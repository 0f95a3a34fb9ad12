"""Our signatures before an independent judge: the library of the Standard Webhooks project, fed with
what a real receiver got."""
import copy

from faults.fail_io import FailIo
from harness.worker_calls import Worker
from oracle import ACCEPTED, judge

NO_MATCH, TOO_OLD, TOO_NEW = ("No matching signature found", "Message timestamp too old",
                              "Message timestamp too new")
TOLERANCE_MS = 5 * 60 * 1000  # the library's
MINUTE_MS, DAY_MS = 60 * 1000, 86400 * 1000
OTHER_SECRET = "whsec_" + "A" * 43 + "="


class Subscriber:
    """A client with a webhook; its secrets by path."""

    def __init__(self, weir, receiver):
        self.weir, self.receiver = weir, receiver
        made = weir.api("POST", "/v1/clients", body={}).expect(201)
        self.client_id = made["client_id"]
        self.key = weir.api("POST", f"/v1/clients/{self.client_id}/keys", body={}).expect(201)["api_key"]
        hook = weir.api("POST", "/v1/webhooks", key=self.key,
                        body={"url": receiver.url + "/webhook", "events": ["*"]}).expect(201)
        self.webhook_id = hook["webhook_id"]
        self.secrets = {"/callback": made["webhook_secret"], "/webhook": hook["secret"]}

    def rotate(self):
        """Another secret for both; the former ones by path."""
        former, post = self.secrets, self.weir.api
        self.secrets = {
            "/callback": post("POST", f"/v1/clients/{self.client_id}/webhook-secret:rotate", key=self.key,
                              body={}).expect(200)["webhook_secret"],
            "/webhook": post("POST", f"/v1/webhooks/{self.webhook_id}:rotate-secret", key=self.key,
                             body={}).expect(200)["secret"]}
        return former

    def hear(self, count=4):
        """What both paths get of one more job; two events each unless somebody works on it."""
        before = len(self.receiver.calls)
        self.weir.submit(self.key, queue="outside", callback=self.receiver.url + "/callback")
        return self.receiver.wait(before + count)[before:]


def changed(call, body=None, **headers):
    """The request with another body or other header fields."""
    other = copy.copy(call)
    other.headers = {**call.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
    other.body = call.body if body is None else body
    return other


def test_the_standard_library_accepts_every_delivery(weir, receiver):
    """[JOB-063] [JOB-103] Callbacks and webhooks, every event of a job that fails with words outside
    ASCII, and a test of a webhook."""
    subscriber = Subscriber(weir, receiver)
    subscriber.hear()
    with Worker(weir, subscriber.key) as worker:
        tasks = worker.claim()
        worker.start(tasks)
        worker.finish(tasks, "failure", error={"code": "voll", "message": "größer \U0001f4a5 \"\\ \x7f",
                                               "retryable": False})
    weir.api("POST", f"/v1/webhooks/{subscriber.webhook_id}:test", key=subscriber.key, body={}).expect(202)
    calls = receiver.wait(11)
    assert sorted(call.path for call in calls) == ["/callback"] * 5 + ["/webhook"] * 6
    assert judge((call, subscriber.secrets[call.path]) for call in calls) == [ACCEPTED] * 11


def test_the_standard_library_refuses_whatever_was_changed(weir, receiver):
    """Another secret, body, id or time; a signature that is shortened; a request that is late."""
    subscriber = Subscriber(weir, receiver)
    requests, wanted = [], []
    for call in subscriber.hear():
        right, other = subscriber.secrets[call.path], subscriber.secrets[
            "/webhook" if call.path == "/callback" else "/callback"]
        sent_ms = int(call.headers["webhook-timestamp"]) * 1000
        flipped = bytearray(call.body)
        flipped[len(flipped) // 2] ^= 1
        for verdict, request, *rest in (
                (ACCEPTED, call, right),
                (NO_MATCH, call, other),
                (NO_MATCH, call, OTHER_SECRET),
                (NO_MATCH, changed(call, body=bytes(flipped)), right),
                (NO_MATCH, changed(call, body=call.body + b" "), right),
                (NO_MATCH, changed(call, body=call.body[:-1]), right),
                (NO_MATCH, changed(call, webhook_id=call.id[:-1] + chr(ord(call.id[-1]) ^ 1)), right),
                (NO_MATCH, changed(call, webhook_timestamp=str(sent_ms // 1000 + 1)), right),
                (NO_MATCH, changed(call, webhook_timestamp=str(sent_ms // 1000 - 1)), right),
                (NO_MATCH, changed(call, webhook_signature=call.headers["webhook-signature"][:-1]), right),
                (ACCEPTED, call, right, sent_ms + TOLERANCE_MS),
                (TOO_OLD, call, right, sent_ms + TOLERANCE_MS + 1000),
                (TOO_NEW, call, right, sent_ms - TOLERANCE_MS - 1000)):
            requests.append((request, *rest))
            wanted.append(verdict)
    assert judge(requests) == wanted


def test_both_secrets_are_accepted_for_a_day_and_then_only_the_new_one(fresh_weir, receiver):
    """Of a webhook and of callbacks; the server's clock is moved over the end of the day."""
    io = FailIo()
    weir = fresh_weir(env=io.environment())
    subscriber = Subscriber(weir, receiver)
    before = subscriber.hear()
    former = subscriber.rotate()
    seen = {0: subscriber.hear()}
    for shift_ms in (DAY_MS - 5 * MINUTE_MS, DAY_MS + MINUTE_MS):
        io.clock_shift_ms = shift_ms
        seen[shift_ms] = subscriber.hear()
    requests, wanted = [], []
    for shift_ms, calls in [(0, before), *seen.items()]:
        for call in calls:
            now_ms = int(call.at * 1000) + shift_ms
            old, new = former[call.path], subscriber.secrets[call.path]
            requests += [(call, old, now_ms), (call, new, now_ms)]
            wanted += [ACCEPTED if shift_ms < DAY_MS else NO_MATCH,
                       NO_MATCH if calls is before else ACCEPTED]
    assert judge(requests) == wanted
