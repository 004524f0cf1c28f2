"""The door: every route but a few needs a key, and says which scope of it.

The key is looked up before anything of the request's body is read. A route that forgot to say
what it needs is closed to those without a key all the same. In place of the key a browser may show
the cookie it was given for it.
"""

import asyncio
import re
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Annotated, cast

from fastapi import Request, Security
from fastapi.dependencies.models import Dependant
from fastapi.openapi.models import HTTPBearer
from fastapi.security import SecurityScopes
from fastapi.security.base import SecurityBase
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from celeus.api.access.cookies import cookie_of, headers_of, kept_private, require_own_page
from celeus.api.access.rates import limit, limit_failures
from celeus.api.wire import connections
from celeus.api.wire.connections import OPEN
from celeus.api.wire.problems import of_refusal
from celeus.errors import CsrfMissing, Refusal, Unauthenticated
from celeus.operations.access.authentication import admit, unauthenticated
from celeus.operations.access.browsers import admit_browser
from celeus.operations.runtime.caller_cache import Caller
from celeus.operations.runtime.context import Context

_TOKEN = re.compile(r"ce_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of the service: people who have to sign in are led there, not refused."""

    opened: Callable[[str], bool]
    """Tells whether a path is open to everybody."""
    shows: Callable[[Scope], bool]
    """Tells whether a request asks for a page."""
    refused: Callable[[Scope, Refusal], ASGIApp]
    """Make the answer that people get in place of a page."""


class Authentication:
    """Let requests with a key that works pass, their caller in ``request.state.caller``."""

    def __init__(self, app: ASGIApp, pages: Pages) -> None:
        self.app = app
        self.pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it with its body unread."""
        if scope["type"] != "http" or scope["path"] in OPEN:
            await self.app(scope, receive, send)
            return
        context = cast("Context", scope["app"].state.context)
        if self.pages.opened(scope["path"]):
            await self._open(context, scope, receive, send)
            return
        try:
            caller = await _admitted(context, scope)
            await limit(context, caller)
        except Refusal as refusal:
            answer = await self._refused(context, scope, refusal)
            await answer(scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = caller
        connections.admit(scope, caller.project_id)
        await self.app(scope, receive, send if caller.browser is None else kept_private(send))

    async def _open(self, context: Context, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer everybody, a few at a time: until an answer begins, nothing waits for a client."""
        if scope["method"] not in {"GET", "HEAD"}:
            await self.app(scope, receive, send)
            return
        async with AsyncExitStack() as place:
            try:
                await place.enter_async_context(context.gates.strangers)
            except Refusal as refusal:
                await self.pages.refused(scope, refusal)(scope, receive, send)
                return
            # A page may be made without waiting for anything: others are before it
            await asyncio.sleep(0)

            async def begun(message: Message) -> None:
                await place.aclose()
                await send(message)

            await self.app(scope, receive, begun)

    async def _refused(self, context: Context, scope: Scope, refusal: Refusal) -> ASGIApp:
        page = self.pages.shows(scope)
        if page and isinstance(refusal, Unauthenticated) and not _shows_anything(scope):
            # Whoever comes for the first time has guessed nothing
            return self.pages.refused(scope, refusal)
        final = await limit_failures(context, scope, refusal)
        if page:
            return self.pages.refused(scope, final)
        answer = of_refusal(final)
        if isinstance(final, CsrfMissing):
            # The body is unread, and would be taken for the next request
            answer.headers["Connection"] = "close"
        return answer


async def _admitted(context: Context, scope: Scope) -> Caller:
    """The caller of a request; a key in the header takes precedence over a cookie."""
    cookie = cookie_of(scope)
    if cookie is None or headers_of(scope, b"authorization"):
        return await admit(context, *_shown(scope))
    caller = await admit_browser(context, cookie)
    require_own_page(scope, caller, context.settings.public_url)
    return caller


def _shows_anything(scope: Scope) -> bool:
    return any(headers_of(scope, name) for name in (b"authorization", b"cookie"))


def _shown(scope: Scope) -> tuple[str, str]:
    """Id and secret of the key in the header, of which there must be exactly one."""
    given = headers_of(scope, b"authorization")
    scheme, _, token = (given[0] if len(given) == 1 else "").partition(" ")
    if scheme.lower() != "bearer":
        raise unauthenticated()
    return key_parts(token.strip(" "))


def key_parts(token: str) -> tuple[str, str]:
    """Id and secret of a key as it is written; what has another form is no key that works."""
    found = _TOKEN.fullmatch(token)
    if found is None:
        raise unauthenticated()
    return found[1], found[2]


class _Key(SecurityBase):
    """Has the contract tell that a route needs a key."""

    def __init__(self) -> None:
        self.scheme_name = "key"
        self.model = HTTPBearer(
            bearerFormat="ce_<id>_<secret>",
            description="`Authorization: Bearer ce_…`; `celeus admin keys create` makes keys.",
        )


class _CallerOfKey(_Key):
    """Has the route know whose the key is."""

    async def __call__(self, request: Request) -> Caller:
        """The caller the door has let in."""
        return _caller(request)


class _Scope(_Key):
    """Has the route be bound to the caller, whose scopes suffice; ``instead`` does as well."""

    def __init__(self, instead: str | None = None) -> None:
        super().__init__()
        self._instead = instead

    async def __call__(self, request: Request, needed: SecurityScopes) -> Context:
        """The context of the caller the door has let in."""
        caller = _caller(request)
        if self._instead not in caller.scopes:
            for scope in needed.scopes:
                caller.require(scope)
        return context_of(request, caller)


def _caller(request: Request) -> Caller:
    caller: Caller | None = getattr(request.state, "caller", None)
    if caller is None:
        raise unauthenticated()
    return caller


def context_of(request: Request, caller: Caller) -> Context:
    """The context of the caller: bound to its project and key."""
    context = cast("Context", request.app.state.context)
    return replace(
        context,
        project_id=caller.project_id,
        key_id=caller.key_id,
        blind=caller.blind,
        browser=caller.browser,
    )


async def admit_to(route: Dependant, request: Request) -> None:
    """Refuse a caller whose scopes do not suffice for a route, before its body is read."""
    for inner in route.dependencies:
        if isinstance(inner.call, _Scope):
            scopes = [*(inner.parent_oauth_scopes or ()), *(inner.own_oauth_scopes or ())]
            await inner.call(request, SecurityScopes(scopes))


_SCOPE = _Scope()
CallerOf = Annotated[Caller, Security(_CallerOfKey())]
"""The caller, whatever its scopes."""
Reads = Annotated[Context, Security(_SCOPE, scopes=["read"])]
Labels = Annotated[Context, Security(_SCOPE, scopes=["label"])]
Manages = Annotated[Context, Security(_SCOPE, scopes=["manage"])]
Administers = Annotated[Context, Security(_SCOPE, scopes=["admin"])]
Corrects = Annotated[Context, Security(_Scope(instead="manage"), scopes=["label"])]
