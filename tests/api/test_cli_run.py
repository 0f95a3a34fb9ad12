"""`weir run` against a real server: plans, runs, signals, decisions; tokens; mistakes; the drawing."""
import http.server
import json
import os
import re
import subprocess
import threading
import uuid

import pytest

from harness import cli_calls, wire
from harness.cli_calls import on_terminal, pairs
from harness.engine_calls import Engine, Outside

STEPS = """planId: {plan}
planVersion: 1
onFailure: {on_failure}
steps:
  - stepId: extract
  - {{stepId: clean, dependsOn: [extract], config: {{work_kind: SUCCESS_FAST}}}}
  - {{stepId: rank, dependsOn: [extract], config: {{work_kind: RETRY_ON_FAIL}}}}
  - {{stepId: publish, dependsOn: [clean, rank]}}
"""


ONE = "planId: {plan}\nplanVersion: 1\nsteps: [{{stepId: only}}]\n"


def run(weir, *args, verb="run", **options):
    """`weir run ARGS`."""
    return cli_calls.run(weir, verb, *args, **options)


def run_json(weir, *args):
    """The same with -o json, parsed."""
    return cli_calls.run_json(weir, "run", *args)


@pytest.fixture(name="put")
def fixture_put(weir, tmp_path):
    """put(text) stores a plan from a file; put(on_failure=...) the diamond. Gives the plan's id."""
    def put(text=None, on_failure="fail", code=0, name="plan.yaml"):
        plan = f"p-{uuid.uuid4().hex[:8]}"
        path = tmp_path / name
        path.write_text((text or STEPS).format(plan=plan, on_failure=on_failure), encoding="utf-8")
        put.done = run(weir, "plan", "put", str(path), code=code)
        return plan
    return put


@pytest.fixture(name="held")
def fixture_held(weir, put):
    """held() starts a run whose only step waits for a worker that never comes; gives its id."""
    def held():
        plan = put("planId: {plan}\nplanVersion: 1\nsteps: [{{stepId: a, queue: nobody}}]\n")
        return run(weir, "start", "-q", plan).stdout.strip()
    return held


# ---- the whole way, as a new user goes it

def test_a_step_that_failed_is_retried_and_the_run_completes(weir, put):
    """No token, no key: the data directory is enough. Watch ends with the run."""
    plan = put(on_failure="wait")
    assert pairs(put.done.stdout)["steps"] == "4" and f"weir run start {plan}\n" in put.done.stderr
    run_id = run(weir, "start", plan, "-q").stdout.strip()
    Engine(weir, "default").wait_step(run_id, "rank", "FAILED")
    shown = run(weir, "get", run_id).stdout
    assert re.search(r"^rank +FAILED +1 .*work_failed", shown, re.M)
    assert re.search(r"^publish +PENDING +0", shown, re.M)
    signal = ["signal", run_id, "retry-step", "--step", "rank", "--reason", "once more"]
    decided = pairs(run(weir, *signal).stdout)
    assert decided["decision"] == "ACCEPTED" and decided["engineResult"] == "success"
    watched = run(weir, "watch", run_id).stdout
    assert re.search(r"StepFailed +rank +1 +work_failed", watched) and "RunCompleted" in watched
    record = pairs(run(weir, "decision", decided["policyDecisionId"]).stdout)
    assert record["signalType"] == "RETRY_STEP" and record["audit.reason"] == "once more"
    assert record["audit.actorRole"] == "Admin" and record["audit.tenantId"] == "default"


def test_start_waits_and_its_exit_code_is_the_runs(weir, put):
    """--wait shows the run at its end; a failed one is exit code 1."""
    done = run(weir, "start", put(), "--wait", code=1)
    assert pairs(done.stdout)["status"] == "FAILED" and "rank" in done.stdout
    good = put("planId: {plan}\nplanVersion: 7\nsteps: [{{stepId: only}}]\n")
    assert pairs(run(weir, "start", good, "--version", "7", "--wait").stdout)["status"] == "COMPLETED"
    lines = run(weir, "start", good, "7", "--watch", "-o", "json").stdout.splitlines()
    assert json.loads(lines[-1])["eventType"] == "RunCompleted"


