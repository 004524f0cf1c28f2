"""The labelling page: one item at a time, without anything that could bias the judge."""

from typing import Final

from fastapi import Response

from celeus.api.access.parameters import SessionId
from celeus.api.sessions.task import answer_of
from celeus.operations.sessions.labelling.task import get_task
from celeus.web.pages import LabelsPage, page_router

# A click loads a picture or sound from wherever its payload says, so the policy cannot name hosts:
# static/js/item/media.js sees to it that nothing else does. Nothing is loaded unencrypted.
ITEMS: Final = {"img-src": "'self' data: https:", "media-src": "'self' data: https:"}

router = page_router()


@router.get("/label/{session_id}")
async def label(view: LabelsPage, session_id: SessionId) -> Response:
    """Show the page of a session's judges; it loads items by the routes of the interface."""
    task = answer_of(await get_task(view.context, session_id))
    return view.page("label.html", policy=ITEMS, task=task.model_dump(mode="json"))
