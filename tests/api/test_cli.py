"""The command line against a real server: exit codes, output for people and for programs."""
import datetime
import json
import os
import re
import sqlite3
import subprocess
import time

import pytest

from harness.cli_calls import on_terminal, pairs, run, run_json
from harness.store_sql import edit
from harness.weir_server import server_environment, wait_for

BACKUP = pytest.mark.sqlite_only("backup and restore copy a file; a database has its own tools")


# ---- clients and keys

def test_a_client_with_a_key_is_ready_to_use_after_one_command(weir):
    """client create --with-key --quiet prints the one line a shell has to evaluate."""
    line = run(weir, "client", "create", "--with-key", "--quiet").stdout
    name, _, key = line.strip().partition("=")
    assert name == "export WEIR_API_KEY"
    assert run_json(weir, "job", "list", key=key)["items"] == []


def test_client_create_shows_id_and_secret_once_and_names_the_next_command(weir):
    """Data goes to stdout, the hint to stderr; --quiet prints the id alone."""
    done = run(weir, "client", "create")
    made = pairs(done.stdout)
    assert made["webhook_secret"].startswith("whsec_")
    assert f"weir client key create {made['client_id']}" in done.stderr
    quiet = run(weir, "client", "create", "--quiet")
    assert re.fullmatch(r"[0-9a-f-]{36}\n", quiet.stdout) and quiet.stderr == ""


def test_keys_are_created_rotated_renewed_and_revoked(weir):
    """A revoked key is refused with exit code 4."""
    client_id = run(weir, "client", "create", "--quiet").stdout.strip()
    first = run_json(weir, "client", "key", "create", client_id)
    again = run_json(weir, "client", "key", "create", client_id, key=first["api_key"])
    assert again["api_key"] is None and again["key_id"] == first["key_id"]
    second = run_json(weir, "client", "key", "create", client_id, "--rotate", key=first["api_key"])
    third = run_json(weir, "client", "key", "renew", client_id, key=second["api_key"])
    for key in (first, second, third):  # both that were replaced work on for a while
        run(weir, "job", "list", key=key["api_key"])
    done = run(weir, "client", "key", "revoke", client_id, third["key_id"], key=third["api_key"])
    assert done.stdout == f"revoked {third['key_id']}\n"
    refused = run(weir, "job", "list", key=third["api_key"], code=4)
    assert "RFA_AUTH_API_KEY_DISABLED" in refused.stderr


def test_keys_with_less_power_are_made_listed_and_renewed(weir, client):
    """As a table and as JSON; what the server refuses is told with its words."""
    create = ["client", "key", "create", client.client_id]
    made = run_json(weir, *create, "--scope", "work,read", "--queue", "news,mail", "--name", "mailer",
                    "--expires", "30d", key=client.api_key)
    rows = run(weir, "client", "key", "list", client.client_id, key=client.api_key).stdout.splitlines()
    assert rows[0].split() == ["KEY_ID", "NAME", "STATE", "SCOPES", "QUEUES", "EXPIRES_AT", "LAST_USED_AT"]
    assert rows[1].split()[:5] == [made["key_id"], "mailer", "active", "work,read", "mail,news"]
    assert rows[2].split()[1:5] == ["-", "active", "submit,work,read,admin", "all"]
    renewed = run_json(weir, "client", "key", "renew", client.client_id, made["key_id"], "--queue", "mail",
                       key=client.api_key)
    listed = run_json(weir, "client", "key", "list", client.client_id, key=client.api_key)["items"]
    assert [(k["key_id"], k["state"], k["queues"]) for k in listed[:2]] == [
        (renewed["key_id"], "active", ["mail"]), (made["key_id"], "replaced", ["mail", "news"])]
    refused = run(weir, *create, "--name", "x", key=renewed["api_key"], code=4)
    assert "the scope admin" in refused.stderr
    run(weir, *create, "--scope", "root", key=client.api_key, code=1)
    run(weir, *create, "--expires", "soon", key=client.api_key, code=2)


