"""A strict reader of the Prometheus text format 0.0.4, for judging what /metrics says.

    page = prometheus.parse(text)
    page["job_queue_depth"].kind            "gauge"
    page["job_queue_depth"].value()         its only sample
    page["weir_http_request_seconds"].histogram(operation="getJob", status="200")

parse() raises ValueError with the line for anything the format forbids, and for what it allows but
no careful server does: a sample without HELP and TYPE before it, a family in two places, a series
twice, labels out of nowhere, a histogram whose numbers contradict each other.
"""
import math
import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|\})')
VALUE = re.compile(r"[+-]?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|Inf)|NaN")
KINDS = ("counter", "gauge", "histogram")
PARTS = ("_bucket", "_sum", "_count")


class Family:
    """All samples of one metric: {(sample name, ((label, value), ...)): number}, in their order."""

    def __init__(self, name, meaning):
        self.name, self.meaning, self.kind, self.samples = name, meaning, None, {}

    def owns(self, sample_name):
        """May a sample of this name stand in this family?"""
        if self.kind == "histogram":
            return sample_name in [self.name + part for part in PARTS]
        return sample_name == self.name

    def value(self, **labels):
        """Sum of the samples that carry these labels; a histogram's counts."""
        name = self.name + "_count" if self.kind == "histogram" else self.name
        return sum(number for (sample, have), number in self.samples.items()
                   if sample == name and set(labels.items()) <= set(have))

    def series(self):
        """The label sets there are, `le` left out."""
        return {tuple(pair for pair in labels if pair[0] != "le") for _, labels in self.samples}

    def histogram(self, **labels):
        """([(bound, count at or below it), ...], sum, count) of the series with exactly these
        labels."""
        wanted = set(labels.items())
        buckets, ends = [], {}
        for (sample, have), number in self.samples.items():
            bound = dict(have).get("le")
            if set(have) - {("le", bound)} != wanted:
                continue
            if bound is None:
                ends[sample] = number
            else:
                buckets.append((math.inf if bound == "+Inf" else float(bound), number))
        return buckets, ends[self.name + "_sum"], ends[self.name + "_count"]


def read_labels(text, line):
    """The pairs of `{a="b",...}` without its first brace, and what stands behind it."""
    pairs, at = [], 0
    while True:
        found = LABEL.match(text, at)
        if not found:
            raise ValueError(f"bad labels: {line}")
        if found.group(1) in [name for name, _ in pairs]:
            raise ValueError(f"label twice: {line}")
        pairs.append((found.group(1), found.group(2)))
        at = found.end()
        if found.group(3) == "}":
            return tuple(pairs), text[at:]


def read_sample(line):
    """(name, labels, number) of a sample line."""
    name = NAME.match(line)
    if not name:
        raise ValueError(f"no name: {line}")
    rest, labels = line[name.end():], ()
    if rest.startswith("{"):
        labels, rest = read_labels(rest[1:], line)
    if not rest.startswith(" ") or not VALUE.fullmatch(rest[1:]):
        raise ValueError(f"bad value: {line}")
    return name.group(), labels, float(rest[1:].replace("Inf", "inf"))


def read_comment(line, families, current):
    """A HELP line begins a family, its TYPE line follows at once."""
    _, word, name, text = line.split(" ", 3)
    if word == "HELP":
        if name in families or not NAME.fullmatch(name) or not text.strip():
            raise ValueError(f"family twice, or without a meaning: {line}")
        if current and current.kind is None:
            raise ValueError(f"{current.name} has no TYPE")
        families[name] = Family(name, text)
    elif word == "TYPE":
        if not current or current.name != name or current.kind or current.samples:
            raise ValueError(f"TYPE out of place: {line}")
        if text not in KINDS:
            raise ValueError(f"unknown type: {line}")
        current.kind = text
    else:
        raise ValueError(f"neither HELP nor TYPE: {line}")
    return families[name]


def judge_histogram(family, labels):
    """Buckets in order, never falling, ended by +Inf, which equals the count; no sum out of reach."""
    buckets, total, count = family.histogram(**dict(labels))
    where = f"{family.name}{dict(labels)}"
    bounds, counts = [b for b, _ in buckets], [n for _, n in buckets]
    if bounds != sorted(set(bounds)) or not bounds or bounds[-1] != math.inf:
        raise ValueError(f"{where}: bounds {bounds}")
    if counts != sorted(counts) or counts[-1] != count:
        raise ValueError(f"{where}: counts {counts}, count {count}")
    if count == 0 and total != 0:
        raise ValueError(f"{where}: a sum of {total} of nothing")


def judge(family):
    """What its type promises."""
    if family.kind is None:
        raise ValueError(f"{family.name} has no TYPE")
    if (family.kind == "counter") != family.name.endswith("_total"):
        raise ValueError(f"{family.name}: counters and only they end in _total")
    if family.kind == "histogram":
        for labels in family.series():
            judge_histogram(family, labels)
    elif any(name == "le" for _, labels in family.samples for name, _ in labels):
        raise ValueError(f"{family.name}: le outside a histogram")
    if family.kind != "gauge" and any(not 0 <= n < math.inf for n in family.samples.values()):
        raise ValueError(f"{family.name}: below zero or not a number")


def parse(text):
    """{family name: Family}"""
    if not text.endswith("\n") or "\r" in text:
        raise ValueError("lines end in one newline, the last one too")
    families, current = {}, None
    for line in text[:-1].split("\n"):
        if line.startswith("#"):
            current = read_comment(line, families, current)
            continue
        name, labels, number = read_sample(line)
        if not current or not current.kind or not current.owns(name):
            raise ValueError(f"not in its family: {line}")
        if (name, labels) in current.samples:
            raise ValueError(f"series twice: {line}")
        current.samples[name, labels] = number
    for family in families.values():
        judge(family)
    return families
