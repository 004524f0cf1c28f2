"""The form of a certificate: which members it has, and of which types, before any is believed."""

import re
from typing import Final

from celeus.core.certificate.document import FORMAT, OWN_PROCESS, PUSHED
from celeus.core.certificate.ed25519 import OF_DIGEST, of_small_order
from celeus.core.certificate.parsing import moment, parse
from celeus.core.plain import (
    DIGEST,
    HEX,
    Mismatch,
    Object,
    equal,
    flag,
    listed,
    members,
    same,
    text,
    whole,
)

MEMBERS = (
    "chain",
    "claim",
    "commitment",
    "final",
    "format",
    "issued_at",
    "kind",
    "ledger",
    "method_version",
    "plan",
    "plan_digest",
    "pool",
    "pool_digest",
    "pool_sessions",
    "rounds",
    "seed",
    "session_id",
    "signature",
    "supersedes",
    "surrogates",
)
OPTIONAL = ("origin", "timestamp")
SESSION: Final = re.compile(r"ses_[0-9a-f]{32}")
SIGNATURE: Final = re.compile(r"[0-9a-f]{128}")
OTHERS = ("others_open", "others_certified", "others_closed_without_certificate")
DELETED = "others_deleted"
"""Of the others, left out where there is none."""


def form_of(data: bytes) -> Object:
    """The document in a certificate's bytes; Mismatch unless it is canonical and has this form."""
    document = members(parse(data), "", MEMBERS, OPTIONAL)
    equal("format", document["format"], FORMAT)
    moment(document["issued_at"], "issued_at")
    final = flag(document["final"], "final")
    equal("kind", document["kind"], "final" if final else "interim")
    text(document["session_id"], "session_id", SESSION)
    for name in ("commitment", "plan_digest", "pool_digest"):
        text(document[name], name, DIGEST)
    if document["supersedes"] is not None:
        text(document["supersedes"], "supersedes", DIGEST)
    if final:
        text(document["seed"], "seed", HEX)
    else:
        equal("seed", document["seed"], None)
    _pool_sessions(document["pool_sessions"])
    chain = members(document["chain"], "chain", ("start", "head"))
    text(chain["start"], "chain.start", DIGEST)
    text(chain["head"], "chain.head", DIGEST)
    signature = members(document["signature"], "signature", ("algorithm", "public_key", "value"))
    equal("signature.algorithm", signature["algorithm"], OF_DIGEST)
    public_key = text(signature["public_key"], "signature.public_key", DIGEST)
    if of_small_order(bytes.fromhex(public_key)):
        raise Mismatch("signature.public_key", public_key, "a key that only its owner can sign for")
    text(signature["value"], "signature.value", SIGNATURE)
    if "timestamp" in document:
        text(document["timestamp"], "timestamp")
    if "origin" in document:
        _origin(document)
    return document


def _origin(document: Object) -> None:
    """A session that was pushed was closed by then, nobody counted others, and its claim says so.

    Nor has it a time stamp, which would be one of its end.
    """
    origin = members(document["origin"], "origin", ("kind", "at"))
    equal("origin.kind", origin["kind"], PUSHED)
    equal("issued_at", document["issued_at"], moment(origin["at"], "origin.at"))
    equal("final", document["final"], found=True)
    for name in ("pool_sessions", "supersedes", "timestamp"):
        equal(name, document.get(name), None)
    claim = document["claim"] if isinstance(document["claim"], dict) else {}
    assumed = listed(claim.get("assumptions"), "claim.assumptions")
    same("claim.assumptions, the last one", assumed[-1] if assumed else None, dict(OWN_PROCESS))


def _pool_sessions(value: object) -> None:
    """Counts of the pool's sessions that add up; whether they are true only the service knows.

    There are none of a session in a process of its own, which knows of no other.
    """
    if value is None:
        return
    counts = members(value, "pool_sessions", ("number", "total", *OTHERS), (DELETED,))
    total = whole(counts["total"], "pool_sessions.total", 1)
    whole(counts["number"], "pool_sessions.number", 1, total)
    others = sum(whole(counts[name], f"pool_sessions.{name}") for name in OTHERS)
    if DELETED in counts:
        others += whole(counts[DELETED], f"pool_sessions.{DELETED}", 1)
    equal("pool_sessions.total", total, others + 1)
