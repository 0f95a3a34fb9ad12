"""Where the sender connects and where it does not: addresses, names, redirects, proxies, kept connections."""
import os

import pytest

from egress import receivers
from egress.receivers import (Receiver, answer, answering, answering_once, probe, probe_one,
                              public_and_private)
from harness import machine
from harness.pace import Stopwatch

HERE = os.path.dirname(os.path.abspath(__file__))
STRICT = ()
# 127.0.0.2 plays the public host: the only address that is allowed.
ONE_PUBLIC = ("--allow", "127.0.0.2/32")
REFUSED = "refused_by_policy"


def urls(verdict):
    """The URLs of ssrf_urls.tsv with this verdict."""
    with open(os.path.join(HERE, "ssrf_urls.tsv"), encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return [row[1].encode().decode("unicode_escape").encode("latin-1").decode("utf-8")
            for row in rows if row[0] == verdict]


@pytest.fixture(name="good")
def good_receiver():
    """Answers 200 on 127.0.0.1."""
    with Receiver(answering(answer(200, body=b"fine"))) as receiver:
        yield receiver


def test_a_loopback_receiver_is_denied_and_with_the_guard_off_reached(good):
    """The second half is the negative control: this receiver can be seen."""
    denied = probe_one(good.url, *STRICT)
    assert denied["failure"] == REFUSED and "loopback" in denied["error"] and denied["status"] == 0
    assert good.connections == 0
    reached = probe_one(good.url, "--allow-private")
    assert (reached["failure"], reached["status"], reached["excerpt"]) == ("none", 200, "fine")
    assert good.connections == 1
    assert probe_one(good.url, "--allow", "127.0.0.0/8")["status"] == 200


def test_every_denied_url_of_the_corpus_is_denied():
    """Public stand-ins: none is needed, for no socket may be opened at all."""
    corpus = urls("denied")
    assert len(corpus) > 25
    results, summary = probe([{"url": url, "label": url} for url in corpus], *STRICT)
    if machine.cannot("ipv6"):
        results = [r for r in results if "[" not in r["label"]]
    assert results and {r["label"]: r["failure"] for r in results} == {r["label"]: REFUSED for r in results}
    assert summary["lookups"] == 0


def test_every_refused_url_of_the_corpus_is_refused_before_anything_is_sent():
    """No attempt: neither a lookup nor a connection."""
    corpus = urls("refused")
    assert len(corpus) > 70
    results, summary = probe([{"url": url} for url in corpus], "--allow-private")
    assert len(results) == len(corpus) and all(r["code"] == "RFA_REQUEST_MALFORMED" for r in results)
    assert summary["results"] == 0 and summary["lookups"] == 0


@pytest.mark.parametrize("name", ["localhost", "any.localhost"])
def test_a_name_for_loopback_is_denied(good, name):
    """Curl answers these itself, without a lookup."""
    url = f"http://{name}:{good.port}/"
    assert probe_one(url, *STRICT)["failure"] == REFUSED and good.connections == 0
    assert probe_one(url, "--allow-private")["status"] == 200


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "0.0.0.0", "::1", "fd00::1",
                                     "::ffff:127.0.0.1", "224.0.0.1"])
def test_a_name_with_a_private_address_is_denied(good, address):
    """As an internal name, a CNAME to one, or a name of the attacker's has it."""
    if ":" in address:
        machine.need("ipv6")
    result = probe_one(f"http://inside.test:{good.port}/", "--resolve", "inside.test=" + address)
    assert result["failure"] == REFUSED and good.connections == 0
    assert address not in result["error"], "the owner of the URL must not learn what our resolver says"


@pytest.mark.parametrize("answers", ["127.0.0.1,127.0.0.2", "10.0.0.1,127.0.0.2",
                                     "127.0.0.1," * 99 + "127.0.0.2"],
                         ids=["loopback", "private", "hundred"])
def test_a_private_answer_beside_a_public_one_ends_the_request(answers):
    """The private one is tried first."""
    with public_and_private(answering(answer(200))) as (public, private):
        url = f"http://mixed.test:{public.port}/"
        watch = Stopwatch()
        result = probe_one(url, *ONE_PUBLIC, "--resolve", "mixed.test=" + answers)
        assert result["failure"] == REFUSED and result["duration_ms"] < 500 + watch.stalled() * 1000
        assert (private.connections, public.connections) == (0, 0)
        # Negative control: without the guard the first answer is taken.
        probe_one(url, "--allow-private", "--resolve", "mixed.test=127.0.0.1,127.0.0.2")
        assert (private.connections, public.connections) == (1, 0)


def test_a_private_answer_is_denied_after_a_public_one_that_does_not_accept(good):
    """A public address whose port is closed makes curl try the next answer."""
    url = f"http://mixed.test:{good.port}/"
    script = ("--resolve", "mixed.test=127.0.0.2,127.0.0.1")
    assert probe_one(url, *ONE_PUBLIC, *script)["failure"] == REFUSED and good.connections == 0
    assert probe_one(url, "--allow-private", *script)["status"] == 200


