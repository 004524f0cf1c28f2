"""The claims of a session that makes a table of them, one by one as they stand."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from celeus.core.insights.sentences import claim_sentence
from celeus.core.insights.status import claim_met, claim_values
from celeus.core.session.session import AnySession, Session
from celeus.core.session.table.table_question import Table
from celeus.errors import InvalidValue

Order = Literal["plan", "score", "width", "name"]
ALL = ""
"""The column of claims about all items, in a filter."""

_KEYS: dict[Order, Callable[[dict[str, Any]], Any]] = {
    # The best first, and what is least certain first
    "score": lambda row: (row["estimate"] - row["scale"]["lower"]) / _width(row),
    "width": lambda row: (row["lower"] - row["upper"]) / _width(row),
    "name": lambda row: (row["metric"], row["column"] or "", row["value"] or ""),
}


class ClaimQuery(NamedTuple):
    """The claims asked for, and their order.

    ``metric`` and ``column`` leave out others, the empty column all but claims about all items.
    """

    order: Order = "plan"
    metric: str | None = None
    column: str | None = None


EVERY_CLAIM = ClaimQuery()


def claims_document(
    state: AnySession, session: str, query: ClaimQuery = EVERY_CLAIM
) -> dict[str, Any]:
    """Return the claims asked for as they stand, with the session's id, account and alpha.

    Refuses sessions of another kind, and names of none.
    """
    table = table_of(state, session)
    plan, (order, metric, column) = table.question.plan, query
    check_name("metric", metric, [known.name for known in plan.claimed])
    check_name("column", column, [ALL, *plan.columns])
    check_name("sort", order, ["plan", *_KEYS])
    kept = [
        row
        for row in claim_rows(table)
        if metric in {None, row["metric"]} and column in {None, row["column"] or ALL}
    ]
    if order != "plan":
        kept.sort(key=_KEYS[order])
    return {
        "session_id": session,
        "sequence": state.sequence,
        "round": state.folded,
        "account": plan.account,
        "alpha": plan.alpha,
        "data": kept,
    }


def table_of(state: AnySession, session: str) -> Session[Table]:
    """Return the state of a session that makes a table of claims; refuses others."""
    if isinstance(state.question, Table):
        return state
    raise InvalidValue(
        "This session makes one claim, which its status holds.",
        field="session_id",
        rule="a session with metrics or groups",
        value=session,
    )


def check_name(field: str, name: str | None, names: Sequence[str]) -> None:
    """Refuse a name that is none of these."""
    if name is not None and name not in names:
        raise InvalidValue(
            f"The session has no {field} {name}.",
            field=field,
            rule="one of " + ", ".join(known for known in names if known),
            value=name,
        )


def _width(row: dict[str, Any]) -> float:
    return float(row["scale"]["upper"] - row["scale"]["lower"])


def claim_rows(state: Session[Table], places: Iterable[int] | None = None) -> list[dict[str, Any]]:
    """Return claims as rows: those at these places, or all."""
    cells = state.question.cells
    code = cells.strata.code[np.array(state.rounds.item, dtype=np.intp)]
    is_judged = state.rounds.judged
    drawn, judged = (np.bincount(codes, minlength=cells.count) for codes in (code, code[is_judged]))
    rows = []
    for place in range(len(state.question.claims)) if places is None else places:
        claim = state.question.claims[place]
        stated = claim.claim
        rows.append(
            {
                "metric": stated.metric,
                "column": stated.column,
                "value": stated.value,
                "items": stated.items,
                "known": stated.known,
            }
            | (values := claim_values(state.question.plan, claim))
            | {
                "sentence": claim_sentence(
                    stated.name, values["score"], claim.plan.scale, values["level"]
                ),
                "whole": stated.whole,
                "added": state.question.after(place),
                "met": claim_met(state.question, place),
                "met_at": state.question.met_at.get(place),
                "rounds": {
                    "drawn": int(drawn[claim.cells].sum()),
                    "judged": int(judged[claim.cells].sum()),
                    "in_interval": len(claim.rounds),
                },
                "answers": [decision.to_dict() for decision in state.question.decisions(place)],
            }
        )
    return rows
