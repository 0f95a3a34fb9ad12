"""Certificates of a test's own authority, and addresses that are called over TLS."""
import os
import ssl
import subprocess


def openssl(*args):
    """One command of the openssl program."""
    subprocess.run(["openssl", *map(str, args)], check=True, stdin=subprocess.DEVNULL, capture_output=True)


class Authority:
    """Signs certificates for 127.0.0.1 and localhost: NAME.pem and NAME.key in its folder."""

    def __init__(self, folder, name="ca"):
        self.folder, self.name = str(folder), name
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-days", "30", "-subj", f"/CN={name}", "-addext", "keyUsage=keyCertSign",
                "-keyout", self.key(name), "-out", self.cert(name))

    def cert(self, name):
        """Path of a certificate."""
        return os.path.join(self.folder, f"{name}.pem")

    def key(self, name):
        """Path of its key."""
        return os.path.join(self.folder, f"{name}.key")

    def issue(self, name, days=30):
        """Signs a new certificate with a new key; both are put in place by rename, the key last."""
        new_cert, new_key, request, names = (
            self.cert(name) + end for end in (".new", ".newkey", ".csr", ".ext"))
        with open(names, "w", encoding="utf-8") as file:
            file.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-subj", f"/CN={name}", "-keyout", new_key, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", self.cert(self.name), "-CAkey", self.key(self.name),
                "-CAcreateserial", "-days", days, "-extfile", names, "-out", new_cert)
        os.rename(new_cert, self.cert(name))
        os.rename(new_key, self.key(name))
        return self

    def settings(self, port, client_ca=None):
        """Settings of a server that serves certificate "server" on this port of 127.0.0.1."""
        found = {"server.tls_listen": f"127.0.0.1:{port}", "server.tls_cert": self.cert("server"),
                 "server.tls_key": self.key("server")}
        return {**found, "server.tls_client_ca": client_ca} if client_ca else found

    def context(self, show=None):
        """A client that trusts this authority, and shows the certificate of that name."""
        made = ssl.create_default_context(cafile=self.cert(self.name))
        if show:
            made.load_cert_chain(self.cert(show), self.key(show))
        return made


class SecureAddress(tuple):
    """(host, port) that wire.py calls over TLS as `context` says."""

    def __new__(cls, host, port, context):
        made = super().__new__(cls, (host, port))
        made.context = context
        return made
