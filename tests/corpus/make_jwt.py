#!/usr/bin/python3
"""Writes tests/corpus/jwt/*.json, one file per case: the JWT list of the reliability plan, with verdicts.

    tests/corpus/make_jwt.py          adds the cases that have no file yet
    tests/corpus/make_jwt.py --all    makes all of them anew (ECDSA signatures differ each time)

keys.json holds the keys every case may use. A case has:
  token     text, or a list of [text, times]       expect    "ok" or the reason (src/tokens/token_reason.h)
  now       seconds                                 claim     the claim at fault
  profile   any, control or engine                  steps     the steps that were begun
  keys      keys of its own, beside those of keys.json; refused_keys: kids that must not be taken
  before    tokens shown before, all good           block     entries of the blocklist
  tenant, project    what the bearer wants to touch
  roles     what is left of them
"""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import jwt_keys as k  # noqa: E402  (needs the path above)

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jwt")
NOW = 1_800_000_000
RSA = ("RS256", "RS384", "RS512")
EC = ("ES256", "ES384", "ES512")
KEYS = {alg.lower(): k.key_for(alg, alg) for alg in RSA + EC}
OTHER = {alg: k.key_for("other " + alg, alg) for alg in ("RS256", "ES256", "ES384")}
N256 = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551
cases = {}


def claims(drop=(), **change):
    """Good claims, some changed or left out."""
    good = {"iss": "weir-test", "sub": "ada", "aud": "weir", "iat": NOW - 10, "exp": NOW + 3600,
            "jti": "6b0a3d2e-0001", "session_id": "s-1", "role": "Engineer", "roles": ["Engineer", "Viewer"],
            "tenant_id": "acme", "project_scope": "*"}
    good.update(change)
    return {name: value for name, value in good.items() if name not in drop}


def token(payload=None, header=None, alg="ES256", kid=None, signer=None, drop=()):
    """A token that is good but for what is said."""
    head = {"alg": alg, "kid": kid or alg.lower(), "typ": "at+jwt"}
    head.update(header or {})
    head = {name: value for name, value in head.items() if name not in drop}
    made = signer or (lambda data: k.sign(KEYS[alg.lower()], alg, data))
    return k.compact(head, claims() if payload is None else payload, made)


def case(name, text, expect, **more):
    """One case; the file is named after it."""
    assert name not in cases, name
    cases[name] = {"token": text, "expect": expect, "now": NOW, **more}


def record(kid, alg, jwk, **times):
    """A key as the manifest lists it, times in seconds."""
    return {"kid": kid, "alg": alg, "not_before": NOW - 86400, **times, "public": jwk}


def genuine():
    """What must pass."""
    for alg in RSA + EC:
        case(f"good-{alg.lower()}", token(alg=alg), "ok", steps=["blocklist", "signature", "claims", "jti"])
    for name, typ in (("jwt", "JWT"), ("lower", "jwt"), ("media-type", "application/at+jwt")):
        case(f"good-typ-{name}", token(header={"typ": typ}), "ok")
    case("good-typ-absent", token(drop=["typ"]), "ok")
    for name in ("control", "engine"):
        case(f"good-for-{name}", token(), "ok", profile=name)
    case("good-unknown-claims", token(claims(color="red", kid="nobody", nested={"a": [1, {"b": None}]})),
         "ok")
    case("good-escaped-names", token(json.dumps(claims()).replace('"sub"', '"s\\u0075b"')), "ok")


