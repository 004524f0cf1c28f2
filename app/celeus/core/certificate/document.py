"""The certificate: everything a claim rests on, as one canonical, signed document.

The document is canonical JSON (RFC 8785); a certificate's digest is SHA-256 of its bytes. Its
signature is Ed25519 over the SHA-256 digest of the canonical JSON of all members but ``signature``.
Only the *final* one, of a closed session, holds the seed: whoever knows the seed of an open session
knows the draws to come. docs/certificates.md describes every member.
"""

import hashlib
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from celeus.core.canonical import canonical_json
from celeus.core.certificate.chain import chain_on, chain_start
from celeus.core.certificate.claim import claim_of
from celeus.core.certificate.ed25519 import OF_DIGEST, public_of, sign, signed_by
from celeus.core.certificate.layout import (
    FORMAT,
    Certificate,
    Chain,
    Origin,
    PoolSessions,
    SignatureMember,
    Statement,
)
from celeus.core.certificate.members import COLUMNS, OTHER
from celeus.core.certificate.stamps import to_text
from celeus.core.session.assumptions import OWN_PROCESS
from celeus.core.session.mean import Mean
from celeus.core.session.points import Points
from celeus.core.session.question import AnyPlan
from celeus.core.session.rounds import Rounds
from celeus.core.session.session import AnySession


@dataclass(frozen=True, slots=True)
class Pieces:
    """Canonical JSON in pieces: to copy the megabytes of a long session keeps everybody waiting."""

    pieces: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Position:
    """The parts of a session's state that a certificate holds; later events change the state.

    ``points`` are the folded rounds, ``rounds`` all of them, ``surrogates`` is the sum over the
    pool before the first round. Where the best of several systems is sought, or many claims are
    made about a table, there are none, and ``surrogates`` is None.
    """

    plan: AnyPlan
    claim: Mapping[str, Any]
    points: Points
    rounds: Rounds
    surrogates: float | None


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """The facts of a session that a certificate states.

    ``session`` are the bytes of its UUID and ``header`` is that of its pool; ``records`` are the
    events up to the position, each as canonical JSON. ``seed`` is None for an interim certificate,
    ``supersedes`` the digest of the last certificate issued before a correction. ``pool_sessions``
    counts the sessions its project opened on the pool, which only the service knows: None of a
    session in a process of its own. ``stamp`` is the time stamp of its opening, if there is one.
    """

    session: bytes
    header: Mapping[str, Any]
    position: Position
    records: Sequence[bytes]
    seed: bytes | None
    issued_at: str
    supersedes: str | None
    pool_sessions: Mapping[str, int] | None
    stamp: bytes | None = None
    origin: Mapping[str, str] | None = None


def position_of(session: AnySession) -> Position:
    """The position of ``session`` now."""
    question, claim = session.question, claim_of(session)
    if not isinstance(question, Mean):
        return Position(session.plan, claim, Points(), Rounds(), None)
    points = question.points[:]
    start = points[0].surrogates_left if points else question.fold.surrogates_left
    return Position(session.plan, claim, points, session.rounds[:], start)


def certificate(account: SessionFacts, key: Ed25519PrivateKey) -> bytes:
    """The certificate's bytes; the same account and key give the same."""
    return signed(document(account), key)


def signed(body: Mapping[str, Any], key: Ed25519PrivateKey) -> bytes:
    """A document with its signature, as canonical JSON."""
    members = {name: _member(name, body[name]) for name in body}
    message = hashlib.sha256()
    for piece in _object(members):
        message.update(piece)
    value = sign(message.digest(), key).hex()
    signature = SignatureMember(OF_DIGEST, public_of(key).hex(), value).to_dict()
    whole = io.BytesIO()
    for piece in _object(members | {"signature": _member("signature", signature)}):
        whole.write(piece)
    return whole.getvalue()


def signs(document: Certificate, data: bytes) -> bool:
    """Return whether the holder of its key signed a certificate.

    ``data`` is its canonical JSON.
    """
    signature = document.signature
    digest = hashlib.sha256(_message_of(data, document.to_dict())).digest()
    return signed_by(digest, bytes.fromhex(signature.value), bytes.fromhex(signature.public_key))


def _message_of(data: bytes, document: Mapping[str, Any]) -> bytes:
    """The canonical JSON of all members but the signature."""
    after = _after(document)
    signature = b"," + b"".join(_member("signature", document["signature"]))
    return data.removesuffix(after).removesuffix(signature) + after


