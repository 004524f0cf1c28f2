"""The status document of a session: what it says of itself at any moment."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from celeus.core.insights.forecast import forecast
from celeus.core.insights.lines import Measure, holds, progress
from celeus.core.insights.sentences import Contrast, best_sentence, sentence, table_sentence
from celeus.core.plans.plan import Plan, precision_warning
from celeus.core.plans.stopping import Decision, rounding
from celeus.core.plans.table import TablePlan
from celeus.core.pools.pool import Pool
from celeus.core.sessions.best.state import BestState
from celeus.core.sessions.either import AnyPlan, AnyState, risk_plan
from celeus.core.sessions.raters import Ratings
from celeus.core.sessions.state import State
from celeus.core.sessions.table.claims import ClaimState
from celeus.core.sessions.table.state import TableState

LOST = (
    "for each an event of probability at most its level has happened, or the logical limits are"
    " narrower than a cell; the last interval stays"
)
MOST_NAMED = 5
"""Claims that a warning names; it counts the others."""

NO_INTERVAL: Final[dict[str, Any]] = {
    "target": "pool",
    "policy": None,
    "strategy": None,
    "scale": None,
    "estimate": None,
    "lower": None,
    "upper": None,
    "width": None,
    "score": None,
    "decisions": [],
    "verdict": None,
    "systems": None,
    "sides": None,
    "raters": None,
    "best": None,
    "table": None,
    "effective_items": None,
    "warnings": [],
}
"""The members of a status document that speak of one interval, where a session has none."""


@dataclass(frozen=True, slots=True)
class Header:
    """What is kept of a session and its state does not contain.

    ``session`` and ``pool`` are ids as the wire has them, ``created_at`` is ISO 8601 in UTC to the
    microsecond, ``ledger_head`` hexadecimal. ``origin`` says of a session that was pushed when it
    came; None of one that ran here. ``planned_labels`` are the median of a plan made before the
    opening, and its 10 and 90 %; ``seconds_per_label`` is the recent
    pace of all judges together. ``owner`` is who opened it, ``tags`` what people file it under,
    ``active_at`` the minute of its last event, as ``created_at`` is written.
    """

    session: str
    pool: str
    lifecycle: str
    revision: int
    lease_seconds: int
    created_at: str
    ledger_head: str
    name: str | None = None
    contradictions: Sequence[Mapping[str, Any]] = ()
    origin: Mapping[str, str] | None = None
    owner: str | None = None
    tags: Sequence[str] = ()
    active_at: str | None = None
    archived: bool = False
    planned_labels: Mapping[str, int] | None = None
    seconds_per_label: float | None = None


def session_state(lifecycle: str, state: AnyState) -> str:
    """The session's state in one word: its lifecycle, its stop reason, or ``active``."""
    if lifecycle != "active":
        return lifecycle
    return state.stop_reason or "active"


def status_document(session: Header, plan: AnyPlan, state: AnyState, pool: Pool) -> dict[str, Any]:
    """The status document as plain JSON values; never contains the seed."""
    if isinstance(state, BestState):
        claim = NO_INTERVAL | _best(state)
    elif isinstance(state, TableState):
        claim = NO_INTERVAL | _table(session, state)
    else:
        claim = _risk(session, risk_plan(plan), state, pool)
    reason = state.stop_reason
    stopped = reason is not None or session.lifecycle == "closed"
    document = {
        "id": session.session,
        "name": session.name,
        "pool_id": session.pool,
        "state": session_state(session.lifecycle, state),
        "alpha": plan.alpha,
        "method_version": plan.method_version,
        "round": state.folded,
        "precision": state.stopping.precision,
        "budget": state.stopping.budget,
        "items": plan.items,
        "known": plan.items - plan.drawable,
        "stopped": stopped,
        "stop_reason": reason,
        "stop_when_decided": state.stopping.stop_when_decided,
        "fixed": plan.fixed,
        "changes": state.changes,
        "rounds": state.counts,
        "forecast": None if stopped else _forecast(session, plan, state),
        "planned_labels": None if session.planned_labels is None else dict(session.planned_labels),
        "contradictions": list(session.contradictions),
        "sequence": state.sequence,
        "revision": session.revision,
        "lease_seconds": session.lease_seconds,
        "commitment": plan.commitment,
        "ledger_head": session.ledger_head,
        "created_at": session.created_at,
        "origin": None if session.origin is None else dict(session.origin),
        "owner": session.owner,
        "tags": list(session.tags),
        "active_at": session.active_at,
        "archived": session.archived,
    } | claim
    return document | _words(document, plan, state, pool)


