"""The dashboard: the project's sessions, newest first, as they stand and as they move."""

from typing import Annotated, get_args

from fastapi import Query, Response

from celeus.api.access.parameters import cursor_of
from celeus.api.sessions.schema import SessionState
from celeus.operations.insights.lists import Filter, list_sessions
from celeus.web.pages import ReadsPage, page_router

CARDS = 24

router = page_router()


@router.get("/")
async def dashboard(
    view: ReadsPage,
    state: SessionState | None = None,
    after: Annotated[str | None, Query(max_length=64)] = None,
) -> Response:
    """The first cards; the page asks the service for more, and for what has changed."""
    page_filter = Filter(state=state, after=cursor_of("ses", after), limit=CARDS)
    sessions = await list_sessions(view.context, page_filter)
    page = {"data": sessions, "next": sessions[-1]["id"] if len(sessions) == CARDS else None}
    return view.page("dashboard.html", page=page, state=state, states=get_args(SessionState))
