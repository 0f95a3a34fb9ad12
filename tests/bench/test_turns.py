"""bench/turns: two programs in turns, a row that fell is found and one that only trembled is not."""
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "bench")]
import canned  # noqa: E402  (needs the path above)
from measure import turns  # noqa: E402


def verdict(row, before, now):
    """(is slower, the ratio that the table shows) of a row by the figures of some rounds."""
    key = ("weir", "empty", row)
    rounds = [({key: b}, {key: n}) for b, n in zip(before, now)]
    compared = turns.compare(rounds, canned.ROWS, 0.03)
    (*_, slower), = compared
    return slower, float(turns.table(compared).splitlines()[1].split()[5])


@pytest.mark.parametrize("row, before, now, expected", [
    ("drain", [100, 200, 100, 200], [95, 190, 95, 190], (True, 0.95)),      # ups and downs are in both
    ("drain", [100, 200, 100, 200], [98, 196, 98, 196], (False, 0.98)),     # less than 3 %
    ("drain", [100, 100, 100, 100], [90, 90, 110, 110], (False, 1.0)),      # trembles
    ("drain", [100, 100, 100, 100], [95, 96, 96, 101], (True, 0.96)),
    ("start", [50, 50, 50, 50], [60, 60, 60, 60], (True, 0.833)),           # milliseconds: less is better
    ("start", [60, 60, 60, 60], [50, 50, 50, 50], (False, 1.2)),
    ("drain.cpu", [20, 20, 20, 20], [22, 22, 22, 22], (True, 0.909)),       # so are microseconds of CPU
])
def test_a_row_is_slower_when_most_rounds_say_so(row, before, now, expected):
    assert verdict(row, before, now) == expected


def test_a_row_that_only_one_program_has_is_left_out():
    old, new = {("weir", "empty", "drain"): 1.0}, {("weir", "empty", "batch"): 1.0}
    assert not turns.compare([(old, new)], canned.ROWS, 0.03)
