"""Attestations: what a certificate is about, named by digest and signed by the certificate's key.

An in-toto statement (https://in-toto.io/Statement/v1) whose predicate is the certificate, in an
envelope of DSSE (https://github.com/secure-systems-lab/dsse): tools of supply chains read both.
"""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from celeus.core.canonical import canonical_json
from celeus.core.certificate.ed25519 import fingerprint, public_of, sign, signed_by
from celeus.core.plain import Mismatch, listed
from celeus.core.plans.subject import Subject
from celeus.errors import InvalidValue
from celeus.strict_json import json_of

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "urn:celeus:certificate:1"
_ENVELOPE = re.compile(rb'\s*\{\s*"(payload|payloadType|signatures)"')
_BUNDLE = re.compile(rb'\s*\{\s*"(mediaType|verificationMaterial|dsseEnvelope|messageSignature)"')


class FalseAttestation(ValueError):
    """An attestation was not signed by whoever had to, or is about something else."""


@dataclass(frozen=True, slots=True)
class Signer:
    """An identity that has to have signed, and the service that has to have vouched for it."""

    identity: str
    issuer: str


@dataclass(frozen=True, slots=True)
class Attestation:
    """A certificate, as its issuer wrote it, and its subjects."""

    certificate: bytes
    subjects: tuple[Subject, ...]


def attested(certificate: bytes, subjects: Sequence[Subject], key: Ed25519PrivateKey) -> bytes:
    """Return the envelope of a certificate and its subjects, signed by the certificate's key.

    Raises InvalidValue as ``statement_of`` does, and for the key of another certificate.
    """
    payload = statement_of(certificate, subjects)
    if _public_key(json_of(certificate)) != public_of(key).hex():
        raise _refused("key", "the key that signed the certificate")
    signature = base64.b64encode(sign(signed_bytes(payload), key)).decode()
    envelope = {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(payload).decode(),
        # Verifiers in Go skip a signature whose id is not the fingerprint of their key
        "signatures": [{"keyid": fingerprint(public_of(key)), "sig": signature}],
    }
    return canonical_json(envelope)


def statement_of(certificate: bytes, subjects: Sequence[Subject]) -> bytes:
    """Return the in-toto statement on a certificate and its subjects.

    A certificate that names its subjects is about these; ``subjects`` may be left out then, or be
    some of them. Raises InvalidValue for others, and for a file that is no certificate.
    """
    document = _object(certificate, "file", "a certificate")
    if canonical_json(document) != certificate or _public_key(document) is None:
        raise _refused("file", "a certificate as it was issued")
    if named := subjects_in(document):
        if other := _other(subjects, named):
            rule = "what the certificate names"
            message = f"{other} is not what was evaluated: {_names(named)}"
            raise InvalidValue(message, field="subject", rule=rule, value=str(other))
        subjects = named
    if not subjects:
        raise _refused("subject", "one thing or more that was evaluated")
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": subject.name, "digest": {subject.algorithm: subject.digest}}
            for subject in subjects
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": document,
    }
    return canonical_json(statement)


def is_envelope(beginning: bytes) -> bool:
    """Return whether a file that begins so is meant as an envelope: no certificate begins so."""
    return _ENVELOPE.match(beginning) is not None


def is_sigstore_bundle(beginning: bytes) -> bool:
    """Return whether a file that begins so is meant as a bundle of Sigstore."""
    return _BUNDLE.match(beginning) is not None


def read_attestation(envelope: bytes) -> Attestation:
    """Return what an envelope attests, once it is known that the certificate's key signed it.

    Whether the certificate itself holds is not looked at. Raises FalseAttestation where somebody
    else signed, InvalidValue for another file.
    """
    document = _object(envelope, "file", "an envelope of DSSE")
    payload = _decoded(document.get("payload"))
    if document.get("payloadType") != PAYLOAD_TYPE or payload is None:
        raise _refused("payloadType", f"an envelope of {PAYLOAD_TYPE}")
    statement = _statement(payload)
    public_key = _public_key(statement["predicate"])
    signatures = document.get("signatures")
    if public_key is None or not isinstance(signatures, list):
        raise _refused("predicate", "a certificate")
    found = (
        _decoded(signature.get("sig")) for signature in signatures if isinstance(signature, dict)
    )
    key, message = bytes.fromhex(public_key), signed_bytes(payload)
    if not any(value is not None and signed_by(message, value, key) for value in found):
        raise FalseAttestation("no signature of it is by the key that signed the certificate")
    return _attestation(statement)


