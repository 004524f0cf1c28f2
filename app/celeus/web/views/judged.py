"""The pages of a session's judgements: the table, and a round with its history."""

import orjson
from fastapi import Response

from celeus.api.access.parameters import SessionId
from celeus.api.sessions.task import answer_of
from celeus.operations.sessions.labelling.labels import labels_of
from celeus.operations.sessions.labelling.task import get_task
from celeus.operations.sessions.sessions import get_session
from celeus.web.pages import ReadsPage, page_router
from celeus.web.views.labelling import ITEMS

router = page_router()

MOST_OFFERED = 500
"""Largest number of values of a group column that the page offers; others are typed."""


@router.get("/sessions/{session_id}/judged")
async def judged(view: ReadsPage, session_id: SessionId) -> Response:
    """Show judgements; the page reads the filter from its address and asks the service for them."""
    body, _ = await get_session(view.context, session_id)
    labels = await labels_of(view.context, session_id)
    groups = {name: values[:MOST_OFFERED] for name, values in labels.groups.items()}
    return view.page(
        "judged.html", session=orjson.loads(body), groups=groups, loss=labels.pool.scale.kind
    )


@router.get("/sessions/{session_id}/judged/{round_}")
async def judgement(view: ReadsPage, session_id: SessionId, round_: int) -> Response:
    """Show a round: its item, its judgements, and a form to correct them."""
    body, _ = await get_session(view.context, session_id)
    task = answer_of(await get_task(view.context, session_id))
    return view.page(
        "judgement.html",
        task=task.model_dump(mode="json"),
        policy=ITEMS,
        session=orjson.loads(body),
        round=round_,
        scopes=sorted(view.caller.scopes),
    )
