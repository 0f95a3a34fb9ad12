"""Keys of the JWT corpus, made from names: the same name gives the same key, and none is stored.

Everything here is python-cryptography or plain arithmetic: nothing of src/ signs what src/ is tested with.
"""
import base64
import hashlib
import hmac
import json

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

HASHES = {"256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512}
CURVES = {"ES256": (ec.SECP256R1, "P-256", 32), "ES384": (ec.SECP384R1, "P-384", 48),
          "ES512": (ec.SECP521R1, "P-521", 66)}


def b64(data):
    """base64url without padding, as text."""
    if isinstance(data, str):
        data = data.encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value):
    """A positive integer as JWK has it."""
    return b64(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def stream(name, size):
    """`size` bytes that only the name decides."""
    return hashlib.shake_256(name.encode()).digest(size)


def is_prime(candidate):
    """Miller-Rabin with fixed bases: our candidates are no adversary's."""
    odd, twos = candidate - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        x = pow(base, odd, candidate)
        if x in (1, candidate - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % candidate
            if x == candidate - 1:
                break
        else:
            return False
    return True


def prime(name, bits, e):
    """The first prime behind a number made from the name that suits the exponent."""
    candidate = int.from_bytes(stream(name, bits // 8), "big") | 3 << (bits - 2) | 1
    while not is_prime(candidate) or (candidate - 1) % e == 0:
        candidate += 2
    return candidate


def rsa_key(name, bits=2048, e=65537):
    """An RSA private key."""
    p, q = (prime(f"{name} {part}", bits // 2, e) for part in "pq")
    d = pow(e, -1, (p - 1) * (q - 1))
    numbers = rsa.RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p),
                                    rsa.RSAPublicNumbers(e, p * q))
    return numbers.private_key()


def ec_key(name, alg):
    """An EC private key on the curve of the algorithm."""
    curve, _, size = CURVES[alg]
    return ec.derive_private_key(int.from_bytes(stream(name, size - 2), "big"), curve())


def key_for(name, alg):
    """A key for an algorithm."""
    return rsa_key(name) if alg.startswith("RS") else ec_key(name, alg)


def public_jwk(key, alg):
    """The public part as a JWK."""
    numbers = key.public_key().public_numbers()
    if isinstance(key, rsa.RSAPrivateKey):
        return {"kty": "RSA", "use": "sig", "alg": alg, "n": number(numbers.n), "e": number(numbers.e)}
    _, name, size = CURVES[{256: "ES256", 384: "ES384", 521: "ES512"}[key.key_size]]
    return {"kty": "EC", "use": "sig", "alg": alg, "crv": name,
            "x": b64(numbers.x.to_bytes(size, "big")), "y": b64(numbers.y.to_bytes(size, "big"))}


def public_bytes(key, form):
    """The public key as an attacker finds it: PEM, DER or the JWK's text."""
    if form == "jwk":
        return json.dumps(public_jwk(key, "RS256")).encode()
    encoding = serialization.Encoding.PEM if form == "pem" else serialization.Encoding.DER
    return key.public_key().public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)


def sign(key, alg, data):
    """A JWS signature by the book."""
    digest = HASHES[alg[2:]]()
    if alg.startswith("HS"):
        return hmac.new(key, data, "sha" + alg[2:]).digest()
    if alg.startswith("RS"):
        return key.sign(data, padding.PKCS1v15(), digest)
    if alg.startswith("PS"):
        return key.sign(data, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
    r, s = decode_dss_signature(key.sign(data, ec.ECDSA(digest)))
    size = (key.key_size + 7) // 8
    return r.to_bytes(size, "big") + s.to_bytes(size, "big")


def raw_rsa(key, block):
    """The RSA operation on a block of the signer's own making."""
    numbers = key.private_numbers()
    n = numbers.public_numbers.n
    return pow(int.from_bytes(block, "big"), numbers.d, n).to_bytes((n.bit_length() + 7) // 8, "big")


def compact(header, payload, signer):
    """A token; header and payload are text or JSON values, signer(data) gives the signature."""
    parts = [part if isinstance(part, (str, bytes)) else json.dumps(part, separators=(",", ":"))
             for part in (header, payload)]
    data = ".".join(b64(part) for part in parts)
    return data + "." + b64(signer(data.encode()))
