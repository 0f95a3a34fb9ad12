"""Tokens of an outside issuer (tokens.issuers): an OIDC provider's are taken where our own are."""
import json
import os
import signal
import stat
import subprocess
import time

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from harness.engine_calls import Engine
from harness.issuer import Issuer, write_issuers
from harness.weir_server import wait_for

INVALID = "RFA_AUTH_INVALID_CREDENTIALS"
FAST = {"tokens.jwks_refresh_seconds": 10}  # so an unknown kid is looked for after a second


def call(weir, token, path="/runs", method="GET", body=None):
    """One call of the engine API with this token."""
    return weir.api(method, "/engine/v1" + path, body, headers={"Authorization": "Bearer " + token})


def passes(weir, token):
    """Whether the token is taken."""
    status = call(weir, token).status
    assert status in (200, 401), status
    return status == 200


def wait_passes(weir, token):
    """Waits until it is: keys are fetched beside the calls."""
    wait_for(lambda: passes(weir, token), 60, "the token to be taken", weir)


@pytest.fixture(name="provider", scope="module")
def provider_of_module():
    """One for the tests that only read from it."""
    with Issuer() as made:
        yield made


@pytest.fixture(name="weir", scope="module")
def weir_of_module(module_weir, provider, tmp_path_factory):
    """A server that trusts the provider, with the claims of Keycloak, once it has its keys."""
    path = provider.write(tmp_path_factory.mktemp("issuers"),
                          claims={"role": "realm_access.roles", "tenant_id": "https://acme.example/org.id",
                                  "project_scope": "weir.projects"})
    weir = module_weir(settings={"tokens.issuers": path, **FAST})
    wait_passes(weir, keycloak(provider))
    return weir


def keycloak(provider, roles=("Admin", "offline_access", "uma_authorization"), projects="*", **claims):
    """A token with claims in the provider's places."""
    said = {"role": None, "tenant_id": None, "project_scope": None, "realm_access": {"roles": list(roles)},
            "https://acme.example/org.id": "acme", "weir": {"projects": projects}, **claims}
    return provider.token(**said)


def test_a_provider_s_token_does_what_its_mapped_roles_may(weir, provider):
    """A plan by an Engineer; not by one whose roles mean nothing here, who may still read."""
    plan = {"planId": "outside", "planVersion": "1", "steps": [{"stepId": "a", "queue": "never"}]}
    nobody = keycloak(provider, roles=["Painter", "offline_access"])
    call(weir, nobody, "/plans", "POST", plan).expect_problem(403, "AUTHZ_DENIED")
    assert call(weir, nobody).status == 200
    call(weir, keycloak(provider, roles="Engineer"), "/plans", "POST", plan).expect(403)
    call(weir, keycloak(provider, roles=["x", "Engineer"]), "/plans", "POST", plan).expect(201)
    call(weir, keycloak(provider), "/plans/outside/versions/1").expect(200)
    other = keycloak(provider, **{"https://acme.example/org.id": "globex"})
    assert call(weir, other, "/plans/outside/versions/1").status == 404


def test_a_role_claim_may_be_one_name(weir, provider):
    plan = {"planId": "single", "planVersion": "1", "steps": [{"stepId": "a", "queue": "never"}]}
    token = keycloak(provider, realm_access={"roles": "Engineer"})
    call(weir, token, "/plans", "POST", plan).expect(201)


def test_system_from_outside_is_dropped(weir, provider):
    plan = {"planId": "system", "planVersion": "1", "steps": [{"stepId": "a", "queue": "never"}]}
    token = keycloak(provider, roles=["System"])
    call(weir, token, "/plans", "POST", plan).expect_problem(403, "AUTHZ_DENIED")


def test_projects_are_held_to_the_mapped_scope(weir, provider):
    """A list, and one project as a name."""
    engineer = keycloak(provider, roles=["Engineer"])
    plan = {"planId": "scoped", "planVersion": "1", "steps": [{"stepId": "a", "queue": "never"}]}
    call(weir, engineer, "/plans", "POST", plan).expect(201)
    start = {"planId": "scoped", "planVersion": "1", "projectId": "billing", "environmentId": "e"}
    for projects, status in ((["shop"], 403), ("shop", 403), (["shop", "billing"], 201), ("billing", 201)):
        token = keycloak(provider, roles=["Engineer"], projects=projects)
        assert call(weir, token, "/runs", "POST", start).status == status, projects


