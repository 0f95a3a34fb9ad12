"""The sample contract from outside: its routes, its process, its deadline, verify and copy.

The program is weir-sample of the build that $WEIR_BIN is of, which has all of weir's routes and processes."""
import os
import uuid
from datetime import datetime, timezone

import pytest

from harness import cli_calls, store_sql
from harness.weir_server import binary, wait_for

FAR = 86400


@pytest.fixture(name="sample")
def make_sample(fresh_weir, monkeypatch):
    """A factory for servers that have the sample contract."""
    program = os.path.join(os.path.dirname(binary()), "tests", "sample_contract", "weir-sample")
    monkeypatch.setenv("WEIR_BIN", program)
    return fresh_weir


def create(weir, key, seconds=FAR, text="water the plants"):
    """A note that is due in so many seconds."""
    return weir.api("POST", "/v1/notes", {"text": text, "due_at": weir.soon(seconds)}, key).expect(201)


def read(weir, key, note):
    """The note as it is now."""
    return weir.api("GET", f"/v1/notes/{note['note_id']}", key=key).expect(200)


def wait_state(weir, key, note, state):
    """Waits until the note is in it; gives the note."""
    def reached():
        now = read(weir, key, note)
        return now if now["state"] == state else None
    return wait_for(reached, 30, f"note in {state}", weir)


def close(weir, key, note):
    """The answer of closing it."""
    return weir.api("POST", f"/v1/notes/{note['note_id']}:close", key=key)


def test_a_note_is_shown_by_its_process_and_closed(sample):
    """All routes, both commands, the task and the process."""
    weir = sample()
    key = weir.new_client().api_key
    note = create(weir, key)
    assert note["state"] == "new"
    shown = wait_state(weir, key, note, "shown")
    assert shown["shown_by"].startswith("reminder") and shown["text"] == "water the plants"
    assert close(weir, key, note).expect(200)["state"] == "done"
    again = close(weir, key, note)
    assert (again.status, again.json["code"]) == (409, "INVALID_TRANSITION")
    assert weir.metric("sample_notes_total", state="done") == 1
    assert "reminder 1" in [process["name"] for process in weir.topology()["processes"]]


def test_a_note_that_nobody_closes_is_late_and_not_before_its_time(sample):
    """The deadline goes on where it was after a kill."""
    weir = sample()
    key = weir.new_client().api_key
    note = create(weir, key, seconds=2)
    weir.kill9()
    weir.start()
    late = wait_state(weir, key, note, "late")
    assert datetime.now(timezone.utc) >= datetime.fromisoformat(late["due_at"].replace("Z", "+00:00"))
    assert close(weir, key, note).status == 409


def test_what_is_wrong_is_refused(sample):
    """By the contract's schema, by a decider, by the id."""
    weir = sample()
    key = weir.new_client().api_key
    for body in ({}, {"due_at": "tomorrow"}, {"due_at": weir.soon(-1)}, {"due_at": weir.soon(9), "more": 1}):
        answer = weir.api("POST", "/v1/notes", body, key)
        assert (answer.status, answer.json["code"]) == (400, "RFA_REQUEST_MALFORMED"), body
    for note in ("nothing", str(uuid.uuid4())):
        assert weir.api("GET", f"/v1/notes/{note}", key=key).status == 404


def test_a_note_is_its_clients_own(sample):
    """As everything is."""
    weir = sample()
    one, other = weir.new_client(), weir.new_client()
    note = create(weir, one.api_key)
    path = f"/v1/notes/{note['note_id']}"
    assert weir.api("GET", path, key=other.api_key).status == 404
    assert close(weir, other.api_key, note).status == 404
    assert weir.api("GET", path).status == 401
    reader = weir.api("POST", f"/v1/clients/{one.client_id}/keys", {"scopes": ["read"]},
                      one.api_key).expect(201)["api_key"]
    assert weir.api("GET", path, key=reader).status == 200
    assert close(weir, reader, note).status == 403


def test_the_contract_is_served_beside_those_of_weir(sample):
    """As a file of its own; and the rest of the program is there."""
    weir = sample()
    key = weir.new_client().api_key
    assert "createNote" in weir.api("GET", "/openapi/notes.yaml").text
    weir.wait_state(key, weir.submit(key, work_kind="SUCCESS_FAST")["job_id"], "SUCCEEDED")


def notes_in_every_state(weir):
    """Stops the server; gives the key and the notes as they were."""
    key = weir.new_client().api_key
    done, late, shown = create(weir, key), create(weir, key, seconds=1), create(weir, key)
    close(weir, key, done).expect(200)
    wait_state(weir, key, late, "late")
    wait_state(weir, key, shown, "shown")
    weir.kill9_kind("reminder")
    notes = [read(weir, key, note) for note in (done, late, shown)]
    weir.stop()
    return key, notes


def test_verify_knows_the_rules_of_the_contract(sample):
    """A sound store has no problem; a note that lost its deadline, or its task, is told."""
    weir = sample()
    notes_in_every_state(weir)
    cli_calls.run(weir, "verify")
    assert store_sql.edit(weir, "DELETE FROM timers") == 1
    told = cli_calls.run(weir, "verify", code=1)
    assert "the deadlines of open notes" in told.stdout + told.stderr


def test_a_copy_has_all_notes_and_their_deadlines(sample, tmp_path):
    """Into another store, and a server goes on with it."""
    weir = sample()
    key, notes = notes_in_every_state(weir)
    source = weir.settings.get("store.url") or f"sqlite:{weir.data}/weir.db"
    target = f"sqlite:{tmp_path}/copy/weir.db"
    cli_calls.run(weir, "store", "copy", "--from", source, "--to", target)
    weir.settings["store.url"] = target
    weir.start()
    assert [read(weir, key, note) for note in notes] == notes
    assert close(weir, key, notes[2]).expect(200)["state"] == "done"
    weir.stop()
    cli_calls.run(weir, "verify")
