"""`weir traffic` against real servers: every kind ends as the catalog says, and where one does not,
the command says so.

Negative controls: a scale that is not the server's, an expectation that is wrong, and a server whose
settings make kinds of the catalog end differently.
"""
import json
import os
import pty
import re
import signal
import subprocess
import time

import pytest

from harness.weir_server import REPOSITORY, server_environment, wait_for

KINDS = 31
LATE = "SCHEDULED_LATE_RECOVERY"  # needs a restart
WEBHOOKS = ["WEBHOOK_SUCCESS", "WEBHOOK_TIMEOUT", "WEBHOOK_5XX", "WEBHOOK_RETRIES_EXHAUSTED",
            "WEBHOOK_SLOW_RECEIVER"]
# The limits of a server nobody has configured; retries and deliveries do not wait for seconds, and a
# machine that is busy with other tests has time.
SETTINGS = {"limits.requests_per_minute": 600, "jobs.retry_base_ms": 20, "webhooks.timeout_ms": 1000,
            "webhooks.base_ms": 10, "webhooks.cap_ms": 40,
            "jobs.max_runtime_ms": 500000}  # scaled: RUNS_LONG has seconds to spare instead of 150 ms


@pytest.fixture(scope="module")
def weir(module_weir):
    """Default limits."""
    return module_weir(settings=SETTINGS)


def traffic(weir, *args, timeout=100, learn=False):
    """Runs it; a machine that is busy with other tests gets more slack than people do, and its delays
    are not taken for a time scale."""
    scale = [] if learn or "--time-scale" in args else ["--time-scale", "0.01"]
    return weir.cli("traffic", "--slack", "10s", *scale, *args, timeout=timeout)


def traffic_json(weir, *args, code=0, timeout=100):
    """The same with -o json; gives the document."""
    done = traffic(weir, "-o", "json", *args, timeout=timeout)
    told = json.loads(done.stdout or "{}")
    assert done.returncode == code, f"{done.returncode}: {told.get('surprises')}\n{done.stderr[-2000:]}"
    return told


def by_kind(result):
    """{kind: its row}"""
    return {row["kind"]: row for row in result["kinds"]}


def start_traffic(weir, *args, **options):
    """Starts it and does not wait; gives the Popen. It heeds SIGINT, also where a shell has started the tests
    in the background and so without."""
    return subprocess.Popen(weir.program + ["traffic", "--slack", "10s", *args],
                            env=server_environment({"WEIR_URL": weir.url}), stdin=subprocess.DEVNULL,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options})


def wait_jobs(weir, count):
    """Waits until the server has accepted so many jobs."""
    wait_for(lambda: weir.metric("jobs_submitted_total") >= count, 60, f"{count} submits", weir)


def test_every_kind_ends_as_the_catalog_says(fresh_weir):
    """[JOB-003] [JOB-022] [JOB-023] [JOB-024] [JOB-025] [JOB-026] [JOB-027] [JOB-028] [JOB-029]
    [JOB-030] [JOB-031] [JOB-032] [JOB-033] [JOB-034] [JOB-035] [JOB-036] [JOB-037] [JOB-038]
    [JOB-039] [JOB-040] [JOB-046] [JOB-047] [JOB-049] [JOB-050] [JOB-051] [JOB-052] A mix of all 31
    kinds with the help they need, a restart among it, on default limits: no surprise, none left
    out, no job lost, doubled or stuck, nobody sent away with 429."""
    weir = fresh_weir(settings=SETTINGS)
    core = weir.pids("core")
    result = traffic_json(weir, "--jobs", "600", "--time-scale", "0.01", "--seed", "1",
                           "--restart", weir.data)
    rows = by_kind(result)
    assert len(rows) == KINDS and result["left_out"] == []
    assert result["surprise_count"] == 0 and result["surprises"] == []
    assert result["judged"] == sum(row["sent"] for row in rows.values()) == 600
    for row in rows.values():
        assert row["sent"] == row["as_expected"] > 0 and row["unexpected"] == 0
        assert 0 <= row["p50_ms"] <= row["p99_ms"]
    assert rows["SUCCESS_SLOW"]["p50_ms"] >= 900 and rows["RETRY_LIMIT_REACHED"]["p50_ms"] >= 120
    assert rows[LATE]["p50_ms"] > 2000  # due 1.5 s after the submit at the earliest, queued after the restart
    assert weir.pids("core") != core
    assert result["waited_429"] == 0 and result["not_judged"] == 0
    first, last = result["samples"][0], result["samples"][-1]
    assert first["judged"] == 0 < last["judged"] and first["core_bytes"] > 0 < last["core_bytes"]