def test_start_takes_the_newest_version_and_list_shows_them_all(weir, put, tmp_path):
    """Newest is what was stored last, whatever the versions are called."""
    plan = put("planId: {plan}\nplanVersion: 10\nsteps: [{{stepId: only}}]\n")
    path = tmp_path / "second.yaml"
    path.write_text(f"planId: {plan}\nplanVersion: 9\nsteps: [{{stepId: a, timeoutMs: 60000}}, "
                    "{stepId: b, dependsOn: [a], delayMs: 10}]\n", encoding="utf-8")
    run(weir, "plan", "put", str(path))
    done = run(weir, "start", plan)
    assert f"newest version of {plan} is 9" in done.stderr
    assert run_json(weir, "get", pairs(done.stdout)["runId"])["planVersion"] == "9"
    assert run_json(weir, "get", run(weir, "start", plan, "10", "-q").stdout.strip())["planVersion"] == "10"
    listed = run(weir, "plan", "list", plan).stdout.splitlines()
    assert [line.split()[:3] for line in listed[1:]] == [[plan, "9", "2"], [plan, "10", "1"]]
    everything = run_json(weir, "plan", "list", "--all")["items"]
    assert {(p["planId"], p["planVersion"]) for p in everything} >= {(plan, "9"), (plan, "10")}
    shown = run(weir, "plan", "get", plan).stdout
    assert pairs(shown)["planVersion"] == "9" and re.search(r"^a +default +1 +60000$", shown, re.M)
    assert re.search(r"^b +a +default +1 +10$", shown, re.M)
    for command in (["start", "no-such-plan"], ["plan", "get", "no-such-plan"]):
        assert "weir run plan list" in run(weir, *command, code=3).stderr


def test_watch_and_wait_end_with_exit_code_6_when_their_time_is_over(weir, held):
    """And a cancelled run ends them with 1."""
    run_id = held()
    assert "--timeout" in run(weir, "watch", run_id, "--timeout", "300ms", code=6).stderr
    run(weir, "signal", run_id, "CANCEL")
    Engine(weir, "default").wait_status(run_id, "CANCELLED")
    assert "RunCancelled" in run(weir, "watch", run_id, code=1).stdout


class NoStreams(http.server.BaseHTTPRequestHandler):
    """Passes reads on to a server, and leaves streams without an answer."""

    def do_GET(self):  # pylint: disable=invalid-name
        """Any path."""
        if self.headers["Accept"] == "text/event-stream":
            self.rfile.read(1)  # until the caller has gone
            return
        authorization = {"Authorization": self.headers["Authorization"]}
        answer = wire.call(self.server.weir.address, "GET", self.path, headers=authorization)
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        """No access log."""


def test_a_watch_without_an_answer_ends_with_its_time_too(weir, held):
    """The stream is never answered: the time is over, which is no fault of the address."""
    run_id = held()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), NoStreams) as between:
        between.weir = weir
        threading.Thread(target=between.serve_forever).start()
        try:
            url = f"http://127.0.0.1:{between.server_port}"
            run(weir, "watch", run_id, "--timeout", "300ms", "--url", url, code=6)
        finally:
            between.shutdown()


# ---- plans

