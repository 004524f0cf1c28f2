"""The start page of people who only label: their sessions, and nothing of results."""

from fastapi import Response

from celeus.operations.sessions.labelling.task import list_tasks
from celeus.web.pages import View

MOST_SESSIONS = 100


async def home(view: View) -> Response:
    """Show the sessions that the caller's key may label, those with work for it first."""
    return view.page("home.html", tasks=await list_tasks(view.context, MOST_SESSIONS))
