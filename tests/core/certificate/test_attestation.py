"""Attestations: in-toto statements on certificates, in DSSE envelopes."""

import base64
import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]  # it is in the manual

from celeus.core.canonical import canonical_json
from celeus.core.certificate.attestation import (
    FalseAttestation,
    attested,
    is_envelope,
    read_attestation,
)
from celeus.core.certificate.ed25519 import public_of, sign
from celeus.core.plans.subject import Subject
from celeus.errors import InvalidValue
from tests.core.certifying import KEY, OTHER_KEY, opened, zero_one_world

MODEL = Subject("model.safetensors", "sha256", "ab" * 32)
COMMIT = Subject("github.com/org/repo", "gitCommit", "0" * 40)


@pytest.fixture(scope="module")
def certificate() -> bytes:
    case = opened(zero_one_world(60))
    case.go(8)
    case.close()
    return case.certificate()


@pytest.fixture
def envelope(certificate: bytes) -> bytes:
    return attested(certificate, [MODEL, COMMIT], KEY)


def test_it_holds_the_certificate_to_the_byte(certificate: bytes, envelope: bytes) -> None:
    found = read_attestation(envelope)
    assert found.certificate == certificate
    assert found.subjects == (MODEL, COMMIT)
    assert is_envelope(envelope)
    assert not is_envelope(certificate)
    assert Subject.of(f"a@b@sha256:{'0' * 64}").name == "a@b"


def test_the_signature_is_over_what_the_protocol_says(envelope: bytes) -> None:
    """As of DSSE's text: "DSSEv1", and both lengths and contents, with spaces between them."""
    document = json.loads(envelope)
    payload = base64.b64decode(document["payload"])
    kind = b"application/vnd.in-toto+json"
    parts = [b"DSSEv1", str(len(kind)).encode(), kind, str(len(payload)).encode(), payload]
    (signature,) = document["signatures"]
    KEY.public_key().verify(base64.b64decode(signature["sig"]), b" ".join(parts))
    statement = json.loads(payload)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["subject"][0] == {"name": MODEL.name, "digest": {"sha256": MODEL.digest}}
    assert {*statement} == {"_type", "subject", "predicateType", "predicate"}


def test_other_verifiers_take_it(envelope: bytes) -> None:
    """Those in Go skip a signature whose id is not its key's fingerprint, others want an id."""
    public = KEY.public_key()
    form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    digest = hashlib.sha256(base64.b64decode(public.public_bytes(*form).split()[1])).digest()
    keyid = f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"
    key = SSlibKey.from_crypto(public, keyid)
    assert [*Envelope.from_dict(json.loads(envelope)).verify([key], 1)] == [keyid]
    for other in (
        SSlibKey.from_crypto(OTHER_KEY.public_key(), keyid),
        SSlibKey.from_crypto(public, public_of(KEY).hex()),
    ):
        with pytest.raises(VerificationError):
            Envelope.from_dict(json.loads(envelope)).verify([other], 1)
    changed = json.loads(envelope)
    changed["payload"] = base64.b64encode(base64.b64decode(changed["payload"]) + b" ").decode()
    with pytest.raises(VerificationError):
        Envelope.from_dict(changed).verify([key], 1)


def resigned(envelope: bytes, change: Callable[[dict[str, Any]], object], key: Any) -> bytes:  # noqa: ANN401 -- a private key
    """The envelope with its statement changed, and signed anew by this key."""
    document = json.loads(envelope)
    statement = json.loads(base64.b64decode(document["payload"]))
    change(statement)
    payload = canonical_json(statement)
    kind = document["payloadType"].encode()
    message = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    document["payload"] = base64.b64encode(payload).decode()
    signature = base64.b64encode(sign(message, key)).decode()
    document["signatures"] = [{"keyid": public_of(key).hex(), "sig": signature}]
    return canonical_json(document)


def swapped(name: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda statement: statement.update({name: value})


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda statement: statement["subject"].pop(), None),
        (swapped("subject", [{"name": "other", "digest": {"sha256": "0" * 64}}]), OTHER_KEY),
        (swapped("subject", []), KEY),
        (swapped("subject", [{"name": "m", "digest": {"sha256": "short"}}]), KEY),
        (swapped("subject", [{"name": "m", "digest": {"md5": "0" * 32}}]), KEY),
        (swapped("subject", [{"digest": {"sha256": "0" * 64}}]), KEY),
        (swapped("predicateType", "https://slsa.dev/provenance/v1"), KEY),
        (swapped("_type", "https://in-toto.io/Statement/v0.1"), KEY),
        (swapped("predicate", {"claim": 1}), KEY),
        (swapped("predicate", None), KEY),
        (lambda statement: statement["predicate"]["signature"].update(public_key="0" * 64), KEY),
        (lambda statement: statement["predicate"]["claim"].update(lower=0.4), None),
    ],
)
def test_a_forged_one_is_found(
    envelope: bytes, change: Callable[[dict[str, Any]], object], key: object
) -> None:
    forged = resigned(envelope, change, OTHER_KEY if key is None else key)
    if key is None:
        # Its signature is that of what was attested
        document = json.loads(forged) | {"signatures": json.loads(envelope)["signatures"]}
        forged = canonical_json(document)
    with pytest.raises((FalseAttestation, InvalidValue)):
        read_attestation(forged)


@pytest.mark.parametrize(
    "damage",
    [
        lambda envelope: envelope[:-5],
        lambda envelope: envelope.replace(b"in-toto", b"in-tata", 1),
        lambda envelope: envelope.replace(b'"sig":"', b'"sig":"AA', 1),
        lambda envelope: canonical_json(json.loads(envelope) | {"signatures": []}),
        lambda envelope: canonical_json(json.loads(envelope) | {"payload": "?"}),
        lambda envelope: b"[" * 100_000 + envelope,
    ],
)
def test_a_damaged_one_is_refused(envelope: bytes, damage: Callable[[bytes], bytes]) -> None:
    with pytest.raises((FalseAttestation, InvalidValue)):
        read_attestation(damage(envelope))


def test_only_the_key_of_the_certificate_attests(certificate: bytes) -> None:
    with pytest.raises(InvalidValue, match="the key that signed the certificate"):
        attested(certificate, [MODEL], OTHER_KEY)
    with pytest.raises(InvalidValue, match="a certificate as it was issued"):
        attested(json.dumps(json.loads(certificate)).encode(), [MODEL], KEY)
    with pytest.raises(InvalidValue, match="one thing or more"):
        attested(certificate, [], KEY)