def _forecast(session: Header, plan: AnyPlan, state: AnyState) -> dict[str, Any] | None:
    """Labels left, of a session that measures one risk; others have no forecast."""
    if not isinstance(state, State):
        return None
    found = forecast(risk_plan(plan), state)
    return (
        None if found is None else asdict(found) | {"seconds_per_label": session.seconds_per_label}
    )


def _words(document: dict[str, Any], plan: AnyPlan, state: AnyState, pool: Pool) -> dict[str, Any]:
    """The sentence, and the lines beside it."""
    inside, labels = state.folded, document["rounds"]["judged"]
    answers: list[dict[str, str]] = []
    if isinstance(state, BestState):
        said = best_sentence(document)
    elif isinstance(state, TableState):
        said = table_sentence(document)
    else:
        skipped = state.rounds.unjudgeable(state.folded)
        inside -= skipped
        behind = state.observed > state.folded
        labels -= state.rounds.unjudgeable(state.drawn) if behind else skipped
        frozen = risk_plan(plan)
        contrast = Contrast.of(pool.scale, pool.systems, pool.score)
        promised = frozen.policy.recentred
        said = sentence(document, pool.measured, contrast, labels=inside, promised=promised)
        weighted = frozen.weights is not None
        answers = Measure(pool.scale, pool.named, pool.measured, weighted).answers(document)
    words = {
        "answers": answers,
        "progress": progress(document, labels),
        "holds": holds(document, labels, inside),
        "labels": labels,
        "in_interval": inside,
    }
    return {"sentence": said, "words": words}


def _risk(session: Header, plan: Plan, state: State, pool: Pool) -> dict[str, Any]:
    """What a session says that measures a risk."""
    interval = state.interval
    return {
        "scale": {"lower": plan.lower, "upper": plan.upper},
        "target": plan.target,
        "policy": plan.policy.name,
        "strategy": plan.strategy,
        "estimate": state.estimate,
        "lower": interval.lower,
        "upper": interval.upper,
        "width": interval.width,
        "score": pool.measured.values(interval, state.estimate, plan.scale),
        "decisions": [one.to_dict() for one in state.decisions],
        "verdict": None if state.verdict is None else state.verdict.to_dict(),
        "systems": plan.named,
        "sides": None if state.sides is None else state.sides.preferred(state.rounds),
        "raters": None if state.ratings is None else _raters(state.ratings),
        "best": None,
        "table": None,
        "effective_items": None if plan.weights is None else plan.weights.effective_items,
        "warnings": _contradicted(session.contradictions) + _warnings(plan, state),
    }


def _raters(ratings: Ratings) -> dict[str, Any]:
    """What a panel has said, and who is waited for."""
    panel = [{"name": name, "rounds": rounds} for name, rounds in ratings.awaited.items()]
    return ratings.summary | {"panel": panel}


def _best(state: BestState) -> dict[str, Any]:
    """What a session says that seeks the best of several systems."""
    return {
        "scale": {"lower": state.plan.lower, "upper": state.plan.upper},
        "best": {
            "winner": state.winner,
            "standing": state.standing,
            "places": None if state.order is None else state.places,
            "systems": [
                {
                    "name": one.name,
                    "state": one.state,
                    "round": one.round,
                    "stake": one.stake,
                    "estimate": one.estimate,
                    "lower": None if one.limits is None else one.limits.lower,
                    "upper": None if one.limits is None else one.limits.upper,
                }
                for one in state.systems
            ],
        },
    }


