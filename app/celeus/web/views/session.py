"""The page of one session: interval, surrogate, workers and actions; and that of its items."""

from typing import Any
from uuid import UUID

import orjson
from fastapi import Response

from celeus.api.access.parameters import SessionId
from celeus.core.insights.sentences import Contrast
from celeus.core.pools.systems import Systems
from celeus.operations.insights.surrogate import get_opening
from celeus.operations.insights.table import table_claims
from celeus.operations.sessions.sessions import get_session
from celeus.web.pages import ReadsPage, View, page_router
from celeus.web.report.grid import ORDERS, Order, claims_grid
from celeus.web.views.labelling import ITEMS

router = page_router()


@router.get("/sessions/{session_id}")
async def session(view: ReadsPage, session_id: SessionId) -> Response:
    """Show the session's current state; the page then follows it live."""
    body, _ = await get_session(view.context, session_id)
    opening = await get_opening(view.context, session_id)
    systems = opening.systems if isinstance(opening.systems, Systems) else None
    contrast = Contrast.of(opening.scale, systems, opening.declared)
    document = orjson.loads(body)
    return view.page(
        "session.html",
        session=document,
        opened={
            "plan": opening.plan,
            "plan_digest": opening.digest,
            "pool": opening.pool,
            "score": opening.score.to_dict(),
            "intake": opening.intake if "manage" in view.caller.scopes else None,
            "contrast": None if contrast is None else {"a": contrast.a, "b": contrast.b},
        },
        scopes=sorted(view.caller.scopes),
        **await _claims(view, session_id, document),
    )


@router.get("/sessions/{session_id}/claims")
async def claims(view: ReadsPage, session_id: SessionId, order: Order = "plan") -> Response:
    """Show the grid of a table's claims alone: the page of the session asks for it anew."""
    found = await table_claims(view.context, session_id)
    return view.page(
        "claims.html",
        grid=claims_grid(found["data"], order),
        items=f"/sessions/ses_{session_id.hex}/items",
    )


@router.get("/sessions/{session_id}/items")
async def items(view: ReadsPage, session_id: SessionId) -> Response:
    """Show the items of a claim; the page reads the filter from its address and asks for them."""
    body, _ = await get_session(view.context, session_id)
    return view.page("items.html", policy=ITEMS, session=orjson.loads(body))


async def _claims(view: View, session_id: UUID, document: dict[str, Any]) -> dict[str, Any]:
    """Return what the page of a table shows of its claims; nothing of other sessions."""
    if document["table"] is None:
        return {"grid": None, "orders": {}}
    found = await table_claims(view.context, session_id)
    return {"grid": claims_grid(found["data"]), "orders": ORDERS}
