"""The dashboard: the project's sessions, as they stand and as they move."""

from typing import Annotated, get_args

from fastapi import Query, Response

from celeus.api.access.parameters import NO_NUL
from celeus.api.sessions.schema import SessionState
from celeus.operations.insights.lists import Filter, Order, list_sessions
from celeus.web.pages import ReadsPage, page_router

ROWS = 24

router = page_router()


@router.get("/")
async def dashboard(
    view: ReadsPage,
    state: SessionState | None = None,
    q: Annotated[str, Query(max_length=200, pattern=NO_NUL)] = "",
    tag: Annotated[str | None, Query(max_length=40, pattern=NO_NUL)] = None,
    order: Order = "-opened",
) -> Response:
    """The first rows; the page asks the service for more, and for what has changed."""
    page_filter = Filter(state=state, query=q, tag=tag, order=order, limit=ROWS)
    sessions = await list_sessions(view.context, page_filter)
    page = {"data": sessions, "next": sessions[-1]["id"] if len(sessions) == ROWS else None}
    wanted = {"state": state, "q": q, "tag": tag, "order": order}
    return view.page("dashboard.html", page=page, wanted=wanted, states=get_args(SessionState))
