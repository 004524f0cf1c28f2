"""The page of people and keys."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from fastapi import Response

from celeus.api.access.parameters import AfterSession
from celeus.operations.access.people import KeyFilter, page_of_invitations, page_of_keys
from celeus.operations.insights.session_lists import Filter, list_sessions
from celeus.web.pages import AdministersPage, page_router
from celeus.web.wording import counted, name_of

MOST = 500
"""Largest number of people, keys or links that the page shows, the newest ones."""
MOST_CHOICES = 100
ROLES: Final = {
    "label": ("labels", "Judges items and sees no result, so that nothing sways them."),
    "read": (
        "views",
        "Sees sessions, results and reports, and changes nothing. Labellers should not see these.",
    ),
    "manage": (
        "manages",
        "Uploads pools, opens and closes sessions, corrects labels, and sees all results.",
    ),
    "admin": ("administers", "May do everything, and invites and removes people."),
}
"""What people and programs may do by their scopes, in the words of a team."""
_HOURS_SAID: Final = 48

router = page_router()


@router.get("/people")
async def people(view: AdministersPage, session: AfterSession = None) -> Response:
    """Show people and keys, where administrators invite, remove and give roles."""
    context = view.context
    members, _ = await page_of_keys(context, MOST, None, KeyFilter(True, True, False))
    keys, _ = await page_of_keys(context, MOST, None, KeyFilter(False, True, None))
    invitations, _ = await page_of_invitations(context, MOST, None, "open")
    found = await list_sessions(context, Filter(state="active", limit=MOST_CHOICES))
    sessions = {one["id"]: name_of(one) for one in found}
    if session is not None:
        sessions.setdefault(session, "the one you came from")
    return view.page(
        "people.html",
        own_key=view.caller.key_id,
        members=members,
        keys=keys,
        invitations=invitations,
        sessions=list(sessions.items()),
        wanted=session,
        roles=ROLES,
        does=does,
        until=until,
    )


def does(scopes: Sequence[str]) -> str:
    """Return what somebody does: "labels and views"."""
    *words, last = [word for scope, (word, _) in ROLES.items() if scope in scopes]
    return f"{', '.join(words)} and {last}" if words else last


def until(end: datetime | None) -> str:
    """Return until when something works, in days or hours from now."""
    if end is None:
        return "no end"
    hours = (end - datetime.now(UTC)).total_seconds() / 3_600
    if hours <= 0:
        return "over"
    if hours < 1:
        return "less than an hour left"
    if hours < _HOURS_SAID:
        return f"{counted(round(hours), 'hour')} left"
    return f"{counted(round(hours / 24), 'day')} left"
