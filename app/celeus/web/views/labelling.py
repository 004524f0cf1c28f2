"""The labelling page: one item at a time, and nothing that could sway whoever judges it."""

from typing import Final

from fastapi import Response

from app.api.dependencies import SessionId
from app.api.tasks import TaskAnswer
from app.operations.tasks import get_task
from app.web.pages import LabelsPage, page_router

# Payloads may name pictures anywhere; nothing else comes from elsewhere.
PICTURES: Final = {"img-src": "'self' data: https: http:"}

router = page_router()


@router.get("/label/{session_id}")
async def label(view: LabelsPage, session_id: SessionId) -> Response:
    """The page of a session's judges; items come by the routes every judge uses."""
    task = TaskAnswer.of(await get_task(view.rooms, session_id))
    return view.page("label.html", policy=PICTURES, task=task.model_dump(mode="json"))
