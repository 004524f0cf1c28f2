"""Reading a body as JSON at a price that its sender cannot drive up.

The framework validates whatever it is given, and keeps an error for every member too many: ten
megabytes of junk hold a worker for ten seconds. What no route could ever accept is therefore
refused before it is validated, and before it is read where its bytes already tell.
"""

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from anyio import to_thread
from fastapi import Request, Response, params
from fastapi.routing import APIRoute

from celeus.api.access.auth import admit_to
from celeus.api.access.parameters import only_known
from celeus.errors import InvalidValue, UnsupportedFormat
from celeus.strict_json import json_of

MOST_VALUES = 1_000_000
"""Members and elements of a body, all levels together; each costs memory once it is read."""
MOST_MEMBERS = 64
"""Members of an object that has a schema; none has as many."""
SCHEMA_LEVELS = 3
"""Levels of objects that have schemas. Below lie payloads, which may be any JSON."""
INLINE_BYTES = 1 << 16
"""Bodies read between two requests; a larger one would hold up the others."""


class JsonRoute(APIRoute):
    """A route that knows its query, and whose JSON, where it takes any, is bounded."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, given a request whose JSON is read and checked already."""
        handle, takes_json = super().get_route_handler(), self._takes_json()

        async def checked(request: Request) -> Response:
            only_known(request, self.dependant)
            if not takes_json:
                return await handle(request)
            await admit_to(self.dependant, request)
            bounded = _JsonRequest(request.scope, request.receive)
            await bounded.load()
            return await handle(bounded)

        return checked

    def _takes_json(self) -> bool:
        field = self.body_field
        return field is not None and not isinstance(field.field_info, params.Form)


class _JsonRequest(Request):
    """A request whose JSON is read once, and whose refusals keep their names."""

    async def load(self) -> None:
        """Read the body; what is no JSON is left to the framework to tell."""
        self._found: Any = None
        self._unreadable: Exception | None = None
        body = await self.body()
        if not body:
            return
        _check_media(self.headers.get("content-type", ""))
        try:
            if len(body) <= INLINE_BYTES:
                self._found = parsed(body)
            else:
                self._found = await to_thread.run_sync(parsed, body)
        except (ValueError, RecursionError) as error:
            self._unreadable = error

    async def json(self) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Return the body as it was read."""
        if self._unreadable is not None:
            raise self._unreadable
        return self._found


def parsed(body: bytes) -> Any:  # noqa: ANN401 - whatever JSON holds
    """The value a body holds; refuses doubled names, and more than any schema takes.

    NaN and infinities are read, so that their fields can be named.
    """
    values = body.count(b",") + body.count(b"{") + body.count(b"[")
    if values > MOST_VALUES:
        raise InvalidValue(
            "The body holds too many values to be read at once; items may be sent as an upload.",
            field="body",
            rule=f"at most {MOST_VALUES} commas and opening brackets",
            value=values,
        )
    # As text: bytes would be read as UTF-16 and UTF-32 too, which others take for something else.
    found = json_of(body)
    for inner in _with_schema(found):
        if len(inner) > MOST_MEMBERS:
            raise InvalidValue(
                "An object in the body has too many members.",
                field="body",
                rule=f"at most {MOST_MEMBERS} members",
                value=len(inner),
            )
    return found


def _with_schema(found: object) -> Iterator[dict[str, Any]]:
    """The objects of the upper levels."""
    level = [found]
    for _ in range(SCHEMA_LEVELS):
        below: list[object] = []
        for value in level:
            if isinstance(value, dict):
                yield value
                below += value.values()
            elif isinstance(value, list):
                below += value
        level = below


def _check_media(content_type: str) -> None:
    media = content_type.partition(";")[0].strip().lower()
    if media != "application/json" and not (
        media.startswith("application/") and media.endswith("+json")
    ):
        raise UnsupportedFormat(
            "The body is not announced as JSON.",
            field="Content-Type",
            rule="application/json",
            value=media,
        )