def algorithms():
    """alg is one of six, and the key's own."""
    unsigned = k.b64(json.dumps({"alg": "none", "kid": "es256"})) + "." + k.b64(json.dumps(claims()))
    case("alg-none-unsigned", unsigned + ".", "shape")
    case("alg-none-two-parts", unsigned, "shape")
    spelled = {"none": "none", "none-upper": "NONE", "none-mixed": "nOnE", "array": ["ES256"], "null": None,
               "number": 256, "empty": "", "lower": "es256", "space": "ES256 ", "ps256": "PS256",
               "ps384": "PS384",
               "ps512": "PS512", "eddsa": "EdDSA", "es256k": "ES256K", "hs256": "HS256", "rs1": "RS1",
               "rsa-oaep": "RSA-OAEP", "dir": "dir"}
    for name, alg in spelled.items():
        case(f"alg-{name}", token(header={"alg": alg}), "alg")
    case("alg-absent", token(drop=["alg"]), "alg")
    for kid, form in ((kid, form) for kid in ("rs256", "es256") for form in ("pem", "der", "jwk")):
        secret = k.public_bytes(KEYS[kid], form)
        for alg in ("HS256", "HS384", "HS512") if form == "pem" else ("HS256",):
            case(f"alg-{alg.lower()}-by-{kid}-{form}",
                 token(alg=alg, kid=kid, signer=lambda d, a=alg, s=secret: k.sign(s, a, d)), "alg")
    for alg, kid in (("RS256", "es256"), ("ES256", "rs256"), ("RS512", "rs256"), ("RS256", "rs512"),
                     ("ES384", "es256"), ("ES256", "es384")):
        case(f"alg-{alg.lower()}-with-key-{kid}", token(alg=alg, kid=kid), "alg_of_key",
             steps=["blocklist"])
    case("alg-rs512-by-the-rs256-key", token(alg="RS512", kid="rs256",
         signer=lambda d: k.sign(KEYS["rs256"], "RS512", d)), "alg_of_key")
    case("alg-rs256-signed-as-ps256", token(alg="RS256", signer=lambda d: k.sign(KEYS["rs256"], "PS256", d)),
         "signature")
    case("alg-rs256-signed-as-rs512", token(alg="RS256", signer=lambda d: k.sign(KEYS["rs256"], "RS512", d)),
         "signature")


def ecdsa():
    """r and s, and nothing but r and s."""
    def pair(r, s, size=32):
        return lambda data: r.to_bytes(size, "big") + s.to_bytes(size, "big")
    for name, (r, s) in {"both-zero": (0, 0), "r-zero": (0, 1), "s-zero": (1, 0), "r-s-one": (1, 1),
                         "r-s-n": (N256, N256), "r-n": (N256, 1), "s-n": (1, N256),
                         "all-ones": (2**256 - 1, 2**256 - 1), "n-minus-one": (N256 - 1, N256 - 1)}.items():
        case(f"es256-{name}", token(signer=pair(r, s)), "signature")

    def der(data):
        return KEYS["es256"].sign(data, k.ec.ECDSA(k.hashes.SHA256()))

    made = {}

    def good(data):  # the same one when it is asked for twice
        return made.setdefault(data, k.sign(KEYS["es256"], "ES256", data))

    def shifted(data):
        r = int.from_bytes(good(data)[:32], "big") + N256
        return r.to_bytes(33, "big") + good(data)[32:]
    for name, signer in {"der": der, "short": lambda d: good(d)[:-1], "long": lambda d: good(d) + b"\0",
                         "half": lambda d: good(d)[:32], "one-byte": lambda d: b"\0",
                         "padded": lambda d: b"\0" + good(d)[:32] + b"\0" + good(d)[32:],
                         "halves-swapped": lambda d: good(d)[32:] + good(d)[:32],
                         "r-plus-n": shifted,
                         "by-p384": lambda d: k.sign(OTHER["ES384"], "ES384", d),
                         "by-other-key": lambda d: k.sign(OTHER["ES256"], "ES256", d)}.items():
        case(f"es256-{name}", token(signer=signer), "signature")
    first = token()
    head, body, signature = first.split(".")
    raw = k.base64.urlsafe_b64decode(signature + "==")
    twin = raw[:32] + (N256 - int.from_bytes(raw[32:], "big")).to_bytes(32, "big")
    case("es256-twin-of-a-seen-token", f"{head}.{body}.{k.b64(twin)}", "jti_reused", before=[first])