def test_plans_are_read_as_yaml_and_json_and_from_stdin(weir, put):
    """What looks like a number in YAML is a text where the contract wants one, and stays one in a config."""
    plan = put("planId: {plan}\nplanVersion: 2\nsteps: [{{stepId: 1, config: {{stepId: 5, n: 2.50}}}},"
               " {{stepId: 2, dependsOn: [1]}}]\n")
    stored = run_json(weir, "plan", "get", plan, "2")
    assert [s["stepId"] for s in stored["steps"]] == ["1", "2"] and stored["steps"][1]["dependsOn"] == ["1"]
    assert stored["steps"][0]["config"] == {"stepId": 5, "n": 2.5}
    shown = run(weir, "plan", "get", plan, "2").stdout
    assert re.search(r"^2 +1 +default +1$", shown, re.M)
    text = json.dumps({"planId": plan, "planVersion": "3", "steps": [{"stepId": "a"}]})
    done = subprocess.run(weir.program + ["run", "plan", "put", "-"], input=text, env=weir.cli_environment(),
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and pairs(done.stdout)["planVersion"] == "3", done.stderr


def test_the_same_plan_again_is_fine_and_another_under_its_name_a_conflict(weir, tmp_path):
    """Exit code 5, and what to do."""
    path = tmp_path / "plan.json"
    plan = {"planId": f"p-{uuid.uuid4().hex[:8]}", "planVersion": "1", "steps": [{"stepId": "a"}]}
    path.write_text(json.dumps(plan))
    run(weir, "plan", "put", str(path))
    assert "stored before" in run(weir, "plan", "put", str(path)).stderr
    path.write_text(json.dumps({**plan, "steps": [{"stepId": "b"}]}))
    assert "new planVersion" in run(weir, "plan", "put", str(path), code=5).stderr


@pytest.mark.parametrize("steps, said", [
    ("[{{stepId: a, dependsOn: [b]}}]", "step a"),
    ("[{{stepId: a, dependsOn: [b]}}, {{stepId: b, dependsOn: [a]}}]", "a -> b -> a"),
    ("[{{stepId: ok}}, {{stepId: bad, queue: No Such}}]", "step bad"),
    ("[{{stepId: ok}}, {{stepId: bad, maxAttempts: 0}}]", "step 2 is bad"),
    ("[{{stepId: ok}}, {{stepId: bad, dependOn: [ok]}}]", "step 2 is bad"),
])
def test_a_bad_plan_is_refused_with_the_step_that_is_wrong(weir, put, steps, said):
    """Exit code 1: the server has refused it."""
    put("planId: {plan}\nplanVersion: 1\nsteps: " + steps + "\n", code=1)
    assert said in put.done.stderr, put.done.stderr
    assert weir


@pytest.mark.parametrize("text, said", [
    ("planId: a\n  steps: [", "line 2"), ("- a\n- b\n", "holds no plan"), ("{{\"planId\": \"a\"", "line 1")])
def test_a_file_that_is_no_plan_is_refused_before_it_is_sent(put, text, said):
    """Exit code 2, with the place."""
    put(text, code=2)
    assert said in put.done.stderr


# ---- reading runs

def test_a_run_is_shown_as_of_an_earlier_record(weir, put):
    """--at SEQ; 0 is before everything."""
    run_id = run(weir, "start", put(ONE), "-q", "--params", '{"day":"2026-11-16"}', "--project", "shop",
                 "--environment", "prod", "--wait").stdout.strip()
    now = pairs(run(weir, "get", run_id).stdout)
    assert now["status"] == "COMPLETED" and now["projectId"] == "shop" and now["environmentId"] == "prod"
    assert now["params"] == '{"day":"2026-11-16"}'
    assert pairs(run(weir, "get", run_id, "--at", "0").stdout)["status"] == "PENDING"
    assert run_json(weir, "get", run_id, "--at", "2")["lastRunSeq"] == 2


def test_lists_have_filters_and_pages_that_add_up(weir, put):
    """run list; -q prints ids; --all joins the pages."""
    plan = put(ONE)
    ids = [f"{plan}-{i}" for i in range(3)]
    for run_id in ids:
        assert run(weir, "start", plan, "-q", "--run-id", run_id, "--wait").stdout == run_id + "\n"
    assert run(weir, "list", "--plan", plan, "-q", "--limit", "2", "--all").stdout.split() == ids[::-1]
    page = run(weir, "list", "--plan", plan, "--limit", "2")
    cursor = re.search(r"--cursor (\d+)", page.stderr)[1]
    rest = run_json(weir, "list", "--plan", plan, "--limit", "2", "--cursor", cursor)
    assert [item["runId"] for item in rest["items"]] == [ids[0]] and rest["nextCursor"] is None
    assert "No run matches" in run(weir, "list", "--plan", plan, "--state", "FAILED").stderr
    assert run_json(weir, "list", "--plan", plan, "--project", "other", "--all")["items"] == []


def test_events_are_listed_and_followed_to_the_end(weir, held):
    """--after, --limit; --follow ends with the run, also behind its last record."""
    run_id = held()
    assert "RunQueued" in run(weir, "events", run_id, "--limit", "1").stdout
    run(weir, "signal", run_id, "cancel")
    followed = run(weir, "events", run_id, "--follow", "-o", "json").stdout.splitlines()
    assert [json.loads(line)["runSeq"] for line in followed] == list(range(1, len(followed) + 1))
    assert json.loads(followed[-1])["eventType"] == "RunCancelled"
    assert run(weir, "events", run_id, "--after", str(len(followed) - 1)).stdout.count("\n") == 2
    assert run(weir, "events", run_id, "--after", "99", "--follow").stdout == ""


# ---- signals

def test_signals_are_sent_listed_and_found_by_their_id(weir, held):
    """Names in either form; --signal-id makes it safe to repeat."""
    run_id, signal_id = held(), str(uuid.uuid4())
    first = run_json(weir, "signal", run_id, "pause", "--reason", "lunch", "--signal-id", signal_id)
    assert run_json(weir, "signal", run_id, "PAUSE", "--reason", "lunch", "--signal-id", signal_id) == first
    run(weir, "signal", run_id, "resume", "--signal-id", signal_id, code=5)
    run(weir, "signal", run_id, "resume")
    run(weir, "signal", run_id, "UPDATE_PARAMS", "--params", '{"x": 1}', "--reason", "late")
    run(weir, "signal", run_id, "skip_step", "--step", "a")
    kinds = re.findall(r"^2\S{18} +([A-Z_]+) +", run(weir, "signals", run_id).stdout, re.M)
    assert kinds == ["SKIP_STEP", "UPDATE_PARAMS", "RESUME", "PAUSE"]
    one = pairs(run(weir, "signals", run_id, signal_id).stdout)
    assert one["policyDecisionId"] == first["policyDecisionId"] and one["audit.reason"] == "lunch"
    assert run(weir, "signals", run_id, "--pending").stdout == ""
    assert "UPDATE_PARAMS" in run(weir, "alerts", run_id).stdout


def test_every_signal_can_be_written_with_flags(weir, held, put):
    """What the payload needs has a flag, or is given whole."""
    run_id = held()
    for args in (["inject-override", "--step", "a", "--override", '{"n":1}', "--reason", "r"],
                 ["update-target", "--step", "a", "--target", '{"db":"x"}', "--reason", "r"],
                 ["pause", "--payload", '{"reason":"r"}'], ["emergency-stop", "--reason", "r", "--force"]):
        assert run_json(weir, "signal", run_id, *args)["engineResult"] == {"status": "success"}, args
    again = run_json(weir, "signal", run_id, "retry-run", "--reason", "r")["engineResult"]["newRunId"]
    assert pairs(run(weir, "get", again).stdout)["originalRunId"] == run_id
    run(weir, "signal", again, "cancel", "--reason", "r")
    assert put


def test_a_signal_that_needs_approval_is_held_until_another_admin_decides(fresh_weir, tmp_path):
    """run approve and reject; not by oneself."""
    weir = fresh_weir(settings={"engine.approval_required": "PAUSE,CANCEL"})
    path = tmp_path / "p.yaml"
    path.write_text("planId: p\nplanVersion: 1\nsteps: [{stepId: a, queue: nobody}]\n")
    run(weir, "plan", "put", str(path))
    run_id = run(weir, "start", "p", "-q").stdout.strip()
    held = run(weir, "signal", run_id, "pause", "--sub", "ann")
    policy = pairs(held.stdout)["policyDecisionId"]
    assert f"weir run approve {policy}" in held.stderr and pairs(held.stdout)["engineResult"] == "-"
    run(weir, "approve", policy, "--sub", "ann", code=4)
    approved = run(weir, "approve", policy, "--sub", "bob", "--reason", "fine")
    assert pairs(approved.stdout)["decision"] == "ACCEPTED"
    assert pairs(run(weir, "get", run_id).stdout)["status"] == "PAUSED"
    policy = run(weir, "signal", run_id, "cancel", "--sub", "ann", "-q").stdout.strip()
    run(weir, "reject", policy, "--sub", "bob", "--reason", "not now")
    assert pairs(run(weir, "decision", policy).stdout)["reason"] == "not now"
    run(weir, "approve", policy, "--sub", "bob", code=5)


# ---- who calls

def test_a_token_that_is_given_counts_and_its_role_binds(weir, held):
    """--token, and no more than its role may; a tenant sees its own runs only."""
    run_id, engine = held(), Engine(weir, "default")
    viewer = engine.token("Viewer")
    assert pairs(run(weir, "get", run_id, "--token", viewer).stdout)["runId"] == run_id
    refused = run(weir, "signal", run_id, "cancel", "--token", viewer, code=4)
    policy = re.search(r"weir run decision (\S+)", refused.stderr)[1]
    assert pairs(run(weir, "decision", policy).stdout)["decision"] == "REJECTED"
    run(weir, "get", run_id, "--role", "Viewer")
    run(weir, "start", "any", "1", "--role", "Viewer", code=4)
    run(weir, "get", run_id, "--tenant", "other", code=3)
    run(weir, "signal", run_id, "cancel", "--tenant", "other", code=4)
    run(weir, "get", run_id, "--token", viewer, "--tenant", "other", code=2)


def test_without_a_token_and_a_data_directory_one_line_says_what_to_do(weir, tmp_path):
    """Exit code 4; nothing is made in a directory that is no server's, nothing goes to other machines."""
    done = run(weir, "list", "--data", str(tmp_path), code=4)
    assert done.stderr.count("\n") == 1 and "WEIR_TOKEN" in done.stderr
    assert os.listdir(tmp_path) == []
    assert "WEIR_TOKEN" in run(weir, "list", "--url", "http://weir.example:8080", code=4).stderr
    assert "--token" in run(weir, "list", "--token", "nonsense", code=4).stderr


def test_a_token_in_the_environment_is_used(weir, held):
    """WEIR_TOKEN; other settings do not mind the variable."""
    run_id = held()
    token = Engine(weir, "default").token("Viewer")
    env = {**weir.cli_environment(), "WEIR_TOKEN": token, "WEIR_DATA": "/nowhere"}
    done = subprocess.run(weir.program + ["run", "get", run_id], env=env, capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 0 and run_id in done.stdout, done.stderr


# ---- mistakes

@pytest.mark.parametrize("args, code, said", [
    (["plan", "put", "no-such-file.yaml"], 2, "cannot read no-such-file.yaml"),
    (["plan", "get", "nothing"], 3, "weir run plan put"),
    (["start", "nothing"], 3, "Plan not found"),
    (["start", "nothing", "--params", "[]"], 2, "--params must be a JSON object"),
    (["start", "nothing", "--timeout", "3s"], 2, "--timeout needs --wait"),
    (["start", "nothing", "--wait", "--watch"], 2, "not both"),
    (["get", "nothing"], 3, "weir run list"),
    (["get", "nothing", "--at", "x"], 2, "--at must be an integer"),
    (["get"], 2, "usage: weir run get RUN_ID"),
    (["list", "--limit", "0"], 2, "--limit"),
    (["list", "--state", "DONE"], 1, "status"),
    (["events", "nothing"], 3, "Run not found"),
    (["events", "nothing", "--follow"], 3, "Run not found"),
    (["events", "nothing", "--follow", "--limit", "1"], 2, "not both"),
    (["watch", "nothing"], 3, "Run not found"),
    (["signal", "nothing", "pause"], 3, "check the run id"),
    (["signal", "nothing", "puase"], 2, "did you mean pause?"),
    (["signal", "nothing", "RETRY_STPE", "--step", "a"], 2, "did you mean RETRY_STEP?"),
    (["signal", "nothing", "retry-step"], 2, "RETRY_STEP needs --step STEP_ID"),
    (["signal", "nothing", "pause", "--step", "a"], 2, "PAUSE takes no --step"),
    (["signal", "nothing", "pause", "--step", "a", "--payload", "{}"], 2, "--payload is the whole"),
    (["signals", "nothing"], 3, "Run not found"),
    (["decision", "nothing"], 3, "Decision not found"),
    (["approve", str(uuid.uuid4())], 3, "Decision not found"),
    (["reject", str(uuid.uuid4())], 3, "Decision not found"),
    (["alerts", "--state", "x"], 2, "takes no --state"),
    (["wtach", "nothing"], 2, 'did you mean "weir run watch"?'),
    (["list", "--tokn", "x"], 2, "did you mean --token?"),
])
def test_a_mistake_says_what_to_do_and_has_its_exit_code(weir, args, code, said):
    """2 usage, 3 not found, and so on."""
    assert said in run(weir, *args, code=code).stderr


def test_conflicts_are_exit_code_5(weir, put):
    """A run id used before with other content; a signal to a run that has ended."""
    plan = put(ONE)
    run(weir, "start", plan, "--run-id", plan, "--wait")
    run(weir, "start", plan, "--run-id", plan)
    assert "--run-id" in run(weir, "start", plan, "--run-id", plan, "--params", '{"other":1}', code=5).stderr
    assert "retry-run" in run(weir, "signal", plan, "pause", code=5).stderr


def test_help_tells_the_meaning_a_flag_has_here(weir):
    """`weir help run` lists the family; a flag is explained as its command uses it."""
    listed = run(weir, "run", verb="help").stdout
    for verb in ("plan put", "start", "get", "list", "events", "watch", "signal", "signals", "decision"):
        assert f"weir run {verb} " in listed
    assert "the run as of this record" in run(weir, "get", "--help").stdout
    assert "run at 2030" in run(weir, "submit", "--help", verb="job").stdout


# ---- the drawing

def last_frame(shown):
    """What stays on the terminal: what follows the last way back to the first line, without colours."""
    return re.sub(r"\x1b\[\d*m", "", re.split(r"\x1b\[\d+A\x1b\[J", shown)[-1])


def test_watch_draws_the_graph_in_place_until_the_run_ends(weir, put):
    """States with symbols; the picture is drawn over the last one; the exit code is the run's."""
    shown, code = on_terminal(weir, "run", "start", put(), "--watch")
    frame = last_frame(shown)
    assert code == 1 and "FAILED" in frame.splitlines()[0], shown
    assert "✓ extract ─┬─ ✓ clean ─┬─ ○ publish\n           └─ ✗ rank ──┘\n" in frame
    assert "✗ rank: work_failed" in frame
    assert len(re.findall(r"\x1b\[\d+A\x1b\[J", shown)) >= 1 and "\x1b[32m" in shown


def test_the_drawing_has_no_colour_with_no_color_and_becomes_a_list_when_too_wide(weir, put):
    """NO_COLOR; a terminal too narrow for the graph."""
    run_id = run(weir, "start", put(), "-q", "--wait", code=1).stdout.strip()
    shown, code = on_terminal(weir, "run", "watch", run_id, columns=30, NO_COLOR="1")
    assert code == 1 and "\x1b[3" not in shown
    assert "✓ extract\n  ✓ clean\n  ✗ rank\n    ○ publish\n" in shown


def test_a_run_of_an_engine_elsewhere_is_drawn_as_the_steps_heard_of(weir):
    """It has no plan here."""
    outside = Outside(Engine(weir, "default"))
    outside.tell("RunStarted", "StepStarted a 1", "StepCompleted a 1", "StepStarted b 1", "StepFailed b 1",
                 "RunFailed")
    shown, code = on_terminal(weir, "run", "watch", outside.run_id)
    assert code == 1 and "✓ a\n✗ b\n" in last_frame(shown)
    assert "elsewhere" in run(weir, "get", outside.run_id).stdout


def test_watch_outlives_a_restart_of_the_server_and_repeats_nothing(fresh_weir, tmp_path):
    """It goes on behind the last record it has seen, with a new token when it needs one."""
    weir = fresh_weir()
    path = tmp_path / "p.yaml"
    path.write_text("planId: p\nplanVersion: 1\nsteps: [{stepId: a, queue: nobody}]\n")
    run(weir, "plan", "put", str(path))
    run_id = run(weir, "start", "p", "-q").stdout.strip()
    with subprocess.Popen(weir.program + ["run", "watch", run_id, "-o", "json"], env=weir.cli_environment(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watch:
        first = json.loads(watch.stdout.readline())
        weir.restart()
        run(weir, "signal", run_id, "cancel")
        rest, errors = watch.communicate(timeout=60)
    seqs = [first["runSeq"]] + [json.loads(line)["runSeq"] for line in rest.splitlines()]
    assert seqs == list(range(1, len(seqs) + 1)) and "RunCancelled" in rest
    assert watch.returncode == 1 and "lost" in errors
