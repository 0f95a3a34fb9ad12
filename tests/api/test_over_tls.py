"""A part of the suite once more, over TLS only."""
# pylint: disable=unused-wildcard-import,wildcard-import,redefined-outer-name
import pytest

from harness.tls import Authority
from test_events_stream import *  # noqa: F401,F403
from test_idempotency import *  # noqa: F401,F403


@pytest.fixture(scope="module")
def weir(module_weir, tmp_path_factory):
    """The server of every test of this file."""
    return module_weir(authority=Authority(tmp_path_factory.mktemp("tls")).issue("server"))