def rsa_forgeries():
    """Blocks that are nearly PKCS #1."""
    key = KEYS["rs256"]
    size = 256
    info = bytes.fromhex("3031300d060960864801650304020105000420")
    no_null = bytes.fromhex("302f300b0609608648016503040201" + "0420")
    sha1 = bytes.fromhex("3021300906052b0e03021a05000414")

    def block(prefix, filler=b"\xff", kind=b"\1", tail=b"", pad=None):
        def make(data):
            digest = k.hashlib.sha256(data).digest() if prefix is not sha1 else k.hashlib.sha1(data).digest()
            end = prefix + digest + tail
            count = size - 3 - len(end) if pad is None else pad
            text = b"\0" + kind + filler * count + b"\0" + end
            return k.raw_rsa(key, text + b"\0" * (size - len(text)))
        return make
    for name, signer in {"no-null": block(no_null), "sha1": block(sha1), "no-info": block(b""),
                         "filler-zero": block(info, filler=b"\0"), "filler-aa": block(info, filler=b"\xaa"),
                         "block-type-2": block(info, kind=b"\2"), "block-type-0": block(info, kind=b"\0"),
                         "short-filler": block(info, pad=8), "no-filler": block(info, pad=0),
                         "trailing-zero": block(info, tail=b"\0\0"),
                         "unpadded": lambda d: k.raw_rsa(key, k.hashlib.sha256(d).digest()),
                         "zero": lambda d: b"\0" * size, "one": lambda d: b"\0" * (size - 1) + b"\1",
                         "ones": lambda d: b"\xff" * size,
                         "long": lambda d: b"\0" + k.sign(key, "RS256", d),
                         "short": lambda d: k.sign(key, "RS256", d)[:-1],
                         "by-other-key": lambda d: k.sign(OTHER["RS256"], "RS256", d)}.items():
        case(f"rs256-{name}", token(alg="RS256", signer=signer), "signature")
    case("rs256-good-by-hand", token(alg="RS256", signer=block(info)), "ok")


def bad_keys():
    """Keys that are not taken, so that no token of theirs is good."""
    tiny = k.rsa_key("tiny", bits=1024)
    cube = k.rsa_key("cube", e=3)
    n = cube.private_numbers().public_numbers.n
    huge = {"kty": "RSA", "n": k.number(2**5000 + 1), "e": "AQAB"}
    rsa_good, ec_good = k.public_jwk(KEYS["rs256"], "RS256"), k.public_jwk(KEYS["es256"], "ES256")
    p384 = k.public_jwk(OTHER["ES384"], "ES384")
    ones = b"\xff" * 32

    def forged(data, size=256):  # with e = 1 the block itself is its signature
        end = bytes.fromhex("3031300d060960864801650304020105000420") + k.hashlib.sha256(data).digest()
        return b"\0\1" + b"\xff" * (size - 3 - len(end)) + b"\0" + end
    keys = {
        "rsa-e-one": ("RS256", {"kty": "RSA", "n": k.number(n), "e": "AQ"}, forged),
        "rsa-e-three": ("RS256", k.public_jwk(cube, "RS256"), lambda d: k.sign(cube, "RS256", d)),
        "rsa-e-even": ("RS256", {**rsa_good, "e": k.number(65538)}, forged),
        "rsa-e-zero": ("RS256", {**rsa_good, "e": "AA"}, forged),
        "rsa-e-long": ("RS256", {**rsa_good, "e": k.number(2**40 + 1)}, forged),
        "rsa-1024-bits": ("RS256", k.public_jwk(tiny, "RS256"), lambda d: k.sign(tiny, "RS256", d)),
        "rsa-5001-bits": ("RS256", huge, forged),
        "rsa-n-leading-zero": ("RS256", {**rsa_good, "n": "AA" + rsa_good["n"]}, forged),
        "rsa-n-even": ("RS256", {**rsa_good, "n": k.number(n - 1)}, forged),
        "rsa-n-small-factor": ("RS256", {**rsa_good, "n": k.number(3 * k.prime("factor", 2048, 65537))}, forged),
        "rsa-n-prime": ("RS256", {**rsa_good, "n": k.number(k.prime("prime", 2048, 65537))}, forged),
        "rsa-n-absent": ("RS256", {"kty": "RSA", "e": "AQAB"}, forged),
        "rsa-n-padded": ("RS256", {**rsa_good, "n": rsa_good["n"] + "=="}, forged),
        "rsa-private": ("RS256", {**rsa_good, "d": "AQAB"}, forged),
        "rsa-as-es256": ("ES256", rsa_good, forged),
        "ec-as-rs256": ("RS256", ec_good, forged),
        "ec-other-curve": ("ES256", p384, lambda d: k.sign(OTHER["ES384"], "ES384", d)),
        "ec-p384-called-p256": ("ES256", {**p384, "crv": "P-256", "alg": "ES256"}, forged),
        "ec-off-curve": ("ES256", {**ec_good, "y": ec_good["x"]}, forged),
        "ec-zero-point": ("ES256", {**ec_good, "x": k.b64(b"\0" * 32), "y": k.b64(b"\0" * 32)}, forged),
        "ec-beyond-field": ("ES256", {**ec_good, "x": k.b64(ones)}, forged),
        "ec-short-x": ("ES256", {**ec_good, "x": k.b64(b"\1" * 31)}, forged),
        "ec-y-number": ("ES256", {**ec_good, "y": 5}, forged),
        "ec-for-encryption": ("ES256", {**ec_good, "use": "enc"}, forged),
        "ec-other-alg": ("ES256", {**ec_good, "alg": "ES384"}, forged),
        "oct": ("RS256", {"kty": "oct", "k": "c2VjcmV0"}, forged),
        "no-object": ("RS256", "rs256", forged),
    }
    for name, (alg, jwk, signer) in keys.items():
        case(f"key-{name}", token(alg=alg, kid="bad", signer=signer), "key_unknown",
             keys=[record("bad", alg, jwk)], refused_keys=["bad"])