def test_a_watch_ends_with_the_key_it_was_started_with(weir, client):
    """Exit code 4, and why; the last message of the stream is not taken for an event."""
    job_id = weir.submit(client.api_key, queue="outside")["job_id"]
    made = run_json(weir, "client", "key", "create", client.client_id, "--name", "x", key=client.api_key)
    with start(weir, "job", "watch", job_id, "-o", "json", key=made["api_key"]) as watch:
        assert "job.created" in watch.stdout.readline() and "job.queued" in watch.stdout.readline()
        run(weir, "client", "key", "revoke", client.client_id, made["key_id"], key=client.api_key)
        rest, told = watch.communicate(timeout=60)
    assert watch.returncode == 4 and rest == "" and "RFA_AUTH_API_KEY_DISABLED" in told


def test_a_first_key_is_made_although_another_clients_key_lies_around(weir, client):
    """WEIR_API_KEY of another client does not stand in the way of a new one."""
    client_id = run(weir, "client", "create", "--quiet").stdout.strip()
    assert run_json(weir, "client", "key", "create", client_id, key=client.api_key)["api_key"]
    refused = run(weir, "client", "key", "create", client_id, key=client.api_key, code=4)
    assert "RFA_AUTH_FORBIDDEN" in refused.stderr


def test_the_operator_token_manages_keys_of_any_client(fresh_weir):
    """By flag; without it the same call is refused."""
    weir = fresh_weir(settings={"operator.token": "operator-secret"})
    client_id, _ = weir.new_client()
    run(weir, "client", "key", "create", client_id, "--rotate", code=4)
    made = run_json(weir, "client", "key", "create", client_id, "--rotate",
                    "--operator-token", "operator-secret")
    assert run_json(weir, "job", "list", key=made["api_key"])["items"] == []


# ---- jobs

def test_submit_sends_every_flag(weir, client):
    """What the flags say is what the job has."""
    job_id = run(weir, "job", "submit", "--quiet", "--queue", "outside", "--work-kind", "SUCCESS_FAST",
                 "--kind", "mail.send", "--retry", "manual", "--payload", '{"n": [1, 2]}',
                 "--priority", "7", "--max-runtime-ms", "5000",
                 "--max-retries", "1", "--queue-ttl", "600", "--callback", "http://127.0.0.1:9/hook",
                 key=client.api_key).stdout.strip()
    job = run_json(weir, "job", "get", job_id, key=client.api_key)
    assert (job["type"], job["queue"], job["work_kind"]) == ("EXECUTE", "outside", "SUCCESS_FAST")
    assert (job["priority"], job["max_runtime_ms"], job["max_retries"]) == (7, 5000, 1)
    assert (job["kind"], job["retry"], job["queue_ttl_seconds"]) == ("mail.send", "manual", 600)
    assert re.search(r"queue_ttl_seconds +600\n", run(weir, "job", "get", job_id, key=client.api_key).stdout)
    assert job["payload"] == {"n": [1, 2]} and job["callback"] == "http://127.0.0.1:9/hook"


def test_kinds_of_ones_own_and_of_the_catalog_are_told_apart(weir, client):
    """--kind is a free name, --work-kind the catalog's; whoever takes one for the other gets a hint."""
    key = client.api_key
    own = run(weir, "job", "submit", "-q", "--queue", "o", "--kind", "mail.send", key=key).stdout.strip()
    mixed = run(weir, "job", "submit", "--queue", "o", "--kind", "SUCCESS_FAST", key=key)
    assert "--work-kind SUCCESS_FAST" in mixed.stderr
    catalog = run(weir, "job", "submit", "-q", "--queue", "o", "--work-kind", "CPU_BURST",
                  key=key).stdout.strip()
    assert run(weir, "job", "list", "-q", "--kind", "mail.send", key=key).stdout.split() == [own]
    assert run(weir, "job", "list", "-q", "--work-kind", "CPU_BURST", key=key).stdout.split() == [catalog]
    assert "--work-kind CPU_BURST" in run(weir, "job", "list", "--kind", "CPU_BURST", key=key).stderr
    shown = run(weir, "job", "list", key=key).stdout
    assert "mail.send" in shown and "CPU_BURST" in shown


def test_watch_follows_a_job_through_its_retries(fresh_weir):
    """A failure that is tried again is not the end."""
    weir = fresh_weir(settings={"runner.processes": 0, "jobs.retry_base_ms": 20})
    key = weir.new_client().api_key
    job_id = weir.submit(key, queue="outside")["job_id"]
    watcher = start(weir, "job", "watch", job_id, "-o", "json", key=key)
    weir.end_outside(key, job_id)
    task = wait_for(lambda: weir.claim(key), 20, "the second attempt", weir)[0]
    weir.tell("start", key, task)
    weir.tell("finish", key, task, outcome="success")
    seen, _ = watcher.communicate(timeout=20)
    names = [json.loads(line)["event_name"] for line in seen.splitlines()]
    assert names[4:6] == ["job.failed", "job.queued"] and names[-1] == "job.succeeded"
    assert watcher.returncode == 0