def _after(document: Mapping[str, Any]) -> bytes:
    """The end of a certificate: the members whose names come after ``signature``.

    Canonical JSON sorts members by name, so that the signature is taken out and put in right
    before them; writing megabytes of ledger anew for it would take most of a second.
    """
    names = sorted(name for name in document if name > "signature")
    return b"".join(b"," + b"".join(_member(name, document[name])) for name in names) + b"}"


def _member(name: str, value: Any) -> Iterable[bytes]:  # noqa: ANN401 -- JSON
    """A member as canonical JSON has it, in pieces."""
    pieces = value.pieces if isinstance(value, Pieces) else (canonical_json(value),)
    return (canonical_json(name) + b":", *pieces)


def _object(members: Mapping[str, Iterable[bytes]]) -> Iterator[bytes]:
    """An object with these members, in pieces."""
    before = b"{"
    for name in sorted(members):
        yield before
        yield from members[name]
        before = b","
    yield b"}"


def _ledger(records: Iterable[bytes]) -> Pieces:
    pieces = [piece for record in records for piece in (b",", record)]
    return Pieces((b"[", *pieces[1:], b"]"))


def _columns(columns: dict[str, Any]) -> Pieces:
    """An object with these members, which are let go of one by one."""
    names = list(columns)
    return Pieces(tuple(_object({name: _member(name, columns.pop(name)) for name in names})))


def digest_of(data: bytes) -> str:
    """A certificate's digest in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def document(account: SessionFacts) -> dict[str, Any]:
    """All members of the certificate but its signature."""
    position = account.position
    plan = position.plan
    start = chain_start(account.session, bytes.fromhex(plan.digest))
    siblings, final = account.pool_sessions, account.seed is not None
    return Statement(
        format=FORMAT,
        kind="final" if final else "interim",
        final=final,
        session_id=f"ses_{account.session.hex()}",
        issued_at=account.issued_at,
        supersedes=account.supersedes,
        pool_sessions=None if siblings is None else PoolSessions.from_dict(siblings),
        method_version=plan.method_version,
        claim=_claimed(account),
        plan=plan.to_dict(),
        plan_digest=plan.digest,
        pool=account.header,
        pool_digest=plan.pool_digest,
        commitment=plan.commitment,
        seed=None if account.seed is None else account.seed.hex(),
        ledger=_ledger(account.records),
        chain=Chain(start.hex(), chain_on(start, account.records).hex()),
        surrogates=position.surrogates,
        rounds=None
        if position.surrogates is None
        else _columns(rounds_of(position.points, position.rounds.q, position.rounds.seen)),
        timestamp=None if account.stamp is None else to_text(account.stamp),
        origin=None if account.origin is None else Origin.from_dict(account.origin),
    ).to_dict()


def _claimed(account: SessionFacts) -> dict[str, Any]:
    """The claim, and of a pushed session what it rests on besides."""
    claim = dict(account.position.claim)
    if account.origin is not None:
        claim["assumptions"] = [*claim["assumptions"], dict(OWN_PROCESS)]
    return claim


def rounds_of(points: Points, q: Sequence[float], seen: Sequence[int]) -> dict[str, Any]:
    """The folded rounds as columns, one value a round; ``q`` and ``seen`` are those of the draws.

    There may be more draws than were folded. ``other`` holds the second completion where its
    plug-in part is another one. Columns are taken whole: an object a round is let go of all at
    once, for which everybody waits.
    """
    count = len(points)
    estimate, lower, upper, left, variance = points.results.columns
    plug_in, range_lower, range_upper, surrogate, _, _ = points.plus.columns
    minus = points.minus.columns
    apart = [
        (points.minus_start + row, row)
        for row, other in enumerate(minus[0])
        if other != plug_in[points.minus_start + row]
    ]
    predicted = count > 0 and not math.isnan(variance[0])
    columns = (
        list(q[:count]),
        list(seen[:count]),
        surrogate,
        left,
        plug_in,
        range_lower,
        range_upper,
        variance if predicted else None,
        estimate,
        lower,
        upper,
    )
    second = (
        [points.first + place for place, _ in apart],
        *([column[row] for _, row in apart] for column in minus[:3]),
    )
    return {
        **dict(zip(COLUMNS, columns, strict=True)),
        "other": dict(zip(OTHER, second, strict=True)),
    }
