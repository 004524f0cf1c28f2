"""Time stamps of openings (RFC 3161): somebody else's word that a session's plan was there then.

Stamped is what the ledger's chain starts with: the session and its plan, which names pool, claim,
policy and the seed's hash. The stamp is the service's whole answer, as base64 in a certificate.
"""

import base64
from collections.abc import Sequence

from cryptography.x509 import Certificate, ObjectIdentifier, load_pem_x509_certificates
from rfc3161_client import (
    PKIStatus,
    TimeStampResponse,
    VerificationError,
    VerifierBuilder,
    decode_timestamp_response,
)

LARGEST_STAMP = 1 << 16
"""Bytes of an answer; one with its signer's certificates has some thousand."""

_SHA256 = ObjectIdentifier("2.16.840.1.101.3.4.2.1")


class NotAStamp(ValueError):
    """An answer that is no time stamp of the digest sent, and why."""


def stamp_of(answer: bytes, start: bytes) -> TimeStampResponse:
    """The stamp in an answer; NotAStamp unless it is granted, and for this start of a chain."""
    try:
        stamp = decode_timestamp_response(answer)
        granted = PKIStatus(stamp.status) == PKIStatus.GRANTED
        imprint = stamp.tst_info.message_imprint if granted else None
    except ValueError as error:
        raise NotAStamp(f"no answer of a timestamping service ({str(error)[:100]})") from error
    if imprint is None:
        raise NotAStamp("a refusal of the timestamping service")
    if imprint.hash_algorithm != _SHA256 or imprint.message != start:
        raise NotAStamp(f"a stamp of {imprint.message.hex()}")
    return stamp


def check_issuer(stamp: TimeStampResponse, start: bytes, roots: Sequence[Certificate]) -> None:
    """NotAStamp unless who stamped was certified for it, at that time, by one of the roots."""
    try:
        VerifierBuilder(roots=list(roots)).build().verify(stamp, start)
    except (VerificationError, ValueError) as error:
        raise NotAStamp(f"a stamp that these roots do not vouch for ({str(error)[:60]})") from error


def time_of(stamp: TimeStampResponse) -> str:
    """The time in a stamp, ISO 8601."""
    return stamp.tst_info.gen_time.isoformat()


def to_text(answer: bytes) -> str:
    """An answer as a certificate holds it."""
    return base64.b64encode(answer).decode()


def from_text(text: str) -> bytes:
    """The answer whose ``to_text`` is ``text``; NotAStamp where there is none."""
    try:
        answer = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise NotAStamp("no base64") from error
    if len(answer) > LARGEST_STAMP or to_text(answer) != text:
        raise NotAStamp(f"no base64 of at most {LARGEST_STAMP} bytes")
    return answer


def roots_in(pem: bytes) -> list[Certificate]:
    """The certificates in a PEM file; ValueError when there are none."""
    return load_pem_x509_certificates(pem)
