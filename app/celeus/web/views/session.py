"""The page of one session: interval, surrogate, workers and actions."""

import orjson
from fastapi import Response

from celeus.api.access.parameters import SessionId
from celeus.operations.insights.surrogate import get_opening
from celeus.operations.sessions.sessions import get_session
from celeus.web.pages import ReadsPage, page_router

router = page_router()


@router.get("/sessions/{session_id}")
async def session(view: ReadsPage, session_id: SessionId) -> Response:
    """Where it stands now; the page then follows it live."""
    body, _ = await get_session(view.context, session_id)
    return view.page(
        "session.html",
        session=orjson.loads(body),
        opened=await get_opening(view.context, session_id),
        scopes=sorted(view.caller.scopes),
    )
