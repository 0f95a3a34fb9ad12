"""Settings: each changes what it says; a bad one is one line naming the key, and exit code 2."""
import os
import subprocess

import pytest

from harness.weir_server import REPOSITORY, SANITIZER_REPORT, Weir, server_environment, wait_for


def run_serve(weir, *arguments, env=None):
    """Runs `weir serve` with these arguments to its end, which must come by itself."""
    line = weir.program + ["serve", "--listen", f"127.0.0.1:{weir.port}", "--data", weir.data]
    done = subprocess.run(line + list(arguments), env=server_environment(env), timeout=20, check=False,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert not SANITIZER_REPORT.search(done.stderr), done.stderr
    return done


@pytest.fixture
def stopped():
    """A server that is only ever asked to start with bad settings."""
    made = Weir()
    yield made
    made.close()


@pytest.mark.parametrize("key, value", [
    ("jobs.queue_size", "0"), ("jobs.queue_size", "many"), ("jobs.queue_size", ""),
    ("jobs.max_active", "-1"), ("jobs.retry_max", "1.5"), ("jobs.failure_probability", "2"),
    ("jobs.failure_probability", "nan"), ("jobs.types", "EXECUTE,NOPE"), ("jobs.types", ""),
    ("server.body_max_bytes", "99999999999999999999"), ("limits.overrides", "x"),
    ("limits.overrides", "not-an-id=5"), ("environment", "production"), ("log.level", "loud"),
    ("store.url", "mysql://x"), ("webhooks.allow_private", "maybe"), ("runner.time_scale", "0"),
    ("keys.ttl_seconds", "0"), ("jobs.retry_jitter", "1.1"), ("webhooks.allow_cidrs", "10.0.0.0/99"),
])
def test_a_bad_value_is_one_line_naming_the_key(stopped, key, value):
    """[JOB-221] Exit code 2, nothing starts, no data is made."""
    done = run_serve(stopped, "--set", f"{key}={value}")
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("{")]
    assert len(lines) == 1 and key in lines[0], done.stderr  # for people; the other is the failure's event
    assert lines[0].endswith("(RFA_CONFIG_INVALID)")
    assert not os.path.exists(os.path.join(stopped.data, "weir.db"))


@pytest.mark.parametrize("arguments, word", [
    (["--set", "jobs.queue_sise=5"], "jobs.queue_sise"), (["--set", "nonsense"], "nonsense"),
    (["--set", "=5"], "="), (["--config", "/nonexistent/weir.yaml"], "/nonexistent/weir.yaml"),
    (["--frobnicate"], "--frobnicate"), (["--listen", "nowhere"], "listen"),
    (["--listen", "127.0.0.1:99999"], "listen"), (["extra"], "extra"),
])
def test_a_bad_argument_is_refused_with_its_name(stopped, arguments, word):
    """[JOB-221]"""
    done = run_serve(stopped, *arguments)
    assert done.returncode == 2 and word in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.strip()]) <= 3


@pytest.mark.parametrize("text, word", [
    ("jobs: {queue_sise: 5}\n", "jobs.queue_sise"), ("jobs: {queue_size: x}\n", "jobs.queue_size"),
    ("jobs: [1\n", "weir.yaml:1"), ("- a\n- b\n", "weir.yaml:1"), ("jobs.queue_size: {a: 1}\n", "jobs"),
])
def test_a_bad_file_is_refused(stopped, tmp_path, text, word):
    """[JOB-221] The key, or the place in the file."""
    path = tmp_path / "weir.yaml"
    path.write_text(text, encoding="utf-8")
    done = run_serve(stopped, "--config", str(path))
    assert done.returncode == 2 and word in done.stderr, done.stderr


def test_a_bad_environment_variable_is_refused(stopped):
    done = run_serve(stopped, env={"WEIR_JOBS_QUEUE_SIZE": "x"})
    assert done.returncode == 2 and ("WEIR_JOBS_QUEUE_SIZE" in done.stderr
                                     or "jobs.queue_size" in done.stderr)


def test_unknown_variables_are_warnings_and_those_of_kubernetes_nothing(fresh_weir):
    """It starts; what is probably a slip is told with what was meant."""
    weir = fresh_weir(env={"WEIR_JOBS_QUEUE_SIZ": "5", "WEIR_PORT": "tcp://10.0.0.1:80", "WEIR_MY_TEAM": "x",
                           "WEIR_API_SERVICE_HOST": "10.0.0.1", "WEIR_API_PORT_80_TCP_ADDR": "10.0.0.1",
                           "WEIR_SERVER_PORT": "9090"})
    weir.new_client()
    told = [line for line in weir.log_text().splitlines() if line.startswith("weir: warning: the variable")]
    assert [line.split()[4] for line in told] == ["WEIR_JOBS_QUEUE_SIZ", "WEIR_MY_TEAM", "WEIR_SERVER_PORT"]
    assert told[0].endswith("did you mean WEIR_JOBS_QUEUE_SIZE?")


def test_the_port_can_be_given_alone(stopped):
    """--port keeps the host, also one of the environment; a bad one is refused."""
    shown = subprocess.run(stopped.program + ["config", "show", "-o", "json"], capture_output=True, text=True,
                           env=server_environment({"WEIR_SERVER_LISTEN": "[::1]:80"}), check=True, timeout=60)
    assert "[::1]:80" in shown.stdout
    for arguments, said in ((["--port", "99999"], "--port"), (["--port", "x"], "--port")):
        done = run_serve(stopped, *arguments)
        assert done.returncode == 2 and said in done.stderr


def test_a_server_listens_on_the_port_that_was_given_alone(fresh_weir):
    weir = fresh_weir(start=False)
    weir.args = ["--listen", "127.0.0.1:1", "--port", str(weir.port)]
    weir.start()
    weir.api("GET", "/healthz").expect(200)


