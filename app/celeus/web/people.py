"""The page of people and keys."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from fastapi import Response

from celeus.api.access.invitations import InvitationIn
from celeus.api.access.keys import KeyChange, KeyIn, key_id_of
from celeus.api.access.parameters import AfterSession, invitation_id_of
from celeus.errors import Conflict, Refusal
from celeus.operations.access.people import (
    KeyFilter,
    change_scopes,
    invite_person,
    make_key,
    page_of_invitations,
    page_of_keys,
    remove_key,
    withdraw,
)
from celeus.operations.insights.session_lists import Filter, list_sessions
from celeus.web.pages import Act, AdministersPage, Once, View, page_router
from celeus.web.wording import counted, minute, name_of

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
"""Rights of people and programs by their scopes, in the words of a team."""
_HOURS_SAID: Final = 48

router = page_router()


@router.get("/people")
async def people(view: AdministersPage, session: AfterSession = None) -> Response:
    """Show people and keys, where administrators invite, remove and give roles."""
    return await _page(view, session=session)


@router.post("/people")
async def change_people(view: AdministersPage) -> Response:
    """Do what a form of the page asks."""
    return await view.act(_ACTS, _page)


async def _invite(view: View) -> Once:
    made = await invite_person(view.context, view.form.body(InvitationIn).request)
    name = made.record.name
    return Once(
        f"Link for {name}",
        view.address + made.path,
        f"Send it to {name}. It signs in one browser, once, until {minute(made.record.expires_at)},"
        " and is not shown again.",
    )


async def _make_key(view: View) -> Once:
    made = await make_key(view.context, view.form.body(KeyIn).request)
    words = "Programs send it as “Authorization: Bearer ce_…”. It is not shown again."
    return Once(f"Key of {made.record.name}", made.token, words)


async def _withdraw(view: View) -> str:
    record = await withdraw(view.context, invitation_id_of(view.form.get("id")))
    if record.state == "used":
        raise Conflict(
            f"{record.name} has just signed in with it. To end the access, remove them below."
        )
    return "/people#open-title"


async def _give_role(view: View) -> str:
    scopes = view.form.body(KeyChange).scopes
    await change_scopes(view.context, key_id_of(view.form.get("id")), scopes)
    return "/people#members-title"


async def _remove(view: View) -> str:
    record = await remove_key(view.context, key_id_of(view.form.get("id")))
    return "/people#members-title" if record.person else "/people#keys-title"


_ACTS: Final[Mapping[str, Act]] = {
    "invite": _invite,
    "key": _make_key,
    "withdraw": _withdraw,
    "role": _give_role,
    "remove": _remove,
}


async def _page(
    view: View, made: Once | None = None, fault: Refusal | None = None, session: str | None = None
) -> Response:
    context = view.context
    members, _ = await page_of_keys(context, MOST, None, KeyFilter(True, True, False))
    keys, _ = await page_of_keys(context, MOST, None, KeyFilter(False, True, None))
    invitations, _ = await page_of_invitations(context, MOST, None, "open")
    found = await list_sessions(context, Filter(state="active", limit=MOST_CHOICES))
    sessions = {opened["id"]: name_of(opened) for opened in found}
    if session is not None:
        sessions.setdefault(session, "the one you came from")
    return view.page(
        "people.html",
        fault=fault,
        made=made,
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
