"""Jobs that an application puts into the database in transactions of its own. Only with --store postgres."""
import json
import threading

import pytest

from harness import postgres
from harness.weir_server import wait_for

pytestmark = pytest.mark.postgres_only
SECONDS = 60


def sql(weir, text):
    """Statements of the application, in one session; the rows."""
    return postgres.session().sql(text, database=weir.database)


def inbox(weir, *args):
    """What `weir store inbox` says."""
    return json.loads(weir.cli("store", "inbox", "-o", "json", *args).stdout)


def put(client_id, **columns):
    """An INSERT as an application writes it."""
    values = {"client": client_id, "queue": "outside", **columns}
    texts = ", ".join("'" + str(value).replace("'", "''") + "'" for value in values.values())
    return f"INSERT INTO weir_inbox({', '.join(values)}) VALUES ({texts});"


def test_a_row_is_a_job_when_the_applications_transaction_commits(weir, client):
    """And is none when it is rolled back. The job has what the row had."""
    sql(weir, "CREATE TABLE IF NOT EXISTS orders(id int);")
    sql(weir, "BEGIN; INSERT INTO orders VALUES (1);" + put(client.client_id) + "ROLLBACK;")
    sql(weir, "BEGIN; INSERT INTO orders VALUES (2);"
        + put(client.client_id, priority=7, payload='{"to": "ada"}', idempotency_key="order-2") + "COMMIT;")
    wait_for(lambda: weir.total(client.api_key) == 1, SECONDS, "the job", weir)
    job = weir.api("GET", "/v1/jobs", key=client.api_key).expect(200)["items"][0]
    job = weir.job(client.api_key, job["job_id"])
    assert (job["queue"], job["priority"], job["payload"]) == ("outside", 7, {"to": "ada"})
    assert job["state"] == "QUEUED"
    assert inbox(weir) == {"rows": [], "waiting": 0, "failed": 0}
    same = weir.submit(client.api_key, queue="outside", priority=7, payload={"to": "ada"},
                       idempotency_key="order-2")
    assert same["job_id"] == job["job_id"]  # the same key and body over HTTP
    assert weir.metric("weir_inbox_taken_total") >= 1


def test_types_of_the_database_are_taken_as_they_are(weir, client):
    """uuid, jsonb and timestamptz need no casts; work_kind and type have defaults."""
    sql(weir, "INSERT INTO weir_inbox(client, queue, payload, execution_at) VALUES "
        f"('{client.client_id}'::uuid, 'outside', jsonb_build_object('n', 1), now() + interval '1 hour');"
        "INSERT INTO weir_inbox(client, queue, kind, retry) VALUES "
        f"('{client.client_id}', 'outside', 'mail.send', 'manual');"
        f"INSERT INTO weir_inbox(client, work_kind) VALUES ('{client.client_id}', 'SUCCESS_FAST');")
    wait_for(lambda: weir.total(client.api_key) == 3, SECONDS, "the jobs", weir)
    jobs = weir.api("GET", "/v1/jobs", key=client.api_key).expect(200)["items"]
    named, = (job for job in jobs if job["kind"] == "mail.send")
    jobs.remove(named)
    assert (named["work_kind"], named["retry"]) == (None, "manual")
    assert named["definition"] == {"kind": "mail.send"}
    deferred = [job for job in jobs if job["type"] == "DEFERRED"]
    assert len(deferred) == 1 and weir.job(client.api_key, deferred[0]["job_id"])["payload"] == {"n": 1}
    other = next(job for job in jobs if job["type"] == "EXECUTE")
    weir.wait_state(client.api_key, other["job_id"], "SUCCEEDED")


def test_a_row_that_can_be_no_job_stays_with_the_reason_until_it_is_put_right(weir, client):
    """Seen by `weir store inbox`; taken up again after an UPDATE."""
    sql(weir, put(client.client_id, queue="Not A Queue"))
    told = wait_for(lambda: inbox(weir)["failed"] == 1 and inbox(weir), SECONDS, "the refusal", weir)
    row = told["rows"][0]
    assert "RFA_JOB_VALIDATION_FAILED: queue must match" in row["error"] and row["failed_at"]
    assert "queue must match" in weir.cli("store", "inbox").stdout
    assert weir.total(client.api_key) == 0
    sql(weir, "UPDATE weir_inbox SET queue = 'outside', failed_ms = 0, error = NULL WHERE failed_ms <> 0;")
    wait_for(lambda: weir.total(client.api_key) == 1, SECONDS, "the job", weir)
    assert inbox(weir)["failed"] == 0


