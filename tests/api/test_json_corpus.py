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
    ("POST", "/v1/jobs"), ("POST", "/v1/webhooks"), ("POST", "/worker/v1/claim"),
])
def test_no_case_of_the_corpus_breaks_a_call(weir, client, method, path):
    """[JOB-166 JOB-200] As the whole body: 400 for what is no JSON, and never 5xx."""
    for case in CASES:
        body, name = read(case), os.path.basename(case)
        answer = weir.api(method, path, body, client.api_key)
        assert answer.status < 500, f"{name}: {answer!r}"
        if name.startswith("n_") and body.strip():
            answer.expect_problem(400, "RFA_REQUEST_MALFORMED")
