"""The loop of a judge on the wire: next, observe, and the correction of an observation."""

from typing import Any

import orjson
from fastapi import APIRouter, Response

from celeus.api.access.parameters import CallerOf, Corrects, Labels, SessionId
from celeus.api.pools.items import item_members
from celeus.api.sessions.round_models import (
    AmendmentRequest,
    NextAnswer,
    NextRequest,
    ObserveAnswer,
    Observed,
    OneObservation,
    ReleaseAnswer,
    ReleaseRequest,
)
from celeus.api.sessions.session_models import BlindSession
from celeus.api.watch.spans import tell_judgements
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.errors import (
    BoundContradicted,
    InvalidValue,
    LossOutsideScale,
    NotLastLabel,
    ObservationConflict,
    RoundNotDrawn,
    RoundNotHeld,
    RoundNotJudged,
    SessionArchived,
    SessionClosed,
    SessionNotFound,
    SessionStopped,
    TooManyCorrections,
)
from celeus.operations.sessions import amendments, rounds
from celeus.operations.sessions.amendments import Correction
from celeus.operations.sessions.rounds import Answer, NextDraws

router = APIRouter(prefix="/v1/sessions", tags=["rounds"], route_class=JsonRoute)


@router.post(
    "/{session_id}/next",
    operation_id="next_draws",
    summary="What to judge next",
    response_model=NextAnswer,
    responses=responses(SessionNotFound, SessionArchived),
)
async def next_draws(context: Labels, session_id: SessionId, body: NextRequest) -> Response:
    """Own draws first (their lease is renewed), then expired ones, then new ones.

    Where enough judgements wait for the oldest draw, it goes to a second judge before new ones are
    drawn; of their answers the first counts, and the second gets a receipt with `duplicate`.

    The list ends early behind 4 MiB of payloads; the rest comes when these are judged.
    """
    offer = await rounds.next_draws(
        context,
        session_id,
        body.worker,
        body.count,
        body.lease_seconds,
        runs={made.round: made.runs for made in body.runs},
    )
    return _answer(_offered(offer))


@router.post(
    "/{session_id}/release",
    operation_id="release_draws",
    summary="Give draws back",
    response_model=ReleaseAnswer,
    responses=responses(SessionNotFound),
    openapi_extra={"security": [{"key": ["manage"]}]},
)
async def release_draws(
    context: Corrects, caller: CallerOf, session_id: SessionId, body: ReleaseRequest
) -> Response:
    """Their leases end, and `next` gives them to whoever asks first.

    Who gave a draw back may still judge it until somebody else has. Turns of a panel's raters are
    nobody else's and stay. Asked again it answers that there was nothing left to give back.
    """
    if body.worker is None:
        caller.require("manage")
    released = await rounds.release(
        context, session_id, body.worker, body.rounds, passed=body.pass_on
    )
    return _answer({"released": released})


@router.post(
    "/{session_id}/observe",
    operation_id="observe",
    summary="Report judgements, and take the next draws",
    response_model=ObserveAnswer,
    responses=responses(
        SessionNotFound,
        RoundNotDrawn,
        LossOutsideScale,
        BoundContradicted,
        InvalidValue,
        ObservationConflict,
        RoundNotHeld,
        SessionArchived,
        SessionClosed,
    ),
)
async def observe(
    context: Labels, caller: CallerOf, session_id: SessionId, body: Observed
) -> Response:
    """The same judgement again gets the first one's receipt; another is a conflict.

    A key without scope `read` judges what was handed to it; of any other round it is told one thing
    only, `round_not_held`, whatever it says of it.
    """
    single = isinstance(body, OneObservation)
    observations = [body] if isinstance(body, OneObservation) else body.observations
    answer = await rounds.observe(
        context,
        session_id,
        [judged.judgement() for judged in observations],
        body.worker,
        body.next,
        lease_seconds=body.lease_seconds,
    )
    tell_judgements(answer.session, answer.judged)
    receipts = _receipts(answer, blind=caller.blind)
    given = {"receipt": receipts[0]} if single else {"receipts": receipts}
    return _answer(given | _shown(answer, blind=caller.blind))


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
        BoundContradicted,
        InvalidValue,
        NotLastLabel,
        TooManyCorrections,
        SessionStopped,
        SessionArchived,
        SessionClosed,
    ),
    openapi_extra={"security": [{"key": ["manage"]}]},
)
async def amend(
    context: Corrects,
    caller: CallerOf,
    session_id: SessionId,
    body: AmendmentRequest,
) -> Response:
    """Appended with author and reason; a session that had stopped may go on afterwards.

    Scope `manage` corrects any round; scope `label` the last one judged with this very key, while
    the losses have not stopped the session, and in the key's own name; all others are
    `not_last_label` to it, drawn and judged or not.
    """
    correction = Correction(body.judgement(), body.author, body.reason, body.worker)
    own_only = "manage" not in caller.scopes
    answer = await amendments.amend(context, session_id, correction, own_only=own_only)
    receipt = {"receipt": _receipts(answer, blind=caller.blind)[0]}
    return _answer(receipt | _shown(answer, blind=caller.blind))


def _shown(answer: Answer, *, blind: bool) -> dict[str, Any]:
    """The session and the next draws, as far as the caller may see."""
    session = _blinded(answer.session) if blind else answer.session
    return {"session": session} | _offered(answer.offer)


def _blinded(session: dict[str, Any]) -> dict[str, Any]:
    """Return the session without anything that could sway a judge."""
    return {name: session[name] for name in BlindSession.model_fields}


def _receipts(answer: Answer, *, blind: bool) -> list[dict[str, Any]]:
    """A place in the ledger would tell a blind judge how long it is."""
    return [
        {
            "round": receipt.round,
            "sequence": None if blind else receipt.sequence,
            "replayed": receipt.replayed,
            "duplicate": receipt.duplicate,
        }
        for receipt in answer.receipts
    ]


def _offered(offer: NextDraws) -> dict[str, Any]:
    draws = [draw | {"item": item_members(draw["item"])} for draw in offer.draws]
    return {"state": offer.state, "draws": draws, "retry_after": offer.retry_after}


def _answer(body: dict[str, Any]) -> Response:
    """Already plain values: validating them again would cost more than the fold."""
    return Response(orjson.dumps(body), media_type="application/json")
