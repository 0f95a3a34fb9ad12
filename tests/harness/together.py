"""Many callers at the same instant, a crew of threads, and what is started and ended with a block."""
import threading

CREW_SECONDS_MAX = 60  # from the word to stop to the end of the last thread


def at_once(count, action):
    """Runs action(i) for i in 0..count-1, all released together; gives the results in order.

    The first exception of any caller is raised here."""
    results, faults = [None] * count, []
    gate = threading.Barrier(count)

    def caller(i):
        try:
            gate.wait(timeout=30)
            results[i] = action(i)
        except BaseException as fault:  # shown by the test that called, not by the thread
            faults.append(fault)

    threads = [threading.Thread(target=caller, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]
    return results


class Crew:
    """`count` threads in run(n) until the end of the `with`, where the first exception of one is raised.

    run(n) returns soon after `stopping` is set."""

    def __init__(self, count):
        self.stopping = threading.Event()
        self.faults = []
        self.threads = [threading.Thread(target=self.guarded, args=(n,)) for n in range(count)]

    def run(self, n):
        """What thread n does."""
        raise NotImplementedError

    def guarded(self, n):
        """run(n), its exception kept for the end."""
        try:
            self.run(n)
        except BaseException as fault:
            self.faults.append(fault)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join(timeout=CREW_SECONDS_MAX)
        if self.faults:
            raise self.faults[0]
        assert not any(thread.is_alive() for thread in self.threads), "a thread does not end"


class Startable:
    """start() at the begin of the `with`, close() at its end, and when start() fails."""

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_):
        self.close()