def key_ids():
    """kid looks up and does nothing else."""
    other_key = k.public_jwk(OTHER["RS256"], "RS256")

    def by_other_key(data):
        return k.sign(OTHER["RS256"], "RS256", data)
    brought = {"jwk": other_key, "jku": "https://evil.example/jwks.json", "x5u": "https://evil.example/c.pem",
               "x5c": ["MIIB"], "x5t": "AAAA"}
    for name, value in brought.items():
        case(f"brings-{name}", token(header={name: value}, alg="RS256", signer=by_other_key), "signature")
        case(f"brings-{name}-unknown-kid",
             token(header={name: value}, alg="RS256", kid="mine", signer=by_other_key), "key_unknown")
        case(f"brings-{name}-but-is-good", token(header={name: value}), "ok")
    for name, kid in {"path": "../../../../dev/null", "path-to-key": "../keys/es256", "sql": "x' OR '1'='1",
                      "nul": "es256\0", "nul-first": "\0es256", "5000-bytes": "k" * 5000,
                      "unknown": "nobody",
                      "other-case": "ES256", "space": "es256 ", "prefix": "es25",
                      "url": "https://evil.example/k",
                      "format": "%s%n"}.items():
        case(f"kid-{name}", token(kid=kid), "key_unknown")
    case("kid-10000-bytes", token(kid="k" * 10000), "too_long")
    for name, kid in {"empty": "", "number": 1, "null": None, "array": ["es256"],
                      "object": {"kid": "es256"}}.items():
        case(f"kid-{name}", token(header={"kid": kid}), "kid")
    case("kid-absent", token(drop=["kid"]), "kid")
    case("kid-absent-but-claimed", token(claims(kid="es256"), drop=["kid"]), "kid")
    case("kid-twice", token_with_header('{"alg":"ES256","kid":"nobody","kid":"es256"}'), "header")
    ends = {"retired": ({"retires_at": NOW}, "key_retired"),
            "retires-in-a-second": ({"retires_at": NOW + 1}, "ok"),
            "revoked": ({"revoked_at": NOW - 1}, "key_revoked"),
            "revoked-now": ({"revoked_at": NOW}, "key_revoked"),
            "about-to-sign": ({"not_before": NOW + 60}, "ok")}
    for name, (when, expect) in ends.items():
        jwk = k.public_jwk(OTHER["ES256"], "ES256")
        case(f"key-{name}", token(kid="other", signer=lambda d: k.sign(OTHER["ES256"], "ES256", d)), expect,
             keys=[record("other", "ES256", jwk, **when)])


