"""The claims of a session that makes a table of them, one by one."""

from collections.abc import Callable, Sequence
from typing import Any, Literal
from uuid import UUID

import numpy as np

from celeus.core.insights.status import claim_met, claim_values
from celeus.core.sessions.rounds import PENDING
from celeus.core.sessions.table.state import TableState
from celeus.errors import InvalidValue
from celeus.operations.runtime.concurrency import in_thread
from celeus.operations.runtime.context import Context
from celeus.operations.sessions.journal import unlocked

Order = Literal["plan", "score", "width", "name"]
ALL = ""
"""The column of claims about all items, in a filter."""

_KEYS: dict[Order, Callable[[dict[str, Any]], Any]] = {
    # The best first, and what is least certain first
    "score": lambda row: (row["estimate"] - row["scale"]["lower"]) / _width(row),
    "width": lambda row: (row["lower"] - row["upper"]) / _width(row),
    "name": lambda row: (row["metric"], row["column"] or "", row["value"] or ""),
}


async def table_claims(
    context: Context,
    session_id: UUID,
    order: Order = "plan",
    metric: str | None = None,
    column: str | None = None,
) -> dict[str, Any]:
    """Every claim as it stands, with the session's id, account and alpha; takes no lock.

    ``metric`` and ``column`` leave out others, the empty column all but claims about all items.
    Refuses sessions of another kind, and names of none.
    """
    async with unlocked(context, session_id) as (session, row):
        state = session.state
        if not isinstance(state, TableState):
            raise InvalidValue(
                "This session makes one claim, which its status holds.",
                field="session_id",
                rule="a session with metrics or groups",
                value=f"ses_{session_id.hex}",
            )
        plan = state.plan
        _check("metric", metric, [one.name for one in plan.metrics])
        _check("column", column, [ALL, *plan.columns])
        rows = await in_thread(_rows, state)
        head = {
            "session_id": f"ses_{session_id.hex}",
            "sequence": row["sequence"],
            "round": state.folded,
            "account": plan.account,
            "alpha": plan.alpha,
        }
    kept = [
        one
        for one in rows
        if metric in {None, one["metric"]} and column in {None, one["column"] or ALL}
    ]
    if order != "plan":
        kept.sort(key=_KEYS[order])
    return head | {"data": kept}


def _check(field: str, name: str | None, names: Sequence[str]) -> None:
    if name is not None and name not in names:
        raise InvalidValue(
            f"The session has no {field} {name}.",
            field=field,
            rule="one of " + ", ".join(one for one in names if one),
            value=name,
        )


def _width(row: dict[str, Any]) -> float:
    return float(row["scale"]["upper"] - row["scale"]["lower"])


def _rows(state: TableState) -> list[dict[str, Any]]:
    cells = state.session.cells
    code = cells.strata.code[[one.item for one in state.rounds]]
    told = np.array([one.answer is not PENDING for one in state.rounds], dtype=np.bool_)
    drawn, judged = (np.bincount(one, minlength=cells.count) for one in (code, code[told]))
    rows = []
    for at, claim in enumerate(state.claims):
        stated = claim.claim
        rows.append(
            {
                "metric": stated.metric,
                "column": stated.column,
                "value": stated.value,
                "items": stated.items,
                "known": stated.known,
            }
            | claim_values(state.plan, claim)
            | {
                "whole": stated.whole,
                "met": claim_met(state, at),
                "met_at": state.met_at(at),
                "rounds": {
                    "drawn": int(drawn[claim.cells].sum()),
                    "judged": int(judged[claim.cells].sum()),
                    "in_interval": len(claim.rounds),
                },
                "answers": [one.to_dict() for one in state.session.decisions(at)],
            }
        )
    return rows
