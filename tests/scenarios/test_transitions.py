"""Every allowed move of a job is seen in a run, and none that is not allowed."""
from harness.history import MOVES, check_client
from harness.together import at_once
from harness.worker_calls import Worker

FINAL = ("SUCCEEDED", "FAILED", "CANCELED")
EVENT_NAMES = set().union(*MOVES.values()) | {"job.retries_exhausted"}


def outside_job(weir, key, **fields):
    """A job for our own worker."""
    return weir.submit(key, queue="outside", **fields)["job_id"]


def drive_every_move(weir, key):
    """Leads jobs over every edge of the lifecycle."""
    later = weir.submit(key, type="DEFERRED", execution_at="2099-01-01T00:00:00Z")["job_id"]
    weir.cancel(key, later).expect(200)                      # CREATED -> CANCELED
    weir.cancel(key, outside_job(weir, key)).expect(200)     # QUEUED -> CANCELED
    weir.wait_final(key, weir.submit(key, work_kind="SUCCESS_FAST")["job_id"])
    weir.wait_final(key, weir.submit(key, work_kind="RUNS_OVER_TIMEOUT",
                                     max_runtime_ms=1000)["job_id"])  # timed out
    with Worker(weir, key) as worker:
        outside_job(weir, key)
        worker.release(worker.claim())                       # ASSIGNED -> QUEUED, the recovery
        weir.cancel(key, worker.claim()[0]["job_id"]).expect(200)  # ASSIGNED -> CANCELED
        job_id = outside_job(weir, key)
        worker.start(worker.claim())
        weir.cancel(key, job_id).expect(200)                 # RUNNING -> CANCELED
        job_id = outside_job(weir, key, max_retries=1, retry="manual")
        for attempt in (1, 2):                               # FAILED -> QUEUED, then used up
            tasks = worker.claim(wait_ms=5000)
            worker.start(tasks)
            worker.fail(tasks)
            if attempt == 1:
                weir.retry(key, job_id).expect(200)


def test_every_allowed_move_happens_and_no_other(fresh_weir):
    """[JOB-107] [JOB-108] [JOB-109] [JOB-110] [JOB-111] [JOB-112] [JOB-113] [JOB-114] [JOB-115]
    [JOB-116] [JOB-117] [JOB-118] [JOB-119] [JOB-150] [JOB-151] [JOB-239] All ten moves, the
    recovery edge and all event names appear; each chain is legal, starts in CREATED and ends in the
    stored state."""
    weir = fresh_weir(settings={"jobs.retry_base_ms": 10})
    _, key = weir.new_client()
    drive_every_move(weir, key)
    jobs = check_client(weir, key)
    events = [event for _, chain in jobs.values() for event in chain]
    moves = {(e["prev_state"], e["next_state"]) for e in events if e["event_name"] != "job.retries_exhausted"}
    assert moves == set(MOVES)
    assert {event["event_name"] for event in events} == EVENT_NAMES
    assert all(chain[0]["prev_state"] is None and chain[0]["next_state"] == "CREATED"
               for _, chain in jobs.values())
    assert {job["state"] for job, _ in jobs.values()} == set(FINAL)


def test_a_storm_of_conflicting_calls_leaves_a_linear_history(weir, client, long_run):
    """[JOB-150] [JOB-151] [JOB-153] Cancel, claim, start, finish, fail, release and retry of the
    same jobs from eight threads at once: every chain is linear, legal and ends in the stored
    state."""
    key, count = client.api_key, 200 if long_run else 24
    jobs = [outside_job(weir, key) for _ in range(count)]

    def caller(i):
        with Worker(weir, key, worker_id=f"storm-{i}") as worker:
            for turn in range(count):
                tasks = worker.claim(most=2)
                worker.start(tasks) if tasks else None
                job_id = jobs[(turn * 7 + i) % count]
                for verb in ("cancel", "retry") if (turn + i) % 3 else ("retry",):
                    worker.kept.call("POST", f"/v1/jobs/{job_id}/{verb}")
                if tasks:
                    (worker.finish, worker.fail, worker.release)[(turn + i) % 3](tasks)

    at_once(8, caller)
    with Worker(weir, key) as worker:
        for job_id in jobs:
            worker.kept.call("POST", f"/v1/jobs/{job_id}/cancel").expect(200)
    assert len(check_client(weir, key)) == count
