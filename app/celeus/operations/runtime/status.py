"""The document that says where a session stands: kept in its row, copied to the cache."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from app.core.plan import Plan, precision_warning
from app.core.session import State
from app.core.stopping import rounding
from app.store.cache import Cache


@dataclass(frozen=True, slots=True)
class Known:
    """What the session's row knows and its state does not."""

    project_id: UUID
    session_id: UUID
    pool_id: UUID
    lifecycle: str
    revision: int
    lease_seconds: int
    forecast: dict[str, Any] | None
    created_at: datetime
    ledger_head: bytes | None
    name: str | None = None


def session_state(lifecycle: str, state: State) -> str:
    """One word for a session: its lifecycle, or why it stopped, or ``active``."""
    if lifecycle != "active":
        return lifecycle
    return state.stop_reason or "active"


def status_document(known: Known, plan: Plan, state: State) -> dict[str, Any]:
    """Plain JSON values; never holds the seed."""
    interval = state.interval
    reason = state.stop_reason
    return {
        "id": f"ses_{known.session_id.hex}",
        "name": known.name,
        "pool_id": f"pool_{known.pool_id.hex}",
        "state": session_state(known.lifecycle, state),
        "target": plan.target,
        "alpha": plan.alpha,
        "policy": plan.policy.name,
        "strategy": plan.strategy,
        "method_version": plan.method_version,
        "round": state.folded,
        "estimate": state.estimate,
        "lower": interval.lower,
        "upper": interval.upper,
        "width": interval.width,
        "precision": state.stopping.precision,
        "budget": state.stopping.budget,
        "items": plan.items,
        "scale": {"lower": plan.lower, "upper": plan.upper},
        "stopped": reason is not None or known.lifecycle == "closed",
        "stop_reason": reason,
        "stop_when_decided": state.stopping.stop_when_decided,
        "decisions": [one.to_dict() for one in state.decisions],
        "rounds": {
            "drawn": state.drawn,
            "observed": state.observed,
            "folded": state.folded,
            "pending": state.pending,
            "waiting": state.waiting,
        },
        "forecast": known.forecast,
        "warnings": _warnings(plan, state),
        "sequence": state.sequence,
        "revision": known.revision,
        "lease_seconds": known.lease_seconds,
        "commitment": plan.commitment,
        "ledger_head": None if known.ledger_head is None else known.ledger_head.hex(),
        "created_at": known.created_at.isoformat(),
    }


def version_of(document: dict[str, Any]) -> str:
    """Changes whenever the document does: its ETag."""
    forecast = document["forecast"]
    return f"{document['sequence']}.{0 if forecast is None else forecast['round']}"


_ANNOUNCED = re.compile(
    rb"(?P<project>[0-9a-f]{32}) (?P<version>\d+\.\d+)\n(?P<body>\{.*\})", re.DOTALL
)


async def announce(
    cache: Cache, project_id: UUID, session_id: UUID, document: dict[str, Any]
) -> None:
    """Tell the cache and the streams where the session stands now; both may be gone."""
    version = version_of(document)
    body = f"{project_id.hex} {version}\n".encode() + orjson.dumps(document)
    await cache.put_status(session_id.hex, document["sequence"], version, body)


async def cached(cache: Cache, project_id: UUID, session_id: UUID) -> tuple[bytes, str] | None:
    """The announced document as JSON with its version.

    None for another project's session, and for what this session's `announce` has not written:
    whoever can write to the cache may have put anything there.
    """
    kept = await cache.get_status(session_id.hex)
    found = None if kept is None else _ANNOUNCED.fullmatch(kept)
    if found is None or found["project"] != project_id.hex.encode():
        return None
    body, version = found["body"], found["version"].decode()
    try:
        document = orjson.loads(body)
        ours = (document["id"], version_of(document)) == (f"ses_{session_id.hex}", version)
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    return (body, version) if ours else None


def _warnings(plan: Plan, state: State) -> list[str]:
    found = []
    if (reach := precision_warning(plan, state.stopping.precision)) is not None:
        found.append(reach)
    if state.fold.emptied:
        found.append(
            "no candidate is left: an event of probability at most alpha has happened, or the"
            " logical limits are narrower than a cell; the last interval stays"
        )
    slack = rounding(plan.scale)
    found += [
        f"{one.question.side} {one.question.threshold:g} was answered {one.answer} in round"
        f" {one.round} and later losses say otherwise: an event of probability at most alpha has"
        " happened; the answer stays as it was given"
        for one in state.decisions
        if one.contradicted(state.interval, slack)
    ]
    return found
