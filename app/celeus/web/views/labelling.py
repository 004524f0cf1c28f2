"""The labelling page: one item at a time, without anything that could bias the judge."""

from typing import Final

from fastapi import Response

from celeus.api.access.parameters import SessionId
from celeus.api.sessions.task import answer_of
from celeus.operations.sessions.labelling.task import get_task
from celeus.web.pages import LabelsPage, page_router

# Payloads may name pictures and sounds anywhere; nothing else comes from elsewhere.
ITEMS: Final = {
    "img-src": "'self' data: https: http:",
    "media-src": "'self' data: https: http:",
}

router = page_router()


@router.get("/label/{session_id}")
async def label(view: LabelsPage, session_id: SessionId) -> Response:
    """Show the page of a session's judges; it loads items by the routes of the interface."""
    task = answer_of(await get_task(view.context, session_id))
    return view.page("label.html", policy=ITEMS, task=task.model_dump(mode="json"))
