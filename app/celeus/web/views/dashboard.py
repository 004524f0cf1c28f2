"""The dashboard: the project's sessions, newest first, as they stand and as they move."""

from typing import Annotated, get_args

from fastapi import Query, Response

from app.api.dependencies import cursor_of
from app.api.sessionschema import SessionState
from app.operations.sessions import Filter, list_sessions
from app.web.pages import ReadsPage, page_router

CARDS = 24

router = page_router()


@router.get("/")
async def dashboard(
    view: ReadsPage,
    state: SessionState | None = None,
    after: Annotated[str | None, Query(max_length=64)] = None,
) -> Response:
    """The first cards; the page asks the service for more, and for what has changed."""
    wanted = Filter(state=state, before=cursor_of("ses", after), limit=CARDS)
    found = await list_sessions(view.rooms, wanted)
    page = {"data": found, "next": found[-1]["id"] if len(found) == CARDS else None}
    return view.page("dashboard.html", page=page, state=state, states=get_args(SessionState))
