"""The pages of the service: what each shows; their scripts ask the routes of the interface."""

from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Query, Response
from pydantic import Field

from celeus.api.access.parameters import SessionId
from celeus.api.sessions.sessions import SessionsQuery
from celeus.api.sessions.task import answer_of
from celeus.operations.insights.session_lists import NEWEST, Order, list_sessions
from celeus.operations.sessions.labelling.task import get_task, list_tasks
from celeus.web.pages import (
    AnyonesPage,
    LabelsPage,
    page_router,
)
from celeus.web.report.interval import IntervalFigures

ROWS = 24
"""Sessions that the dashboard shows at first."""
MORE_ROWS = 48
MOST_ROWS = 200
"""Largest number of sessions on one page."""
MOST_TASKS = 100
"""Largest number of sessions on the start page of people who only label."""

# A click loads a picture or sound from wherever its payload says, so the policy cannot name hosts:
# static/js/item/media.js sees to it that nothing else does. Nothing is loaded unencrypted.
ITEMS: Final = {"img-src": "'self' data: https:", "media-src": "'self' data: https:"}

COLUMNS: Final = {
    "Session": "name",
    "Score": "score",
    "Progress": "progress",
    "State": "state",
    "Owner": "owner",
    "Tags": "",
    "Last activity": "active",
}
"""Columns of the dashboard, each with the order it is sorted by."""
LARGEST_FIRST: Final = {"active", "progress"}
ORDERS: Final[dict[Order, str]] = {
    "-opened": "newest first",
    "opened": "oldest first",
    "-active": "last activity first",
    "active": "longest idle first",
    "name": "by name",
    "-name": "by name, Z to A",
    "owner": "by owner",
    "-owner": "by owner, Z to A",
    "state": "by state",
    "-state": "by state, reversed",
    "score": "by score, lowest first",
    "-score": "by score, highest first",
    "-progress": "by progress, furthest first",
    "progress": "by progress, least first",
}

router = page_router()


class DashboardQuery(SessionsQuery):
    """The sessions that the dashboard shows; an empty word sets no condition."""

    limit: int = Field(ROWS, ge=1, le=MOST_ROWS)

    def address(self, **changes: object) -> str:
        """Return the dashboard's address with these conditions changed."""
        kept = self.model_dump(exclude_defaults=True, exclude={"limit", "after"}) | changes
        query = {
            name: str(value).lower() if value is True else value
            for name, value in kept.items()
            if value and value != NEWEST
        }
        return f"/?{urlencode(query)}" if query else "/"


@router.get("/label/{session_id}")
async def label(view: LabelsPage, session_id: SessionId) -> Response:
    """Show one item at a time, without anything that could bias the judge."""
    task = answer_of(await get_task(view.context, session_id))
    return view.page("label.html", policy=ITEMS, task=task.model_dump(mode="json"))


@router.get("/")
async def dashboard(view: AnyonesPage, params: Annotated[DashboardQuery, Query()]) -> Response:
    """Show sessions; while somebody sees it the page asks for itself anew.

    A caller who may only label gets the sessions that their key may label, those with work first,
    and nothing of results.
    """
    if view.caller.blind and "label" in view.caller.scopes:
        return view.page("home.html", tasks=await list_tasks(view.context, MOST_TASKS))
    view.caller.require("read")
    # One more says whether there are others
    found = await list_sessions(view.context, params.filter(params.limit + 1))
    sessions = found[: params.limit]
    following = None
    if len(found) > params.limit and params.limit < MOST_ROWS:
        following = params.address(limit=min(params.limit + MORE_ROWS, MOST_ROWS))
    elif len(found) > params.limit:
        following = params.address(after=sessions[-1]["id"])
    return view.page(
        "dashboard.html",
        rows=[(session, _interval(session)) for session in sessions],
        wanted=params,
        following=following,
        columns=[_column(name, key, params.order) for name, key in COLUMNS.items()],
        orders=ORDERS,
    )


def _interval(session: dict[str, Any]) -> IntervalFigures | None:
    """Return the interval of a session that has one."""
    return None if session["estimate"] is None else IntervalFigures.of(session)


def _column(name: str, key: str, order: str) -> tuple[str, str, str]:
    """Return a column's name, its place in the order now, and the order that a click asks for."""
    ways = [key, f"-{key}"]
    if key in LARGEST_FIRST:
        ways.reverse()
    now = {key: "ascending", f"-{key}": "descending"}.get(order, "")
    return name, now, ways[1] if order == ways[0] else ways[0]
