"""Load for the storm of signals: jobs in batches at a steady pace, by clients that never give one up, a dead
letter that is sent again and again, and a look at the API all the while.

Every job has a key, and a batch whose answer was cut off is sent again with the same keys: so in the end
there are exactly as many jobs as keys were sent, whatever died meanwhile."""
import http.client
import threading
import time

from harness.pace import Stopwatch
from harness.kept import Kept
from harness.together import Crew

CUT = (OSError, http.client.HTTPException)
BATCH = 50
RESEND_SECONDS = 0.02
LOOK_SECONDS = 0.02
LOOK_TIMEOUT_SECONDS = 10
LATE_SECONDS_MAX = 20  # what is made up for, of the time without a core
AGAIN_SECONDS = 0.1


class Pace(Crew):
    """`threads` clients that hand in `per_second` jobs together until the end of the `with`."""

    def __init__(self, weir, key, per_second, threads=4):
        super().__init__(threads)
        self.weir, self.key = weir, key
        self.pause = BATCH * threads / per_second
        self.sent = [[] for _ in range(threads)]  # of each client: the ids in the order of its keys
        self.cut = 0

    def run(self, n):
        """One client: the next batch at its time, or at once when it is late."""
        due = time.monotonic()
        with Kept(self.weir.address, self.key, timeout=30) as kept:
            while not self.stopping.is_set():
                self.batch(kept, n)
                due = max(due + self.pause, time.monotonic() - LATE_SECONDS_MAX)
                time.sleep(max(0.0, due - time.monotonic()))

    def job(self, n, i):
        """The i-th of client n."""
        return {"type": "EXECUTE", "work_kind": "SUCCESS_FAST", "idempotency_key": f"{n}-{i}"}

    def batch(self, kept, n):
        """Sends one until it is answered; every item of it is taken."""
        first = len(self.sent[n])
        jobs = [self.job(n, first + i) for i in range(BATCH)]
        while True:
            try:
                answer = kept.call("POST", "/v1/jobs:batch", {"jobs": jobs})
            except CUT:
                self.cut += 1
                time.sleep(RESEND_SECONDS)
                continue
            if answer.status >= 500:
                time.sleep(RESEND_SECONDS)
                continue
            results = answer.expect(202)["results"]
            if all("job_id" in item for item in results):
                self.sent[n] += [item["job_id"] for item in results]
                return
            time.sleep(RESEND_SECONDS)  # some were refused; those that were not are replayed

    @property
    def ids(self):
        """Every job that was acknowledged."""
        return [job_id for ids in self.sent for job_id in ids]


class Again(Crew):
    """Asks for the same letter once more and once more, so that there is somebody who sends it."""

    def __init__(self, letters):
        super().__init__(1)
        self.letters, self.asked = letters, 0

    def run(self, n):
        letter = self.letters.send()
        while not self.stopping.wait(AGAIN_SECONDS):
            try:
                self.asked += self.letters.ask_again(letter).status == 202
            except CUT:
                pass  # core is being replaced


class Look:
    """Reads a job list again and again; `gaps` are the times without an answer: since when, how long, and how
    long as a quiet machine has it."""

    def __init__(self, weir, key):
        self.weir, self.key, self.gaps, self.answers = weir, key, [], 0
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        """The thread."""
        heard = Stopwatch()
        while not self.stopping.is_set():
            try:
                with Kept(self.weir.address, self.key, timeout=LOOK_TIMEOUT_SECONDS) as kept:
                    while not self.stopping.is_set():
                        asked = time.monotonic()
                        if kept.call("GET", "/v1/jobs?limit=1").status == 200:
                            self.gaps.append((heard.began, heard.seconds(), heard.quiet()))
                            heard = Stopwatch()
                            self.answers += 1
                        time.sleep(max(0.0, LOOK_SECONDS - (time.monotonic() - asked)))
            except CUT:
                time.sleep(0.005)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()
