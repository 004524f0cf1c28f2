"""The claim of a certificate: its members, and how they are compared with those a ledger leads to.

Of one mean: its interval, answers and verdict. Of the best of several systems: a given best one is
among those that are in with probability 1 - alpha, at all rounds at once; of several best ones
another may be out, and nothing is claimed of the order of the others. Of a table: every claim has
an interval at its own level. What holds of all of them, and of those somebody picks after looking,
follows from the account alone (docs/evidence/method.md#19-the-account-of-alpha): it is said in
words, and under ``selected`` in the intervals to show where several are picked.
"""

from typing import Any

from celeus.core.certificate.read import close
from celeus.core.interval import Interval
from celeus.core.plain import Object, listed, members, same
from celeus.core.session.assumptions import assumptions_of
from celeus.core.session.best.best_question import Best
from celeus.core.session.mean import Mean
from celeus.core.session.session import AnySession
from celeus.core.session.table.table_claims import ClaimState
from celeus.core.session.table.table_question import Table

COMPUTED = ("lower", "upper", "estimate")
"""Numbers of a table's claim that may differ by the slack of logarithms and exponentials."""


def claim_of(session: AnySession) -> dict[str, Any]:
    """The claim after the events of ``session``."""
    question = session.question
    match question:
        case Mean():
            members_of_kind = _mean(session, question)
        case Best():
            members_of_kind = _best(question)
        case Table():
            members_of_kind = _table(question)
    named = [subject.to_dict() for subject in session.plan.subject]
    return (
        {
            "target": "pool",
            "alpha": session.plan.alpha,
            "budget": session.stopping.budget,
            "changes": session.changes,
            "labels": session.folded,
            "rounds": session.counts,
            "stop_reason": session.stop_reason,
            "assumptions": assumptions_of(session),
        }
        | members_of_kind
        | ({"subject": named} if named else {})
    )


def _mean(session: AnySession, question: Mean) -> dict[str, Any]:
    """The members that the claim of one mean adds."""
    plan, interval, pool = question.plan, question.interval, question.fold.pool_interval
    unjudgeable = session.rounds.unjudgeable(session.folded)
    claim: dict[str, Any] = {
        "target": plan.target,
        "precision": session.stopping.precision,
        "fixed": plan.fixed,
        "interval": {"lower": interval.lower, "upper": interval.upper},
        "estimate": question.estimate,
        "labels": session.folded - unjudgeable,
        "unjudgeable": unjudgeable,
        "emptied": question.fold.emptied,
    }
    if not plan.repeats:
        claim["pool_interval"] = {"lower": pool.lower, "upper": pool.upper}
    if plan.weights is not None:
        claim["effective_items"] = plan.weights.effective_items
    if plan.systems is not None:
        claim["systems"] = plan.systems
    if plan.score is not None:
        claim["score"] = plan.score.values(interval, question.estimate, plan.scale)
    if plan.success is not None:
        claim |= {"success": str(plan.success), "runs": session.runs}
    if question.ratings is not None:
        claim["raters"] = question.ratings.summary
    if plan.questions:
        claim["decisions"] = [decision.to_dict() for decision in question.decisions]
    if question.verdict is not None:
        claim["verdict"] = question.verdict.to_dict()
    return claim


def _best(question: Best) -> dict[str, Any]:
    """The members that the claim about the best of several systems adds."""
    return {
        "fixed": question.plan.fixed,
        "best": {
            "winner": question.winner,
            "standing": question.names_standing,
            "systems": [
                {"name": system.name, "out": system.state == "out", "round": system.round}
                for system in question.systems
            ],
        },
    }


def _table(question: Table) -> dict[str, Any]:
    """The members that the claims about a table add."""
    plan = question.plan
    claim: dict[str, Any] = {
        "account": plan.account,
        "promises": question.promises._asdict(),
        "claims": _claims(question),
    }
    if plan.reserve:
        claim["reserve"] = question.reserve
    return claim


def _claims(question: Table) -> list[dict[str, Any]]:
    """Every claim in the order of the plan's, behind them those added later."""
    selected = question.plan.account == "selected"
    picked = question.pickings() if selected else []
    documents = []
    for place, state in enumerate(question.claims):
        document: dict[str, Any] = {
            "metric": state.claim.metric,
            "column": state.claim.column,
            "value": state.claim.value,
            "items": state.claim.items,
            "whole": state.claim.whole,
            "level": state.claim.level,
            "precision": state.claim.precision,
            "lower": state.interval.lower,
            "upper": state.interval.upper,
            "estimate": state.estimate,
            "labels": len(state.rounds),
            "emptied": state.emptied,
            "met": question.met_at.get(place),
            "answers": [decision.to_dict() for decision in question.decisions(place)],
            "score": _score(state, question, state.interval, state.estimate),
        }
        if (after := question.after(place)) is not None:
            document["added"] = after
        if picked:
            document["picked"] = [
                {"claims": count, "level": level, "lower": interval.lower, "upper": interval.upper}
                for count, level, interval in picked[place]
            ]
        documents.append(document)
    return documents


def _score(
    claim: ClaimState, question: Table, interval: Interval, estimate: float
) -> dict[str, Any]:
    """The estimate and interval of a claim on its metric's score."""
    metric = question.plan.claimed[claim.metric]
    return metric.measured.values(interval, estimate, claim.plan.scale)


def check_claim(claimed: object, session: AnySession) -> None:
    """Raise Mismatch unless the claim is that after the events of ``session``.

    Numbers that were computed may differ a little, all others not at all.
    """
    found = claim_of(session)
    claim = members(claimed, "claim", found)
    match session.question:
        case Mean() as mean:
            _compare_mean(claim, found, mean)
        case Table() as table:
            _compare_table(claim, found, table)
        case Best():
            pass
    same("claim", claim, found)


def _compare_mean(claim: Object, found: Object, question: Mean) -> None:
    """Compare the numbers that were computed, and put those claimed in the place of those found."""
    plan = question.plan
    intervals = [name for name in ("interval", "pool_interval") if name in found]
    for name in intervals:
        where = f"claim.{name}"
        ends = members(claim[name], where, found[name])
        for end, value in found[name].items():
            close(f"{where}.{end}", ends[end], value, plan)
    close("claim.estimate", claim["estimate"], found["estimate"], plan)
    found |= {name: claim[name] for name in (*intervals, "estimate")}
    if plan.score is not None:
        # Of the interval and estimate that it claims: no digit of these is its own.
        losses = Interval(claim["interval"]["lower"], claim["interval"]["upper"])
        found["score"] = plan.score.values(losses, claim["estimate"], plan.scale)


def _compare_table(claim: Object, found: Object, question: Table) -> None:
    """Do the same for every claim about a table."""
    claims = listed(claim["claims"], "claim.claims", len(found["claims"]))
    for place, state in enumerate(question.claims):
        due, where = found["claims"][place], f"claim.claims[{place}]"
        values = members(claims[place], where, due)
        for name in COMPUTED:
            close(f"{where}.{name}", values[name], due[name], state.plan)
            due[name] = values[name]
        # Of the interval and estimate that it claims: no digit of these is its own.
        interval = Interval(values["lower"], values["upper"])
        due["score"] = _score(state, question, interval, values["estimate"])
        picked = listed(values.get("picked", []), where)
        for number, (stage, stage_due) in enumerate(
            zip(picked, due.get("picked", []), strict=False)
        ):
            inner = f"{where}.picked[{number}]"
            for name in ("lower", "upper"):
                shown = members(stage, inner, stage_due)[name]
                close(f"{inner}.{name}", shown, stage_due[name], state.plan)
                stage_due[name] = shown
