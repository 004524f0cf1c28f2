"""The door: every route but a few needs a key, and says which scope of it.

The key is looked up before anything of the request's body is read. A route that forgot to say
what it needs is closed to those without a key all the same.
"""

import re
from dataclasses import replace
from typing import Annotated, cast

from fastapi import Request, Security
from fastapi.openapi.models import HTTPBearer
from fastapi.security import SecurityScopes
from fastapi.security.base import SecurityBase
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.problems import of_refusal
from app.api.rates import limit, limit_failures
from app.errors import Refusal
from app.operations.admission import admit, unauthenticated
from app.operations.callers import Caller
from app.operations.rooms import Rooms

OPEN = frozenset({"/healthz", "/readyz", "/version"})
"""Paths that need no key."""

_TOKEN = re.compile(r"ce_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)


class Door:
    """Let requests with a key that works pass, their caller in ``request.state.caller``."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it with its body unread."""
        if scope["type"] != "http" or scope["path"] in OPEN:
            await self.app(scope, receive, send)
            return
        rooms = cast("Rooms", scope["app"].state.rooms)
        try:
            key_id, secret = _shown(scope)
            caller = await admit(rooms, key_id, secret)
            await limit(rooms, caller)
        except Refusal as refusal:
            told = await limit_failures(rooms, scope, refusal)
            await of_refusal(told)(scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = caller
        await self.app(scope, receive, send)


def _shown(scope: Scope) -> tuple[str, str]:
    """Id and secret of the key in the header, of which there must be exactly one."""
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    scheme, _, token = (given[0] if len(given) == 1 else b"").partition(b" ")
    found = _TOKEN.fullmatch(token.strip(b" ").decode("latin-1"))
    if scheme.lower() != b"bearer" or found is None:
        raise unauthenticated()
    return found[1], found[2]


class _Key(SecurityBase):
    """Has the contract tell that a route needs a key, and the route know whose it is."""

    def __init__(self) -> None:
        self.scheme_name = "key"
        self.model = HTTPBearer(
            bearerFormat="ce_<id>_<secret>",
            description="`Authorization: Bearer ce_…`; keys are made by `celeus keys create`.",
        )

    async def __call__(self, request: Request) -> Caller:
        """The caller the door has let in."""
        caller: Caller | None = getattr(request.state, "caller", None)
        if caller is None:
            raise unauthenticated()
        return caller


CallerOf = Annotated[Caller, Security(_Key())]
"""The caller, whatever its scopes."""


async def _rooms(request: Request, needed: SecurityScopes, caller: CallerOf) -> Rooms:
    """The rooms as far as the caller's project goes, if its scopes suffice."""
    for scope in needed.scopes:
        caller.require(scope)
    rooms = cast("Rooms", request.app.state.rooms)
    return replace(rooms, project_id=caller.project_id, key_id=caller.key_id)


Reads = Annotated[Rooms, Security(_rooms, scopes=["read"])]
Labels = Annotated[Rooms, Security(_rooms, scopes=["label"])]
Manages = Annotated[Rooms, Security(_rooms, scopes=["manage"])]
Administers = Annotated[Rooms, Security(_rooms, scopes=["admin"])]
