"""Files of a store are removed, cut or replaced: it is noticed, refused and told, never served in silence.

The high-water mark (src/store/high_water.h) is outside of the database, so that it can tell."""
import os
import re
import shutil
import sqlite3

import pytest

from harness.weir_server import wait_for

pytestmark = pytest.mark.sqlite_only("about the files beside each other")
NOBODY = {"runner.processes": 0}
EXIT_CONFIG = 78


def path(weir, name):
    """Of a file of the data directory."""
    return os.path.join(weir.data, name)


def mark_of(weir):
    """How many commits the mark says."""
    with open(path(weir, "weir.mark"), encoding="ascii") as file:
        line = file.read()
    assert re.fullmatch(r"weir-mark 1 \d{19} \d{19}\n", line)
    return int(line.split()[3])


def submit(weir, key, count):
    """So many jobs, each a commit of its own."""
    return [weir.submit(key, queue="outside", payload={"n": n})["job_id"] for n in range(count)]


def killed_with_jobs(fresh_weir, count=12):
    """A store as kill -9 leaves it, and the key of its client."""
    weir = fresh_weir(settings=NOBODY)
    key = weir.new_client().api_key
    submit(weir, key, count)
    weir.kill9()
    return weir, key


def refused(weir):
    """Starts it; it must refuse. Gives what it said."""
    with open(weir.log_path, "a+b") as log:
        begin = log.tell()
    weir.spawn()
    assert weir.process.wait(timeout=60) == EXIT_CONFIG
    weir.process = None
    with open(weir.log_path, "rb") as log:
        log.seek(begin)
        said = log.read().decode()
    assert "--accept-loss" in said and "RFA_STORAGE_LOST" in said
    return said


def accepted(weir):
    """Starts it with --accept-loss; gives what it says is missing."""
    weir.args = ["--accept-loss"]
    weir.start()
    weir.args = []
    told = weir.wait_log(event="loss_accepted")
    return told["error_message"]


def test_control_a_killed_store_with_all_its_files_starts_and_has_every_commit(fresh_weir):
    """The negative control: the mark of a killed server is no more than what the store has."""
    weir, key = killed_with_jobs(fresh_weir)
    said = mark_of(weir)
    assert weir.cli("verify").returncode == 0
    weir.start()
    assert mark_of(weir) >= said
    submit(weir, key, 3)
    assert mark_of(weir) >= said + 3
    weir.stop()
    assert weir.cli("verify").returncode == 0
    weir.start().stop()


def test_a_removed_wal_is_refused_until_the_loss_is_accepted(fresh_weir):
    """verify and doctor tell it; the refused start leaves the files as they were, so that what was moved away
    can be put back."""
    weir, key = killed_with_jobs(fresh_weir)
    os.rename(path(weir, "weir.db-wal"), path(weir, "moved"))
    os.unlink(path(weir, "weir.db-shm"))
    assert "commits" in refused(weir)
    for command in ("verify", "doctor"):
        done = weir.cli(command)
        assert done.returncode == 1 and "missing" in done.stdout + done.stderr
    for ending in ("-wal", "-shm"):
        if os.path.exists(path(weir, "weir.db" + ending)):
            os.unlink(path(weir, "weir.db" + ending))
    os.rename(path(weir, "moved"), path(weir, "weir.db-wal"))
    weir.start()
    assert len(weir.api("GET", "/v1/jobs?limit=100", key=key).json["items"]) == 12
    weir.stop()


def test_what_is_missing_is_counted_and_logged_when_it_is_accepted(fresh_weir):
    """Ten commits after a clean stop lie in the WAL alone: ten are missing without it."""
    weir = fresh_weir(settings=NOBODY)
    key = weir.new_client().api_key
    submit(weir, key, 5)
    weir.stop()
    before = mark_of(weir)
    weir.start()
    submit(weir, key, 10)
    weir.kill9()
    missing = mark_of(weir) - before
    assert missing >= 10
    os.unlink(path(weir, "weir.db-wal"))
    assert f"{missing} commits are missing" in refused(weir)
    assert f"{missing} commits are missing" in accepted(weir)
    assert len(weir.api("GET", "/v1/jobs?limit=100", key=key).json["items"]) == 5
    weir.stop()
    weir.start()  # the mark says what there is now
    weir.stop()
    assert weir.cli("verify").returncode == 0


