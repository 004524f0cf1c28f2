"""The members of a certificate with their types, and their form before any is believed."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Final

from celeus.core.certificate.ed25519 import OF_DIGEST, of_small_order
from celeus.core.certificate.parsing import check_format, moment, parse
from celeus.core.plain import (
    HEX,
    SESSION,
    Count,
    Digest,
    Mismatch,
    Plain,
    equal,
    listed,
    only,
    same,
    text,
    whole,
)
from celeus.core.session.assumptions import OWN_PROCESS

FORMAT: Final = "celeus-certificate-2"
_FORMAT: Final = re.compile(rb'"format"\s*:\s*"%b"' % FORMAT.encode())
PUSHED: Final = "pushed"
"""The kind of an origin: the session ran in a process of its own, and its file was brought here."""
SIGNATURE: Final = re.compile(r"[0-9a-f]{128}")
Moment = Annotated[str, moment]


@dataclass(frozen=True, slots=True)
class PoolSessions(Plain):
    """The sessions on the pool: the number of this one, and how many others there were."""

    number: Count
    total: Count
    others_open: int
    others_certified: int
    others_closed_without_certificate: int
    others_deleted: Count = 0

    optional: ClassVar = ("others_deleted",)

    def check(self) -> None:
        """Refuse counts that do not add up; whether they are true only the service knows."""
        whole(self.number, "pool_sessions.number", 1, self.total)
        others = self.others_open + self.others_certified + self.others_closed_without_certificate
        equal("pool_sessions.total", self.total, others + self.others_deleted + 1)


@dataclass(frozen=True, slots=True)
class Chain(Plain):
    """The ends of the hash chain over the ledger."""

    start: Digest
    head: Digest


@dataclass(frozen=True, slots=True)
class SignatureMember(Plain):
    """The signature of a statement by the holder of a key."""

    algorithm: Annotated[str, partial(only, due=OF_DIGEST)]
    public_key: Digest
    value: Annotated[str, partial(text, form=SIGNATURE)]


@dataclass(frozen=True, slots=True)
class Origin(Plain):
    """The moment at which a session that ran in a process of its own was pushed."""

    kind: Annotated[str, partial(only, due=PUSHED)]
    at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement(Plain):
    """The signed members of a certificate; those of any type are read where the rest is known."""

    format: Annotated[str, partial(only, due=FORMAT)]
    kind: str
    final: bool
    session_id: Annotated[str, partial(text, form=SESSION)]
    issued_at: Moment
    supersedes: Digest | None
    pool_sessions: PoolSessions | None
    method_version: Any
    claim: Any
    plan: Any
    plan_digest: Digest
    pool: Any
    pool_digest: Digest
    commitment: Digest
    seed: Any
    ledger: Any
    chain: Chain
    surrogates: Any
    rounds: Any
    timestamp: str | None = None
    origin: Origin | None = None

    optional: ClassVar = ("timestamp", "origin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate(Statement):
    """A statement with its signature."""

    signature: SignatureMember


def certificate_in(data: bytes) -> Certificate:
    """Return the certificate; Mismatch unless its bytes are canonical JSON of this form."""
    check_format(data, None if _FORMAT.search(data) is None else FORMAT, FORMAT)
    found = Certificate.from_dict(parse(data, FORMAT))
    equal("kind", found.kind, "final" if found.final else "interim")
    if found.final:
        text(found.seed, "seed", HEX)
    else:
        equal("seed", found.seed, None)
    if found.pool_sessions is not None:
        found.pool_sessions.check()
    public_key = found.signature.public_key
    if of_small_order(bytes.fromhex(public_key)):
        raise Mismatch("signature.public_key", public_key, "a key that only its owner can sign for")
    if found.origin is not None:
        _check_pushed(found, found.origin)
    return found


def _check_pushed(certificate: Certificate, origin: Origin) -> None:
    """A session that was pushed was closed by then, nobody counted others, and its claim says so.

    Nor has it a time stamp, which would be one of its end.
    """
    equal("issued_at", certificate.issued_at, origin.at)
    equal("final", certificate.final, found=True)
    values = certificate.to_dict()
    for name in ("pool_sessions", "supersedes", "timestamp"):
        equal(name, values.get(name), None)
    claim = certificate.claim if isinstance(certificate.claim, dict) else {}
    assumed = listed(claim.get("assumptions"), "claim.assumptions")
    same("claim.assumptions, the last one", assumed[-1] if assumed else None, dict(OWN_PROCESS))
