"""`weir simulate` against real servers: every kind ends as the catalog says, and where one does not,
the simulator says so.

Negative controls: a scale that is not the server's, an expectation that is wrong, and a server whose
settings make kinds of the catalog end differently.
"""
import json

import pytest


KINDS = 31
LATE = "SCHEDULED_LATE_RECOVERY"  # needs a restart


@pytest.fixture(scope="module")
def weir(module_weir):
    """The limits of a server nobody has configured; only retries and deliveries do not wait for seconds."""
    return module_weir(settings={"limits.requests_per_minute": 600, "jobs.retry_base_ms": 20,
                                 "webhooks.timeout_ms": 400, "webhooks.base_ms": 10,
                                 "webhooks.cap_ms": 40})


def simulate(weir, *args, timeout=100):
    """Runs it; a machine that is busy with other tests gets more slack than people do."""
    return weir.cli("simulate", "--slack", "10s", *args, timeout=timeout)


def simulate_json(weir, *args, code=0, timeout=100):
    """The same with -o json; gives the document."""
    done = simulate(weir, "-o", "json", *args, timeout=timeout)
    assert done.returncode == code, (done.returncode, done.stdout[-3000:], done.stderr[-2000:])
    return json.loads(done.stdout)


def by_kind(result):
    """{kind: its row}"""
    return {row["kind"]: row for row in result["kinds"]}


def test_every_kind_ends_as_the_catalog_says(weir):
    """[JOB-003] [JOB-022] [JOB-023] [JOB-024] [JOB-025] [JOB-026] [JOB-027] [JOB-028] [JOB-029]
    [JOB-030] [JOB-031] [JOB-032] [JOB-033] [JOB-034] [JOB-035] [JOB-036] [JOB-037] [JOB-038]
    [JOB-039] [JOB-040] [JOB-046] [JOB-049] [JOB-050] [JOB-051] [JOB-052] A mix of all kinds with
    the help they need, on default limits: no surprise, nobody sent away with 429."""
    result = simulate_json(weir, "--jobs", "500", "--time-scale", "0.01", "--seed", "1")
    rows = by_kind(result)
    assert len(rows) == KINDS - 1 and LATE not in rows
    assert result["surprise_count"] == 0 and result["surprises"] == []
    assert result["judged"] == sum(row["sent"] for row in rows.values()) == 500
    for row in rows.values():
        assert row["sent"] == row["as_expected"] > 0 and row["unexpected"] == 0
        assert 0 <= row["p50_ms"] <= row["p99_ms"]
    assert rows["SUCCESS_SLOW"]["p50_ms"] >= 900 and rows["RETRY_LIMIT_REACHED"]["p50_ms"] >= 120
    assert result["waited_429"] == 0


def test_the_table_is_for_people_and_the_scale_is_learnt(weir):
    """Without --time-scale it is read off a first job; stdout has a row for each kind and a sum."""
    done = simulate(weir, "--jobs", "60")
    assert done.returncode == 0, (done.stdout, done.stderr)
    lines = done.stdout.splitlines()
    assert lines[0].split() == "KIND SENT EXPECTED AS EXPECTED UNEXPECTED P50 MS P99 MS".split()
    assert len(lines) == 1 + (KINDS - 1) + 1
    assert lines[-1].split()[:4] == ["all", "60", "60", "0"]
    assert "time scale is about 0.01" in done.stderr
    assert f"{LATE} is left out: it needs --restart" in done.stderr


def test_deliveries_are_checked_exactly_when_the_server_has_them(weir):
    """The server is asked; what it cannot do is said in one line and not counted as a surprise."""
    _, key = weir.new_client()
    job_id = weir.submit(key, work_kind="SUCCESS_FAST")["job_id"]
    has_them = weir.api("GET", f"/v1/jobs/{job_id}/deliveries", key=key).status == 200
    done = simulate(weir, "-o", "json", "--jobs", "5", "--mix", "WEBHOOK_SUCCESS", timeout=110)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert json.loads(done.stdout)["deliveries_checked"] is has_them
    assert ("deliveries are not checked" in done.stderr) is not has_them


def test_a_seed_repeats_the_sequence(weir):
    """The same seed sends the same number of each kind; another one does not."""
    mix = ("--jobs", "120", "--mix", "SUCCESS_FAST:1,FAIL_IMMEDIATE:1,PAYLOAD_INVALID:1")
    sent = [{kind: row["sent"] for kind, row in
             by_kind(simulate_json(weir, *mix, "--seed", seed)).items()} for seed in "558"]
    assert sent[0] == sent[1] != sent[2]


def test_a_rate_is_kept(weir):
    """40 jobs at 20 a second take two seconds."""
    result = simulate_json(weir, "--jobs", "40", "--rate", "20", "--mix", "SUCCESS_FAST")
    assert result["duration_ms"] >= 1900


def test_a_given_key_is_the_only_client_used(weir):
    """--key: all jobs are that client's."""
    _, key = weir.new_client()
    simulate_json(weir, "--jobs", "30", "--mix", "SUCCESS_FAST,FAIL_IMMEDIATE", "--key", key,
                  "--time-scale", "0.01")
    assert weir.total(key) == 31  # and the first one, which showed the scale


