"""SQL behind a server's back, in whichever store it has: to look, or to do damage.

    edit(weir, "DELETE FROM ends WHERE id = (SELECT max(id) FROM ends)")    rows touched
    value(weir, "SELECT sum(requests) FROM request_days")                   the one value

Only what both dialects understand, one statement at a time.
"""
import contextlib
import os
import sqlite3

from harness import postgres


def file_of(weir):
    """The SQLite file."""
    return os.path.join(weir.data, "weir.db")


def edit(weir, *statements):
    """Changes the store, of a stopped server; gives the number of rows touched."""
    if weir.database:
        session = postgres.session()
        return sum(int(session.sql(f"WITH touched AS ({statement} RETURNING 1) "
                                   "SELECT count(*) FROM touched;", weir.database)[0])
                   for statement in statements)
    with contextlib.closing(sqlite3.connect(file_of(weir))) as database:
        touched = sum(database.execute(statement).rowcount for statement in statements)
        database.commit()
    return touched


def value(weir, query):
    """The one number a query gives, also beside a running server; None when it is NULL."""
    if weir.database:
        row, = postgres.session().sql(query + ";", weir.database)
        return int(row) if row else None
    with contextlib.closing(sqlite3.connect(f"file:{file_of(weir)}?mode=ro", uri=True)) as store:
        return store.execute(query).fetchone()[0]