def test_a_job_that_expired_says_so(weir, client):
    """The one who submitted it learns why nobody worked on it."""
    job_id = run(weir, "job", "submit", "-q", "--queue", "nobody", "--queue-ttl", "1",
                 key=client.api_key).stdout.strip()
    for verb, code in (("watch", 1), ("report", 0)):
        seen = run(weir, "job", verb, job_id, key=client.api_key, code=code).stdout
        assert re.search(r"job.canceled .*CANCELED +expired", seen), seen


def test_a_payload_may_come_from_a_file(weir, client, tmp_path):
    """@FILE; a file that is no JSON object is a usage fault and nothing is sent."""
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text('{"from": "file"}')
    bad.write_text('[1]')
    job_id = run(weir, "job", "submit", "-q", "--queue", "outside", "--payload", f"@{good}",
                 key=client.api_key).stdout.strip()
    job = run_json(weir, "job", "get", job_id, key=client.api_key)
    assert job["payload"] == {"from": "file"}
    run(weir, "job", "submit", "--payload", f"@{bad}", key=client.api_key, code=2)
    run(weir, "job", "submit", "--payload", f"@{bad}.gone", key=client.api_key, code=2)
    assert len(run_json(weir, "job", "list", key=client.api_key)["items"]) == 1


def test_a_time_makes_the_job_deferred(weir, client):
    """--at +1h; explain says what it waits for."""
    job_id = run(weir, "job", "submit", "-q", "--at", "+1h", key=client.api_key).stdout.strip()
    job = run_json(weir, "job", "get", job_id, key=client.api_key)
    assert job["type"] == "DEFERRED" and job["state"] == "CREATED"
    shown = pairs(run(weir, "job", "explain", job_id, key=client.api_key).stdout)
    assert shown["waiting_on"] == "schedule"
    run(weir, "job", "submit", "--at", "+soon", key=client.api_key, code=2)


def test_submit_and_wait_prints_each_event_and_succeeds_with_the_job(weir, client):
    """Exit 0 for SUCCEEDED, 1 for FAILED."""
    done = run(weir, "job", "submit", "--work-kind", "SUCCESS_FAST", "--wait", key=client.api_key)
    names = re.findall(r"job\.\w+", done.stdout)
    assert names == ["job.created", "job.queued", "job.assigned", "job.running", "job.succeeded"]
    failed = run(weir, "job", "submit", "--work-kind", "FAIL_IMMEDIATE", "--wait", "-o", "json",
                 key=client.api_key, code=1)
    lines = [json.loads(line) for line in failed.stdout.splitlines()]
    assert lines[-1]["next_state"] == "FAILED" and [e["seq"] for e in lines[1:]] == [1, 2, 3, 4, 5]


def test_watch_ends_with_exit_code_6_when_its_time_is_over(weir, client):
    """The job goes on."""
    job = weir.submit(client.api_key, queue="outside")
    done = run(weir, "job", "watch", job["job_id"], "--timeout", "200ms", key=client.api_key, code=6)
    assert "job.queued" in done.stdout and "--timeout" in done.stderr
    assert weir.job(client.api_key, job["job_id"])["state"] == "QUEUED"


def test_watch_ends_with_exit_code_1_when_the_job_is_canceled(weir, client):
    """The last event comes while the command follows."""
    job = weir.submit(client.api_key, queue="outside")
    watcher = start(weir, "job", "watch", job["job_id"], "-o", "json", key=client.api_key)
    assert json.loads(watcher.stdout.readline())["event_name"] == "job.created"
    weir.cancel(client.api_key, job["job_id"]).expect(200)
    rest, _ = watcher.communicate(timeout=20)
    assert json.loads(rest.splitlines()[-1])["event_name"] == "job.canceled"
    assert watcher.returncode == 1


