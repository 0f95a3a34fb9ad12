"""Many callers at the same instant."""
import threading


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