def test_a_wrong_scale_is_named_as_the_surprise(weir):
    """Negative control: runs that are too short are seen, and the message says what to change."""
    done = simulate(weir, "--jobs", "6", "--mix", "SUCCESS_FAST", "--time-scale", "1")
    assert done.returncode == 1
    assert "--time-scale 1 looks wrong" in done.stderr
    assert "6 surprises" in done.stdout and "it ran 1" in done.stdout
    assert "look like a runner.time_scale of 0.01" in done.stderr


def test_a_wrong_expectation_is_told_with_the_job(weir):
    """Negative control: kind, job id, what was expected, what was found; the first 20, all counted."""
    result = simulate_json(weir, "--jobs", "25", "--mix", "SUCCESS_FAST",
                           "--expect", "SUCCESS_FAST=FAILED", code=1)
    assert result["surprise_count"] == 25 and len(result["surprises"]) == 20
    first = result["surprises"][0]
    assert first["kind"] == "SUCCESS_FAST" and len(first["job_id"]) == 36 and first["look_at"]
    assert (first["expected"], first["found"]) == ("state FAILED", "state SUCCEEDED")


def test_a_server_that_ends_kinds_differently_is_found_out(fresh_weir):
    """Negative control: with a runtime limit of 60 s RUNS_LONG times out, and without retries
    RETRY_ON_FAIL stays failed; the kinds beside them are as expected."""
    weir = fresh_weir(settings={"jobs.max_runtime_ms": 60000, "jobs.retry_max": 0})
    result = simulate_json(weir, "--jobs", "12", "--time-scale", "0.01",
                           "--mix", "RUNS_LONG:1,RETRY_ON_FAIL:1,SUCCESS_FAST:1,RUNS_OVER_TIMEOUT:1", code=1)
    rows = by_kind(result)
    for kind in ("RUNS_LONG", "RETRY_ON_FAIL"):
        assert rows[kind]["unexpected"] == rows[kind]["sent"] > 0
    for kind in ("SUCCESS_FAST", "RUNS_OVER_TIMEOUT"):
        assert rows[kind]["unexpected"] == 0
    found = {one["kind"]: one["found"] for one in result["surprises"]}
    assert found["RUNS_LONG"] == "state FAILED" and "409 RFA_JOB_CONFLICT" in found["RETRY_ON_FAIL"]


def test_jobs_due_during_a_restart_are_queued_right_after_it(fresh_weir):
    """[JOB-047] Late recovery: core is frozen across the due times, killed, and started again."""
    weir = fresh_weir()
    before = weir.pids("core")
    result = simulate_json(weir, "--slack", "10s", "--restart", weir.data, "--jobs", "20",
                           "--mix", f"{LATE}:1,SUCCESS_FAST:1")
    rows = by_kind(result)
    assert rows[LATE]["as_expected"] == rows[LATE]["sent"] > 0
    assert rows[LATE]["p50_ms"] > 2000  # due 1.5 s after the submit at the earliest, queued after the restart
    assert weir.pids("core") != before


def test_a_restart_that_is_not_possible_is_a_surprise(weir, tmp_path):
    """A directory on which nobody works: nothing is killed, and nothing was recovered late."""
    before = weir.pids("core")
    result = simulate_json(weir, "--restart", str(tmp_path), "--jobs", "2", "--mix", LATE, code=1)
    assert "no core runs on this data directory" in json.dumps(result["surprises"])
    assert weir.pids("core") == before


@pytest.mark.parametrize("args,says", [
    (["--mix", "FOO"], '"FOO" is no work kind'),
    (["--mix", "SUCCESS_FAST:x"], "weight of SUCCESS_FAST"),
    (["--mix", LATE], "leaves no work kind to send"),
    (["--jobs", "0"], "--jobs must be an integer"),
    (["--rate", "-1"], "--rate must be a number"),
    (["--time-scale", "0"], "--time-scale must be a number"),
    (["--slack", "soon"], "--slack takes a time"),
    (["--expect", "SUCCESS_FAST"], "needs =STATE"),
])
def test_a_mistake_in_the_flags_is_one_line_and_exit_code_2(weir, args, says):
    """Nothing is sent."""
    done = weir.cli("simulate", *args)
    assert done.returncode == 2 and says in done.stderr and done.stdout == ""


@pytest.mark.long
@pytest.mark.limit(600)
def test_a_client_that_is_sent_away_waits_and_goes_on(fresh_weir):
    """[JOB-003] 60 requests a minute: 429 and its Retry-After are waited out, with no surprise."""
    weir = fresh_weir(settings={"limits.requests_per_minute": 60})
    result = simulate_json(weir, "--jobs", "60", "--time-scale", "0.01", "--mix", "SUCCESS_FAST",
                           timeout=500)
    assert result["waited_429"] > 0 and result["surprise_count"] == 0


@pytest.mark.long
@pytest.mark.limit(5000)
def test_an_hour_of_everything_has_no_surprise(fresh_weir):
    """[JOB-003] Soak: 72,000 jobs of all kinds, 20 a second."""
    weir = fresh_weir(settings={"limits.requests_per_minute": 600, "log.level": "warn"})
    result = simulate_json(weir, "--jobs", "72000", "--rate", "20", "--time-scale", "0.01", timeout=4800)
    assert result["judged"] == 72000 and result["surprise_count"] == 0
