"""The dashboard: the project's sessions, as they stand and as they move."""

from typing import Annotated, get_args
from urllib.parse import urlencode

from fastapi import Query, Response

from celeus.api.access.parameters import cursor_of
from celeus.api.sessions.session_models import SessionState
from celeus.api.sessions.sessions import SessionsQuery
from celeus.operations.insights.session_lists import NEWEST, Filter, list_sessions
from celeus.web.pages import AnyonesPage, page_router
from celeus.web.views.home import home

ROWS = 24

router = page_router()


@router.get("/")
async def dashboard(view: AnyonesPage, params: Annotated[SessionsQuery, Query()]) -> Response:
    """Show the first rows; the page asks the service for more, and for changes.

    A caller who may only label gets a start page of their own.
    """
    if view.caller.blind and "label" in view.caller.scopes:
        return await home(view)
    view.caller.require("read")
    wanted = {
        "state": params.state,
        "q": params.q or "",
        "tag": params.tag,
        "order": params.order,
        "archived": params.archived,
    }
    page_filter = Filter(
        state=params.state,
        archived=params.archived,
        query=params.q,
        tag=params.tag,
        order=params.order,
        after=cursor_of("ses", params.after),
        limit=ROWS,
    )

    def address(**changes: object) -> str:
        """Return the dashboard's address with these filters changed."""
        asked = wanted | changes
        query = {
            name: str(value).lower() if value is True else value
            for name, value in asked.items()
            if value and value != NEWEST
        }
        return f"/?{urlencode(query)}" if query else "/"

    sessions = await list_sessions(view.context, page_filter)
    page = {"data": sessions, "next": sessions[-1]["id"] if len(sessions) == ROWS else None}
    return view.page(
        "dashboard.html",
        page=page,
        wanted=wanted,
        states=get_args(SessionState),
        address=address,
    )
