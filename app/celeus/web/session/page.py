"""The page of a session, and its card on the surrogate."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

import orjson
from fastapi import Response

from celeus.api.access.parameters import SessionId, share_id_of
from celeus.api.sessions.guest_links import ShareRequest, create_share
from celeus.api.sessions.opening_models import SessionChange
from celeus.api.sessions.round_models import ReleaseRequest
from celeus.api.sessions.sessions import change_session
from celeus.core.insights.figures import count
from celeus.errors import Conflict, Refusal, SessionNotFound
from celeus.operations.access import guest_links
from celeus.operations.deletion.sessions import delete_session
from celeus.operations.insights.provisional import with_provisional
from celeus.operations.insights.surrogate import get_opening, surrogate, workers
from celeus.operations.insights.table import table_claims
from celeus.operations.runtime.context import Context
from celeus.operations.sessions.history import course
from celeus.operations.sessions.rounds import release
from celeus.operations.sessions.sessions import get_session
from celeus.web.forms import number_in, validated
from celeus.web.pages import Act, ManagesPage, Once, ReadsPage, View, page_router
from celeus.web.report.best_report import ladder
from celeus.web.report.course import CourseWords
from celeus.web.report.grid import ORDERS, Order, claims_grid
from celeus.web.report.interval import IntervalFigures
from celeus.web.report.wording import raters_words, sides_words
from celeus.web.session.figures import figures_of, interval_of
from celeus.web.session.plan import plan_lines, target_words
from celeus.web.session.surrogate import SIZE, By, Health
from celeus.web.session.workers import held, persons
from celeus.web.wording import counted

POINTS = 400
ROWS = 60
MOST_WORKERS = 200
"""Largest number of workers that the page shows."""

Shown = Literal["close", "whole"]

router = page_router()


class Look(NamedTuple):
    """The order of a table's claims, and how much of the scale the chart shows."""

    order: Order = "plan"
    scale: Shown = "close"


AT_FIRST = Look()


@router.get("/sessions/{session_id}")
async def session(
    view: ReadsPage, session_id: SessionId, order: Order = "plan", scale: Shown = "close"
) -> Response:
    """Show a session as it stands; while it is open the page asks for itself anew.

    ``order`` is that of the claims of a table, ``scale`` how much of it the chart shows.
    """
    return await _page(view, session_id=session_id, look=Look(order, scale))


@router.post("/sessions/{session_id}")
async def act_on_session(
    view: ManagesPage, session_id: SessionId, order: Order = "plan", scale: Shown = "close"
) -> Response:
    """Do what a form of the page asks."""
    return await view.act(_ACTS, _page, session_id=session_id, look=Look(order, scale))


async def _change(view: View, session_id: UUID, **_: object) -> str:
    await change_session(view.context, session_id, view.form.body(SessionChange))
    return "#actions-title"


async def _set_precision(view: View, session_id: UUID, **_: object) -> str:
    written = view.form.sent("precision")
    width = number_in(written, "precision") if written else None
    body = validated(SessionChange, {"precision": width})
    await change_session(view.context, session_id, body)
    return "#actions-title"


async def _release(view: View, session_id: UUID, **_: object) -> str:
    body = validated(ReleaseRequest, {"rounds": view.form.get("rounds").split()})
    rounds = set(body.rounds or ())
    released = await release(view.context, session_id, None, rounds)
    if len(released) < len(rounds):
        raise Conflict(
            f"{count(len(released))} of {counted(len(rounds), 'draw')} given back: nobody holds"
            " the others"
        )
    return "#workers-title"


async def _delete(view: View, session_id: UUID, **_: object) -> str:
    view.caller.require("admin")
    # Deleted by somebody else, it is gone as well
    with suppress(SessionNotFound):
        await delete_session(view.context, session_id, view.form.get("name").strip() or None)
    return "/#main"


async def _share(view: View, session_id: UUID, **_: object) -> Once:
    made = await create_share(view.context, session_id, view.form.body(ShareRequest))
    return Once("Link to the report", made.url, "It is shown this once.")


async def _revoke(view: View, session_id: UUID, **_: object) -> str:
    await guest_links.revoke_share(view.context, session_id, share_id_of(view.form.get("id")))
    return "#sharing-title"


