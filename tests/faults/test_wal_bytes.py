"""Commands that look at a store never checkpoint: every byte of its WAL stays, beside a server and after a
crash.

SQLite before 3.51.3 may lose pages when two connections checkpoint (sqlite_checkpoint.c), and what was not
copied by a server is evidence after a crash."""
import hashlib
import os
import re
import sqlite3
from pathlib import Path

import pytest

from harness.weir_server import REPOSITORY, wait_for

pytestmark = pytest.mark.sqlite_only("about the WAL beside the file")

LOOKS = {
    "verify": ["verify"],
    "backup": ["backup", "{home}/copy.db"],
    "doctor": ["doctor"],
    "events": ["store", "events", "--limit", "1"],
    "inbox": ["store", "inbox"],
}


def wal_digest(weir):
    """Of the WAL's bytes; they must be there."""
    wal = Path(weir.data, "weir.db-wal").read_bytes()
    assert len(wal) > 32
    return hashlib.sha256(wal).hexdigest()


def with_jobs(fresh_weir):
    """A server that has nothing to do any more."""
    weir = fresh_weir(settings={"runner.processes": 0})
    client_id, key = weir.new_client()
    for n in range(20):
        weir.submit(key, queue="outside", payload={"n": n})
    keys = f"/v1/clients/{client_id}/keys"  # the use of a key is written within a second, once a minute
    wait_for(lambda: weir.api("GET", keys, key=key).expect(200)["items"][0]["last_used_at"], 30,
             "the use of the key to be stored", weir)
    seen = [None, wal_digest(weir)]

    def is_still():
        seen[:] = [seen[1], wal_digest(weir)]
        return seen[0] == seen[1]

    wait_for(is_still, 10, "the store to be still", weir)
    return weir


def look(weir, command):
    """Runs it on the store; it must have something to say."""
    done = weir.cli(*[word.format(home=weir.home) for word in command])
    assert done.returncode in (0, 1), done.stdout + done.stderr  # doctor may find something else to tell
    return done


@pytest.mark.parametrize("command", LOOKS.values(), ids=LOOKS)
def test_a_command_beside_a_server_leaves_every_byte_of_the_wal(fresh_weir, command):
    """A reader that is the last to look does not copy pages either."""
    weir = with_jobs(fresh_weir)
    before = wal_digest(weir)
    look(weir, command)
    assert wal_digest(weir) == before
    weir.stop()


COPY = ["store", "copy", "--from", "sqlite:{home}/data/weir.db", "--to", "sqlite:{home}/other.db"]


@pytest.mark.parametrize("command", [*LOOKS.values(), COPY], ids=[*LOOKS, "copy"])
def test_a_command_after_a_crash_leaves_every_byte_of_the_wal(fresh_weir, command):
    """It is the only connection there is: its end must not be a checkpoint."""
    weir = with_jobs(fresh_weir)
    weir.kill9()
    before = wal_digest(weir)
    look(weir, command)
    assert wal_digest(weir) == before
    weir.start().stop()
    assert weir.cli("verify").returncode == 0


def test_control_a_connection_that_may_write_copies_the_wal(fresh_weir):
    """The negative control: what a plain connection does when it is the last to close."""
    weir = with_jobs(fresh_weir)
    weir.kill9()
    before = wal_digest(weir)
    database = sqlite3.connect(os.path.join(weir.data, "weir.db"))
    database.execute("SELECT count(*) FROM jobs").fetchone()
    database.close()
    wal = Path(weir.data, "weir.db-wal")
    assert not wal.exists() or not wal.stat().st_size or wal_digest(weir) != before


def test_documents_look_into_a_store_only_read_only():
    """Every call of the sqlite3 shell in a document is one that cannot checkpoint."""
    call = re.compile(r"sqlite3 +[^`|]*\.db")
    careless = []
    pages = [*Path(REPOSITORY).glob("*.md"), *Path(REPOSITORY, "docs").rglob("*.md"),
             *Path(REPOSITORY, "src").rglob("*.md"), *Path(REPOSITORY, "deploy").rglob("*")]
    calls = 0
    for page in pages:
        for line in page.read_text(encoding="utf-8").splitlines() if page.is_file() else []:
            if call.search(line):
                calls += 1
                if "-readonly" not in line and "mode=ro" not in line:
                    careless.append(f"{page}: {line}")
    assert calls and not careless, careless
