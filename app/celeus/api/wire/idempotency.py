"""The header `Idempotency-Key`: a creating request that may be sent again."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import orjson
from fastapi import Depends, Header, Request, Response

from celeus.operations.runtime.idempotency import IdempotentRequest, Replay

if TYPE_CHECKING:
    # Only a name for what hashlib makes.
    from hashlib import _Hash

T = TypeVar("T")

KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?$",
        description="1 to 255 printable ASCII characters, no space at either end. The same "
        "request under the same key has its effect once and gets the same answer for 24 hours, "
        "with `Idempotency-Replayed: true`.",
    ),
]


@dataclass(slots=True)
class Attempt:
    """A request, and the key under which it may have been made before."""

    key: str | None
    request: "_Hash" = field(default_factory=hashlib.sha256)

    @property
    def hashed(self) -> Callable[[bytes], object] | None:
        """The function to call with each part of the body; None without an idempotency key."""
        return None if self.key is None else self.request.update

    async def answer(
        self,
        status: int,
        encode: Callable[[T], bytes],
        run: Callable[[IdempotentRequest[T] | None], Awaitable[T]],
        location: Callable[[Any], str] | None = None,
        kept: Callable[[T], bytes] | None = None,
    ) -> Response:
        """The answer that `run` comes to, or the one it came to before: the same bytes.

        ``location`` gives the address of what was created, from the answer's JSON. ``kept`` is
        what a repetition is answered where that may not be the same: a secret is kept nowhere.
        """
        once = None
        if self.key is not None:
            once = IdempotentRequest(self.key, self.request.digest(), status, kept or encode)
        headers: dict[str, str] = {}
        try:
            body = encode(await run(once))
        except Replay as replay:
            headers["Idempotency-Replayed"] = "true"
            body, status = replay.body, replay.status
        if location is not None and status == HTTPStatus.CREATED:
            headers["Location"] = location(orjson.loads(body))
        return Response(body, status, headers, "application/json")


async def _attempt(request: Request, key: KeyHeader = None) -> Attempt:
    """A request whose body is still on its way."""
    attempt = Attempt(key)
    for part in (request.method, request.url.path, request.url.query):
        attempt.request.update(f"{len(part)} {part}".encode())
    return attempt


async def _attempt_with_body(
    request: Request, attempt: Annotated[Attempt, Depends(_attempt)]
) -> Attempt:
    """A request whose body is in memory."""
    if attempt.hashed is not None:
        attempt.hashed(await request.body())
    return attempt


AttemptOf = Annotated[Attempt, Depends(_attempt_with_body)]
StreamedAttempt = Annotated[Attempt, Depends(_attempt)]
