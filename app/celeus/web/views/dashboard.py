"""The dashboard: the project's sessions, newest first, as they stand and as they move."""

from typing import Annotated, get_args

from fastapi import Query, Response

from celeus.api.access.parameters import cursor_of
from celeus.api.sessions.schema import SessionState
from celeus.operations.sessions.sessions import Filter, list_sessions
from celeus.web.pages import AnyonesPage, page_router
from celeus.web.views.home import home

CARDS = 24

router = page_router()


@router.get("/")
async def dashboard(
    view: AnyonesPage,
    state: SessionState | None = None,
    after: Annotated[str | None, Query(max_length=64)] = None,
) -> Response:
    """The first cards; the page asks the service for more, and for what has changed.

    Who only labels is shown a start page of their own.
    """
    if view.caller.blind and "label" in view.caller.scopes:
        return await home(view)
    view.caller.require("read")
    page_filter = Filter(state=state, before=cursor_of("ses", after), limit=CARDS)
    sessions = await list_sessions(view.context, page_filter)
    page = {"data": sessions, "next": sessions[-1]["id"] if len(sessions) == CARDS else None}
    return view.page("dashboard.html", page=page, state=state, states=get_args(SessionState))
