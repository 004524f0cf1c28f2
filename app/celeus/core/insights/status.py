"""The status document of a session: what it says of itself at any moment."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

from celeus.core.insights.forecast import forecast
from celeus.core.insights.remarks import (
    Measure,
    labels_remark,
    progress,
    provisional_remark,
    share_done,
)
from celeus.core.insights.sentences import Contrast, best_sentence, sentence, table_sentence
from celeus.core.plans.plan import Plan, precision_warning
from celeus.core.plans.stopping import Decision, StopReason, rounding
from celeus.core.plans.table_plan import TablePlan
from celeus.core.pools.pool import Pool
from celeus.core.session.assumptions import assumptions_of
from celeus.core.session.best.best_question import Best
from celeus.core.session.mean import Mean
from celeus.core.session.panel import Ratings
from celeus.core.session.provisional import WaitingRounds
from celeus.core.session.session import AnySession, Session
from celeus.core.session.table.table_claims import ClaimState
from celeus.core.session.table.table_question import Table

LOST = (
    "for each an event of probability at most its level has happened, or the logical limits are"
    " narrower than a cell; the last interval stays"
)
MOST_NAMED = 5
"""Claims that a warning names; it counts the others."""

NO_INTERVAL: Final[dict[str, Any]] = {
    "target": "pool",
    "repeats": False,
    "success": None,
    "runs": None,
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
    "forecast": None,
    "warnings": [],
}
"""The members of a status document that speak of one interval, where a session has none."""


@dataclass(frozen=True, slots=True)
class Header:
    """The facts of a session that its state does not contain.

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


def session_state(lifecycle: str, reason: StopReason | None) -> str:
    """A session's state in one word: its lifecycle, the ``reason`` for its stop, or ``active``."""
    return lifecycle if lifecycle != "active" else reason or "active"


def status_document(header: Header, session: AnySession, pool: Pool) -> dict[str, Any]:
    """The status document as plain JSON values; never contains the seed."""
    match session.question:
        case Mean():
            claim, words = _mean(header, session, pool), partial(_mean_words, session, pool)
        case Best() as best:
            claim, words = _best(best), partial(_joint_words, session, best_sentence)
        case Table() as table:
            claim, words = _table(header, table), partial(_joint_words, session, table_sentence)
    plan, reason = session.plan, session.stop_reason
    stopped = reason is not None or header.lifecycle == "closed"
    document = {
        "id": header.session,
        "name": header.name,
        "pool_id": header.pool,
        "state": session_state(header.lifecycle, reason),
        "alpha": plan.alpha,
        "method_version": plan.method_version,
        "round": session.folded,
        "precision": session.stopping.precision,
        "budget": session.stopping.budget,
        "items": plan.items,
        "known": plan.items - plan.drawable,
        "stopped": stopped,
        "stop_reason": reason,
        "stop_when_decided": session.stopping.stop_when_decided,
        "fixed": plan.fixed,
        "subject": [subject.to_dict() for subject in plan.subject],
        "changes": session.changes,
        "rounds": session.counts,
        "planned_labels": None if header.planned_labels is None else dict(header.planned_labels),
        "contradictions": list(header.contradictions),
        "assumptions": assumptions_of(session, pushed=header.origin is not None),
        "sequence": session.sequence,
        "revision": header.revision,
        "lease_seconds": header.lease_seconds,
        "commitment": plan.commitment,
        "ledger_head": header.ledger_head,
        "created_at": header.created_at,
        "origin": None if header.origin is None else dict(header.origin),
        "owner": header.owner,
        "tags": list(header.tags),
        "active_at": header.active_at,
        "archived": header.archived,
    }
    document |= NO_INTERVAL | claim
    return document | words(document)


def may_have_provisional(document: Mapping[str, Any]) -> bool:
    """Return whether judgements of a session wait for an open draw that may be judged."""
    return bool(document["rounds"]["waiting"]) and document["state"] != "closed"


def provisional_member(waiting: WaitingRounds | None, pool: Pool) -> dict[str, Any]:
    """Return the status document's member ``provisional``, or nothing where no judgement waits.

    The document is made without it: to fold the rounds takes too long for every label.
    """
    if waiting is None:
        return {}
    question, begin = waiting.settled(), provisional_remark(waiting.waiting, waiting.open)
    member: dict[str, Any] = dict.fromkeys(("lower", "upper", "standing", "met", "metrics"))
    member |= {"open": waiting.open, "judged": waiting.judged}
    document: dict[str, Any] = {"alpha": question.plan.alpha, "stop_reason": None}
    document |= {"rounds": {"in_interval": waiting.judged}}
    match question:
        case Mean():
            interval = question.interval
            ends = _measure(question.plan, pool).ends(interval)
            member |= {"lower": interval.lower, "upper": interval.upper}
            text = f"{begin}, the interval is {ends}."
        case Best():
            member["standing"] = question.names_standing
            text = f"{begin}: {best_sentence(document | _best(question))}"
        case Table():
            table, shown = _table_state(question), ("metric", "met", "lower", "upper")
            metrics = [{name: claim[name] for name in shown} for claim in table["metrics"]]
            member |= {"met": table["met"], "metrics": metrics}
            text = f"{begin}: {table_sentence(document | {'table': table})}"
    return {"provisional": member | {"sentence": text}}


