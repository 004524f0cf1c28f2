"""The loop of a judge on the wire: next, observe, and the correction of an observation."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import orjson
from fastapi import APIRouter, Response

from app.api.bodies import JsonRoute
from app.api.dependencies import CallerOf, Labels, Manages, SessionId
from app.api.problems import responses
from app.api.roundschema import (
    AmendmentRequest,
    NextAnswer,
    NextRequest,
    ObserveAnswer,
    Observed,
    OneObservation,
)
from app.api.sessionschema import BlindSession
from app.errors import (
    InvalidValue,
    LossOutsideScale,
    ObservationConflict,
    RoundNotDrawn,
    RoundNotJudged,
    SessionClosed,
    SessionNotFound,
)
from app.operations import amendments, rounds
from app.operations.amendments import Correction
from app.operations.rounds import Offer

router = APIRouter(prefix="/v1/sessions", tags=["rounds"], route_class=JsonRoute)


@router.post(
    "/{session_id}/next",
    operation_id="next_draws",
    summary="What to judge next",
    response_model=NextAnswer,
    responses=responses(SessionNotFound),
)
async def next_draws(rooms: Labels, session_id: SessionId, body: NextRequest) -> Response:
    """Own unexpired draws first (their lease is renewed), then expired ones, then new ones."""
    offer = await rounds.next_draws(rooms, session_id, body.worker, body.count)
    return _answer(_offered(offer))


@router.post(
    "/{session_id}/observe",
    operation_id="observe",
    summary="Report judgements, and take the next draws",
    response_model=ObserveAnswer,
    responses=responses(
        SessionNotFound,
        RoundNotDrawn,
        LossOutsideScale,
        InvalidValue,
        ObservationConflict,
        SessionClosed,
    ),
)
async def observe(
    rooms: Labels, caller: CallerOf, session_id: SessionId, body: Observed
) -> Response:
    """The same judgement again gets the first one's receipt; another is a conflict."""
    if isinstance(body, OneObservation):
        answer = await rounds.observe(rooms, session_id, [body.judgement()], body.worker, body.next)
        receipts: dict[str, Any] = {"receipt": asdict(answer.receipts[0])}
    else:
        judgements = [one.judgement() for one in body.observations]
        answer = await rounds.observe(rooms, session_id, judgements, body.worker, body.next)
        receipts = {"receipts": _receipts(answer.receipts)}
    shown = _blinded(answer.session) if caller.blind else answer.session
    return _answer(receipts | {"session": shown} | _offered(answer.offer))


@router.post(
    "/{session_id}/amendments",
    operation_id="amend",
    summary="Correct a judged round",
    response_model=ObserveAnswer,
    responses=responses(
        SessionNotFound,
        RoundNotDrawn,
        RoundNotJudged,
        LossOutsideScale,
        InvalidValue,
        SessionClosed,
    ),
)
async def amend(rooms: Manages, session_id: SessionId, body: AmendmentRequest) -> Response:
    """Appended with author and reason; a session that had stopped may go on afterwards."""
    correction = Correction(body.judgement(), body.author, body.reason)
    answer = await amendments.amend(rooms, session_id, correction)
    receipt = {"receipt": asdict(answer.receipts[0])}
    return _answer(receipt | {"session": answer.session} | _offered(answer.offer))


def _blinded(session: dict[str, Any]) -> dict[str, Any]:
    """What stays when everything that could sway a judge is taken away."""
    return {name: session[name] for name in BlindSession.model_fields}


def _receipts(receipts: Sequence[rounds.Receipt]) -> list[dict[str, Any]]:
    return [asdict(receipt) for receipt in receipts]


def _offered(offer: Offer) -> dict[str, Any]:
    return {"state": offer.state, "draws": offer.draws, "retry_after": offer.retry_after}


def _answer(body: dict[str, Any]) -> Response:
    """Already plain values: validating them again would cost more than the fold."""
    try:
        content = orjson.dumps(body)
    except orjson.JSONEncodeError:
        # A payload may hold whole numbers beyond 64 bits.
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(content, media_type="application/json")