def _table(session: Header, state: TableState) -> dict[str, Any]:
    """What a session says that makes a table of claims: all of it is in ``claims``."""
    plan, claims = state.plan, state.claims
    metrics = [
        {"metric": claim.claim.metric, "met": claim_met(state, at)} | claim_values(plan, claim)
        for at, claim in enumerate(claims[: len(plan.metrics)])
    ]
    return {
        "table": {
            "account": plan.account,
            "reserve": state.session.reserve,
            "groups": list(plan.columns),
            "claims": len(claims),
            "later": len(state.session.added),
            "wanted": state.wanted,
            "met": state.met,
            "metrics": metrics,
            "promises": state.session.promises._asdict(),
        },
        "warnings": _contradicted(session.contradictions) + _emptied(claims) + _reversed(state),
    }


def _emptied(claims: Sequence[ClaimState]) -> list[str]:
    """What is said of claims that have lost every candidate."""
    names = [claim.claim.name for claim in claims if claim.fold.emptied]
    if not names:
        return []
    told = ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
    left = f"no candidate is left of {len(names)} of {len(claims)} claims ({told})"
    return [f"{left}: {LOST}"]


def _reversed(state: TableState) -> list[str]:
    """What is said of answers to questions that later losses contradict."""
    told = []
    for at, claim in enumerate(state.claims):
        if claim.claim.questions:
            slack = rounding(claim.plan.scale)
            told += [
                f"{claim.claim.name}: {_given(one)}"
                for one in state.session.decisions(at)
                if one.contradicted(claim.interval, slack)
            ]
    more = len(told) - MOST_NAMED
    return told[:MOST_NAMED] + ([f"so it is with {more} more answers"] if more > 0 else [])


def _given(one: Decision) -> str:
    return (
        f"{one.question.side} {one.question.threshold:g} was answered {one.answer} in round"
        f" {one.round} and later losses say otherwise: an event of probability at most alpha has"
        " happened; the answer stays as it was given"
    )


def claim_met(state: TableState, place: int) -> bool | None:
    """Whether a claim has met its target; None where it has none."""
    wants = state.claims[place].claim.wants
    return state.met_at(place) is not None if wants else None


def claim_values(plan: TablePlan, claim: ClaimState) -> dict[str, Any]:
    """Level, precision, estimate and interval of one claim of a table, and the same as a score."""
    stated, interval = claim.claim, claim.interval
    metric = plan.metrics[claim.metric]
    scale = claim.plan.scale
    return {
        "level": None if stated.whole else stated.level,
        "precision": stated.precision,
        "estimate": claim.estimate,
        "lower": interval.lower,
        "upper": interval.upper,
        "score": metric.measured.values(interval, claim.estimate, scale),
        "scale": {"lower": scale.lower, "upper": scale.upper},
    }


def _contradicted(contradictions: Sequence[Mapping[str, Any]]) -> list[str]:
    """What follows from judgements outside their items' bounds."""
    return [
        f"a judgement of item {one['item']} said {_named(one)}{one['loss']:g}, and the pool states"
        f" that its loss is from {one['lower']:g} to {one['upper']:g}: if the judgement is right,"
        " an assumption is false and nothing here can be claimed; open another session with"
        " `audit`, or on a pool without the bound"
        for one in contradictions
    ]


def _named(contradiction: Mapping[str, Any]) -> str:
    metric = contradiction.get("metric")
    return "" if metric is None else f"{metric} "


def _warnings(plan: Plan, state: State) -> list[str]:
    warnings = []
    if (reach := precision_warning(plan, state.stopping.precision)) is not None:
        warnings.append(reach)
    if state.fold.emptied:
        warnings.append(
            "no candidate is left: an event of probability at most alpha has happened, or the"
            " logical limits are narrower than a cell; the last interval stays"
        )
    slack = rounding(plan.scale)
    warnings += [_given(one) for one in state.decisions if one.contradicted(state.interval, slack)]
    verdict = state.verdict
    if verdict is not None and verdict.contradicted(state.interval, slack):
        warnings.append(
            f"the verdict {verdict.answer} was given in round {verdict.round} and later losses say"
            " otherwise: an event of probability at most alpha has happened; the verdict stays"
        )
    return warnings