def _measure(plan: Plan, pool: Pool) -> Measure:
    success = None if plan.success is None else str(plan.success)
    return Measure(pool.scale, pool.named, pool.measured, plan.weights is not None, success)


def _forecast(header: Header, session: Session[Mean]) -> dict[str, Any] | None:
    """The labels left until a session stops; None where it has stopped or nobody can tell."""
    if session.stop_reason is not None or header.lifecycle == "closed":
        return None
    found = forecast(session)
    if found is None:
        return None
    return asdict(found) | {"seconds_per_label": header.seconds_per_label}


def _mean_words(session: Session[Mean], pool: Pool, document: dict[str, Any]) -> dict[str, Any]:
    """The sentence of a session of one mean, and the lines beside it."""
    skipped = session.rounds.unjudgeable(session.folded)
    inside = session.folded - skipped
    behind = session.observed > session.folded
    labels = session.observed - (session.rounds.unjudgeable(session.drawn) if behind else skipped)
    plan = session.question.plan
    contrast = Contrast.of(pool.scale, pool.systems, pool.score)
    text = sentence(document, pool.measured, contrast, labels=inside)
    return _words(document, text, _measure(plan, pool).answers(document), labels, inside)


def _joint_words(
    session: Session[Best] | Session[Table],
    sentence_of: Callable[[dict[str, Any]], str],
    document: dict[str, Any],
) -> dict[str, Any]:
    """The sentence of a session with several losses a round, and the lines beside it."""
    return _words(document, sentence_of(document), [], session.observed, session.folded)


def _words(
    document: dict[str, Any], text: str, answers: list[dict[str, str]], labels: int, inside: int
) -> dict[str, Any]:
    words = {
        "answers": answers,
        "progress": progress(document, labels),
        "holds": labels_remark(document, labels, inside),
        "labels": labels,
        "share": share_done(document, labels),
        "in_interval": inside,
    }
    return {"sentence": text, "words": words}


def _mean(header: Header, session: Session[Mean], pool: Pool) -> dict[str, Any]:
    """The members that a session of one mean adds."""
    question, plan, interval = session.question, session.question.plan, session.question.interval
    return {
        "scale": {"lower": plan.lower, "upper": plan.upper},
        "target": plan.target,
        "repeats": plan.repeats,
        "success": None if plan.success is None else str(plan.success),
        "runs": None if plan.success is None else session.runs,
        "policy": plan.policy.name,
        "strategy": plan.strategy,
        "estimate": question.estimate,
        "lower": interval.lower,
        "upper": interval.upper,
        "width": interval.width,
        "score": pool.measured.values(interval, question.estimate, plan.scale),
        "decisions": [decision.to_dict() for decision in question.decisions],
        "verdict": None if question.verdict is None else question.verdict.to_dict(),
        "forecast": _forecast(header, session),
        "systems": plan.systems,
        "sides": None if question.sides is None else question.sides.preferred(session.rounds),
        "raters": None if question.ratings is None else _raters(question.ratings),
        "effective_items": None if plan.weights is None else plan.weights.effective_items,
        "warnings": _contradicted(header.contradictions) + _warnings(session),
    }


def _raters(ratings: Ratings) -> dict[str, Any]:
    """The counts of a panel's ratings, and the raters waited for."""
    panel = [{"name": name, "rounds": rounds} for name, rounds in ratings.awaited.items()]
    return ratings.summary | {"panel": panel}


def _best(question: Best) -> dict[str, Any]:
    """The members that a session adds that seeks the best of several systems."""
    return {
        "scale": {"lower": question.plan.lower, "upper": question.plan.upper},
        "best": {
            "winner": question.winner,
            "standing": question.names_standing,
            "places": None if question.order is None else question.places,
            "systems": [
                {
                    "name": system.name,
                    "state": system.state,
                    "round": system.round,
                    "stake": system.stake,
                    "estimate": system.estimate,
                    "lower": None if system.limits is None else system.limits.lower,
                    "upper": None if system.limits is None else system.limits.upper,
                }
                for system in question.systems
            ],
        },
    }


def _table(header: Header, question: Table) -> dict[str, Any]:
    """The members that a session adds that makes a table of claims: most are in ``claims``."""
    return {
        "table": _table_state(question),
        "warnings": _contradicted(header.contradictions)
        + _emptied(question.claims)
        + _undefined(question)
        + _reversed(question),
    }


