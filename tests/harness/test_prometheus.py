"""The reader of the Prometheus text format sees what is wrong, each on a planted fault."""
import math

import pytest

from harness import prometheus

GOOD = """# HELP up Is it?
# TYPE up gauge
up 1
# HELP calls_total Calls
# TYPE calls_total counter
calls_total{code="200",path="a\\"b"} 3
calls_total{code="500",path="x"} 0
# HELP took_seconds Time
# TYPE took_seconds histogram
took_seconds_bucket{le="0.1"} 1
took_seconds_bucket{le="+Inf"} 2
took_seconds_sum 1.5
took_seconds_count 2
"""


def test_a_good_page_is_read():
    page = prometheus.parse(GOOD)
    assert page["up"].value() == 1 and page["up"].kind == "gauge"
    assert page["calls_total"].value() == 3 == page["calls_total"].value(code="200")
    assert page["took_seconds"].histogram() == ([(0.1, 1), (math.inf, 2)], 1.5, 2)


@pytest.mark.parametrize("old, new", [
    ("up 1\n", "up one\n"), ("up 1\n", "up  1\n"), ("up 1\n", "up 1\r\n"), ("up 1\n", "up 1\nup 1\n"),
    ("up 1\n", "\n"), ("# TYPE up gauge\n", ""), ("# HELP up Is it?\n", ""), ("up gauge", "up number"),
    ("# HELP up Is it?\n# TYPE up gauge\n", "# TYPE up gauge\n# HELP up Is it?\n"),
    ("calls_total{code=\"500\"", "call_total{code=\"500\""), ('code="500",path="x"', 'code="500",code="x"'),
    ('path="x"', "path=x"), ('path="x"', 'path="x",'), ('code="500",path="x"', 'code="200",path="a\\"b"'),
    ("calls_total 3", "calls_total -3"), ('path="x"} 0', 'path="x"} -1'),
    ("# TYPE calls_total counter", "# TYPE calls_total gauge"),
    ('le="0.1"} 1', 'le="0.1"} 3'), ("count 2", "count 3"), ('{le="+Inf"} 2\n', '{le="5"} 2\n'),
    ("took_seconds_bucket{le=\"0.1\"}", "took_seconds_bucket{le=\"7\"}"),
    ("took_seconds_count 2\n", "took_seconds_count 2"),
    ("took_seconds_count 2\n", "took_seconds_count 2\n# HELP up Is it?\n# TYPE up gauge\n"),
])
def test_a_fault_is_seen(old, new):
    bad = GOOD.replace(old, new)
    if bad == GOOD:
        bad = GOOD + new
    if old == "took_seconds_bucket{le=\"0.1\"}":
        bad = bad.replace('le="+Inf"', 'le="0.5"') + 'took_seconds_bucket{le="+Inf"} 2\n'
    with pytest.raises((ValueError, KeyError)):
        prometheus.parse(bad)