def test_a_row_as_long_as_can_be_is_refused_and_holds_nobody_up(weir, client):
    """Its reason has room of its own; one byte more is refused by the table."""
    rest = len(client.client_id) + len("outside")
    with pytest.raises(RuntimeError, match="weir_inbox_sizes"):
        sql(weir, put(client.client_id, callback="x" * (16385 - rest)))
    sql(weir, put(client.client_id, callback="x" * (16384 - rest)) + put(client.client_id))
    wait_for(lambda: inbox(weir)["failed"] == 1 and weir.total(client.api_key) == 1, SECONDS,
             "the refusal and the job", weir)
    assert "callback" in inbox(weir)["rows"][0]["error"]
    sql(weir, "DELETE FROM weir_inbox;")


def test_a_payload_too_large_is_refused_at_once(weir, client):
    """By the table, so that the application hears of it; what is large comes over HTTP."""
    with pytest.raises(RuntimeError, match="weir_inbox_sizes"):
        sql(weir, put(client.client_id, payload=json.dumps({"x": "y" * (1 << 20)})))
    sql(weir, put(client.client_id, payload=json.dumps({"x": "y" * 200000})))
    wait_for(lambda: weir.total(client.api_key) == 1, SECONDS, "the job", weir)


def test_a_role_of_its_own_needs_no_more_than_the_manual_says(weir, client):
    """USAGE on the schema and the sequence, INSERT on the table; it can read nothing."""
    database = postgres.session()
    sql(weir, "GRANT INSERT ON weir_inbox TO PUBLIC; GRANT USAGE ON SEQUENCE weir_inbox_numbers TO PUBLIC;")
    database.sql("CREATE ROLE shop LOGIN;", database=weir.database, user="postgres")
    try:
        database.sql("SET ROLE shop;" + put(client.client_id), database=weir.database, user="postgres")
        wait_for(lambda: weir.total(client.api_key) == 1, SECONDS, "the job", weir)
        with pytest.raises(Exception, match="permission denied"):
            database.sql("SET ROLE shop; SELECT * FROM weir_inbox;", database=weir.database, user="postgres")
    finally:
        database.sql("DROP OWNED BY shop; DROP ROLE shop;", database=weir.database, user="postgres")


@pytest.mark.limit(300)
def test_every_row_becomes_one_job_while_nodes_are_killed(fresh_weir, long_run):
    """Two nodes, killed and started again while an application inserts: no job is lost, none is double."""
    first = fresh_weir()
    second = fresh_weir(settings={"store.url": first.settings["store.url"]})
    client_id, key = first.new_client()
    rows, kills = (2000, 12) if long_run else (300, 3)
    done = threading.Event()

    def application():
        for n in range(0, rows, 10):
            inserts = [put(client_id, payload=json.dumps({"n": n + i})) for i in range(10)]
            sql(first, "BEGIN;" + "".join(inserts) + "COMMIT;")
        done.set()

    writer = threading.Thread(target=application)
    writer.start()
    for n in range(kills):
        node = (first, second)[n % 2]
        node.kill9()
        node.start()
    writer.join()
    assert done.is_set()
    wait_for(lambda: first.total(key) >= rows, SECONDS, "all jobs", first)
    wait_for(lambda: inbox(first)["waiting"] == 0, SECONDS, "an empty inbox", first)
    assert first.total(key) == second.total(key) == rows
    numbers = sql(first, "SELECT payload::jsonb->>'n' FROM jobs;")
    assert sorted(map(int, numbers)) == list(range(rows))
    first.stop()
    second.stop()
    assert json.loads(first.cli("verify", "-o", "json").stdout)["problems"] == 0
