"""The certificate: everything a claim rests on, as one canonical, signed document.

The document is canonical JSON (RFC 8785); a certificate's digest is SHA-256 of its bytes. Its
signature is Ed25519 over the canonical JSON of all members but ``signature``. Only the *final* one,
of a closed session, holds the seed: whoever knows the seed of an open session knows the draws to
come. docs/certificates.md describes every member.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from celeus.core.canonical import canonical_json
from celeus.core.certificates.best.claim import best_claim
from celeus.core.certificates.chain import chain_on, chain_start
from celeus.core.certificates.ed25519 import ALGORITHM, public_of, sign
from celeus.core.certificates.stamps import to_text
from celeus.core.certificates.table.claim import table_claim
from celeus.core.ledger import Draw
from celeus.core.plans.plan import Plan
from celeus.core.plans.raters import SOURCES
from celeus.core.pools.bounds import Basis, KnownLosses
from celeus.core.sessions.best.state import BestState
from celeus.core.sessions.either import AnyPlan, AnyState, risk_plan
from celeus.core.sessions.points import Point, Points
from celeus.core.sessions.rounds import Rounds
from celeus.core.sessions.state import State
from celeus.core.sessions.table.state import TableState

FORMAT = "celeus-certificate-2"

ASSUMPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "iid_sample": (
            "The pool is an iid sample of the population the claim speaks of, and whoever chose"
            " alpha, precision and bound did so without regard to which items it holds."
        ),
        "known_losses": "What is stated of losses that nobody judges is true.",
        "earlier_judgements": (
            "Judgements of an earlier version were carried over: its judges and those of this"
            " session follow one rule."
        ),
        "labels_seen": (
            "Whether the makers of the new version saw labels of this pool, or those of an earlier"
            " one that it is compared with, is as stated by who made the pool."
        ),
        "raters": "Several raters could judge an item.",
        "margin": "Pool risk and population risk differ by at most the margin stated in the plan.",
        "without_recentring": (
            "The bets ignore that items are drawn without replacement: a form for comparisons,"
            " whose interval carries no guarantee."
        ),
        "one_version": (
            "Losses were corrected: the claim holds for this version of the losses and not for"
            " all versions at once."
        ),
        "unforeseen_draws": (
            "Precision, budget or stop were changed while the session ran: whoever changed them"
            " could not foresee its draws."
        ),
        "independent_skips": (
            "Rounds were called unjudgeable when later ones were drawn: whether they were did not"
            " depend on the items of those."
        ),
        "independent_corrections": (
            "Whether and how a loss was corrected did not depend on the draws, the interval or"
            " the decisions."
        ),
    }
)
"""What a claim may rest on beside the draws. The claim for a pool as it was judged needs none."""
SEEN: Mapping[str, str] = MappingProxyType(
    {
        "yes": "They did: the claim is about these items and no others, which it may be made for.",
        "no": "They did not.",
        "unknown": "That is not known: the claim is about these items and no others.",
    }
)


@dataclass(frozen=True, slots=True)
class Position:
    """What a certificate takes from a session's state, which later events change.

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
class Account:
    """What a certificate says of a session.

    ``session`` are the bytes of its UUID and ``header`` is that of its pool; ``records`` are the
    events up to the position, each as canonical JSON. ``seed`` is None for an interim certificate,
    ``supersedes`` the digest of the last certificate issued before a correction. ``pool_sessions``
    counts the sessions its project opened on the pool, which only the service knows. ``stamp`` is
    the time stamp of its opening, if there is one.
    """

    session: bytes
    header: Mapping[str, Any]
    position: Position
    records: Sequence[bytes]
    seed: bytes | None
    issued_at: str
    supersedes: str | None
    pool_sessions: Mapping[str, int]
    stamp: bytes | None = None


def position_of(plan: AnyPlan, state: AnyState, *, amended: bool) -> Position:
    """The position of ``state`` now; ``amended`` when one of its events is a correction."""
    if isinstance(state, BestState):
        return Position(plan, best_claim(state), Points(), Rounds(), None)
    if isinstance(state, TableState):
        return Position(plan, table_claim(state), Points(), Rounds(), None)
    points = state.points[:]
    return Position(
        plan=plan,
        claim=claim_of(risk_plan(plan), state, amended=amended),
        points=points,
        rounds=state.rounds[:],
        surrogates=points[0].surrogates_left if points else state.fold.predictor.surrogates_left,
    )