def test_the_table_is_for_people(weir):
    """stdout has a row for each kind, a sum, what was left out and why, rate and memory."""
    done = traffic(weir, "--jobs", "60")
    assert done.returncode == 0, done.stdout.partition("a second;")[2] + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == "KIND SENT EXPECTED AS EXPECTED UNEXPECTED P50 MS P99 MS".split()
    rows = {line.split()[0]: line.split()[1:] for line in lines[1:KINDS + 2]}
    assert len(rows) == KINDS + 1 and rows["all"][:3] == ["60", "60", "0"]
    assert rows[LATE] == ["-", "left", "out", "-", "-", "-", "-"]
    assert lines[KINDS + 2].startswith(f"left out: {LATE}: it needs --restart DIR")
    assert lines[KINDS + 3].startswith("60 jobs in ") and "memory of core" in lines[KINDS + 3]
    assert f"left out: {LATE}: it needs --restart" in done.stderr


def test_the_scale_is_learnt(weir):
    """Without --time-scale it is read off first jobs; delays of a busy machine make it larger, never
    smaller."""
    done = traffic(weir, "--jobs", "5", "--mix", "SUCCESS_FAST", learn=True)
    learnt = float(re.search(r"time scale is about ([0-9.]+), by the length", done.stderr)[1])
    assert 0.01 <= learnt < 0.05


def test_callbacks_that_may_not_come_are_left_out_and_never_as_expected(fresh_weir):
    """A server that may not call loopback addresses, as in production: its webhook kinds are not sent,
    the setting is named, and the others are judged as ever."""
    weir = fresh_weir(settings={**SETTINGS, "webhooks.allow_private": False})
    done = traffic(weir, "-o", "json", "--jobs", "20", "--mix", ",".join(WEBHOOKS) + ",SUCCESS_FAST")
    assert done.returncode == 0, (done.stdout, done.stderr)
    result = json.loads(done.stdout)
    assert {one["kind"] for one in result["left_out"]} == set(WEBHOOKS)
    assert all("webhooks.allow_cidrs=127.0.0.0/8" in one["why"] for one in result["left_out"])
    assert "webhooks.allow_cidrs=127.0.0.0/8" in done.stderr
    assert set(by_kind(result)) == {"SUCCESS_FAST"} and result["judged"] == 20
    done = traffic(weir, "--mix", "WEBHOOK_SUCCESS")
    assert done.returncode == 2 and "leaves no work kind to send" in done.stderr


def test_a_given_key_is_the_only_client_used(weir):
    """--key: all jobs are that client's."""
    _, key = weir.new_client()
    traffic_json(weir, "--jobs", "30", "--mix", "SUCCESS_FAST,FAIL_IMMEDIATE", "--key", key,
                  "--time-scale", "0.01")
    assert weir.total(key) == 31  # and the first one, which showed the scale


def test_a_wrong_scale_is_named_as_the_surprise(weir):
    """Negative control: runs that are too short are seen, and the message says what to change."""
    done = traffic(weir, "--jobs", "6", "--mix", "SUCCESS_FAST", "--time-scale", "1")
    assert done.returncode == 1
    assert "--time-scale 1 looks wrong" in done.stderr
    assert "6 surprises" in done.stdout and "it ran " in done.stdout
    assert float(re.search(r"look like a runner.time_scale of ([0-9.]+)", done.stderr)[1]) < 0.5


def test_a_wrong_expectation_is_told_with_the_job(weir):
    """Negative control: kind, job id, what was expected, what was found; the first 20, all counted."""
    result = traffic_json(weir, "--jobs", "25", "--mix", "SUCCESS_FAST",
                           "--expect", "SUCCESS_FAST=FAILED", code=1)
    assert result["surprise_count"] == 25 and len(result["surprises"]) == 20
    first = result["surprises"][0]
    assert first["kind"] == "SUCCESS_FAST" and len(first["job_id"]) == 36 and first["look_at"]
    assert (first["expected"], first["found"]) == ("state FAILED", "state SUCCEEDED")


def test_a_restart_that_is_not_possible_is_said_before_anything_is_sent(weir, tmp_path):
    """A directory on which nobody works: nothing is sent, nothing is killed."""
    before, sent = weir.pids("core"), weir.metric("jobs_submitted_total")
    done = traffic(weir, "--restart", str(tmp_path), "--jobs", "2")
    assert done.returncode == 2 and "no core runs on this data directory" in done.stderr
    assert weir.pids("core") == before and weir.metric("jobs_submitted_total") == sent