def forged(provider):
    """(why, token) of what must not pass, each but for one thing good."""
    own, now = provider.keys[provider.kid], int(jwt.decode(keycloak(provider), options={
        "verify_signature": False})["iat"])
    secret = json.dumps(provider.jwks())
    payload = jwt.decode(keycloak(provider), options={"verify_signature": False})
    return [
        ("another key", keycloak(provider, key=ec.generate_private_key(ec.SECP256R1()))),
        ("unknown kid", keycloak(provider, kid="nobody", key=own)),
        ("another audience", keycloak(provider, aud="account")),
        ("no audience", keycloak(provider, aud=None)),
        ("another issuer", keycloak(provider, iss=provider.name + "/")),
        ("our issuer", keycloak(provider, iss="weir-dev")), ("no issuer", keycloak(provider, iss=None)),
        ("expired", keycloak(provider, iat=now - 600, exp=now - 1)),
        ("issued later", keycloak(provider, iat=now + 300, exp=now + 600)),
        ("not yet", keycloak(provider, nbf=now + 300)), ("no exp", keycloak(provider, exp=None)),
        ("a day long", keycloak(provider, exp=now + 86400)), ("no subject", keycloak(provider, sub=None)),
        ("no tenant", keycloak(provider, **{"https://acme.example/org.id": None})),
        ("no role", keycloak(provider, realm_access={})), ("no projects", keycloak(provider, weir={})),
        ("role is a number", keycloak(provider, realm_access={"roles": 7})),
        ("none", jwt.encode(payload, None, algorithm="none", headers={"kid": provider.kid})),
        ("HS256 with the public key", jwt.encode(payload, secret, algorithm="HS256",
                                                 headers={"kid": provider.kid})),
    ]


def test_what_differs_in_one_thing_is_refused(weir, provider):
    """The control: the token itself passes before and after."""
    assert passes(weir, keycloak(provider))
    for why, token in forged(provider):
        response = call(weir, token)
        assert response.status == 401, why
    assert passes(weir, keycloak(provider))


def test_a_jti_belongs_to_the_first_token_of_its_issuer_that_used_it(weir, provider):
    """Where there is one: not every provider gives one."""
    first = keycloak(provider, jti="the-same")
    assert passes(weir, first) and passes(weir, first)
    assert not passes(weir, keycloak(provider, jti="the-same", sub="eve"))
    assert passes(weir, keycloak(provider, jti=None))


def test_our_own_tokens_are_good_beside_them(weir):
    wait_passes(weir, Engine(weir, "acme").token())  # the key set is a second old at most


def test_two_issuers_with_one_kid_do_not_mix(fresh_weir, tmp_path):
    """A token says who signed it; the other's key of the same name is not even tried. jtis are apart, too."""
    with Issuer() as one, Issuer() as two:
        one.rotate(kid="shared", keep=False)
        two.rotate(kid="shared", keep=False)
        path = write_issuers(tmp_path, [one.entry(), two.entry()])
        weir = fresh_weir(settings={"tokens.issuers": path, **FAST})
        wait_passes(weir, one.token(jti="x"))
        wait_passes(weir, two.token(jti="x"))
        for _ in range(2):  # the second time the good ones are known
            assert not passes(weir, one.token(iss=two.name)) and not passes(weir, two.token(iss=one.name))
            assert passes(weir, one.token()) and passes(weir, two.token())


def test_a_rotated_key_is_found_and_a_withdrawn_one_forgotten(fresh_weir, tmp_path):
    with Issuer() as provider:
        weir = fresh_weir(settings={"tokens.issuers": provider.write(tmp_path), **FAST})
        before = provider.token()
        wait_passes(weir, before)
        provider.rotate()
        wait_passes(weir, provider.token())
        assert passes(weir, before)
        provider.rotate(keep=False)
        wait_passes(weir, provider.token())
        assert not passes(weir, before)  # also as a known token


def test_a_flood_of_unknown_kids_does_not_hammer_the_provider(fresh_weir, tmp_path):
    """400 calls, each with another kid: the provider is asked again once in 30 s at most."""
    with Issuer() as provider:
        weir = fresh_weir(settings={"tokens.issuers": provider.write(tmp_path)})
        wait_passes(weir, provider.token())
        own, before, began = provider.keys[provider.kid], provider.fetches, time.monotonic()
        for number in range(400):
            assert not passes(weir, provider.token(kid=f"invented-{number}", key=own))
        assert provider.fetches - before <= 1 + (time.monotonic() - began) // 30
        assert passes(weir, provider.token())


@pytest.mark.parametrize("fault", ["closed", "private"])
def test_keys_outlive_a_provider_that_fails_and_a_restart(fresh_weir, tmp_path, fault):
    """Told once in the log; its metric counts. What else is no set of keys: tests/unit/tokens/test_jwk.c."""
    with Issuer() as provider:
        weir = fresh_weir(settings={"tokens.issuers": provider.write(tmp_path),
                                    "tokens.jwks_refresh_seconds": 1})
        wait_passes(weir, provider.token())
        good = provider.jwks()["keys"]
        if fault == "closed":
            provider.status = 0
        else:
            provider.raw = json.dumps({"keys": good + [{**good[0], "kid": "p", "d": "AA"}]}).encode()
        weir.wait_log(event="issuer_keys_not_read", timeout=60)
        assert weir.metric("weir_issuer_failures_total") >= 1
        assert passes(weir, provider.token())
        weir.restart()
        assert passes(weir, provider.token())
        assert len(weir.logs(event="issuer_keys_not_read")) <= 2
        provider.status, provider.raw = 200, None
        weir.wait_log(event="issuer_keys_read", timeout=60)