def token_with_header(text):
    """A good token but for its header's text."""
    return k.compact(text, claims(), lambda d: k.sign(KEYS["es256"], "ES256", d))


def headers():
    """What a header may not ask for."""
    for name, value in {"crit": ["exp"], "crit-unknown": ["x-mine"], "crit-empty": [], "b64": False,
                        "b64-true": True, "zip": "DEF", "enc": "A256GCM"}.items():
        case(f"header-{name}", token(header={name.split("-")[0]: value}), "crit")
    case("header-b64-with-crit", token(header={"b64": False, "crit": ["b64"]}), "crit")
    for name, typ in {"id-token": "id+jwt", "logout": "logout+jwt", "event": "secevent+jwt",
                      "dpop": "dpop+jwt",
                      "jose": "JOSE", "jose-json": "JOSE+JSON", "empty": "", "number": 1, "null": None,
                      "space": "JWT ", "other-media": "text/at+jwt"}.items():
        case(f"typ-{name}", token(header={"typ": typ}), "typ")
    for name, text in {"array": "[]", "string": '"ES256"', "empty": "{",
                       "truncated": '{"alg":"ES256","kid":"es2',
                       "trailing": '{"alg":"ES256","kid":"es256"} {}',
                       "bom": '\ufeff{"alg":"ES256","kid":"es256"}',
                       "alg-twice": '{"alg":"none","alg":"ES256","kid":"es256"}',
                       "alg-twice-escaped": '{"alg":"ES256","\\u0061lg":"none","kid":"es256"}',
                       "single-quotes": "{'alg':'ES256','kid':'es256'}",
                       "deep": '{"alg":"ES256","kid":"es256","x":' + "[" * 100 + "]" * 100 + "}"}.items():
        case(f"header-json-{name}", token_with_header(text), "header")
    case("header-not-utf8", token_with_header(b'{"alg":"ES256","kid":"es256","x":"\xff"}'), "header")


def shapes():
    """Three parts of base64url, and nothing around them."""
    good = token()
    head, body, signature = good.split(".")
    flat = {"protected": head, "payload": body, "signature": signature}
    texts = {
        "one-part": head, "two-parts": f"{head}.{body}", "four-parts": good + "." + signature,
        "jwe-five-parts": f"{head}.{body}.{signature}.{body}.{signature}",
        "empty-signature": f"{head}.{body}.", "trailing-dot": good + ".", "leading-dot": "." + good,
        "empty-header": f".{body}.{signature}", "empty-payload": f"{head}..{signature}", "dots": "..",
        "dot": ".",
        "json-flattened": json.dumps(flat), "json-general": json.dumps({"payload": body,
                                                                        "signatures": [flat]}),
        "padding-payload": f"{head}.{body}{'=' * (-len(body) % 4 or 4)}.{signature}",
        "padding-signature": good + "==", "space-inside": f"{head}.{body[:9]} {body[9:]}.{signature}",
        "space-before": " " + good, "newline-after": good + "\n",
        "tab-in-signature": f"{head}.{body}.{signature[:5]}\t{signature[5:]}",
        "newline-in-signature": f"{head}.{body}.{signature[:4]}\n{signature[4:]}",
        "bearer": "Bearer " + good, "nul-after": good + "\0", "percent": good.replace(".", "%2E"),
        "not-ascii": f"{head}.{body}.{signature[:-1]}\u00e9",
    }
    for name, text in texts.items():
        case(f"shape-{name}", text, "shape")
    # 86 + 3: no bytes have 89 letters
    case("shape-length-one-more", f"{head}.{body}.{signature}AAA", "shape")
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    other = last[last.index(signature[-1]) ^ 1]
    case("shape-unused-bits", f"{head}.{body}.{signature[:-1]}{other}", "shape")
    for wrong, right in (("+", "-"), ("/", "_")):
        at = signature.find(right)
        mangled = signature.replace(right, wrong) if at >= 0 else wrong + signature[1:]
        case(f"shape-alphabet-{'plus' if wrong == '+' else 'slash'}", f"{head}.{body}.{mangled}", "shape")
    case("absent", "", "absent")
    case("long-a-megabyte", [["a", 1 << 20]], "too_long")
    case("long-a-megabyte-of-dots", [[".", 1 << 20]], "too_long")
    case("long-a-megabyte-signature", [[f"{head}.{body}.", 1], ["A", 1 << 20]], "too_long")
    case("long-8192-bytes", sized(8192), "ok")
    case("long-8193-bytes", sized(8193), "too_long")
    case("signature-payload-byte-flipped", f"{head}.{k.b64(json.dumps(claims(sub='adb')))}.{signature}",
         "signature")
    case("signature-of-another-token", f"{head}.{body}.{token(claims(sub='eve')).split('.')[2]}",
         "signature")
    case("signature-before-claims", f"{head}.{k.b64(json.dumps(claims(exp=NOW - 1)))}.{signature}",
         "signature",
         steps=["blocklist", "signature"])


