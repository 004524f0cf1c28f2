"""The page of a project's webhooks: make, try and delete them, and read their log."""

from fastapi import Response

from celeus.operations.insights.session_lists import Filter, list_sessions
from celeus.operations.webhooks.messages import FORMATS
from celeus.operations.webhooks.outbox import EVENTS
from celeus.web.pages import ManagesPage, page_router

router = page_router()

MOST_SESSIONS = 200
"""Largest number of sessions to choose from, the newest ones."""


@router.get("/webhooks")
async def webhooks(view: ManagesPage) -> Response:
    """Show the form; the page loads the webhooks by the routes of the interface."""
    sessions = await list_sessions(view.context, Filter(limit=MOST_SESSIONS))
    return view.page(
        "webhooks.html",
        events=EVENTS,
        formats=FORMATS,
        sessions=[
            (session["id"], session.get("name") or f"Session {session['id'][-8:]}")
            for session in sessions
        ],
    )
