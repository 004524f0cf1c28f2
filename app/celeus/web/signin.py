"""Signing in and out: by a key, or by a link that works once."""

import re
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from celeus.api.access.auth import key_parts
from celeus.api.access.cookies import cookie_of, given_cookie, require_own_origin, taken_cookie
from celeus.api.access.parameters import OpenContext
from celeus.api.access.rates import limit, limit_failures
from celeus.api.wire.problems import status_of
from celeus.errors import Refusal, Unauthenticated, Unavailable
from celeus.operations.access.authentication import admit
from celeus.operations.access.browsers import SignedIn, admit_browser, sign_in, sign_out
from celeus.operations.access.invitations import accept
from celeus.operations.runtime.caller_cache import Caller
from celeus.operations.runtime.context import Context
from celeus.web.forms import read_form
from celeus.web.pages import LOGIN, AnyonesPage, PageRoute, set_retry_after, templates_of
from celeus.web.wording import sentence

LONGEST_PATH = 2_000
MOST_BYTES, MOST_FIELDS = 16 << 10, 40
"""Longest form of somebody who is not signed in."""

# Browsers leave control characters out of an address and turn "\" round, so that "/\evil" and
# "/<tab>/evil" would lead to another host
_LOCAL = re.compile(r"/(?!/)[\x21-\x5b\x5d-\x7e]*")

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class SignInForm:
    """The fields of the sign-in form: a key or an invitation, and the path to go to."""

    key: str
    invite: str
    path: str


def local_path(target: str) -> str:
    """Return ``target`` if it is a path of this service, else "/"."""
    local = len(target) <= LONGEST_PATH and _LOCAL.fullmatch(target) is not None
    return target if local and not target.startswith(LOGIN) else "/"


async def _sign_in_form(request: Request) -> SignInForm:
    form = await read_form(request, MOST_BYTES, MOST_FIELDS)
    key, invite = form.get("key").strip(), form.get("invite").strip()
    return SignInForm(key, invite, local_path(form.get("next")))


@router.get(LOGIN)
async def login(
    request: Request, context: OpenContext, path: Annotated[str, Query(alias="next")] = "/"
) -> Response:
    """Show the sign-in page, also to a browser that is signed in.

    A cookie that no longer works is removed, and the page says so once.
    """
    cookie = cookie_of(request.scope)
    caller, ended = await _current_caller(context, cookie)
    page = {"next": local_path(path), "wrong": "", "ended": ended}
    answer = templates_of(request).page("login.html", caller, page)
    if ended:
        answer.headers["Set-Cookie"] = taken_cookie(request.scope)
    return answer


@router.post(LOGIN)
async def log_in(
    request: Request, context: OpenContext, form: Annotated[SignInForm, Depends(_sign_in_form)]
) -> Response:
    """Sign in and redirect, or show what is wrong with the key or the link."""
    try:
        require_own_origin(request.scope, context.settings.public_url)
        async with context.gates.strangers:
            signed_in = await _signed_in(context, form)
    except Refusal as refusal:
        wait = await limit_failures(context, request.scope, refusal)
        return _sign_in_refused(request, form, wait)
    before = cookie_of(request.scope)
    if before is not None:
        # The browser replaces this cookie, so its session could not be ended later
        await sign_out(context, before)
    answer = RedirectResponse(signed_in.path, 303)
    answer.headers["Set-Cookie"] = given_cookie(request.scope, signed_in)
    answer.headers["Cache-Control"] = "no-store"
    return answer


@router.post("/logout")
async def log_out(view: AnyonesPage) -> Response:
    """End this browser's session, and no other."""
    cookie = cookie_of(view.request.scope)
    if cookie is not None:
        await sign_out(view.context, cookie)
    answer = RedirectResponse(LOGIN, 303)
    answer.headers["Set-Cookie"] = taken_cookie(view.request.scope)
    return answer


async def _signed_in(context: Context, form: SignInForm) -> SignedIn:
    if form.invite:
        return await accept(context, form.invite)
    caller = await admit(context, *key_parts(form.key))
    await limit(context, caller)
    return await sign_in(context, caller, form.path)


async def _current_caller(context: Context, cookie: str | None) -> tuple[Caller | None, bool]:
    """Return the signed-in caller, if any, and whether the cookie has stopped working."""
    try:
        return (None if cookie is None else await admit_browser(context, cookie)), False
    except Unauthenticated:
        return None, True
    except Refusal:
        # Any other refusal is shown when the form is sent
        return None, False


def _sign_in_refused(request: Request, form: SignInForm, refusal: Refusal) -> Response:
    wrong = sentence(refusal.detail)
    if isinstance(refusal, Unauthenticated) and not form.invite:
        wrong = "This is not a key that works. A key begins with ce_; it may be expired or revoked."
    elif isinstance(refusal, Unavailable):
        wrong = sentence(refusal.title())
    context = {"next": form.path, "wrong": wrong, "ended": False}
    status = status_of(type(refusal))
    answer = templates_of(request).page("login.html", None, context, status=status)
    set_retry_after(answer, refusal)
    return answer
