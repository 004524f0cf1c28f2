"""The hash chain over a session's ledger: one event changed, added or left out moves its head.

    start    SHA-256("celeus-ledger-1" + the session's 16 bytes + the 32 bytes of the plan's digest)
    next     SHA-256(the head before + the record as canonical JSON, RFC 8785)

A record holds what the ledger keeps of an event, without what is null: sequence, kind, round,
item, q, strata_q (the bytes of little-endian float64, in hexadecimal), seen, loss, losses (of
several systems), detail, at.
Whoever noted a head can tell later whether the ledger still begins with those events.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celeus.core.canonical import canonical_json
from celeus.core.certificate.members import RECORDS
from celeus.core.ledger import Event

KINDS: Mapping[type, str] = MappingProxyType({event: form.kind for event, form in RECORDS.items()})
"""The names of the kinds of event, here and on the wire."""

_NAME = b"celeus-ledger-1"
_STRATA = np.dtype("<f8")

Record = Mapping[str, Any]


def opening(session: bytes, plan_digest: bytes) -> bytes:
    """The bytes that the chain starts with and a time stamp covers; ``session`` is its UUID."""
    return _NAME + session + plan_digest


def chain_start(session: bytes, plan_digest: bytes) -> bytes:
    """The head of an empty ledger, SHA-256 of its ``opening``."""
    return hashlib.sha256(opening(session, plan_digest)).digest()


def chain_next(head: bytes, record: Record) -> bytes:
    """The head after one more record."""
    return chain_on(head, [canonical_json(dict(record))])


def chain_on(head: bytes, records: Iterable[bytes]) -> bytes:
    """The head after these records, which are canonical JSON already."""
    for record in records:
        head = hashlib.sha256(head + record).digest()
    return head


def chain_head(head: bytes, records: Iterable[Record]) -> bytes:
    """The head after these records."""
    for record in records:
        head = chain_next(head, record)
    return head


def chain_heads(head: bytes, records: Iterable[Record]) -> Iterator[bytes]:
    """The head before the first record, and after each."""
    yield head
    for record in records:
        head = chain_next(head, record)
        yield head


def record_of(
    sequence: int, event: Event, detail: Mapping[str, Any] | None, at: str
) -> dict[str, Any]:
    """An event as the chain and the certificate hold it; ``at`` is ISO 8601 to the microsecond."""
    record: dict[str, Any] = {"sequence": sequence, "kind": KINDS[type(event)], "at": at}
    if detail is not None:
        record["detail"] = dict(detail)
    record |= RECORDS[type(event)].values(event)
    if "losses" in record:
        record["losses"] = list(record["losses"])
    if "strata_q" in record:
        record["strata_q"] = strata_hex(record["strata_q"])
    return record


def strata_hex(strata_q: NDArray[np.float64]) -> str:
    """The probabilities of the strata as a record holds them."""
    return strata_q.astype(_STRATA, copy=False).tobytes().hex()


def strata_of_hex(text: str) -> NDArray[np.float64]:
    """The numbers whose ``strata_hex`` gave ``text``; ValueError when none did."""
    return np.frombuffer(bytes.fromhex(text), dtype=_STRATA).astype(np.float64)