def test_a_provider_that_never_answered_has_no_keys(fresh_weir, tmp_path):
    """Its tokens are refused; the server starts all the same, and doctor says so."""
    with Issuer() as provider:
        provider.status = 503
        path = provider.write(tmp_path)
        weir = fresh_weir(settings={"tokens.issuers": path, **FAST})
        weir.wait_log(event="issuer_keys_not_read", timeout=60)
        assert not passes(weir, provider.token())
        shown = weir.cli("doctor", "--set", f"tokens.issuers={path}").stdout
        assert "outside issuers" in shown and "no keys were fetched yet" in shown


def test_doctor_and_metrics_tell_the_age_of_keys(weir, provider):
    shown = weir.cli("doctor", "--set", f"tokens.issuers={weir.settings['tokens.issuers']}").stdout
    line = next(line for line in shown.splitlines() if line.startswith("outside issuers"))
    assert "ok" in line and "1 keys" in line and "s old" in line
    assert weir.metric("weir_issuer_keys", issuer=provider.name) == 1
    assert 0 <= weir.metric("weir_issuer_keys_age_seconds", issuer=provider.name) < 3600
    kept = os.path.join(weir.data, "issuers")
    assert stat.S_IMODE(os.stat(kept).st_mode) == 0o700 and len(os.listdir(kept)) == 1


def test_token_verify_judges_an_outside_token(weir, provider):
    verify = weir.program + ["token", "verify", "--set", f"tokens.issuers={weir.settings['tokens.issuers']}"]
    done = subprocess.run(verify, input=keycloak(provider), env=weir.cli_environment(), text=True,
                          capture_output=True, check=False, timeout=60)
    assert done.returncode == 0 and provider.name in done.stdout, done.stdout + done.stderr


def test_sighup_reads_a_file_of_keys_at_once(fresh_weir, tmp_path):
    """Also one that looks as before: size, inode and time of change are kept. A bad one is told and changes
    nothing."""
    with Issuer() as provider:
        keys = tmp_path / "keys.json"
        keys.write_text(json.dumps(provider.jwks()), encoding="utf-8")
        times = os.stat(keys).st_atime_ns, os.stat(keys).st_mtime_ns
        entry = provider.entry(jwks_file="keys.json")
        del entry["jwks_url"]
        weir = fresh_weir(settings={"tokens.issuers": write_issuers(tmp_path, [entry])})
        first = provider.token()
        assert passes(weir, first)
        provider.rotate(keep=False)
        keys.write_text(json.dumps(provider.jwks()), encoding="utf-8")
        os.utime(keys, ns=times)
        weir.process.send_signal(signal.SIGHUP)
        assert weir.wait_log(event="issuer_keys_read", timeout=60)["issuer"] == provider.name
        assert passes(weir, provider.token()) and not passes(weir, first)
        keys.write_text("{", encoding="utf-8")
        weir.process.send_signal(signal.SIGHUP)
        assert "keys.json" in weir.wait_log(event="issuer_keys_not_read", timeout=60)["error_message"]
        assert passes(weir, provider.token())


def test_sighup_asks_a_provider_for_its_keys(fresh_weir, tmp_path):
    """Long before they are due."""
    with Issuer() as provider:
        weir = fresh_weir(settings={"tokens.issuers": provider.write(tmp_path)})
        wait_passes(weir, provider.token())
        asked = provider.fetches
        weir.process.send_signal(signal.SIGHUP)
        wait_for(lambda: provider.fetches > asked, 60, "the keys to be fetched again", weir)


@pytest.mark.parametrize("text, word", [
    (None, "No such file"), ("{", "no JSON"),
    ('[{"issuer":"weir-dev","jwks_url":"https://h/","audience":["a"]}]', "our own"),
    ('[{"issuer":"i","jwks_file":"missing.json","audience":["a"]}]', "missing.json"),
    ('[{"issuer":"i","jwks_file":"issuers.json","audience":["a"]}]', "JSON object"),
])
def test_a_bad_file_is_one_line_and_exit_code_2(fresh_weir, tmp_path, text, word):
    path = tmp_path / "issuers.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    weir = fresh_weir(start=False, settings={"tokens.issuers": path})
    weir.spawn()
    assert weir.process.wait(timeout=30) == 2
    weir.process = None
    lines = [line for line in weir.log_text().splitlines() if not line.startswith("{")]
    assert len(lines) == 1 and "tokens.issuers" in lines[0] and word in lines[0], lines
