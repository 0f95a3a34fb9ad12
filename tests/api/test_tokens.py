"""`weir token`, and the key set a server publishes, beside another implementation of JWT (PyJWT)."""
import base64
import json
import os
import stat
import subprocess
import time

import jwt
import pytest

from harness.weir_server import binary, server_environment, wait_for

ALGS = ["RS256", "RS384", "RS512", "ES256", "ES384", "ES512"]


class Tool:
    """`weir token` on a data directory of its own."""

    def __init__(self, data, **settings):
        self.data = str(data)
        self.settings = [f"--set={name.replace('__', '.')}={value}" for name, value in settings.items()]

    def run(self, *args, code=0, text=None):
        """Runs it, asserts the exit code, gives the CompletedProcess."""
        done = subprocess.run([binary(), "token", *args, *self.settings], input=text or "", text=True,
                              env=server_environment({"WEIR_DATA": self.data}), timeout=60, check=False,
                              capture_output=True)
        assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        return done

    def mint(self, *args):
        """A token, for ada the engineer unless said otherwise."""
        return self.run("mint", "--sub", "ada", "--role", "Engineer", *args).stdout.strip()

    def verify(self, token, code=0):
        """The verdict."""
        return json.loads(self.run("verify", "-o", "json", text=token, code=code).stdout)

    def keys(self):
        """Every key, newest first."""
        return json.loads(self.run("keys", "-o", "json").stdout)["keys"]

    def files(self):
        """Names in DATA/keys."""
        return sorted(os.listdir(os.path.join(self.data, "keys")))

    def manifest(self):
        """The manifest's text."""
        with open(os.path.join(self.data, "keys", "manifest.json"), encoding="utf-8") as file:
            return file.read()

    def private_key(self, kid):
        """The PEM of a private key, for the other implementation."""
        with open(os.path.join(self.data, "keys", kid + ".pem"), encoding="utf-8") as file:
            return file.read()


@pytest.fixture
def tool(tmp_path):
    """A data directory nobody has used."""
    return Tool(tmp_path / "data")


def public_keys(tool):
    """{kid: key of PyJWT} from the manifest."""
    listed = json.loads(tool.manifest())["keys"]
    return {key["kid"]: jwt.PyJWK.from_dict({**key["public"], "kid": key["kid"]}).key for key in listed}


def decoded(tool, token):
    """What PyJWT says of our token."""
    header = jwt.get_unverified_header(token)
    key = public_keys(tool)[header["kid"]]
    return header, jwt.decode(token, key, algorithms=ALGS, audience="weir", issuer="weir-dev")


# ---- mint and verify

def test_the_first_mint_makes_the_key_set_and_prints_the_token_alone(tool):
    """Folder 0700, files 0600; the token's claims are what was asked for. [EVT-141]"""
    done = tool.run("mint", "--sub", "ada", "--role", "Engineer,Admin", "--tenant", "acme",
                    "--project", "p1,p2", "--ttl", "2h")
    assert done.stdout.count("\n") == 1 and done.stderr == ""
    verdict = tool.verify(done.stdout)
    assert verdict["verdict"] == "good" and verdict["sub"] == "ada" and verdict["tenant_id"] == "acme"
    assert verdict["roles"] == ["Engineer", "Admin"] and verdict["project_scope"] == ["p1", "p2"]
    header, claims = decoded(tool, done.stdout.strip())
    assert header["kid"] == verdict["kid"] and header["typ"] == "at+jwt" and header["alg"] == "ES256"
    assert claims["role"] == "Engineer" and claims["exp"] - claims["iat"] == 7200 and claims["session_id"]
    folder = os.path.join(tool.data, "keys")
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert {stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) for name in tool.files()} == {0o600}


