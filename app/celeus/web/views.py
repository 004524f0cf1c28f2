"""The pages of the service: what each shows; their scripts ask the routes of the interface."""

from typing import Annotated, Any, Final, get_args
from urllib.parse import urlencode
from uuid import UUID

import orjson
from fastapi import Query, Response

from celeus.api.access.parameters import SessionId
from celeus.api.sessions.session_models import SessionState
from celeus.api.sessions.sessions import SessionsQuery
from celeus.api.sessions.task import answer_of
from celeus.core.insights.sentences import Contrast
from celeus.core.pools.systems import Systems
from celeus.operations.insights.session_lists import NEWEST, Filter, list_sessions
from celeus.operations.insights.surrogate import get_opening
from celeus.operations.insights.table import table_claims
from celeus.operations.sessions.labelling.task import get_task, list_tasks
from celeus.operations.sessions.sessions import get_session
from celeus.operations.webhooks.messages import FORMATS
from celeus.operations.webhooks.outbox import EVENTS
from celeus.web.pages import (
    AdministersPage,
    AnyonesPage,
    LabelsPage,
    ManagesPage,
    ReadsPage,
    View,
    page_router,
)
from celeus.web.report.grid import ORDERS, Order, claims_grid

ROWS = 24
"""Sessions of the dashboard's first page."""
MOST_TASKS = 100
"""Largest number of sessions on the start page of people who only label."""
MOST_CHOICES = 200
"""Largest number of sessions to choose from for a webhook, the newest ones."""

# A click loads a picture or sound from wherever its payload says, so the policy cannot name hosts:
# static/js/item/media.js sees to it that nothing else does. Nothing is loaded unencrypted.
ITEMS: Final = {"img-src": "'self' data: https:", "media-src": "'self' data: https:"}

router = page_router()


@router.get("/label/{session_id}")
async def label(view: LabelsPage, session_id: SessionId) -> Response:
    """Show one item at a time, without anything that could bias the judge."""
    task = answer_of(await get_task(view.context, session_id))
    return view.page("label.html", policy=ITEMS, task=task.model_dump(mode="json"))


@router.get("/sessions/new")
async def new_session(view: ManagesPage) -> Response:
    """Show the form that opens a session: a pool or a file, a claim, and the planner."""
    limit = view.context.settings.upload_limit_bytes
    return view.page("newsession.html", policy=ITEMS, upload_limit_bytes=limit)


@router.get("/people")
async def people(view: AdministersPage) -> Response:
    """Show people and keys, where administrators invite, remove and give roles."""
    return view.page("people.html", own_key=view.caller.key_id)


@router.get("/")
async def dashboard(view: AnyonesPage, params: Annotated[SessionsQuery, Query()]) -> Response:
    """Show the first sessions; the page asks the service for more, and for changes.

    A caller who may only label gets the sessions that their key may label, those with work first,
    and nothing of results.
    """
    if view.caller.blind and "label" in view.caller.scopes:
        return view.page("home.html", tasks=await list_tasks(view.context, MOST_TASKS))
    view.caller.require("read")
    wanted = {
        "state": params.state,
        "q": params.q or "",
        "tag": params.tag,
        "order": params.order,
        "archived": params.archived,
    }

    def address(**changes: object) -> str:
        """Return the dashboard's address with these filters changed."""
        asked = wanted | changes
        query = {
            name: str(value).lower() if value is True else value
            for name, value in asked.items()
            if value and value != NEWEST
        }
        return f"/?{urlencode(query)}" if query else "/"

    sessions = await list_sessions(view.context, params.filter(ROWS))
    page = {"data": sessions, "next": sessions[-1]["id"] if len(sessions) == ROWS else None}
    states = get_args(SessionState)
    return view.page("dashboard.html", page=page, wanted=wanted, states=states, address=address)


@router.get("/webhooks")
async def webhooks(view: ManagesPage) -> Response:
    """Show a project's webhooks: make, try and delete them, and read their log."""
    sessions = await list_sessions(view.context, Filter(limit=MOST_CHOICES))
    named = [(one["id"], one["name"] or f"Session {one['id'][-8:]}") for one in sessions]
    return view.page("webhooks.html", events=EVENTS, formats=FORMATS, sessions=named)


@router.get("/sessions/{session_id}")
async def session(view: ReadsPage, session_id: SessionId) -> Response:
    """Show a session's current state; the page then follows it live."""
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
