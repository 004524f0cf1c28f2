"""An instance of Sigstore for the tests: a real HTTP server that certifies identities and logs.

Fulcio's part gives a certificate to the identity in a token, Rekor's part keeps what is signed in a
log of one entry each. Clients and verifiers are those of the library.
"""

import base64
import hashlib
import json
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from celeus.core.canonical import canonical_json

AUDIENCE = "sigstore"
_ISSUER = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_STAMPS = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
_NAME = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Sigstore of the tests")])
_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)
_P256 = "PKIX_ECDSA_P256_SHA_256"


def token(identity: str, issuer: str) -> str:
    """A token of an identity, as a CI job has one; nobody here looks at its signature."""
    now = int(time.time())
    claims = {"aud": AUDIENCE, "sub": identity, "iss": issuer, "iat": now, "exp": now + 600}
    return jwt.encode(claims, "the tests' own key, of 32 bytes or more")


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _public(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _id(key: ec.EllipticCurvePrivateKey) -> bytes:
    return hashlib.sha256(_public(key)).digest()


def _usage(*allowed: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{name: name in allowed for name in _USAGES})


def _key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _signed(key: ec.EllipticCurvePrivateKey, message: bytes) -> bytes:
    return key.sign(message, ec.ECDSA(hashes.SHA256()))


@dataclass
class Instance:
    """The keys of an instance: its root, its log of certificates and its log of signatures."""

    root: ec.EllipticCurvePrivateKey = field(default_factory=_key)
    certificates: ec.EllipticCurvePrivateKey = field(default_factory=_key)
    signatures: ec.EllipticCurvePrivateKey = field(default_factory=_key)
    began: datetime = field(default_factory=lambda: datetime.now(UTC) - timedelta(hours=1))

    def __post_init__(self) -> None:
        """Certify the root by itself."""
        self.authority = (
            self._builder(_NAME, self.root.public_key(), timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage("key_cert_sign", "crl_sign"), critical=True)
            .sign(self.root, hashes.SHA256())
        )

    def _builder(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePublicKey,
        lasts: timedelta,
    ) -> x509.CertificateBuilder:
        authority = self.root.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(_NAME)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self.began)
            .not_valid_after(self.began + lasts)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority), critical=False
            )
        )

    def certify(self, request: dict[str, Any], bearer: str) -> dict[str, Any]:
        """A certificate for the identity in the token, with its place in the log, as Fulcio's."""
        claims = jwt.decode(bearer, options={"verify_signature": False})
        pem = base64.b64decode(request["certificateSigningRequest"])
        key = x509.load_pem_x509_csr(pem).public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        builder = (
            self._builder(x509.Name([]), key, timedelta(hours=2))
            .add_extension(_usage("digital_signature"), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False
            )
            .add_extension(
                x509.SubjectAlternativeName([x509.UniformResourceIdentifier(claims["sub"])]),
                critical=True,
            )
            .add_extension(
                x509.UnrecognizedExtension(_ISSUER, claims["iss"].encode()), critical=False
            )
        )
        draft = self._stamped(builder, b"")
        now = int(time.time() * 1000)
        body = draft.tbs_precertificate_bytes
        length = struct.pack("!I", len(body))[1:]
        message = struct.pack("!BBQH", 0, 0, now, 1) + _id(self.root) + length + body + b"\0\0"
        signature = _signed(self.certificates, message)
        stamp = struct.pack("!B32sQHBBH", 0, _id(self.certificates), now, 0, 4, 3, len(signature))
        leaf = self._stamped(builder, stamp + signature)
        chain = [
            each.public_bytes(serialization.Encoding.PEM).decode()
            for each in (leaf, self.authority)
        ]
        return {"signedCertificateEmbeddedSct": {"chain": {"certificates": chain}}}

    def _stamped(self, builder: x509.CertificateBuilder, stamp: bytes) -> x509.Certificate:
        """The certificate with this stamp of its log."""
        content = struct.pack("!HH", len(stamp) + 2, len(stamp)) + stamp
        form = b"\x04\x81" if len(content) > 127 else b"\x04"
        value = form + bytes([len(content)]) + content
        extension = x509.UnrecognizedExtension(_STAMPS, value)
        return builder.add_extension(extension, critical=False).sign(self.root, hashes.SHA256())

    def log(self, request: dict[str, Any], bearer: str) -> dict[str, Any]:
        """An entry of the log on an envelope, as Rekor answers it."""
        del bearer
        proposed = request["spec"]["proposedContent"]
        envelope = json.loads(proposed["envelope"])
        payload = base64.b64decode(envelope["payload"])
        spec = {
            "envelopeHash": _hash(proposed["envelope"].encode()),
            "payloadHash": _hash(payload),
            "signatures": [
                {"signature": each["sig"], "verifier": proposed["verifiers"][0]}
                for each in envelope["signatures"]
            ],
        }
        body = canonical_json({"apiVersion": "0.0.1", "kind": "dsse", "spec": spec})
        root = hashlib.sha256(b"\0" + body).digest()
        note = f"log of the tests\n1\n{_encoded(root)}\n"
        signature = _id(self.signatures)[:4] + _signed(self.signatures, note.encode())
        entry: dict[str, Any] = {
            "body": _encoded(body),
            "integratedTime": int(time.time()),
            "logID": _id(self.signatures).hex(),
            "logIndex": 0,
        }
        promise = _encoded(_signed(self.signatures, canonical_json(entry)))
        proof = {
            "logIndex": 0,
            "rootHash": root.hex(),
            "treeSize": 1,
            "hashes": [],
            "checkpoint": f"{note}\n— tests {_encoded(signature)}\n",
        }
        verification = {"signedEntryTimestamp": promise, "inclusionProof": proof}
        return {"0": entry | {"verification": verification}}

    def trust_config(self, url: str) -> bytes:
        """Its keys and its address, in the form that clients of Sigstore read."""
        valid = {"start": self.began.strftime("%Y-%m-%dT%H:%M:%SZ")}

        def log(key: ec.EllipticCurvePrivateKey) -> dict[str, Any]:
            public = {"rawBytes": _encoded(_public(key)), "keyDetails": _P256, "validFor": valid}
            return {
                "baseUrl": url,
                "hashAlgorithm": "SHA2_256",
                "publicKey": public,
                "logId": {"keyId": _encoded(_id(key))},
            }

        root = _encoded(self.authority.public_bytes(serialization.Encoding.DER))
        authority = {
            "subject": {"organization": "tests", "commonName": "tests"},
            "uri": url,
            "certChain": {"certificates": [{"rawBytes": root}]},
            "validFor": valid,
        }
        service = {"url": url, "majorApiVersion": 1, "validFor": valid, "operator": "tests"}
        kind = "application/vnd.dev.sigstore"
        document = {
            "mediaType": f"{kind}.clienttrustconfig.v0.1+json",
            "trustedRoot": {
                "mediaType": f"{kind}.trustedroot+json;version=0.1",
                "tlogs": [log(self.signatures)],
                "ctlogs": [log(self.certificates)],
                "certificateAuthorities": [authority],
                "timestampAuthorities": [],
            },
            "signingConfig": {
                "mediaType": f"{kind}.signingconfig.v0.2+json",
                "caUrls": [service],
                "oidcUrls": [service],
                "rekorTlogUrls": [service],
                "rekorTlogConfig": {"selector": "ANY"},
                "tsaUrls": [],
                "tsaConfig": {"selector": "ANY"},
            },
        }
        return json.dumps(document).encode()


def _hash(content: bytes) -> dict[str, str]:
    return {"algorithm": "sha256", "value": hashlib.sha256(content).hexdigest()}


@contextmanager
def served(path: Path) -> Iterator[Instance]:
    """An instance that answers while this runs, and whose trust configuration is at ``path``."""
    instance = Instance()
    ways = {"/api/v2/signingCert": instance.certify, "/api/v1/log/entries": instance.log}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
            answer = json.dumps(ways[self.path](json.loads(content), bearer)).encode()
            self.send_response(201)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        path.write_bytes(instance.trust_config(f"http://127.0.0.1:{server.server_port}"))
        try:
            yield instance
        finally:
            server.shutdown()
