"""Hostile and odd JSON as request bodies: refused or taken, never a server fault."""
import glob
import os

import pytest

from harness.weir_server import REPOSITORY

CORPUS = os.path.join(REPOSITORY, "tests", "unit", "base", "corpus", "json")
CASES = sorted(glob.glob(os.path.join(CORPUS, "*.json")))


def read(path):
    """The bytes of a case."""
    with open(path, "rb") as file:
        return file.read()


def test_the_corpus_is_there():
    assert len(CASES) > 100


@pytest.mark.parametrize("method, path", [
    ("POST", "/v1/jobs"), ("POST", "/v1/jobs:batch"), ("POST", "/v1/webhooks"),
    ("POST", "/v1/clients"), ("POST", "/worker/v1/claim"), ("POST", "/worker/v1/finish"),
])
def test_no_case_of_the_corpus_breaks_a_call(weir, client, method, path):
    """[JOB-166 JOB-200] As the whole body: 400 for what is no JSON, and never 5xx."""
    for case in CASES:
        body, name = read(case), os.path.basename(case)
        answer = weir.api(method, path, body, client.api_key)
        assert answer.status < 500, f"{name}: {answer!r}"
        if name.startswith("n_") and body.strip():
            answer.expect_problem(400, "RFA_REQUEST_MALFORMED")


def test_every_case_of_the_corpus_is_judged_alike_inside_a_payload(weir, client):
    """What is JSON is taken and comes back; what is none is 400 and stores nothing."""
    taken = refused = 0
    for case in CASES:
        body, name = read(case), os.path.basename(case)
        whole = b'{"type":"EXECUTE","queue":"o","payload":{"x":' + body + b"}}"
        answer = weir.api("POST", "/v1/jobs", whole, client.api_key)
        assert answer.status < 500, f"{name}: {answer!r}"
        if name.startswith("y_") and not fills_the_depth(body):
            job = weir.job(client.api_key, answer.expect(202)["job_id"])
            assert "x" in job["payload"]
            taken += 1
        elif name.startswith("n_") and not breaks_out(body):
            answer.expect_problem(400, "RFA_REQUEST_MALFORMED")
            refused += 1
    assert taken > 20 and refused > 50


def fills_the_depth(body):
    """True for a case at the limit of nesting, which two levels more exceed."""
    return body.count(b"[") + body.count(b"{") > 60


def breaks_out(body):
    """True for a case that is broken alone but whole inside an object, such as `1,"y":2`."""
    return body.rstrip().endswith(b"}") or b"," in body or not body.strip()


def test_deep_nesting_is_refused_not_followed(weir, client):
    for depth in (200, 10_000, 150_000):
        body = b'{"type":"EXECUTE","payload":' + b'{"a":' * depth + b"1" + b"}" * (depth + 1)
        weir.api("POST", "/v1/jobs", body, client.api_key).expect_problem(
            400, "RFA_REQUEST_MALFORMED")
    assert weir.total(client.api_key) == 0


def test_bodies_in_another_encoding_are_refused(weir, client):
    text = '{"type":"EXECUTE","queue":"o"}'
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        weir.api("POST", "/v1/jobs", text.encode(encoding), client.api_key).expect_problem(
            400, "RFA_REQUEST_MALFORMED")
    latin = '{"type":"EXECUTE","queue":"o","payload":{"x":"\u00fc"}}'.encode("latin-1")
    weir.api("POST", "/v1/jobs", latin, client.api_key).expect_problem(
        400, "RFA_REQUEST_MALFORMED")
    assert weir.total(client.api_key) == 0