# --- as people use it


def test_a_terminal_sees_a_bar(weir):
    """Drawn over in place on stderr, with what is left; the table follows."""
    ours, theirs = pty.openpty()
    process = start_traffic(weir, "--time-scale", "0.01", "--jobs", "40", "--rate", "20",
                             "--mix", "SUCCESS_FAST", stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        while piece := os.read(ours, 4096):
            seen += piece
    except OSError:  # the other end is closed
        pass
    assert process.wait(60) == 0 and "all" in process.communicate()[0]
    os.close(ours)
    assert seen.count(b"\r") > 10 and b"40/40 judged, 0 in flight, 0 surprises" in seen


def test_an_interrupt_judges_what_is_in_flight_and_shows_the_table(weir):
    """Ctrl-C once: no more is sent, everything sent is judged, exit code 130."""
    sent = weir.metric("jobs_submitted_total")
    process = start_traffic(weir, "-o", "json", "--time-scale", "0.01", "--for", "1h", "--rate", "30",
                             "--mix", "SUCCESS_FAST")
    wait_jobs(weir, sent + 10)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    result = json.loads(out)
    assert process.returncode == 130, err
    assert result["judged"] == result["kinds"][0]["sent"] > 0 and result["not_judged"] == 0
    assert "no more jobs are sent" in err


def test_a_second_interrupt_shows_the_table_at_once(fresh_weir):
    """Ctrl-C twice: what is not final yet is told as not judged, and is no surprise."""
    weir = fresh_weir(settings={**SETTINGS, "runner.time_scale": 1, "runtime.drain_ms": 100})
    process = start_traffic(weir, "--jobs", "400", "--time-scale", "1", "--mix",
                             "SUCCESS_SLOW:100,SUCCESS_FAST:1")
    wait_jobs(weir, 90)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (out, err)
    assert "jobs were sent and not judged" in out and "SUCCESS_SLOW" in out and "surprise" not in out


def test_a_wrong_key_and_a_wrong_address_are_one_line(weir):
    """Nothing is sent; exit code 4 for the key, 1 for the address."""
    done = traffic(weir, "--key", "weir_nobody", "--jobs", "5")
    assert done.returncode == 4 and "--key" in done.stderr and done.stdout == ""
    done = traffic(weir, "--url", "http://127.0.0.1:1", "--jobs", "5")
    assert done.returncode == 1 and "127.0.0.1:1" in done.stderr and done.stdout == ""


@pytest.mark.parametrize("args,says", [
    (["--mix", "FOO"], '"FOO" is no work kind'),
    (["--mix", "SUCCESS_FAST:x"], "weight of SUCCESS_FAST"),
    (["--mix", LATE], "leaves no work kind to send"),
    (["--jobs", "0"], "--jobs must be an integer"),
    (["--for", "soon"], "--for takes a time"),
    (["--rate", "-1"], "--rate must be a number"),
    (["--time-scale", "0"], "--time-scale must be a number"),
    (["--slack", "soon"], "--slack takes a time"),
    (["--expect", "SUCCESS_FAST"], "needs =STATE"),
])
def test_a_mistake_in_the_flags_is_one_line_and_exit_code_2(weir, args, says):
    """Nothing is sent."""
    done = weir.cli("traffic", *args)
    assert done.returncode == 2 and says in done.stderr and done.stdout == ""


def test_the_former_name_of_the_command_is_still_accepted(weir):
    """`simulate` is an alias of `traffic`."""
    done = weir.cli("simulate", "--jobs", "0")
    assert done.returncode == 2 and "--jobs must be an integer" in done.stderr
    assert "weir traffic" in weir.cli("help", "simulate").stdout


@pytest.mark.long
@pytest.mark.limit(600)
def test_a_client_that_is_sent_away_waits_and_goes_on(fresh_weir):
    """[JOB-003] 60 requests a minute: 429 and its Retry-After are waited out, with no surprise."""
    weir = fresh_weir(settings={"limits.requests_per_minute": 60})
    result = traffic_json(weir, "--jobs", "60", "--time-scale", "0.01", "--mix", "SUCCESS_FAST",
                           timeout=500)
    assert result["waited_429"] > 0 and result["surprise_count"] == 0


ONE_CLIENT = {**SETTINGS, "clients.per_address_minute": 1, "operator.token": "operator-secret"}
TWO_CLIENTS = ("--jobs", "120", "--mix", "SUCCESS_FAST")  # a client has a hundred


def test_the_operator_s_token_makes_clients_without_a_wait(fresh_weir):
    """Whatever an address may make a minute."""
    weir = fresh_weir(settings=ONE_CLIENT)
    result = traffic_json(weir, *TWO_CLIENTS, "--operator-token", "operator-secret")
    assert result["surprise_count"] == 0 and result["waited_429"] == 0 and result["judged"] == 120


def test_whoever_may_make_no_client_now_is_told_when(fresh_weir):
    """And waits; an interrupt ends it."""
    weir = fresh_weir(settings=ONE_CLIENT)
    weir.api("POST", "/v1/clients").expect(201)
    process = start_traffic(weir, *TWO_CLIENTS)
    said = process.stderr.readline()
    assert re.match(r"a client may be made in [0-9]+ s .*clients.per_address_minute", said), said
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)


