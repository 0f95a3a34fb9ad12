"""An identity provider as companies have one: signs tokens with its keys and publishes their public parts.

    with Issuer() as provider:
        provider.write(folder, claims={"role": "realm_access.roles"})   # the file that tokens.issuers names
        token = provider.token(realm_access={"roles": ["Admin"]})
"""
import json
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec


class Issuer:
    """Serves its JWK Set on a port of 127.0.0.1; counts who asks."""

    def __init__(self, name=None, audience="weir"):
        self.keys = {}
        self.audience = audience
        self.fetches = 0
        self.status = 200      # what it answers; 0: it closes the connection
        self.raw = None        # bytes to serve instead of the keys
        self.rotate()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.url = f"http://127.0.0.1:{self.server.server_port}/certs"
        self.name = name or f"http://127.0.0.1:{self.server.server_port}/realms/acme"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def handler(self):
        """The request handler, bound to this provider."""
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            """GET of the keys."""

            def do_GET(self):  # pylint: disable=invalid-name
                """Answers as the provider was told."""
                issuer.fetches += 1
                if not issuer.status:
                    self.connection.close()
                    return
                body = issuer.raw if issuer.raw is not None else json.dumps(issuer.jwks()).encode()
                self.send_response(issuer.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):  # pylint: disable=arguments-differ
                """Quiet."""

        return Handler

    def rotate(self, kid=None, keep=True):
        """A new key that signs from now on; the former ones stay published when `keep`."""
        self.kid = kid or uuid.uuid4().hex
        self.keys = {**(self.keys if keep else {}), self.kid: ec.generate_private_key(ec.SECP256R1())}
        return self.kid

    def jwks(self):
        """The public keys, and one for encryption as providers publish beside them."""
        listed = [self.public(kid, key) for kid, key in self.keys.items()]
        return {"keys": listed + [{"kty": "RSA", "kid": "for-encryption", "use": "enc", "alg": "RSA-OAEP",
                                   "n": "AQAB", "e": "AQAB"}]}

    @staticmethod
    def public(kid, key):
        """A key as JWK has it."""
        point = key.public_key().public_bytes(serialization.Encoding.X962,
                                              serialization.PublicFormat.UncompressedPoint)
        x, y = (jwt.utils.base64url_encode(part).decode() for part in (point[1:33], point[33:]))
        return {"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": kid, "alg": "ES256", "use": "sig"}

    def token(self, kid=None, key=None, headers=None, **claims):
        """A token as it would sign it; a claim of None is left out."""
        now = int(time.time())
        all_claims = {"iss": self.name, "aud": self.audience, "sub": "ada", "iat": now, "exp": now + 300,
                      "role": "Admin", "tenant_id": "acme", "project_scope": "*", **claims}
        said = {name: value for name, value in all_claims.items() if value is not None}
        kid = kid or self.kid
        return jwt.encode(said, key or self.keys.get(kid) or self.keys[self.kid], algorithm="ES256",
                          headers={"kid": kid, **(headers or {})})

    def entry(self, **members):
        """Its line in the file of issuers."""
        return {"issuer": self.name, "jwks_url": self.url, "audience": [self.audience], **members}

    def write(self, folder, **members):
        """The file with it alone; its path."""
        return write_issuers(folder, [self.entry(**members)])


def write_issuers(folder, entries):
    """The file that tokens.issuers names; its path."""
    path = folder / "issuers.json"
    path.write_text(json.dumps(entries), encoding="utf-8")
    return str(path)