@pytest.mark.parametrize("alg", ALGS)
def test_each_side_verifies_what_the_other_signed(tool, alg):
    """Ours in PyJWT, PyJWT's in ours, for each algorithm. [CTL-238]"""
    tool.run("rotate", "--alg", alg)
    header, claims = decoded(tool, tool.mint())
    assert header["alg"] == alg
    now = int(time.time())
    theirs = jwt.encode({**claims, "iat": now, "exp": now + 60, "jti": "theirs", "sub": "eve"},
                        tool.private_key(header["kid"]), algorithm=alg, headers={"kid": header["kid"]})
    verdict = tool.verify(theirs)
    assert verdict["sub"] == "eve" and verdict["alg"] == alg and verdict["jti"] == "theirs"
    forged = theirs[:-6] + ("AAAAAA" if not theirs.endswith("AAAAAA") else "BBBBBB")
    assert tool.verify(forged, code=4)["reason"] in ("signature", "shape")


@pytest.mark.parametrize("change, reason", [
    ({"iss": "weir-prod"}, "issuer"), ({"aud": "bank"}, "audience"), ({"exp": 1}, "expired"),
    ({"exp": 32503680000}, "lifetime"), ({"iat": 32503680000, "exp": 32503680060}, "issued_later"),
    ({"role": None}, "claim_shape"), ({"jti": ""}, "claim_shape")])
def test_a_refusal_says_why_and_shows_no_claims(tool, change, reason):
    """Exit code 4; the code is what a caller of an API is told."""
    kid = tool.run("rotate").stdout.split()[0]
    claims = {**decoded(tool, tool.mint())[1], **change}
    token = jwt.encode(claims, tool.private_key(kid), algorithm="ES256", headers={"kid": kid})
    verdict = tool.verify(token, code=4)
    assert verdict["reason"] == reason and verdict["code"] == "AUTH_401_INVALID_TOKEN"
    assert "sub" not in verdict and verdict["kid"] == kid


def test_what_is_no_token_is_refused(tool):
    """Nothing, a word, a megabyte, bytes."""
    for text, reason in (("", "absent"), ("hello", "shape"), ("a" * (1 << 20), "too_long"),
                         (".." * 9, "shape")):
        assert tool.verify(text, code=4)["reason"] == reason
    assert tool.verify("", code=4)["code"] == "AUTH_401_MISSING_TOKEN"


@pytest.mark.parametrize("args", [
    ["--sub", "ada"], ["--role", "r"], ["--sub", "", "--role", "r"], ["--sub", "a", "--role", "r,,s"],
    ["--sub", "a", "--role", "System"], ["--sub", "a", "--role", "r", "--ttl", "9h"],
    ["--sub", "a", "--role", "agent", "--ttl", "5h"], ["--sub", "a", "--role", "r", "--ttl", "soon"],
    ["--sub", "a", "--role", "r", "--tenant", ""], ["--sub", "a\tb", "--role", "r"]])
def test_an_order_nobody_would_accept_is_refused(tool, args):
    """Exit code 2 and one line; no token."""
    done = tool.run("mint", *args, code=2)
    assert done.stdout == "" and done.stderr.count("\n") == 1


# ---- keys

def test_a_rotation_leaves_old_tokens_good_and_lists_both_keys(tool):
    """The new key is published before it signs. [EVT-143]"""
    token = tool.mint()
    first = tool.keys()[0]["kid"]
    tool.run("rotate")
    keys = tool.keys()
    assert [key["state"] for key in keys] == ["pending", "signing"] and keys[1]["kid"] == first
    assert keys[1]["retires_at"] and not keys[0]["retires_at"]
    assert tool.verify(token)["kid"] == first and tool.verify(tool.mint())["kid"] == first


