"""`weir store events`: every event of every job, read beside the server from the store itself."""
import collections
import json
import subprocess
import threading

import pytest

from harness.weir_server import wait_for

SECONDS = 30


@pytest.fixture(scope="module")
def weir(module_weir):
    """One of its own: every event of the store is asked for."""
    return module_weir()


def events(weir, *args):
    """What the command prints, line by line."""
    done = weir.cli("store", "events", "-o", "json", *args)
    return [json.loads(line) for line in done.stdout.splitlines()]


def of_jobs(lines, jobs):
    """Of these jobs only: (job, seq) in the order they came."""
    told = [line["event"] for line in lines]
    return [(event["job_id"], event["seq"]) for event in told if event["job_id"] in jobs]


def finished(weir, client, count):
    """Jobs that ran to their end."""
    jobs = [weir.submit(client.api_key, work_kind="SUCCESS_FAST")["job_id"] for _ in range(count)]
    for job in jobs:
        weir.wait_state(client.api_key, job, "SUCCEEDED")
    return jobs


def all_of(weir, client, jobs):
    """What the API says of each job's events."""
    return {(job, event["seq"]): event for job in jobs for event in weir.events(client.api_key, job)}


def test_after_goes_on_exactly_behind_any_event(weir, client):
    """Whatever the place: what was told and what comes then are all there is, nothing twice."""
    jobs = finished(weir, client, 5)
    count = len(all_of(weir, client, jobs))
    wait_for(lambda: len(of_jobs(events(weir), jobs)) >= count, SECONDS, "all of them", weir)
    lines = events(weir)
    every = [(line["event"]["job_id"], line["event"]["seq"]) for line in lines]
    for at in range(0, len(lines), 3):
        rest = [(line["event"]["job_id"], line["event"]["seq"])
                for line in events(weir, "--after", lines[at]["place"])]
        assert rest[:len(every) - at - 1] == every[at + 1:]
    first = events(weir, "--limit", "4")
    assert [line["place"] for line in first] == [line["place"] for line in lines[:4]]


def test_every_event_once_as_the_api_tells_it_and_in_order_per_job(weir, client):
    """The same objects; per job seq rises by one."""
    jobs = finished(weir, client, 20)
    wanted = all_of(weir, client, jobs)
    wait_for(lambda: len(of_jobs(events(weir), jobs)) >= len(wanted), SECONDS, "all events", weir)
    lines = [line for line in events(weir) if line["event"]["job_id"] in jobs]
    seen = of_jobs(lines, jobs)
    assert collections.Counter(seen) == collections.Counter(wanted.keys())
    for line in lines:
        assert line["event"] == wanted[line["event"]["job_id"], line["event"]["seq"]]
    for job in jobs:
        assert [seq for one, seq in seen if one == job] == sorted(seq for one, seq in seen if one == job)


def test_follow_tells_what_happens_later_and_ends_at_its_limit(weir, client):
    """Started before the job is: it waits for its events."""
    wait_for(lambda: events(weir) is not None, SECONDS, "the store", weir)
    before = events(weir)
    after = ["--after", before[-1]["place"]] if before else []
    follower = subprocess.Popen(
        [*weir.program, "store", "events", "--follow", "--limit", "4", "-o", "json", *after],
        stdout=subprocess.PIPE, text=True, env=weir.cli_environment())
    timer = threading.Timer(SECONDS, follower.kill)
    timer.start()
    try:
        job = finished(weir, client, 1)[0]
        lines = [json.loads(line) for line in follower.stdout]
        assert follower.wait(SECONDS) == 0
    finally:
        timer.cancel()
        follower.kill()
        follower.wait()
    assert len(lines) == 4
    assert of_jobs(lines, [job]) == [(job, seq) for seq in range(1, 5)]


def test_a_place_that_is_none_is_refused_with_an_example(weir):
    """Exit code 2, and what a place looks like."""
    for place in ("", "x", "1", "1.2", "1.2.3.4", "-1.2.3", "1.0.3", "1.2.70000", "1.2.", "9" * 30 + ".1.1"):
        done = weir.cli("store", "events", "--after=" + place)
        assert done.returncode == 2, place
        assert "734.21.1080" in done.stderr


def test_a_table_for_people(weir, client):
    """Headings, state and place."""
    job = finished(weir, client, 1)[0]
    wait_for(lambda: len(of_jobs(events(weir), [job])) >= 4, SECONDS, "its events", weir)
    text = weir.cli("store", "events").stdout
    assert text.splitlines()[0].split() == ["TIME", "JOB", "SEQ", "EVENT", "STATE", "ATTEMPT", "PLACE"]
    last = [line for line in text.splitlines() if job in line][-1].split()
    assert last[4] == "SUCCEEDED" and last[-1].count(".") == 2