def sized(wanted):
    """A good token of exactly so many bytes."""
    for pad in range(wanted // 2, wanted):
        for more in ("", "x", "xx", "xxx"):
            made = token(claims(pad="x" * pad), header={"x": more})
            if len(made) == wanted:
                return made
            if len(made) > wanted + 8:
                raise SystemExit(f"no token of {wanted} bytes")
    return None


def payloads():
    """The payload is one strict JSON object."""
    for name, text in {"array": "[1]", "string": '"ada"', "null": "null", "truncated": '{"sub":"ada"',
                       "trailing-comma": '{"sub":"ada",}', "nan": '{"exp":NaN}',
                       "comment": '{"sub":"ada"/**/}',
                       "deep": '{"x":' + "[" * 100 + "]" * 100 + "}"}.items():
        case(f"payload-{name}", token(text), "payload")
    case("payload-not-utf8", token(b'{"sub":"\xc0\xaf"}'), "payload")
    text = json.dumps(claims())
    for name in ("sub", "exp", "role", "aud", "jti"):
        twice = text[:-1] + f', "{name}": {json.dumps(claims()[name])}}}'
        case(f"payload-twice-{name}", token(twice), "payload")
    case("payload-twice-escaped", token(text[:-1] + ', "r\\u006fle": "Admin"}'), "payload")


def claim_shapes():
    """Claims that are missing or look wrong."""
    for name in ("sub", "project_scope", "session_id", "iss", "aud", "exp", "iat", "jti", "role"):
        case(f"claim-no-{name}", token(claims(drop=[name])), "claim_missing", claim=name, profile="control")
    case("claim-no-tenant", token(claims(drop=["tenant_id"])), "claim_missing", claim="tenant_id",
         profile="engine")
    case("claim-no-role-nor-roles", token(claims(drop=["role", "roles"])), "claim_missing", claim="role",
         profile="engine")
    case("claim-roles-alone", token(claims(drop=["role"])), "ok", profile="engine")
    case("claim-roles-empty", token(claims(drop=["role"], roles=[])), "ok", profile="engine")
    case("claim-role-system", token(claims(role="System", roles=["System"])), "ok", profile="engine", roles=[])
    case("claim-role-system-among", token(claims(role="Admin", roles=["System", "Admin", "Viewer"])), "ok",
         profile="engine", roles=["Admin", "Viewer"])
    texts = {"number": 7, "null": None, "empty": "", "array": ["ada"], "object": {}, "true": True,
             "control-character": "a\nb", "nul": "a\0b", "257-bytes": "x" * 257}
    for name in ("sub", "iss", "jti", "session_id", "tenant_id", "role"):
        for kind in ("number", "empty", "null") if name != "sub" else texts:
            case(f"claim-{name}-{kind}", token(claims(**{name: texts[kind]})), "claim_shape", claim=name)
    for name, value in {"string": "Engineer", "numbers": [1],
                        "33": ["Engineer"] + [f"r{i}" for i in range(32)],
                        "without-role": ["Viewer"], "null": None, "empty-name": ["Engineer", ""]}.items():
        case(f"claim-roles-{name}", token(claims(roles=value)), "claim_shape", claim="roles")
    for name, value in {"one-name": "p1", "two-stars": "**", "number": 1, "numbers": [1],
                        "object": {"*": True},
                        "null": None, "257": [f"p{i}" for i in range(257)]}.items():
        case(f"claim-scope-{name}", token(claims(project_scope=value)), "claim_shape", claim="project_scope")
    for name, value in {"empty": "", "empty-list": [], "number": 5, "null": None, "object": {"weir": 1},
                        "mixed-list": ["weir", 5], "33": ["weir"] + [f"a{i}" for i in range(32)]}.items():
        case(f"claim-aud-{name}", token(claims(aud=value)), "claim_shape", claim="aud")


def issuer_and_audience():
    """Byte by byte."""
    for name, iss in {"other": "weir-prod", "slash": "weir-test/", "upper": "WEIR-TEST",
                      "space": "weir-test ",
                      "prefix": "weir-tes", "longer": "weir-test2", "url": "https://weir-test"}.items():
        case(f"iss-{name}", token(claims(iss=iss)), "issuer")
    for name, aud in {"other": "bank", "prefix": "wei", "longer": "weir2", "upper": "WEIR",
                      "list-of-others": ["a", "b"], "comma": "weir,weir-engine", "slash": "weir/",
                      "star": "*"}.items():
        case(f"aud-{name}", token(claims(aud=aud)), "audience")
    for name, aud in {"second-allowed": "weir-engine", "list": ["bank", "weir"],
                      "list-of-one": ["weir"]}.items():
        case(f"aud-{name}", token(claims(aud=aud)), "ok")
    id_token = claims(aud="web-client", nonce="n", at_hash="h", drop=["role", "roles", "project_scope"])
    case("id-token-as-access-token", token(id_token, header={"typ": "JWT"}), "claim_missing",
         claim="project_scope")
    case("id-token-with-all-claims", token(claims(aud="web-client", nonce="n"), header={"typ": "JWT"}),
         "audience")


def raw_time(name, text):
    """Good claims with one time as this very text."""
    whole = json.dumps(claims(**{name: "@"}))
    return token(whole.replace('"@"', text))


def times():
    """Seconds, whole ones; off by one at every edge."""
    for name in ("exp", "iat", "nbf"):
        for kind, text in {"string": f'"{NOW}"', "float": f"{NOW}.5", "float-zero": f"{NOW}.0",
                           "negative": "-1",
                           "minus-zero": "-0", "exponent": "1.8e9", "1e300": "1e300", "null": "null",
                           "array": f"[{NOW}]", "true": "true", "20-digits": "9" * 20,
                           "year-10000": "253402300800"}.items():
            case(f"time-{name}-{kind}", raw_time(name, text), "claim_shape", claim=name)
    edges = {
        "exp-past": ({"exp": NOW - 1}, "expired"), "exp-now": ({"exp": NOW}, "expired"),
        "exp-next": ({"exp": NOW + 1}, "ok"), "exp-long-past": ({"iat": 0, "exp": 1}, "expired"),
        "iat-119": ({"iat": NOW + 119}, "ok"), "iat-120": ({"iat": NOW + 120}, "ok"),
        "iat-121": ({"iat": NOW + 121}, "issued_later"), "nbf-past": ({"nbf": NOW - 1}, "ok"),
        "nbf-60": ({"nbf": NOW + 60}, "ok"), "nbf-61": ({"nbf": NOW + 61}, "not_yet"),
        "exp-before-iat": ({"iat": NOW + 100, "exp": NOW + 50}, "lifetime"),
        "exp-is-iat": ({"iat": NOW + 100, "exp": NOW + 100}, "lifetime"),
        "life-8h": ({"iat": NOW, "exp": NOW + 28800}, "ok"),
        "life-8h-1s": ({"iat": NOW, "exp": NOW + 28801}, "lifetime"),
        "life-9h": ({"iat": NOW, "exp": NOW + 32400}, "lifetime"),
        "life-year-9999": ({"iat": NOW, "exp": 253402300799}, "lifetime"),
        "life-old-and-long": ({"iat": NOW - 28800, "exp": NOW + 1}, "lifetime"),
    }
    for name, (change, expect) in edges.items():
        case(f"time-{name}", token(claims(**change)), expect)
    for role, cap in (("agent", 14400), ("helper", 3600)):
        roles = {"role": role, "roles": [role]}
        case(f"life-{role}-{cap}", token(claims(iat=NOW, exp=NOW + cap, **roles)), "ok")
        case(f"life-{role}-{cap + 1}", token(claims(iat=NOW, exp=NOW + cap + 1, **roles)), "lifetime")
    case("life-agent-among-roles",
         token(claims(iat=NOW, exp=NOW + 14401, role="Admin", roles=["Admin", "agent"])), "lifetime")


def scope():
    """A good token of somebody else."""
    mine = claims(project_scope=["p1", "p2"])
    for name, want, expect in (("tenant-mine", {"tenant": "acme"}, "ok"),
                               ("tenant-other", {"tenant": "globex"}, "tenant"),
                               ("tenant-prefix", {"tenant": "acm"}, "tenant"),
                               ("project-mine", {"project": "p2"}, "ok"),
                               ("project-other", {"project": "p3"}, "project")):
        case(f"scope-{name}", token(mine), expect, **want)
    case("scope-tenant-absent", token(claims(drop=["tenant_id"])), "tenant", tenant="acme")
    case("scope-star", token(), "ok", tenant="acme", project="p9")
    case("scope-star-in-list", token(claims(project_scope=["p1", "*"])), "ok", project="p9")
    case("scope-empty", token(claims(project_scope=[])), "project", project="p1")


def revoked():
    """The blocklist, and one jti for one token."""
    head, body, _ = token().split(".")
    only = ["blocklist"]
    mine = [{"kind": "jti", "name": "6b0a3d2e-0001"}]
    case("blocked-jti", token(), "blocked", block=mine, steps=only)
    case("blocked-garbage-signature", f"{head}.{body}.*", "blocked", block=mine, steps=only)
    case("blocked-alg-none", token(header={"alg": "none"}), "blocked", block=mine, steps=only)
    case("blocked-other-jti", token(), "ok",
         block=[{"kind": "jti", "name": "other"}, {"kind": "sub", "name": "6b0a3d2e-0001",
                                                   "issued_until": NOW}])
    for kind, name in (("sub", "ada"), ("session_id", "s-1")):
        for until, expect in ((NOW - 11, "ok"), (NOW - 10, "blocked"), (NOW, "blocked")):
            case(f"blocked-{kind}-until-{until - NOW}", token(), expect,
                 block=[{"kind": kind, "name": name, "issued_until": until}])
    case("blocked-sub-without-iat", token(claims(drop=["iat"])), "blocked",
         block=[{"kind": "sub", "name": "ada", "issued_until": NOW - 100}])
    first = token()
    case("jti-same-token-again", first, "ok", before=[first, first])
    case("jti-other-token", token(claims(sub="eve")), "jti_reused", before=[first],
         steps=["blocklist", "signature", "claims", "jti"])
    case("jti-same-claims-signed-again", token(), "jti_reused", before=[first])
    case("jti-refresh", token(claims(jti="6b0a3d2e-0002")), "ok", before=[first])


def main():
    """Writes what is not there."""
    everything = "--all" in sys.argv[1:]
    for part in (genuine, algorithms, ecdsa, rsa_forgeries, bad_keys, key_ids, headers, shapes, payloads,
                 claim_shapes, issuer_and_audience, times, scope, revoked):
        part()
    os.makedirs(FOLDER, exist_ok=True)
    keys = [record(kid, kid.upper(), k.public_jwk(key, kid.upper())) for kid, key in KEYS.items()]
    files = {"keys": {"keys": keys}, **cases}
    for name, value in files.items():
        path = os.path.join(FOLDER, name + ".json")
        if everything or not os.path.exists(path):
            with open(path, "w", encoding="utf-8") as file:
                json.dump(value, file, indent=1)
                file.write("\n")
    extra = {name[:-5] for name in os.listdir(FOLDER) if name.endswith(".json")} - set(files)
    print(f"{len(cases)} cases" + (f"; without a case: {sorted(extra)}" if extra else ""))


if __name__ == "__main__":
    main()