def test_watch_outlives_a_restart_of_the_server_and_repeats_nothing(fresh_weir):
    """It connects again and goes on behind the last event it has seen."""
    weir = fresh_weir()
    client = weir.new_client()
    job = weir.submit(client.api_key, queue="outside")
    watcher = start(weir, "job", "watch", job["job_id"], "-o", "json", key=client.api_key)
    first = [json.loads(watcher.stdout.readline())["seq"] for _ in range(2)]
    weir.restart()
    task = weir.claim(client.api_key)[0]
    assert weir.tell("start", client.api_key, task)["ok"]
    assert weir.tell("finish", client.api_key, task, outcome="success", result={})["ok"]
    rest, _ = watcher.communicate(timeout=30)
    seqs = first + [json.loads(line)["seq"] for line in rest.splitlines()]
    assert seqs == [1, 2, 3, 4, 5] and watcher.returncode == 0


def start(weir, *args, key):
    """A command that runs beside the test."""
    env = server_environment({"WEIR_URL": weir.url, "WEIR_API_KEY": key})
    return subprocess.Popen(weir.program + list(args), env=env, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def running(weir, client, **fields):
    """A task that is claimed and started."""
    weir.submit(client.api_key, queue="outside", **fields)
    task = weir.claim(client.api_key)[0]
    weir.tell("start", client.api_key, task)
    return task


def test_progress_is_shown_by_get_and_watch_and_what_came_of_a_job_by_get_and_report(weir, client):
    key, task = client.api_key, running(weir, client)
    weir.tell("heartbeat", key, task, progress={"percent": 40, "note": "page 4 of 10"})
    assert "progress" in run(weir, "job", "get", task["job_id"], key=key).stdout
    with start(weir, "job", "watch", task["job_id"], key=key) as watch:
        shown = [watch.stdout.readline() for _ in range(6)]
        assert "job.running" in shown[-2] and "progress" in shown[-1] and "40 %, page 4 of 10" in shown[-1]
        weir.tell("finish", key, task, outcome="success", result={"rows": 3})
        assert "job.succeeded" in watch.communicate(timeout=60)[0]
    assert watch.returncode == 0
    for verb in ("report", "get"):
        shown = run(weir, "job", verb, task["job_id"], key=key).stdout
        assert re.search(r'^result +\{"rows": 3\}$', shown, re.M)
        assert not re.search("^(error|progress)", shown, re.M)
    task = running(weir, client, max_retries=0)
    weir.tell("finish", key, task, outcome="failure",
              error={"code": "no_disk", "message": "tape is full", "retryable": False})
    for verb in ("report", "get"):
        shown = run(weir, "job", verb, task["job_id"], key=key).stdout
        assert re.search("^error +no_disk: tape is full$", shown, re.M) and "result" not in shown


def test_list_pages_add_up_to_all(weir, client):
    """--all follows every cursor; without it the next cursor is named."""
    made = [weir.submit(client.api_key, queue="outside")["job_id"] for _ in range(5)]
    everything = run_json(weir, "job", "list", "--all", "--limit", "2", key=client.api_key)
    assert [job["job_id"] for job in everything["items"]] == made[::-1]
    assert everything["next_cursor"] is None
    page = run(weir, "job", "list", "-o", "table", "--limit", "2", key=client.api_key)
    assert len(page.stdout.splitlines()) == 3 and page.stdout.startswith("JOB ID ")
    cursor = re.search(r"--cursor (\S+)", page.stderr).group(1)
    second = run(weir, "job", "list", "-q", "--limit", "2", "--cursor", cursor, key=client.api_key)
    assert second.stdout.split() == made[::-1][2:4]
    table = run(weir, "job", "list", "--all", "--limit", "2", key=client.api_key).stdout
    assert table.count("JOB ID") == 1 and len(table.splitlines()) == 6


def test_list_filters_are_the_servers(weir, client):
    """By state; a state that there is none of is refused by the server."""
    kept = weir.submit(client.api_key, queue="outside")["job_id"]
    gone = weir.submit(client.api_key, queue="outside")["job_id"]
    weir.cancel(client.api_key, gone).expect(200)
    found = run(weir, "job", "list", "-q", "--state", "QUEUED", key=client.api_key)
    assert found.stdout.split() == [kept]
    nothing = run(weir, "job", "list", "--outcome", "SUCCESS", key=client.api_key)
    assert "No job matches" in nothing.stderr
    run(weir, "job", "list", "--state", "NOPE", key=client.api_key, code=1)


def test_a_failed_job_is_reported_and_retried(weir, client):
    """The report shows every event; retry raises the attempt."""
    job = weir.submit(client.api_key, work_kind="FAIL_IMMEDIATE")["job_id"]
    weir.wait_final(client.api_key, job)
    report = run(weir, "job", "report", job, key=client.api_key).stdout
    assert pairs(report)["outcome"] == "FAILED" and "job.failed" in report
    assert re.search(r"\+\d+(\.\d)? (us|ms|s)\b", report)
    assert pairs(run(weir, "job", "retry", job, key=client.api_key).stdout)["attempt"] == "2"
    again = run(weir, "job", "cancel", job, key=client.api_key)
    assert pairs(again.stdout)["state"] == "CANCELED"
    still = run(weir, "job", "retry", job, key=client.api_key)
    assert "nothing has changed" in still.stderr


# ---- refusals

def test_problems_become_exit_codes_and_say_what_to_do(weir, client):
    """404 is 3, 401 is 4, 409 is 5; title, detail, code and advice are on stderr."""
    missing = run(weir, "job", "get", "019a8a3e-7c11-7a52-9c35-1f2e3d4c5b6a", key=client.api_key,
                  code=3)
    assert missing.stdout == "" and "No such job" in missing.stderr
    assert "RFA_JOB_NOT_FOUND" in missing.stderr and "check the job_id" in missing.stderr
    for odd in ("", "..", "a?b", "\u00e9"):
        run(weir, "job", "get", odd, key=client.api_key, code=3)
    nobody = run(weir, "job", "list", code=4)
    assert "WEIR_API_KEY" in nobody.stderr
    run(weir, "job", "submit", "--idempotency-key", "a", "--work-kind", "SUCCESS_FAST", key=client.api_key)
    run(weir, "job", "submit", "--idempotency-key", "a", "--work-kind", "SUCCESS_SLOW",
        key=client.api_key, code=5)
    run(weir, "job", "report", weir.submit(client.api_key, queue="outside")["job_id"],
        key=client.api_key, code=3)


def test_without_a_server_one_line_says_how_to_start_one(weir):
    """A refused connection; the port is held by the harness and nobody listens."""
    done = run(weir, "job", "list", "--url", "http://127.0.0.1:1", code=1)
    assert "weir serve" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("args, meant", [
    (["jbo"], "weir job"), (["job", "lsit"], "weir job list"), (["job", "list", "--lmit"], "--limit"),
    (["serve", "--set", "server.lisen=a"], "server.listen"), (["serve", "--listen", "here"], "server.listen"),
])
def test_a_mistake_is_one_line_with_the_nearest_word_and_exit_code_2(weir, args, meant):
    """Nothing starts. For people one line; serve also tells it as an event."""
    done = run(weir, *args, code=2)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert len(lines) == 1 and meant in lines[0] and done.stdout == ""


def test_secrets_stay_out_of_messages_and_settings(weir, client):
    """A refused key is not repeated; config show hides the operator token."""
    done = run(weir, "job", "list", key="weir_secret_value", code=4)
    assert "weir_secret_value" not in done.stderr + done.stdout
    shown = run(weir, "config", "show", "--origin", "--set", "operator.token=hidden-value")
    assert "hidden-value" not in shown.stdout
    assert re.search(r"operator\.token\s+\(set\)\s+flag", shown.stdout)
    assert client.api_key not in run(weir, "doctor", key=client.api_key).stdout


# ---- the store

@pytest.fixture(name="filled")
def filled_weir(fresh_weir):
    """A server with some ended and some live jobs."""
    weir = fresh_weir()
    key = weir.new_client().api_key
    for _ in range(5):
        weir.wait_final(key, weir.submit(key, work_kind="SUCCESS_FAST")["job_id"])
        weir.submit(key, queue="outside")
    weir.key = key
    return weir


def test_verify_agrees_beside_a_running_server_and_after_it(filled):
    """The same counts; nothing is written by it that a later start would stumble over."""
    live = run_json(filled, "verify")
    assert (live["jobs"], live["live"], live["ended"], live["problems"]) == (10, 5, 5, 0)
    filled.stop()
    after = run_json(filled, "verify")
    assert (after["jobs"], after["problems"], after["differences"]) == (10, 0, [])
    filled.start()
    assert len(run_json(filled, "job", "list", key=filled.key)["items"]) == 10


def test_verify_finds_a_row_that_was_changed_behind_the_log(filled):
    """Negative control: without it, agreement would prove nothing."""
    filled.stop()
    assert edit(filled, "DELETE FROM ends WHERE id = (SELECT min(id) FROM ends)") == 1
    done = run(filled, "verify", code=1)
    assert "difference: " in done.stderr
    found = json.loads(run(filled, "verify", "-o", "json", code=1).stdout)
    assert found["problems"] == len(found["differences"]) >= 1


@BACKUP
def test_a_backup_of_a_running_server_is_restored_elsewhere(filled, fresh_weir, tmp_path):
    """Online copy, checked; the restored server knows the same jobs."""
    copy = str(tmp_path / "copy.db")
    made = run_json(filled, "backup", copy)
    assert made["bytes"] == os.path.getsize(copy) and (made["jobs"], made["problems"]) == (10, 0)
    assert os.stat(copy).st_mode & 0o077 == 0
    assert sorted(os.listdir(tmp_path)) == ["copy.db"]
    run(filled, "backup", copy, code=5)
    other = fresh_weir(start=False)
    run(other, "restore", copy)
    other.start()
    listed = run_json(other, "job", "list", "--all", key=filled.key)["items"]
    assert len(listed) == 10 and {job["state"] for job in listed} == {"SUCCEEDED", "QUEUED"}


@BACKUP
def test_restore_keeps_what_was_there_and_refuses_a_running_server(filled, tmp_path):
    """With --force the database before it, with its WAL, is kept and still verifies."""
    copy = str(tmp_path / "copy.db")
    run(filled, "backup", copy)
    filled.submit(filled.key, queue="outside")
    refused = run(filled, "restore", copy, "--force", code=5)
    assert "in use by process" in refused.stderr
    filled.kill9()  # leaves a WAL that holds the last job
    assert "--force" in run(filled, "restore", copy, code=5).stderr
    done = run_json(filled, "restore", copy, "--force")
    assert done["jobs"] == 10
    aside = run_json(filled, "verify", "--store", "sqlite:" + done["kept_aside"])
    assert (aside["jobs"], aside["problems"]) == (11, 0)
    filled.start()
    assert len(run_json(filled, "job", "list", key=filled.key)["items"]) == 10


@BACKUP
@pytest.mark.parametrize("damage", ["garbage", "cut", "row"])
def test_restore_of_a_damaged_file_changes_nothing(filled, tmp_path, damage):
    """Whatever is wrong with it is found before anything is replaced."""
    copy = str(tmp_path / "copy.db")
    run(filled, "backup", copy)
    filled.stop()
    spoil(copy, damage)
    before = sorted(os.listdir(filled.data))
    run(filled, "restore", copy, "--force", code=1)
    assert sorted(os.listdir(filled.data)) == before
    assert run_json(filled, "verify")["jobs"] == 10


def spoil(path, damage):
    """Makes a database file bad in one of three ways."""
    if damage == "garbage":
        with open(path, "wb") as file:
            file.write(b"not a database\n" * 100)
    elif damage == "cut":
        os.truncate(path, os.path.getsize(path) // 2)
    else:
        database = sqlite3.connect(path)
        database.execute("UPDATE deferred SET chunk = NULL, start = NULL, log = NULL")
        database.commit()
        database.close()


@BACKUP
def test_restore_of_what_is_not_there_is_exit_code_3(filled, tmp_path):
    """Also verify and backup of a data directory without a database."""
    empty = str(tmp_path / "empty")
    filled.stop()
    run(filled, "restore", str(tmp_path / "gone.db"), code=3)
    run(filled, "verify", "--data", empty, code=3)
    run(filled, "backup", str(tmp_path / "b.db"), "--data", empty, code=3)
    assert not os.path.exists(empty)


# ---- doctor, serve, version, terminals

def test_doctor_finds_a_healthy_server_healthy(weir):
    """Every check is there; the lock's holder is the root process."""
    done = run_json(weir, "doctor")
    found = {check["check"]: check for check in done["checks"]}
    assert not [check for check in done["checks"] if check["result"] == "fail"]
    assert f"held by process {weir.process.pid}" in found["data directory lock"]["found"]
    assert found["server"]["found"].startswith("ready: ")
    assert found["database schema"]["found"] == f"version {run_json(weir, 'version')['schema_version']}"


def test_doctor_fails_on_a_bad_setting_and_an_unwritable_directory(weir, tmp_path):
    """Each with what to do."""
    done = run(weir, "doctor", "--set", "server.listen=nowhere", code=1)
    assert "FAIL" in done.stdout and "server.listen" in done.stdout
    file = tmp_path / "file"
    file.write_text("")
    done = run(weir, "doctor", "--data", str(file), code=1)
    assert "is no directory" in done.stdout and "-> give another --data DIR" in done.stdout


def test_the_greeting_of_serve_holds_lines_that_work_as_they_are(weir):
    """URL, data directory, and a first job by curl."""
    greeting = weir.greeting(weir.url)
    assert weir.data in greeting
    script = "\n".join(line for line in greeting.splitlines() if "curl -sS" in line)
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, timeout=30)
    assert json.loads(done.stdout)["state"] == "QUEUED"


def test_a_second_server_on_the_same_data_is_refused(weir):
    """And says who is there."""
    done = run(weir, "serve", "--data", weir.data, "--listen", "127.0.0.1:0", code=1)
    assert f"in use by process {weir.process.pid}" in done.stderr


def test_version_is_the_same_for_people_and_programs(weir):
    """version, --version and -o json."""
    told = run_json(weir, "version")
    line = run(weir, "--version").stdout
    assert line.startswith(f"weir {told['version']} (schema {told['schema_version']}, ")
    assert told["sqlite_version"] in line


def test_colours_and_cutting_are_for_terminals_only(weir, client):
    """A narrow terminal cuts, but not ids; a pipe never does; NO_COLOR is obeyed."""
    job = weir.submit(client.api_key, queue="outside-" + "x" * 50)
    shown = on_terminal(weir, "job", "list", columns=90, WEIR_API_KEY=client.api_key)[0]
    plain = re.sub(r"\033\[\d+m", "", shown)
    assert "\033[" in shown and "\u2026" in shown and job["job_id"] in shown
    assert max(len(line) for line in plain.splitlines()) == 90
    grey = on_terminal(weir, "job", "list", columns=200, WEIR_API_KEY=client.api_key, NO_COLOR="1")[0]
    assert "\033[" not in grey and "\u2026" not in grey
    piped = run(weir, "job", "list", key=client.api_key).stdout
    assert "\033[" not in piped and "\u2026" not in piped


def test_output_that_cannot_be_written_is_a_failure(weir, client):
    """A full disk under a redirect is not silently lost."""
    env = server_environment({"WEIR_URL": weir.url, "WEIR_API_KEY": client.api_key})
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(weir.program + ["version"], env=env, stdout=full, check=False,
                              stderr=subprocess.PIPE, text=True, timeout=30)
    assert done.returncode == 1 and "cannot write" in done.stderr


def test_help_names_every_command_and_flag(weir):
    """weir, weir help, weir job --help, weir job submit --help."""
    everything = run(weir).stdout
    assert everything == run(weir, "help").stdout
    for command in re.findall(r"^  weir ((?:[a-z-]+ ?)+)", everything, re.MULTILINE):
        text = run(weir, *command.split(), "--help").stdout
        assert f"usage: weir {command.strip()}" in text
    assert "weir job submit" in run(weir, "job", "--help").stdout
    run(weir, "job", code=2)


def test_a_doctor_beside_a_starting_server_never_takes_its_lock(fresh_weir):
    """Twenty looks at the lock while the server restarts; every start succeeds."""
    weir = fresh_weir()
    for _ in range(3):
        weir.stop()
        looks = [start(weir, "doctor", "--data", weir.data, key="") for _ in range(4)]
        weir.start()
        for look in looks:
            look.communicate(timeout=30)
    wait_for(lambda: run_json(weir, "doctor"), 10, "a doctor's answer", weir)


@pytest.mark.parametrize("distance, seconds", [("+1d", 86400), ("+2h30m", 9000), ("+90s", 90)])
def test_a_time_may_be_given_as_a_distance(weir, distance, seconds):
    """--at counts from now."""
    key = weir.new_client().api_key
    before = time.time()
    done = weir.cli("job", "submit", "--at", distance, "-o", "json", key=key)
    job = weir.job(key, json.loads(done.stdout)["job_id"])
    due = datetime.datetime.fromisoformat(job["execution_at"].replace("Z", "+00:00")).timestamp()
    assert before + seconds - 1 <= due <= time.time() + seconds + 1
    for bad in ("+30m2h", "+", "+2x", "tomorrow"):
        assert weir.cli("job", "submit", "--at", bad, key=key).returncode in (1, 2)
