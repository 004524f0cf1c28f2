"""Signing in and out: by a key, or by a link that works once."""

import re
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from app.api.auth import key_parts
from app.api.browsers import cookie_of, given_cookie, require_own_origin, taken_cookie
from app.api.dependencies import OpenRooms
from app.api.problems import status_of
from app.api.rates import limit, limit_failures
from app.errors import InvalidValue, Refusal, Unauthenticated, Unavailable
from app.operations.admission import admit
from app.operations.browsers import SignedIn, admit_browser, sign_in, sign_out
from app.operations.callers import Caller
from app.operations.invitations import accept
from app.operations.rooms import Rooms
from app.web.pages import LOGIN, AnyonesPage, PageRoute, sentence, tell_when, templates_of

MOST_FORM_BYTES = 16 << 10
MOST_FIELDS = 10
LONGEST_PATH = 2_000

# Browsers leave control characters out of an address and turn "\" round, so that "/\evil" and
# "/<tab>/evil" would lead to another host
_LOCAL = re.compile(r"/(?!/)[\x21-\x5b\x5d-\x7e]*")

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What somebody signs in with, and where they want to go then."""

    key: str
    invite: str
    path: str


def local_path(asked: str) -> str:
    """Where somebody is led who asked for this: to a path of this service, else to its start."""
    local = len(asked) <= LONGEST_PATH and _LOCAL.fullmatch(asked) is not None
    return asked if local and not asked.startswith(LOGIN) else "/"


async def _attempt(request: Request) -> Attempt:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_FORM_BYTES:
            raise InvalidValue("the form is too long", field="body", rule="a key, or a link")
    try:
        form = parse_qs(bytes(body).decode("latin-1"), max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise InvalidValue("the form has too many fields", field="body") from error
    key, invite, path = (form.get(name, [""])[0] for name in ("key", "invite", "next"))
    return Attempt(key.strip(), invite.strip(), local_path(path))


@router.get(LOGIN)
async def login(
    request: Request, rooms: OpenRooms, path: Annotated[str, Query(alias="next")] = "/"
) -> Response:
    """The page on which somebody signs in, whoever is signed in already."""
    caller = await _present(request, rooms)
    return templates_of(request).page("login.html", caller, {"next": local_path(path), "wrong": ""})


@router.post(LOGIN)
async def log_in(
    request: Request, rooms: OpenRooms, attempt: Annotated[Attempt, Depends(_attempt)]
) -> Response:
    """Go on signed in, or be told what is wrong with the key or the link."""
    try:
        require_own_origin(request.scope, rooms.settings.public_url)
        signed_in = await _signed_in(rooms, attempt)
    except Refusal as refusal:
        told = await limit_failures(rooms, request.scope, refusal)
        return _told_wrong(request, attempt, told)
    before = cookie_of(request.scope)
    if before is not None:
        # Nobody could end it any more: the browser forgets its cookie
        await sign_out(rooms, before)
    answer = RedirectResponse(signed_in.path, 303)
    answer.headers["Set-Cookie"] = given_cookie(request.scope, signed_in)
    answer.headers["Cache-Control"] = "no-store"
    return answer


@router.post("/logout")
async def log_out(view: AnyonesPage) -> Response:
    """End this browser's session, and no other."""
    cookie = cookie_of(view.request.scope)
    if cookie is not None:
        await sign_out(view.rooms, cookie)
    return Response(status_code=204, headers={"Set-Cookie": taken_cookie(view.request.scope)})


async def _signed_in(rooms: Rooms, attempt: Attempt) -> SignedIn:
    if attempt.invite:
        return await accept(rooms, attempt.invite)
    caller = await admit(rooms, *key_parts(attempt.key))
    await limit(rooms, caller)
    return await sign_in(rooms, caller, attempt.path)


async def _present(request: Request, rooms: Rooms) -> Caller | None:
    cookie = cookie_of(request.scope)
    try:
        return None if cookie is None else await admit_browser(rooms, cookie)
    except Refusal:
        # Whatever it is, the page that helps is this one
        return None


def _told_wrong(request: Request, attempt: Attempt, refusal: Refusal) -> Response:
    wrong = sentence(refusal.detail)
    if isinstance(refusal, Unauthenticated) and not attempt.invite:
        wrong = "This is not a key that works. A key begins with ce_; it may be expired or revoked."
    elif isinstance(refusal, Unavailable):
        wrong = sentence(refusal.title())
    context = {"next": attempt.path, "wrong": wrong}
    status = status_of(type(refusal))
    answer = templates_of(request).page("login.html", None, context, status=status)
    tell_when(answer, refusal)
    return answer
