"""The page of one session: its interval by labels, its surrogate, its workers, its buttons."""

import orjson
from fastapi import Response

from app.api.dependencies import SessionId
from app.operations.insights import opened
from app.operations.sessions import get_session
from app.web.pages import ReadsPage, page_router

router = page_router()


@router.get("/sessions/{session_id}")
async def session(view: ReadsPage, session_id: SessionId) -> Response:
    """Where it stands now; the page then follows it live."""
    body, _ = await get_session(view.rooms, session_id)
    return view.page(
        "session.html",
        session=orjson.loads(body),
        opened=await opened(view.rooms, session_id),
        scopes=sorted(view.caller.scopes),
    )
