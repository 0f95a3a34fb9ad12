"""The gateway's partitions as a test sees them: which one a receiver's deliveries belong to.

The hash is written here once more, from its published definition, so that it judges the program's own.
"""
import sqlite3

SLOTS = 128


def fnv1a64(data):
    """FNV-1a, 64 bits."""
    h = 14695981039346656037
    for byte in data:
        h = ((h ^ byte) * 1099511628211) & ((1 << 64) - 1)
    return h


def slot_of(instance, room):
    """Of a key."""
    return fnv1a64(f"{instance}:{room}".encode()) % SLOTS


def rows(weir, sql, *values):
    """What a server's SQLite file holds."""
    with sqlite3.connect(f"file:{weir.data}/weir.db?mode=ro", uri=True, timeout=10) as db:
        return db.execute(sql, values).fetchall()


def streams(weir):
    """(target, job, slot it is stored with) of each stream that has something to send."""
    found = rows(weir, "SELECT target, subject, queue FROM tasks WHERE queue LIKE '~deliver.%'")
    return [(target, job, int(queue.partition(".")[2])) for target, job, queue in found]


def webhook_number(weir, url):
    """The number by which the store knows the webhook with this URL."""
    (row,) = rows(weir, "SELECT id FROM webhooks WHERE url = ?", url)
    return row[0]


def failures(weir, mode, **fields):
    """Lines of the crash policy."""
    return weir.logs(event="weir.runtime.failure", mode=mode, **fields)