def test_the_page_of_settings_is_what_the_program_says(stopped):
    """docs/settings.md: `weir config markdown` writes it."""
    with open(os.path.join(REPOSITORY, "docs", "settings.md"), encoding="utf-8") as page:
        assert stopped.cli("config", "markdown").stdout == page.read()


def test_flags_beat_environment_beats_file(fresh_weir, tmp_path):
    """Three sources of one key, seen by what the server does."""
    path = tmp_path / "weir.yaml"
    path.write_text("jobs:\n  queue_size: 1\n  retry_max: 1\n  payload_max_bytes: 100\n",
                    encoding="utf-8")
    weir = fresh_weir(settings={"runner.processes": 0, "jobs.queue_size": 3},
                      args=["--config", str(path)], env={"WEIR_JOBS_QUEUE_SIZE": "2",
                                                         "WEIR_JOBS_RETRY_MAX": "2"})
    key = weir.new_client().api_key
    jobs = [weir.submit(key, queue="o")["job_id"] for _ in range(3)]
    weir.try_submit(key, queue="o").expect_problem(503, "RFA_EXEC_QUEUE_FULL")
    assert weir.job(key, jobs[0])["max_retries"] == 2
    weir.try_submit(key, queue="o", payload={"x": "a" * 200}).expect_problem(
        400, "RFA_JOB_VALIDATION_FAILED")


@pytest.fixture(scope="module")
def narrow(module_weir):
    """A server on which few types, one retry and no failing kind are."""
    return module_weir(settings={"jobs.types": "EXECUTE,DEFERRED", "jobs.retry_max": 1,
                                 "jobs.retry_base_ms": 0, "jobs.failure_probability": 0,
                                 "runner.processes": 1})


@pytest.fixture(scope="module")
def failing(module_weir):
    """A server on which every kind that is drawn fails, and what is final is soon purged."""
    return module_weir(settings={"jobs.failure_probability": 1, "jobs.retention_seconds": 1,
                                 "runner.processes": 1})


def test_the_catalog_of_types_is_configurable(narrow):
    """[JOB-298] Without EMIT_EVENT a submit of it is 400; the others work."""
    weir = narrow
    key = weir.new_client().api_key
    problem = weir.try_submit(key, type="EMIT_EVENT").expect_problem(
        400, "RFA_JOB_VALIDATION_FAILED")
    assert "EMIT_EVENT" in problem["detail"]
    weir.submit(key)
    weir.submit(key, type="DEFERRED", execution_at=weir.soon(60))
    assert weir.total(key) == 2


def test_the_retry_maximum_is_configurable(narrow):
    """[JOB-135] Set to 1: one retry, the second refused."""
    weir = narrow
    key = weir.new_client().api_key
    job_id = weir.failed_job(key)
    weir.retry(key, job_id).expect(200)
    weir.end_outside(key, job_id)
    weir.retry(key, job_id).expect_problem(409, "RFA_JOB_CONFLICT")
    weir.try_submit(key, max_retries=2).expect_problem(400, "RFA_JOB_VALIDATION_FAILED")


def test_the_share_of_failing_kinds_is_configurable(narrow, failing):
    """[JOB-057] At 0 no drawn kind fails, at 1 every one does."""
    for weir, should_fail in ((narrow, False), (failing, True)):
        key = weir.new_client().api_key
        body = {"jobs": [{"type": "DEFERRED", "execution_at": weir.soon(86400)}] * 60}
        for result in weir.api("POST", "/v1/jobs:batch", body, key).expect(202)["results"]:
            assert weir.job(key, result["job_id"])["definition"]["should_fail"] is should_fail


def test_finished_jobs_are_purged_after_their_retention(failing):
    """[JOB-297 JOB-236 JOB-237] One second: the final job is gone (404), the unfinished one stays."""
    weir = failing
    key = weir.new_client().api_key
    kept = weir.submit(key, queue="o", idempotency_key="kept")["job_id"]
    gone = weir.submit(key, queue="o", idempotency_key="gone")["job_id"]
    weir.cancel(key, gone).expect(200)
    wait_for(lambda: weir.api("GET", f"/v1/jobs/{gone}", key=key).status == 404, 20, "purge", weir)
    for tail in ("", "/report", "/events", "/explain"):
        weir.api("GET", f"/v1/jobs/{gone}{tail}", key=key).expect_problem(404, "RFA_JOB_NOT_FOUND")
    weir.retry(key, gone).expect_problem(404, "RFA_JOB_NOT_FOUND")
    assert weir.job(key, kept)["state"] == "QUEUED"
    assert [j["job_id"] for j in weir.api("GET", "/v1/jobs", key=key).expect(200)["items"]] == [kept]
    assert weir.total(key) == 1
    assert weir.submit(key, queue="o", idempotency_key="gone")["job_id"] != gone
    assert weir.submit(key, queue="o", idempotency_key="kept")["job_id"] == kept


def test_every_environment_starts_without_further_keys(fresh_weir):
    for environment in ("dev", "stage", "prod"):
        weir = fresh_weir(settings={"environment": environment, "runner.processes": 0})
        assert weir.api("POST", "/v1/clients").status == (201 if environment == "dev" else 403)
        weir.stop()


def test_a_second_server_on_the_same_data_is_refused(weir):
    """One directory, one writer: the second ends with a message, the first goes on."""
    key = weir.new_client().api_key
    done = subprocess.run(weir.program + ["serve", "--listen", "127.0.0.1:0", "--data", weir.data],
                          env=server_environment(), timeout=20, check=False, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL)
    assert done.returncode not in (0, None) and done.stderr.strip()
    weir.submit(key)