def test_a_revoked_key_is_refused_at_once_and_kept_in_the_history(tool):
    """Who, when and why are shown; its private key is gone; a new key signs. [EVT-147 EVT-148 EVT-153]"""
    token = tool.mint()
    kid = tool.keys()[0]["kid"]
    tool.run("revoke-key", kid, "--reason", "laptop stolen")
    assert tool.verify(token, code=4)["reason"] == "key_revoked"
    history = {key["kid"]: key for key in tool.keys()}
    assert history[kid]["state"] == "revoked" and history[kid]["revoked_reason"] == "laptop stolen"
    assert history[kid]["revoked_by"] and history[kid]["revoked_at"]
    assert kid + ".pem" not in tool.files()
    assert tool.verify(tool.mint())["verdict"] == "good"
    tool.run("revoke-key", kid, code=5)
    tool.run("revoke-key", "nobody", code=3)
    tool.run("revoke-key", "../../etc/passwd", code=3)
    assert "revoked" in tool.run("keys").stdout


def test_a_passphrase_keeps_private_keys_unreadable(tool):
    """No private key in clear anywhere in the data directory; the wrong passphrase mints nothing."""
    safe = Tool(tool.data, tokens__key_passphrase="correct-horse")
    token = safe.mint()
    for name in safe.files():
        with open(os.path.join(safe.data, "keys", name), encoding="utf-8") as file:
            text = file.read()
        assert "BEGIN PRIVATE" not in text and '"d"' not in text and "correct-horse" not in text
    assert safe.verify(token)["verdict"] == "good" and tool.verify(token)["verdict"] == "good"
    done = tool.run("mint", "--sub", "a", "--role", "r", code=2)
    assert "tokens.key_passphrase" in done.stderr
    wrong = Tool(tool.data, tokens__key_passphrase="wrong")
    assert wrong.run("mint", "--sub", "a", "--role", "r", code=2).stdout == ""


def test_a_damaged_manifest_stops_everything_with_one_clear_line(tool):
    """It is not overwritten, by no command."""
    token = tool.mint()
    path = os.path.join(tool.data, "keys", "manifest.json")
    text = tool.manifest().replace("ES256", "ES384", 1)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    for args in (["keys"], ["rotate"], ["mint", "--sub", "a", "--role", "r"], ["revoke-key", "k"]):
        done = tool.run(*args, code=2)
        assert "manifest.json is refused" in done.stderr and done.stderr.count("\n") == 1
    assert tool.verify(token, code=1)["code"] == "INFRA_503_DEPENDENCY_DOWN"
    assert tool.manifest() == text


def test_keys_belong_to_one_environment(tool):
    """Neither the key set nor its tokens pass in another. [EVT-140]"""
    token = tool.mint()
    prod = Tool(tool.data, environment="prod")
    assert "environment dev" in prod.run("mint", "--sub", "a", "--role", "r", code=2).stderr
    other = Tool(tool.data + "-prod", environment="prod")
    other.mint()
    assert other.verify(token, code=4)["reason"] == "key_unknown"
    assert {key["kid"] for key in other.keys()}.isdisjoint(key["kid"] for key in tool.keys())


