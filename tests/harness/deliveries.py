"""Judges what receivers got; shares no code with the server.

    wanted    {receiver: {job_id: [event, ...]}}     who was to hear of what, in the order it happened
    known     {delivery_id: (receiver, event_id)}    the server's delivery log
    arrivals  [Arrival, ...]                         every request of every receiver, as it came

delivery_faults() gives what is wrong: an event that no receiver took, one that is not signed, one the
server does not know or tells differently, another webhook-id for the same delivery, a stale timestamp,
an event before the one before it was taken. read_log() reads `known` over the API.
"""
from collections import namedtuple

from harness.kept import Kept

FRESH_SECONDS_MAX = 60  # from the signature to the arrival, on a machine that is busy
REPEAT_SECONDS = 5      # so far apart, two attempts have two timestamps

# ok: the receiver took it with a 2xx, whether or not its answer was read.
Arrival = namedtuple("Arrival", "receiver id timestamp signed event at ok")


OF_THE_BODY = {"result", "error", "result_omitted"}  # what a delivery says besides the event


def arrival_of(receiver, call, is_genuine):
    """A harness.receiver.Call as an arrival."""
    event = {name: value for name, value in call.event.items() if name not in OF_THE_BODY}
    return Arrival(receiver, call.headers.get("webhook-id"), int(call.headers.get("webhook-timestamp", 0)),
                   is_genuine, event, call.at, call.status is not None and 200 <= call.status < 300)


def each_alone(arrival, wanted, known):
    """What is wrong with one request, whatever came before it."""
    where = f"{arrival.receiver} {arrival.event['job_id']} {arrival.event['event_name']} {arrival.id}"
    events = wanted.get(arrival.receiver, {}).get(arrival.event["job_id"], [])
    if not arrival.signed:
        yield f"{where}: not signed, or wrongly"
    if arrival.id not in known:
        yield f"{where}: the server knows no such delivery"
    elif known[arrival.id] != (arrival.receiver, arrival.event["event_id"]):
        yield f"{where}: the server knows it as {known[arrival.id]}"
    if arrival.event not in events:
        yield f"{where}: not an event this receiver was to hear of"
    if abs(arrival.at - arrival.timestamp) > FRESH_SECONDS_MAX:
        yield f"{where}: signed at {arrival.timestamp}, arrived at {arrival.at:.0f}"


def repeats(arrivals):
    """What is wrong between the attempts of one delivery."""
    ids, last = {}, {}
    for a in arrivals:
        key = a.receiver, a.event["event_id"]
        if ids.setdefault(key, a.id) != a.id:
            yield f"{key}: webhook-id {ids[key]} and then {a.id}"
        before = last.get(key)
        if before and a.at - before.at > REPEAT_SECONDS and a.timestamp == before.timestamp:
            yield f"{key}: the timestamp {a.timestamp} again, {a.at - before.at:.1f} s later"
        if before and a.timestamp < before.timestamp - REPEAT_SECONDS:
            yield f"{key}: the timestamp {a.timestamp} after {before.timestamp}"
        last[key] = a


def order(arrivals, wanted):
    """Nothing of a job arrives before the event before it was taken."""
    taken = set()
    for a in arrivals:
        events = [event["event_id"] for event in wanted.get(a.receiver, {}).get(a.event["job_id"], [])]
        at = events.index(a.event["event_id"]) if a.event["event_id"] in events else 0
        if at and (a.receiver, events[at - 1]) not in taken:
            yield f"{a.receiver} {a.event['job_id']}: {a.event['event_name']} before its forerunner"
        if a.ok:
            taken.add((a.receiver, a.event["event_id"]))


def missing(arrivals, wanted):
    """Events that no receiver took."""
    taken = {(a.receiver, a.event["event_id"]) for a in arrivals if a.ok}
    for receiver, jobs in wanted.items():
        for job_id, events in jobs.items():
            for event in events:
                if (receiver, event["event_id"]) not in taken:
                    yield f"{receiver} {job_id}: {event['event_name']} was never taken"


def delivery_faults(wanted, known, arrivals):
    """See the module's text; an empty list when nothing is wrong."""
    faults = [fault for a in arrivals for fault in each_alone(a, wanted, known)]
    wanted_ids = {(receiver, event["event_id"]) for receiver, jobs in wanted.items()
                  for events in jobs.values() for event in events}
    faults += [f"{delivery_id}: in the log, but nobody wanted {what}" for delivery_id, what in known.items()
               if what not in wanted_ids]
    return (faults + list(repeats(arrivals)) + list(order(arrivals, wanted))
            + list(missing(arrivals, wanted)))


def read_log(kept, path):
    """The deliveries under a path, newest first."""
    items, query = [], "?limit=200"
    while True:
        page = kept.call("GET", path + query).expect(200)
        items += page["items"]
        if not page.get("next_cursor"):
            return items
        query = "?limit=200&cursor=" + page["next_cursor"]


def read_logs(weir, key, callbacks, webhooks):
    """{receiver: [delivery, ...]} of callbacks {job_id: receiver} and webhooks {webhook_id: receiver}."""
    logs = {}
    with Kept(weir.address, key) as kept:
        for job_id, receiver in callbacks.items():
            logs.setdefault(receiver, []).extend(read_log(kept, f"/v1/jobs/{job_id}/deliveries"))
        for webhook_id, receiver in webhooks.items():
            logs.setdefault(receiver, []).extend(read_log(kept, f"/v1/webhooks/{webhook_id}/deliveries"))
    return logs