def test_a_wal_that_was_cut_is_refused(fresh_weir):
    """Half of its frames are gone."""
    weir, _ = killed_with_jobs(fresh_weir)
    wal = path(weir, "weir.db-wal")
    with open(wal, "rb") as file:
        used = len(file.read().rstrip(b"\0"))
    os.truncate(wal, used // 2)
    assert "missing" in refused(weir)


def test_an_older_copy_in_the_place_of_the_database_is_refused_and_a_restored_one_is_not(fresh_weir):
    """cp of a backup is a loss; weir restore is what was asked for."""
    weir = fresh_weir(settings=NOBODY)
    key = weir.new_client().api_key
    submit(weir, key, 3)
    backup = os.path.join(weir.home, "backup.db")
    assert weir.cli("backup", backup).returncode == 0
    submit(weir, key, 4)
    weir.stop()
    shutil.copy(backup, path(weir, "weir.db"))
    assert "commits are missing" in refused(weir)
    assert weir.cli("restore", backup, "--force").returncode == 0
    assert weir.cli("verify").returncode == 0
    weir.start()
    assert len(weir.api("GET", "/v1/jobs?limit=100", key=key).json["items"]) == 3
    weir.stop()


def test_a_removed_database_is_refused_and_not_made_anew(fresh_weir):
    """Also when its WAL is gone with it."""
    weir, _ = killed_with_jobs(fresh_weir)
    for ending in ("", "-wal", "-shm"):
        os.unlink(path(weir, "weir.db" + ending))
    assert "missing" in refused(weir)
    assert not os.path.exists(path(weir, "weir.db"))
    assert "missing" in accepted(weir)
    weir.stop()


def test_another_database_in_its_place_is_refused(fresh_weir):
    """One with more commits of its own, too."""
    weir, _ = killed_with_jobs(fresh_weir)
    other = fresh_weir(settings=NOBODY)
    submit(other, other.new_client().api_key, 30)
    other.stop()
    os.unlink(path(weir, "weir.db-wal"))
    shutil.copy(path(other, "weir.db"), path(weir, "weir.db"))
    assert "replaced by another one" in refused(weir)


def test_a_copy_of_a_store_has_a_mark_of_its_own(fresh_weir):
    """Also where another store was before."""
    weir = fresh_weir(settings=NOBODY)
    key = weir.new_client().api_key
    submit(weir, key, 4)
    weir.stop()
    target, _ = killed_with_jobs(fresh_weir)
    for ending in ("", "-wal", "-shm"):
        os.unlink(path(target, "weir.db" + ending))
    done = weir.cli("store", "copy", "--from", f"sqlite:{path(weir, 'weir.db')}",
                    "--to", f"sqlite:{path(target, 'weir.db')}")
    assert done.returncode == 0, done.stdout + done.stderr
    target.start()
    assert len(target.api("GET", "/v1/jobs?limit=100", key=key).json["items"]) == 4
    target.stop()


@pytest.mark.parametrize("name", ["weir.db", "weir.db-wal"])
def test_files_that_go_under_a_running_server_end_its_writes(fresh_weir, name):
    """503, /readyz 503, a log line; what can still be read is right. Put back, it goes on by itself."""
    weir = fresh_weir(settings=NOBODY)
    key = weir.new_client().api_key
    jobs = submit(weir, key, 3)
    os.rename(path(weir, name), path(weir, "moved"))
    wait_for(lambda: weir.api("GET", "/readyz").status == 503, 30, "the loss to be seen", weir)
    assert weir.logs(at_least=1, event="store_files_gone", error_code="RFA_STORAGE_LOST")
    refused = weir.try_submit(key, queue="outside")  # by the watch, or by a read before it
    assert refused.status == 503 and refused.json["code"].startswith("RFA_STORAGE_"), refused
    answers = [weir.api("GET", f"/v1/jobs/{job}", key=key) for job in jobs]
    assert all(a.status == 503 or a.json["state"] == "QUEUED" for a in answers), answers
    assert weir.cli("doctor").returncode == 1
    os.rename(path(weir, "moved"), path(weir, name))
    wait_for(lambda: weir.api("GET", "/readyz").status == 200, 30, "the files to be seen", weir)
    wait_for(lambda: weir.try_submit(key, queue="outside").status == 202, 30, "a job to be taken", weir)
    weir.stop()
    assert weir.cli("verify").returncode == 0


def test_a_database_replaced_under_a_running_server_is_left_alone(fresh_weir):
    """The end of that server neither copies into it nor deletes the WAL."""
    weir = fresh_weir(settings=NOBODY)
    key = weir.new_client().api_key
    submit(weir, key, 3)
    other = os.path.join(weir.home, "other.db")
    database = sqlite3.connect(other)
    database.execute("CREATE TABLE t(x)")
    database.close()
    with open(other, "rb") as file:
        before = file.read()
    os.rename(other, path(weir, "weir.db"))
    wait_for(lambda: weir.api("GET", "/readyz").status == 503, 30, "the loss to be seen", weir)
    weir.stop()
    with open(path(weir, "weir.db"), "rb") as file:
        assert file.read() == before
    assert os.path.getsize(path(weir, "weir.db-wal")) > 0


@pytest.mark.parametrize("damage", (b"", b"weir-mark 1 garbage\n"))
def test_a_mark_that_is_gone_or_damaged_is_told_by_doctor_log_and_readyz(fresh_weir, damage):
    """Then nobody can tell whether commits are missing; the next start makes another."""
    weir = killed_with_jobs(fresh_weir)[0]
    if damage:
        with open(path(weir, "weir.mark"), "wb") as file:
            file.write(damage)
    else:
        os.remove(path(weir, "weir.mark"))
    assert "the mark is missing or damaged" in weir.cli("doctor").stdout
    weir.start()
    assert weir.wait_log(event="mark_missing")["level"] == "warn"
    assert weir.api("GET", "/readyz").expect(200)["checks"]["mark"] == "warn"
    assert "commits, all there" in weir.cli("doctor").stdout
    weir.stop()
    weir.start()
    assert "mark" not in weir.api("GET", "/readyz").expect(200)["checks"]