def doctor(tool, code=0, **settings):
    """What `weir doctor` finds about the keys."""
    given = Tool(tool.data, **settings).settings
    done = subprocess.run([binary(), "doctor", "-o", "json", "--data", tool.data, *given], check=False,
                          env=server_environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == code, (done.stdout, done.stderr)
    return {check["check"]: check for check in json.loads(done.stdout)["checks"]}["token keys"]


def test_the_doctor_looks_at_the_key_that_signs(tool):
    """None yet, one that signs, one that is open to others, a damaged set."""
    assert "none yet" in doctor(tool)["found"]
    tool.mint()
    kid = tool.keys()[0]["kid"]
    path = os.path.join(tool.data, "keys", kid + ".pem")
    assert kid in doctor(tool)["found"]
    os.chmod(path, 0o644)
    assert "read by others" in doctor(tool, code=1)["found"]
    os.chmod(path, 0o600)
    assert "manifest.json is refused" in doctor(tool, code=1, environment="stage")["found"]


# ---- settings

@pytest.mark.parametrize("environment, days", [("dev", 30), ("stage", 14), ("prod", 7)])
def test_the_cadence_of_rotation_has_a_limit_in_each_environment(tool, environment, days):
    """[EVT-144 EVT-145 EVT-146]"""
    Tool(tool.data, environment=environment, tokens__rotation_days=days).mint()
    refused = Tool(tool.data, environment=environment, tokens__rotation_days=days + 1)
    assert "tokens.rotation_days" in refused.run("keys", code=2).stderr


@pytest.mark.parametrize("name, value", [
    ("overlap_seconds", 28919), ("history_days", 89), ("skew_seconds", 121), ("max_ttl_seconds", 28801),
    ("agent_roles", "agent=14401"), ("agent_roles", "a,,b"), ("audience", ""), ("issuer", "a b")])
def test_values_beyond_the_contract_are_refused(tool, name, value):
    """Overlap of 8 h and 120 s, history of 90 days, agents of 4 h at most. [CTL-233 CTL-237 EVT-149]"""
    done = Tool(tool.data, **{"tokens__" + name: value}).run("keys", code=2)
    assert "tokens." + name in done.stderr


# ---- the server

def test_a_server_publishes_what_verifies_and_follows_changes(fresh_weir):
    """Without a token, for a minute in caches; a key made later shows up, a revoked one goes. [EVT-139]"""
    weir = fresh_weir()
    path = "/.well-known/jwks.json"

    def published():
        answer = weir.api("GET", path)
        assert answer.status == 200 and answer.headers["cache-control"] == "public, max-age=60"
        return {key["kid"]: key for key in answer.json["keys"]}

    assert published() == {}
    token = weir.cli("token", "mint", "--sub", "ada", "--role", "Engineer").stdout.strip()
    kid = jwt.get_unverified_header(token)["kid"]
    wait_for(lambda: kid in published(), 30, "the new key in the JWKS", weir)
    key = jwt.PyJWK.from_dict(published()[kid]).key
    assert jwt.decode(token, key, algorithms=["ES256"], audience="weir", issuer="weir-dev")["sub"] == "ada"
    assert set(published()[kid]) == {"kid", "kty", "use", "alg", "crv", "x", "y"}
    weir.cli("token", "rotate", "--alg", "RS256")
    wait_for(lambda: len(published()) == 2, 30, "both keys in the JWKS", weir)
    weir.cli("token", "revoke-key", kid)
    wait_for(lambda: kid not in published(), 30, "the revoked key to go", weir)


def test_no_secret_of_a_key_is_in_the_servers_log_or_answers(fresh_weir):
    """Neither the private key nor the path of an unreadable set."""
    weir = fresh_weir()
    kid = json.loads(weir.cli("token", "mint", "--sub", "a", "--role", "r", "-o", "json").stdout)["kid"]
    with open(os.path.join(weir.data, "keys", kid + ".pem"), encoding="utf-8") as file:
        secret = file.read().splitlines()[1][:40]
    weir.stop()  # a server that has read the keys goes on with them for a while
    with open(os.path.join(weir.data, "keys", "manifest.json"), "w", encoding="utf-8") as file:
        file.write("{}")
    weir.start()
    answer = weir.api("GET", "/.well-known/jwks.json")
    answer.expect_problem(503, "RFA_CONFIG_INVALID")
    assert weir.data not in answer.text and secret not in answer.text and secret not in weir.log_text()
    assert weir.logs(at_least=1, event="keys_unreadable")


def test_the_other_implementation_sees_a_forgery(tool):
    """The control of this file: PyJWT refuses what it should, so its yes means something."""
    token = tool.mint()
    head, body, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    claims["sub"] = "eve"
    forged = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    with pytest.raises(jwt.InvalidSignatureError):
        decoded(tool, f"{head}.{forged}.{signature}")
    assert tool.verify(f"{head}.{forged}.{signature}", code=4)["reason"] == "signature"