@pytest.mark.long
@pytest.mark.limit(600)
def test_clients_by_the_minute_are_waited_for(fresh_weir):
    """The first one and the next; the progress says for what. Nothing is a surprise."""
    weir = fresh_weir(settings=ONE_CLIENT)
    weir.api("POST", "/v1/clients").expect(201)
    done = traffic(weir, *TWO_CLIENTS, timeout=500)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "a client may be made in" in done.stderr and "100/120 judged" in done.stderr
    assert re.search(r"the next client in [0-9]+ s", done.stderr)


@pytest.mark.long
@pytest.mark.limit(600)
def test_a_server_that_is_gone_is_said_early_and_given_up_after_a_minute(fresh_weir):
    """What was sent and not judged is counted, and is no surprise of its kind; exit code 1."""
    weir = fresh_weir(settings=SETTINGS)
    process = start_traffic(weir, "--time-scale", "0.01", "--for", "1h", "--mix", "SUCCESS_FAST")
    wait_jobs(weir, 200)
    weir.kill9()
    out, err = process.communicate(timeout=200)
    assert process.returncode == 1
    assert "the server does not answer (" in err and "the server has been away for a minute" in err
    assert "jobs were sent and not judged" in out


@pytest.mark.long
@pytest.mark.limit(600)
def test_callbacks_that_nobody_sends_are_surprises(fresh_weir):
    """Negative control: a server without a gateway."""
    weir = fresh_weir(settings={**SETTINGS, "gateway.processes": 0})
    result = traffic_json(weir, "--jobs", "3", "--mix", "WEBHOOK_SUCCESS", code=1, timeout=500)
    assert result["surprise_count"] == 3


def memory_mb(weir):
    """{process title: resident MB}"""
    def resident(pid):
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20
    return {kind: max(map(resident, weir.pids(kind))) for kind in ("core", "runner", "gateway")}


@pytest.mark.long
@pytest.mark.limit(5400)
def test_an_hour_of_everything_has_no_surprise(fresh_weir, capsys):
    """[JOB-003] Soak of the release build: all 31 kinds for an hour, 50 a second, a restart at the end.
    No surprise, nobody sent away, the pace of the first minutes to the end, and memory that does not
    grow with what has ended."""
    release = os.path.join(REPOSITORY, "build", "weir")
    weir = fresh_weir(program=release, settings={"limits.requests_per_minute": 600, "log.level": "warn",
                                                  "jobs.max_runtime_ms": 500000})
    before = memory_mb(weir)
    minutes = int(os.environ.get("WEIR_SOAK_MINUTES", "60"))
    result = traffic_json(weir, "--for", f"{minutes}m", "--rate", "50", "--time-scale", "0.01",
                           "--restart", weir.data, timeout=minutes * 60 + 900)
    after, samples = memory_mb(weir), result["samples"]
    with capsys.disabled():
        print(f"\n{result['judged']} jobs, {result['per_second']:.1f}/s; MB {before} -> {after}; core at "
              f"{[(s['at_ms'] // 1000, s['judged'], s['core_bytes'] >> 20) for s in samples[::8]]}")
    assert len(result["kinds"]) == KINDS and result["surprise_count"] == 0 and result["not_judged"] == 0
    assert result["judged"] > minutes * 60 * 25 and result["waited_429"] == 0
    quarter = samples[len(samples) // 4]["core_bytes"]
    assert samples[-1]["core_bytes"] < 2 * quarter + (64 << 20)
    assert after["runner"] < before["runner"] + 64 and after["gateway"] < before["gateway"] + 64