def certificate(account: Account, key: Ed25519PrivateKey) -> bytes:
    """The certificate's bytes; the same account and key give the same."""
    return signed(document(account), key)


def signed(body: Mapping[str, Any], key: Ed25519PrivateKey) -> bytes:
    """A document with its signature, as canonical JSON; a member of bytes is so already."""
    members = {name: _member(name, body[name]) for name in body}
    signature = {
        "algorithm": ALGORITHM,
        "public_key": public_of(key).hex(),
        "value": sign(_joined(members), key).hex(),
    }
    return _joined(members | {"signature": _member("signature", signature)})


def _joined(members: Mapping[str, bytes]) -> bytes:
    return b"{" + b",".join(members[name] for name in sorted(members)) + b"}"


def message_of(data: bytes, document: Mapping[str, Any]) -> bytes:
    """What a certificate's signature is over, ``data`` being the canonical JSON of ``document``."""
    after = _after(document)
    signature = b"," + _member("signature", document["signature"])
    return data.removesuffix(after).removesuffix(signature) + after


def _after(document: Mapping[str, Any]) -> bytes:
    """The end of a certificate: the members whose names come after ``signature``.

    Canonical JSON sorts members by name, so that the signature is taken out and put in right
    before them; writing megabytes of ledger anew for it would take most of a second.
    """
    names = sorted(name for name in document if name > "signature")
    return b"".join(b"," + _member(name, document[name]) for name in names) + b"}"


def _member(name: str, value: Any) -> bytes:  # noqa: ANN401 -- JSON
    """A member as canonical JSON has it."""
    encoded = value if isinstance(value, bytes) else canonical_json(value)
    return canonical_json(name) + b":" + encoded