def _table_state(question: Table) -> dict[str, Any]:
    plan, claims = question.plan, question.claims
    metrics = [
        {"metric": claim.claim.metric, "met": claim_met(question, place)}
        | claim_values(plan, claim)
        for place, claim in enumerate(claims[: len(plan.claimed)])
    ]
    return {
        "account": plan.account,
        "reserve": question.reserve,
        "groups": list(plan.columns),
        "claims": len(claims),
        "later": len(question.added),
        "wanted": question.wanted,
        "met": len(question.met_at),
        "metrics": metrics,
        "promises": question.promises._asdict(),
        "check": _check(question),
    }


def _check(question: Table) -> dict[str, Any] | None:
    """The four counts of judge and people: judged so far, and expected in the pool."""
    check = question.plan.check
    if check is None:
        return None
    claim = question.ratios[0]
    judged, expected = claim.counts.tolist(), question.expected_counts.tolist()
    return check.to_dict() | {
        "counts": [
            {
                "judge": bool(verdict),
                "people": bool(called),
                "judged": int(judged[verdict][called]),
                "expected": expected[verdict][called],
            }
            for verdict in (1, 0)
            for called in (1, 0)
        ]
    }


def _emptied(claims: Sequence[ClaimState]) -> list[str]:
    """A warning naming the claims that have lost every candidate."""
    names = [claim.claim.name for claim in claims if claim.emptied]
    if not names:
        return []
    named = ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
    left = f"no candidate is left of {len(names)} of {len(claims)} claims ({named})"
    return [f"{left}: {LOST}"]


def _undefined(question: Table) -> list[str]:
    """A warning naming the measures that are shares of nothing found so far."""
    names = [claim.claim.name for claim in question.ratios if claim.rounds and claim.undefined]
    if not names:
        return []
    named = ", ".join(names[:MOST_NAMED])
    exists = "while there is none the measure does not exist, and its interval says nothing"
    return [f"no item was found that counts for {named}: {exists}"]


def _reversed(question: Table) -> list[str]:
    """Warnings of answers that later losses contradict."""
    warnings = []
    for place, claim in enumerate(question.claims):
        if claim.claim.questions:
            slack = rounding(claim.plan.scale)
            warnings += [
                f"{claim.claim.name}: {_given(decision)}"
                for decision in question.decisions(place)
                if decision.contradicted(claim.interval, slack)
            ]
    more = len(warnings) - MOST_NAMED
    return warnings[:MOST_NAMED] + ([f"so it is with {more} more answers"] if more > 0 else [])


def _given(decision: Decision) -> str:
    question = decision.question
    return (
        f"{question.side} {question.threshold:g} was answered {decision.answer} in round"
        f" {decision.round} and later losses say otherwise: an event of probability at most alpha"
        " has happened; the answer stays as it was given"
    )


def claim_met(question: Table, place: int) -> bool | None:
    """Return whether a claim has met its target; None where it has none."""
    wants = question.claims[place].claim.wants
    return place in question.met_at if wants else None


def claim_values(plan: TablePlan, claim: ClaimState) -> dict[str, Any]:
    """Level, precision, estimate and interval of one claim of a table, and the same as a score."""
    stated, interval = claim.claim, claim.interval
    metric = plan.claimed[claim.metric]
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
    """Warnings of judgements outside their items' bounds."""
    return [_contradiction(stated) for stated in contradictions]


def _contradiction(stated: Mapping[str, Any]) -> str:
    metric = "" if stated.get("metric") is None else f"{stated['metric']} "
    return (
        f"a judgement of item {stated['item']} said {metric}{stated['loss']:g}, and the pool states"
        f" that its loss is from {stated['lower']:g} to {stated['upper']:g}: if the judgement is"
        " right, an assumption is false and nothing here can be claimed; open another session with"
        " `audit`, or on a pool without the bound"
    )


def _warnings(session: Session[Mean]) -> list[str]:
    question, plan = session.question, session.question.plan
    warnings = []
    if (reach := precision_warning(plan, session.stopping.precision)) is not None:
        warnings.append(reach)
    if question.fold.emptied:
        warnings.append(
            "no candidate is left: an event of probability at most alpha has happened, or the"
            " logical limits are narrower than a cell; the last interval stays"
        )
    slack = rounding(plan.scale)
    warnings += [
        _given(decision)
        for decision in question.decisions
        if decision.contradicted(question.interval, slack)
    ]
    verdict = question.verdict
    if verdict is not None and verdict.contradicted(question.interval, slack):
        warnings.append(
            f"the verdict {verdict.answer} was given in round {verdict.round} and later losses say"
            " otherwise: an event of probability at most alpha has happened; the verdict stays"
        )
    return warnings
