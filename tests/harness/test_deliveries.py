"""Negative controls of the judge of deliveries: every planted fault is seen, and a true record is not
blamed."""
import pytest

from harness.deliveries import Arrival, delivery_faults

EVENTS = [{"event_id": f"e{i}", "job_id": "j", "event_name": name, "seq": i}
          for i, name in enumerate(("job.created", "job.queued", "job.canceled"), 1)]
WANTED = {"good": {"j": EVENTS}, "ends": {"j": EVENTS[2:]}}
KNOWN = {"d1": ("good", "e1"), "d2": ("good", "e2"), "d3": ("good", "e3"), "d4": ("ends", "e3")}


def arrival(number, at, ok=True, receiver="good", **other):
    """An attempt of delivery d`number`, signed when it was sent."""
    fields = {"receiver": receiver, "id": f"d{number}", "timestamp": int(at), "signed": True,
              "event": EVENTS[min(number, 3) - 1], "at": at, "ok": ok}
    return Arrival(**{**fields, **other})


TRUE = [arrival(1, 100.2, ok=False), arrival(1, 130.5), arrival(1, 130.9), arrival(2, 131.0),
        arrival(4, 131.2, receiver="ends"), arrival(2, 131.5), arrival(3, 140.0)]


def without(index):
    """The record without one arrival."""
    return TRUE[:index] + TRUE[index + 1:]


def bent(index, **fields):
    """The record with one arrival changed."""
    return TRUE[:index] + [TRUE[index]._replace(**fields)] + TRUE[index + 1:]


def test_a_true_record_is_not_blamed():
    """With failures, repeats of what was taken, and receivers in between each other."""
    assert not delivery_faults(WANTED, KNOWN, TRUE)


@pytest.mark.parametrize("arrivals", [
    pytest.param([], id="nothing arrived"),
    pytest.param(without(6), id="the last one is missing"),
    pytest.param(without(4), id="the only one of a receiver is missing"),
    pytest.param(bent(6, ok=False), id="never taken"),
    pytest.param(bent(3, signed=False), id="one is not signed"),
    pytest.param(bent(3, id="d9"), id="a delivery nobody knows"),
    pytest.param(bent(5, id="d3"), id="another id for a repeat"),
    pytest.param(bent(4, receiver="good"), id="at another receiver"),
    pytest.param(bent(4, event=EVENTS[0]), id="what the receiver did not ask for"),
    pytest.param(bent(3, event={**EVENTS[1], "seq": 7}), id="another event than the stored one"),
    pytest.param(bent(1, timestamp=100), id="the timestamp of the first attempt"),
    pytest.param(bent(6, timestamp=1), id="an old timestamp"),
    pytest.param(TRUE[:2] + [TRUE[6]] + TRUE[3:6], id="two are swapped"),
    pytest.param([TRUE[0], TRUE[3]] + TRUE[1:3] + TRUE[4:], id="before its forerunner was taken"),
])
def test_every_planted_fault_of_a_record_is_seen(arrivals):
    """Each fails the run that has it."""
    assert delivery_faults(WANTED, KNOWN, arrivals)


def test_a_delivery_that_nobody_wanted_is_seen():
    """In the server's log alone."""
    assert delivery_faults(WANTED, {**KNOWN, "d5": ("ends", "e1")}, TRUE)
