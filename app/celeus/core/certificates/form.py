"""The form of a certificate: which members it has, and of which types, before any is believed."""

import re
from typing import Final

from celeus.core.certificates.document import FORMAT
from celeus.core.certificates.ed25519 import ALGORITHM
from celeus.core.certificates.parsing import (
    DIGEST,
    HEX,
    MOMENT,
    Object,
    equal,
    flag,
    members,
    parse,
    text,
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
    "rounds",
    "seed",
    "session_id",
    "signature",
    "supersedes",
    "surrogates",
)
SESSION: Final = re.compile(r"ses_[0-9a-f]{32}")
SIGNATURE: Final = re.compile(r"[0-9a-f]{128}")


def form_of(data: bytes) -> Object:
    """The document in a certificate's bytes; Mismatch unless it is canonical and has this form."""
    document = members(parse(data), "", MEMBERS)
    equal("format", document["format"], FORMAT)
    text(document["issued_at"], "issued_at", MOMENT)
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
    chain = members(document["chain"], "chain", ("start", "head"))
    text(chain["start"], "chain.start", DIGEST)
    text(chain["head"], "chain.head", DIGEST)
    signature = members(document["signature"], "signature", ("algorithm", "public_key", "value"))
    equal("signature.algorithm", signature["algorithm"], ALGORITHM)
    text(signature["public_key"], "signature.public_key", DIGEST)
    text(signature["value"], "signature.value", SIGNATURE)
    return document