def digest_of(data: bytes) -> str:
    """A certificate's digest in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def document(account: Account) -> dict[str, Any]:
    """All members of the certificate but its signature; the ledger is canonical JSON already."""
    position = account.position
    plan = position.plan
    start = chain_start(account.session, bytes.fromhex(plan.digest))
    final = account.seed is not None
    return {
        "format": FORMAT,
        "kind": "final" if final else "interim",
        "final": final,
        "session_id": f"ses_{account.session.hex()}",
        "issued_at": account.issued_at,
        "supersedes": account.supersedes,
        "pool_sessions": dict(account.pool_sessions),
        "method_version": plan.method_version,
        "claim": dict(position.claim),
        "plan": plan.to_dict(),
        "plan_digest": plan.digest,
        "pool": dict(account.header),
        "pool_digest": plan.pool_digest,
        "commitment": plan.commitment,
        "seed": None if account.seed is None else account.seed.hex(),
        "ledger": b"[" + b",".join(account.records) + b"]",
        "chain": {"start": start.hex(), "head": chain_on(start, account.records).hex()},
        "surrogates": position.surrogates,
        "rounds": None
        if position.surrogates is None
        else rounds_of(position.points, (one.draw for one in position.rounds)),
        **({} if account.stamp is None else {"timestamp": to_text(account.stamp)}),
    }


def claim_of(plan: Plan, state: State, *, amended: bool) -> dict[str, Any]:
    """What is claimed after the events of ``state``; ``amended`` when one is a correction."""
    interval, pool = state.interval, state.fold.pool_interval
    unjudgeable = state.rounds.unjudgeable(state.folded)
    skipped = state.rounds.skipped_ahead is not None
    claim: dict[str, Any] = {
        "target": plan.target,
        "alpha": plan.alpha,
        "precision": state.stopping.precision,
        "budget": state.stopping.budget,
        "fixed": plan.fixed,
        "changes": state.changes,
        "interval": {"lower": interval.lower, "upper": interval.upper},
        "pool_interval": {"lower": pool.lower, "upper": pool.upper},
        "estimate": state.estimate,
        "labels": state.folded - unjudgeable,
        "unjudgeable": unjudgeable,
        "rounds": state.counts,
        "stop_reason": state.stop_reason,
        "emptied": state.fold.emptied,
        "assumptions": assumptions_of(
            plan, amended=amended, changed=state.changes > 0, skipped=skipped
        ),
    }
    if plan.weights is not None:
        claim["effective_items"] = plan.weights.effective_items
    if plan.systems is not None:
        claim["systems"] = plan.named
    if plan.score is not None:
        claim["score"] = plan.score.values(interval, state.estimate, plan.scale)
    if plan.questions:
        claim["decisions"] = [one.to_dict() for one in state.decisions]
    if state.verdict is not None:
        claim["verdict"] = state.verdict.to_dict()
    return claim


def assumptions_of(
    plan: Plan, *, amended: bool, changed: bool, skipped: bool
) -> list[dict[str, str]]:
    """What the claim rests on, as ``{code, text}``; empty when on nothing but the draws.

    ``skipped``: with later draws out, which matters where bets are not fixed at the draw.
    """
    codes = {
        "margin": plan.target == "population" and plan.bound.kind == "margin",
        "iid_sample": plan.target == "population" and plan.bound.kind != "margin",
        "known_losses": plan.believed is not None,
        "earlier_judgements": plan.believed is not None and plan.based_on is not None,
        "labels_seen": plan.based_on is not None,
        "raters": plan.raters is not None,
        "without_recentring": not plan.policy.recentred,
        "unforeseen_draws": changed,
        "independent_skips": skipped and not plan.bets_fixed_at_draw,
        "one_version": amended,
        "independent_corrections": amended,
    }
    own = _particulars(plan)
    return [
        {"code": code, "text": ASSUMPTIONS[code] + own.get(code, "")}
        for code, rests in codes.items()
        if rests
    ]


def _particulars(plan: Plan) -> dict[str, str]:
    """What the assumptions say of this plan only."""
    own = {"margin": f" The reason given: {plan.bound.assumption}"}
    if plan.raters is not None:
        own["raters"] = f" {SOURCES[plan.raters]}"
    if plan.believed is not None:
        own["known_losses"] = f" {stated(plan.believed, plan.items)}"
    if plan.based_on is not None:
        own["earlier_judgements"] = f" {source(plan.based_on)}"
        own["labels_seen"] = f" {SEEN[plan.based_on.labels_seen]}"
    return own


def source(basis: Basis) -> str:
    """Where the judgements are from."""
    if basis.certificate is None:
        return f"They are those of {basis.session}, which has no certificate."
    return (
        f"They are those of {basis.session}, whose certificate has the digest {basis.certificate}."
    )


def stated(known: KnownLosses, items: int) -> str:
    """What is stated of how many losses, and why."""
    parts = []
    if known.items:
        reasons = ", ".join(f"{one} ({known.reasons[one]})" for one in sorted(known.reasons))
        parts.append(
            f"The losses of {known.items} of {items} items were known before the first draw:"
            f" {reasons}."
        )
    if known.bounded:
        given = [f"{one} ({known.bounds[one]})" for one in sorted(known.bounds)]
        without = known.bounded - sum(known.bounds.values())
        given += [f"without a reason ({without})"] if given and without else []
        reasons = f": {', '.join(given)}" if given else ""
        parts.append(f"Those of {known.bounded} items lie within bounds stated of each{reasons}.")
    return " ".join(parts)


def rounds_of(points: Iterable[Point], draws: Iterable[Draw]) -> dict[str, Any]:
    """The folded rounds as columns, one value a round; ``draws`` may hold more than were folded.

    ``other`` holds the second completion where its plug-in part is another one.
    """
    folded = list(points)
    folded_draws = [draw for draw, _ in zip(draws, folded, strict=False)]
    apart = [point for point in folded if point.minus.plug_in != point.plus.plug_in]
    predicted = bool(folded) and folded[0].variance is not None
    return {
        "q": [draw.q for draw in folded_draws],
        "seen": [draw.seen for draw in folded_draws],
        "guess": [point.plus.surrogate for point in folded],
        "left": [point.surrogates_left for point in folded],
        "plug_in": [point.plus.plug_in for point in folded],
        "range_lower": [point.plus.signal_range.lower for point in folded],
        "range_upper": [point.plus.signal_range.upper for point in folded],
        "variance": [point.variance for point in folded] if predicted else None,
        "estimate": [point.estimate for point in folded],
        "lower": [point.interval.lower for point in folded],
        "upper": [point.interval.upper for point in folded],
        "other": {
            "round": [point.round for point in apart],
            "plug_in": [point.minus.plug_in for point in apart],
            "range_lower": [point.minus.signal_range.lower for point in apart],
            "range_upper": [point.minus.signal_range.upper for point in apart],
        },
    }