_ACTS: Final[Mapping[str, Act]] = {
    "change": _change,
    "precision": _set_precision,
    "release": _release,
    "delete": _delete,
    "share": _share,
    "revoke": _revoke,
}


async def _page(
    view: View,
    *,
    session_id: UUID,
    look: Look = AT_FIRST,
    made: Once | None = None,
    fault: Refusal | None = None,
) -> Response:
    body, version = await get_session(view.context, session_id)
    body, _ = await with_provisional(view.context, session_id, body, version)
    opening = await get_opening(view.context, session_id)
    document = orjson.loads(body)
    score = opening.score
    words = interval_of(document, opening)
    manages = "manage" in view.caller.scopes
    return view.page(
        "session.html",
        fault=fault,
        made=made,
        session=document,
        about=_about(document),
        pool=opening.pool,
        score=score,
        figures=figures_of(document, opening),
        words=words,
        plan=plan_lines(document, opening),
        intake=opening.intake if manages else None,
        sides=sides_words(document),
        raters=_raters(document),
        ladder=ladder(document, score) if document["best"] else [],
        orders=ORDERS,
        order=look.order,
        scale=look.scale,
        scopes=view.caller.scopes,
        shares=await guest_links.list_shares(view.context, session_id) if manages else [],
        **await _course(view.context, session_id, words, look.scale),
        **await _claims(view.context, session_id, document, look.order),
        **await _workers(view.context, session_id, document),
    )


@router.get("/sessions/{session_id}/surrogate")
async def surrogate_card(view: ReadsPage, session_id: SessionId, by: By = "curve") -> Response:
    """Show how good the surrogate is alone: its cost grows with the session."""
    found, _ = await surrogate(view.context, session_id)
    opening = await get_opening(view.context, session_id)
    health = Health(found, opening.scale.interval, opening.contrast, by)
    return view.page("surrogate.html", health=health, size=SIZE)


def _about(session: dict[str, Any]) -> str:
    """Return what the session does with its pool."""
    if session["best"] is not None:
        return f"best of {len(session['best']['systems'])} systems on the pool"
    if session["table"] is not None:
        return f"{counted(session['table']['claims'], 'claim')} on the pool"
    where = " on the pool" if session["target"] == "runs" else ""
    return f"{session['policy']} · {target_words(session)}{where}"


def _raters(session: dict[str, Any]) -> str | None:
    """Return what a panel has judged, and whose turn it is."""
    words = raters_words(session)
    if words is None:
        return None
    panel = session["raters"]["panel"]
    turns = [f"{rater['name']} ({rater['rounds']})" for rater in panel if rater["rounds"]]
    return f"{words}. It is the turn of {', '.join(turns)}" if turns else words


async def _course(
    context: Context, session_id: UUID, words: IntervalFigures | None, scale: Shown
) -> dict[str, Any]:
    """Return the chart of a session that has an interval; nothing of other sessions."""
    if words is None:
        return {}
    found = await course(context, session_id, POINTS)
    forecast, stopped = words.status["forecast"], words.status["stopped"]
    expected = None
    if forecast is not None and not stopped:
        expected = forecast["round"] + forecast["labels_left"]
    shown = CourseWords(words, found, ROWS)
    return {
        "course": shown,
        "chart": shown.chart(whole=scale == "whole", expected=expected, spots=True),
        "expected": expected,
        "reached": found.reached,
    }


async def _claims(
    context: Context, session_id: UUID, session: dict[str, Any], order: Order
) -> dict[str, Any]:
    """Return what the page of a table shows of its claims; nothing of other sessions."""
    if session["table"] is None:
        return {"grid": None}
    found = await table_claims(context, session_id)
    return {"grid": claims_grid(found["data"], order)}


async def _workers(context: Context, session_id: UUID, session: dict[str, Any]) -> dict[str, Any]:
    """Return who is judging, and what labels wait for."""
    found = await workers(context, session_id, None, MOST_WORKERS)
    judging = persons(found["data"], found["at"])
    return {
        "workers": found,
        "more_workers": len(found["data"]) == MOST_WORKERS,
        "persons": judging,
        "held": held(session, judging),
    }
