"""Bounds on a body's size and on the time it takes, before anything reads it."""

import asyncio
import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from celeus.api.wire.problems import RefusedBody, of_refusal
from celeus.api.wire.uploads import check_encoding, too_large
from celeus.errors import BodyTooSlow, RateLimited, Refusal
from celeus.settings import Settings

INLINE_LIMIT_BYTES = 16 << 20
"""A pool that comes with its items, all in memory."""
LEAST_BYTES_A_SECOND = 1024
"""Least rate at which a body comes, once its patience is used up."""

FREE_BYTES = 64 << 10
"""Bytes of each body that are not counted."""
MOST_HELD_BYTES = 128 << 20
"""Most bytes of all bodies held in memory: those of requests under way."""
FAIR_SECONDS = 1.0
"""Seconds in which no body loses its room to another."""
RETRY_SECONDS = 5

_WITH_BODY = {"POST", "PUT", "PATCH"}
_UPLOADS = re.compile(
    r"/v1/pools/[^/]+/items|/v1/(pool|session)-files|/v1/certificates/verify|/sessions/new/(file|plan)"
)


class BodyLimit:
    """Refuse bodies that are packed, too large, or that stand still.

    The length is judged as announced and again while the body arrives. Standing still means no
    byte for as long as a body may, or hardly any for longer. Where bodies together hold too much
    memory, the one that has not been complete for longest is given up.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.settings = settings
        self._room = _Room()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its body watched, or refuse it."""
        if scope["type"] != "http" or scope["method"] not in _WITH_BODY:
            await self.app(scope, receive, send)
            return
        upload = _UPLOADS.fullmatch(scope["path"]) is not None
        limit = self.settings.upload_limit_bytes if upload else self._limit_bytes(scope)
        # An upload goes to a file
        room = None if upload else self._room
        body = _Body(limit, self.settings.body_timeout_seconds, receive, room)
        try:
            _check_headers(scope, body.limit_bytes)
        except Refusal as refusal:
            await of_refusal(refusal)(scope, receive, send)
            return
        try:
            await self.app(scope, body.receive, send)
        finally:
            self._room.leave(body)

    def _limit_bytes(self, scope: Scope) -> int:
        if scope["path"] == "/v1/pools":
            return max(INLINE_LIMIT_BYTES, self.settings.json_limit_bytes)
        return self.settings.json_limit_bytes


class _Room:
    """The memory that bodies hold, in the order in which they became large."""

    def __init__(self) -> None:
        self._held: dict[_Body, tuple[int, float]] = {}
        self._bytes = 0

    def hold(self, body: "_Body", size: int) -> None:
        """Have ``body`` hold ``size`` bytes in all; refused where others leave no room."""
        now = asyncio.get_running_loop().time()
        before, since = self._held.get(body, (0, now))
        while self._bytes + size - before > MOST_HELD_BYTES:
            others = (held for held in self._held if held is not body and not held.complete)
            oldest = next(others, None)
            if oldest is None or now - self._held[oldest][1] < FAIR_SECONDS:
                raise RefusedBody(
                    RateLimited(
                        "Too many large bodies are under way; try again.",
                        rule=f"at most {MOST_HELD_BYTES} bytes together",
                        retry_after=RETRY_SECONDS,
                    )
                )
            self.leave(oldest)
            oldest.give_up()
        self._held[body] = size, since
        self._bytes += size - before

    def leave(self, body: "_Body") -> None:
        """The body is read no further, or its request answered."""
        size, _ = self._held.pop(body, (0, 0.0))
        self._bytes -= size


class _Body:
    """The body of one request on its way in."""

    def __init__(
        self, limit_bytes: int, patience: float, receive: Receive, room: "_Room | None"
    ) -> None:
        self.limit_bytes = limit_bytes
        self._room = room
        self._timeout: asyncio.Timeout | None = None
        self._patience = patience
        self._receive = receive
        self._received = 0
        self._complete = False
        self._began: float | None = None

    async def receive(self) -> Message:
        """The next part; refused past the limit, or when it does not come in time."""
        if self._complete:
            # Whoever asks now waits for the client to leave, however long that takes.
            return await self._receive()
        return await self._next()

    async def _next(self) -> Message:
        try:
            async with asyncio.timeout_at(self._deadline()) as self._timeout:
                message = await self._receive()
        except TimeoutError as error:
            raise RefusedBody(
                BodyTooSlow(
                    "The body of the request did not come in time.",
                    field="body",
                    rule=f"never {self._patience:g} s without a byte, and on average"
                    f" {LEAST_BYTES_A_SECOND} bytes a second",
                    value=f"{self._received} bytes",
                )
            ) from error
        if message["type"] == "http.disconnect":
            raise RefusedBody(
                BodyTooSlow(
                    "The client left before its body was there.",
                    field="body",
                    rule="the whole body",
                    value=f"{self._received} bytes",
                )
            )
        self._received += len(message.get("body", b""))
        self._complete = not message.get("more_body", False)
        if self._received > self.limit_bytes:
            raise RefusedBody(too_large(self.limit_bytes, f"more than {self.limit_bytes}"))
        if self._room is not None and self._received > FREE_BYTES:
            self._room.hold(self, self._received - FREE_BYTES)
        return message

    @property
    def complete(self) -> bool:
        """Return whether all of it is there."""
        return self._complete

    def give_up(self) -> None:
        """Wait for no further part, as if it had not come in time."""
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time())

    def _deadline(self) -> float:
        now = asyncio.get_running_loop().time()
        if self._began is None:
            self._began = now
        earned = self._received / LEAST_BYTES_A_SECOND
        return min(now, self._began + earned) + self._patience


def _check_headers(scope: Scope, limit_bytes: int) -> None:
    headers = dict(scope["headers"])
    check_encoding(headers.get(b"content-encoding", b"identity").decode("latin-1"))
    announced = headers.get(b"content-length", b"")
    # More digits than any limit has are not worth reading as a number.
    if announced.isdigit() and (len(announced) > 18 or int(announced) > limit_bytes):
        raise too_large(limit_bytes, announced.decode())