def read_statement(payload: bytes) -> Attestation:
    """Return what a statement attests, whose signature was verified before.

    Raises FalseAttestation where it is not about what its certificate names, InvalidValue for
    another statement.
    """
    return _attestation(_statement(payload))


def _statement(payload: bytes) -> dict[str, Any]:
    """The members of a statement on a certificate; refuses another one."""
    statement = _object(payload, "payload", "an in-toto statement")
    kinds = statement.get("_type"), statement.get("predicateType")
    if kinds != (STATEMENT_TYPE, PREDICATE_TYPE):
        raise _refused("predicateType", f"{PREDICATE_TYPE} in a statement of {STATEMENT_TYPE}")
    if not isinstance(statement.get("predicate"), dict):
        raise _refused("predicate", "a certificate")
    return statement


def _attestation(statement: dict[str, Any]) -> Attestation:
    certificate, subjects = statement["predicate"], _subjects(statement.get("subject"))
    named = subjects_in(certificate)
    others = [subject for subject in subjects if subject not in named]
    if named and others:
        raise FalseAttestation(f"it says that it is about {others[0]}, and {_names(named)}")
    return Attestation(canonical_json(certificate), subjects)


def subjects_in(certificate: object) -> tuple[Subject, ...]:
    """Return the subjects that a certificate claims; none where it names none.

    They are believed no more than the certificate is. Raises InvalidValue for what is no claim.
    """
    claim = certificate.get("claim") if isinstance(certificate, dict) else None
    named = claim.get("subject", []) if isinstance(claim, dict) else []
    try:
        return tuple(Subject.from_dict(subject) for subject in listed(named, "claim.subject"))
    except Mismatch as found:
        raise _refused(found.where, str(found.found)) from found


def _other(subjects: Sequence[Subject], named: Sequence[Subject]) -> Subject | None:
    """The first subject that is none of those named, by its digest."""
    digests = {(subject.algorithm, subject.digest) for subject in named}
    others = (each for each in subjects if (each.algorithm, each.digest) not in digests)
    return next(others, None)


def _names(named: Sequence[Subject]) -> str:
    return f"the certificate names {', '.join(map(str, named))}"


def signed_bytes(payload: bytes) -> bytes:
    """Return what the signature of an envelope is over: DSSE's pre-authentication encoding."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def _subjects(value: object) -> tuple[Subject, ...]:
    found = []
    for subject in value if isinstance(value, list) else []:
        digests = subject.get("digest") if isinstance(subject, dict) else None
        if not isinstance(digests, dict) or not isinstance(subject.get("name"), str):
            raise _refused("subject", "a name and digests for each")
        found += [Subject(subject["name"], name, str(value)) for name, value in digests.items()]
    if not found:
        raise _refused("subject", "one thing or more that was evaluated")
    return tuple(found)


def _public_key(certificate: object) -> str | None:
    """The public key that a certificate names, None for what has none."""
    signature = certificate.get("signature") if isinstance(certificate, dict) else None
    key = signature.get("public_key") if isinstance(signature, dict) else None
    return key if isinstance(key, str) and re.fullmatch("[0-9a-f]{64}", key) else None


def _object(content: bytes, field: str, what: str) -> dict[str, Any]:
    try:
        value = json_of(content)
    except (ValueError, RecursionError) as error:
        raise _refused(field, what) from error
    if not isinstance(value, dict):
        raise _refused(field, what)
    return value


def _decoded(value: object) -> bytes | None:
    if not isinstance(value, str):
        return None
    try:
        return base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error):
        return None


def _refused(field: str, rule: str) -> InvalidValue:
    return InvalidValue(f"{field} must be {rule}", field=field, rule=rule)
