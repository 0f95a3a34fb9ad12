#!/usr/bin/env python3
"""A worker for Weir, standard library only: WEIR_API_KEY=... python3 worker.py

It takes one task at a time from a queue. To run several at a time, start the program several times.
"""
import http.client
import json
import os
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request

URL = os.environ.get("WEIR_URL", "http://127.0.0.1:8080") + "/worker/v1/"
HEADERS = {"Authorization": "Bearer " + os.environ["WEIR_API_KEY"], "Content-Type": "application/json"}
QUEUE = os.environ.get("WEIR_QUEUE", "mail")
MAILBOX = os.environ.get("MAILBOX", "mailbox")
WORKER_ID = f"{socket.gethostname()}-{os.getpid()}"
CLAIM_WAIT_MS = 10_000      # a claim waits so long for a task
HEARTBEAT_SECONDS = float(os.environ.get("HEARTBEAT_SECONDS", "5"))    # well below the lease, 30 s
SERVER_AWAY_SECONDS = 60    # a server that restarts is waited for


class Permanent(Exception):
    """The work failed, and another attempt would fail in the same way."""


class Stopped(Exception):
    """The work has to stop: the job was canceled, the lease is lost, or this program ends."""


# ---- your work -----------------------------------------------------------------------------------------

def work(task):
    """Sends a mail to each receiver: here, a file in a folder. Gives the result of the job.

    A task may run twice. The name of the file comes from the job, so a second run changes nothing."""
    payload = task.payload or {}
    if not payload.get("to"):
        raise Permanent("the payload has no receivers")
    for number, receiver in enumerate(payload["to"]):
        task.may_go_on()
        path = os.path.join(MAILBOX, f"{task.job_id}-{receiver}")
        with open(path, "w", encoding="utf-8") as file:     # a missing folder is an OSError: tried again later
            file.write(payload.get("text", ""))
        task.progress = {"percent": 100 * (number + 1) // len(payload["to"]), "note": f"sent to {receiver}"}
        task.wait(payload.get("pause_seconds", 0))
    return {"sent": len(payload["to"])}


# ---- the protocol --------------------------------------------------------------------------------------

program_ends = threading.Event()


def call(verb, body):
    """One call of the worker API. Every call may be repeated, so a server that is away is waited for."""
    request = urllib.request.Request(URL + verb, json.dumps(body).encode(), HEADERS)
    give_up_at = time.monotonic() + SERVER_AWAY_SECONDS
    while True:
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except (OSError, http.client.HTTPException) as error:
            refused = isinstance(error, urllib.error.HTTPError) and error.code < 500 and error.code != 429
            if refused or time.monotonic() > give_up_at:
                detail = error.read().decode() if isinstance(error, urllib.error.HTTPError) else error
                sys.exit(f"{verb}: {detail}")
        time.sleep(1)


class Task:
    """A task that this worker has claimed."""

    def __init__(self, claimed):
        self.job_id, self.payload, self.attempt = claimed.get("job_id"), claimed["payload"], claimed["attempt"]
        self.ref = {"task_id": claimed["task_id"], "token": claimed["token"]}
        self.progress = None
        self.ended, self.dropped = threading.Event(), threading.Event()

    def tell(self, verb, **members):
        """start, heartbeat, finish or release of this task; its result."""
        return call(verb, {"tasks": [{**self.ref, **members}]})["results"][0]

    def may_go_on(self):
        """Call it often: it ends the work that has to stop."""
        if self.dropped.is_set() or program_ends.is_set():
            raise Stopped

    def wait(self, seconds):
        """Sleeps, unless the work has to stop."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.may_go_on()
            time.sleep(0.05)

    def keep_alive(self):
        """A thread of its own: the lease lasts while heartbeats come."""
        while not self.ended.wait(HEARTBEAT_SECONDS):
            result = self.tell("heartbeat", **({"progress": self.progress} if self.progress else {}))
            if not result["ok"] or result["cancel"]:    # lease_lost, or the job was canceled
                self.dropped.set()
                return

    def run(self):
        """Starts the task, does the work, reports the end."""
        if not self.tell("start")["ok"]:
            return                                      # another worker has the task
        heart = threading.Thread(target=self.keep_alive, daemon=True)
        heart.start()
        try:
            end = "finish", {"outcome": "success", "result": work(self)}
        except Stopped:
            end = "release", {"reason": "the worker stops"}
        except Permanent as error:
            end = "finish", failure("permanent", error, False)
        except Exception as error:                      # pylint: disable=broad-exception-caught
            end = "finish", failure(type(error).__name__, error, True)
        self.ended.set()
        heart.join()
        if not self.dropped.is_set():                   # otherwise the task is not ours any more
            verb, members = end
            print(verb, self.job_id, "attempt", self.attempt, members, self.tell(verb, **members), flush=True)


def failure(code, error, retryable):
    """What `finish` is told about a failure."""
    return {"outcome": "failure", "error": {"code": code, "message": str(error), "retryable": retryable}}


def main():
    """Claims tasks until SIGTERM or Ctrl-C."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: program_ends.set())
    print("worker", WORKER_ID, "serves queue", QUEUE, flush=True)
    while not program_ends.is_set():
        claim = {"worker_id": WORKER_ID, "queues": [QUEUE], "max": 1, "wait_ms": CLAIM_WAIT_MS}
        for claimed in call("claim", claim)["tasks"]:
            task = Task(claimed)
            if program_ends.is_set():                   # the task came while the program was told to end
                print("release", task.job_id, task.tell("release"), flush=True)
            else:
                task.run()


main()
