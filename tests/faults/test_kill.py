"""kill -9 of core, runners and root, again and again, under load: nothing acknowledged is lost,
nothing is done twice by one key, everything ends. What a missing fsync would lose only a power cut
shows: test_power_cut.c."""
import os
import random
import signal
import time

import pytest

from harness import processes
from harness.history import History
from harness.store_sql import edit
from kill_load import SETTINGS, Load, kill_core, settle, the_judge_sees_a_planted_loss

CORE_KILLS, RUNNER_KILLS, ROOT_KILLS = 60, 30, 3
LONG_FACTOR = 50  # of make test-long
START_SECONDS_MAX = 1.0  # from the kill of core to the next one serving, while restarts are immediate


def kill_a_runner(weir, rng):
    """Kills one runner; root starts it again in its own time."""
    for pid in rng.sample(weir.pids("runner"), 1):
        os.kill(pid, signal.SIGKILL)


def kill_root(weir):
    """Kills root alone and starts the program again at once, while the old children still leave."""
    family = weir.pids()
    os.kill(weir.process.pid, signal.SIGKILL)
    weir.process.wait()
    weir.process = None
    weir.spawn()
    assert not processes.wait_gone(family, 5), "children outlived root"
    weir.wait_ready()


def verify(weir):
    """`weir verify` finds nothing."""
    done = weir.cli("verify")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.limit(1800 if os.environ.get("WEIR_TEST_LONG") == "1" else 120)
def test_kills_of_core_runners_and_root_lose_nothing(fresh_weir, long_run):
    """[JOB-003] [JOB-146] [JOB-153] [JOB-151] [JOB-070] [JOB-071] 60 kills of core, 30 of runners
    and 3 of root under load: every acknowledged job is there and final, no phantom, one job per key
    also over a restart, legal chains, one outcome and report each; `weir verify` finds nothing."""
    weir = fresh_weir(settings=SETTINGS)
    _, key = weir.new_client()
    history, rng, times = History(), random.Random(7), []
    core_kills = CORE_KILLS * (LONG_FACTOR if long_run else 1)
    with Load(weir, key, history, threads=4, pause=0.03 if long_run else 0.005):
        for n in range(core_kills):
            time.sleep(rng.random() * 0.1)
            if n % 2:
                kill_a_runner(weir, rng)
            times.append(kill_core(weir))
            if n % (core_kills // ROOT_KILLS) == core_kills // ROOT_KILLS - 1:
                kill_root(weir)
    jobs = settle(weir, key, history)
    weir.stop()
    verify(weir)
    acknowledged = len({op.name for op in history.of("submit", "ok")})
    print(f"{core_kills} core, {core_kills // 2} runner, {ROOT_KILLS} root kills; "
          f"{acknowledged} jobs acknowledged, "
          f"{history.count('submit', 'unknown')} answers cut off, {len(jobs)} jobs; core back after "
          f"{sorted(times)[len(times) // 2]:.2f} s (median), {max(times):.2f} s (longest)")
    assert core_kills // 2 >= RUNNER_KILLS
    assert history.count("submit", "unknown") >= core_kills // 10, "the kills hit nothing"
    assert acknowledged >= 5 * core_kills, "hardly any load"
    assert sorted(times)[len(times) // 2] <= START_SECONDS_MAX
    the_judge_sees_a_planted_loss(history, jobs)


def test_kill_of_the_whole_family_under_load_loses_nothing(fresh_weir, long_run):
    """[JOB-146] [JOB-303] Everything killed at the same instant, as a power cut does to processes,
    eight times."""
    weir = fresh_weir(settings=SETTINGS)
    _, key = weir.new_client()
    history, rng = History(), random.Random(3)
    with Load(weir, key, history):
        for _ in range(200 if long_run else 8):
            time.sleep(0.1 + rng.random() * 0.2)
            weir.kill9()
            weir.start()
    settle(weir, key, history)
    weir.stop()
    verify(weir)


def test_verify_sees_a_row_that_is_missing(fresh_weir):
    """The negative control of `weir verify`: one row taken out of a sound database is told, with
    exit 1."""
    weir = fresh_weir(settings=SETTINGS)
    _, key = weir.new_client()
    ids = [weir.submit(key, work_kind="SUCCESS_FAST")["job_id"] for _ in range(5)]
    for job_id in ids:
        weir.wait_final(key, job_id)
    weir.stop()
    verify(weir)
    assert edit(weir, "DELETE FROM ends WHERE id=(SELECT max(id) FROM ends)") == 1
    done = weir.cli("verify")
    assert done.returncode == 1 and done.stdout.strip(), done