def test_a_name_that_moves_to_a_private_address_is_denied_from_then_on():
    """DNS rebinding: a public answer, then a private one. Each connection is judged when it is opened."""
    with public_and_private(answering_once(answer(200, "Connection: close"))) as (public, private):
        # Two names, so that the second lookup needs no waiting for the first to be forgotten.
        requests = [{"url": f"http://rebind.test:{public.port}/", "times": 2},
                    {"url": f"http://rebound.test:{public.port}/"}]
        results, _ = probe(requests, *ONE_PUBLIC, "--at-once", "1",
                           "--resolve", "rebind.test=127.0.0.2|127.0.0.1",
                           "--resolve", "rebound.test=127.0.0.1")
        assert [r["failure"] for r in results] == ["none", "none", REFUSED]
        assert (private.connections, public.connections) == (0, 2)


@pytest.mark.limit(60)
def test_a_forgotten_name_is_looked_up_and_judged_again():
    """The whole rebinding, with the time in which an answer is kept."""
    with public_and_private(answering_once(answer(200, "Connection: close"))) as (public, private), \
            Receiver(receivers.hang) as slow:
        requests = [{"url": f"http://rebind.test:{public.port}/"},
                    {"url": slow.url, "timeout_ms": 11500},  # a wait of that long
                    {"url": f"http://rebind.test:{public.port}/"}]
        results, summary = probe(requests, "--allow", f"127.0.0.2/32,{slow.host}/32", "--at-once", "1",
                                 "--resolve", "rebind.test=127.0.0.2|10.0.0.1")
        assert [r["failure"] for r in results] == ["none", "timeout", REFUSED]
        assert summary["lookups"] == 2 and public.connections == 1 and private.connections == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("inside", [True, False])
def test_redirects_are_answers_and_not_followed(good, status, inside):
    """Also with the guard off, where following would succeed."""
    to = good.url if inside else "http://169.254.169.254/latest/meta-data/"
    with Receiver(answering(answer(status, "Location: " + to))) as receiver:
        result = probe_one(receiver.url, "--allow-private")
        assert (result["failure"], result["status"]) == ("none", status)
        assert receiver.connections == 1
    assert not good.requests


def test_proxies_of_the_environment_are_ignored(good):
    """They would connect for us, where no address is checked."""
    with Receiver(answering(answer(200, body=b"proxy"))) as proxy:
        where = f"http://127.0.0.1:{proxy.port}"
        names = ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]
        results, _ = probe([{"url": good.url}], "--allow-private", env={name: where for name in names})
        assert results[0]["excerpt"] == "fine" and proxy.connections == 0


def test_a_netrc_is_ignored(good, tmp_path):
    """A password of the operator's must not go to a receiver."""
    (tmp_path / ".netrc").write_text("default login operator password secret\n", encoding="utf-8")
    probe([{"url": good.url}], "--allow-private", env={"HOME": str(tmp_path)})
    assert "authorization" not in good.requests[0][0].lower()


def test_cookies_of_an_answer_are_not_sent_back():
    """Two requests on one connection."""
    with Receiver(answering(answer(200, "Set-Cookie: a=b; Path=/"))) as receiver:
        probe([{"url": receiver.url, "times": 2}], "--allow-private", "--at-once", "1")
        assert len(receiver.requests) == 2 and receiver.connections == 1
        assert "cookie" not in receiver.requests[1][0].lower()


def test_a_name_that_is_not_found_is_told_apart():
    """Neither denied nor refused."""
    assert probe_one("http://nowhere.test/", "--resolve", "nowhere.test=nx")["failure"] == "dns"


def test_a_trusted_request_reaches_a_private_address_and_opens_the_way_for_no_other(good):
    """What the operator named is not judged. The connection it leaves open is no way around the guard: a
    request to the same place, before, after and beside it, is denied, by address and by name."""
    script = ("--resolve", "inside.test=127.0.0.1")
    for url in (good.url, f"http://inside.test:{good.port}/hook"):
        before = good.connections
        requests = [{"url": url}, {"url": url, "trusted": True}, {"url": url, "times": 3},
                    {"url": url, "trusted": True}]
        results, _ = probe(requests, *STRICT, *script, "--at-once", "1")
        assert [r["failure"] for r in results] == [REFUSED, "none"] + [REFUSED] * 3 + ["none"]
        assert good.connections - before <= 2
        results, _ = probe(requests * 20, *STRICT, *script)
        assert sorted(r["failure"] for r in results) == ["none"] * 40 + [REFUSED] * 80
        assert all(r["status"] == (200 if r["failure"] == "none" else 0) for r in results)


def test_a_trusted_request_does_not_need_room_for_its_lookup(good):
    """Slow names are in the way of deliveries, which are the control, and not of the collector."""
    names = [f"slow{i}.test" for i in range(8)] + ["collector.test"]
    options = [part for name in names for part in ("--resolve", f"{name}=500:127.0.0.1")]
    requests = [{"url": f"http://{name}:{good.port}/", "label": name, "trusted": name == names[-1]}
                for name in names]
    results, _ = probe(requests, "--allow-private", "--lookups", "4", *options)
    ends = {r["label"]: r["failure"] for r in results}
    assert ends.pop("collector.test") == "none"
    assert list(ends.values()).count("dns") >= 4
