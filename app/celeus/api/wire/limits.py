"""How large a body may be, and how slowly it may come, before anything reads it."""

import asyncio
import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from celeus.api.wire.problems import RefusedBody, of_refusal
from celeus.api.wire.uploads import check_encoding, too_large
from celeus.errors import BodyTooSlow, Refusal
from celeus.settings import Settings

INLINE_LIMIT_BYTES = 16 << 20
"""A pool that comes with its items, all in memory."""
LEAST_BYTES_A_SECOND = 1024
"""What every second of a body's time has to be earned with, once its patience is used up."""

_WITH_BODY = {"POST", "PUT", "PATCH"}
_UPLOADS = re.compile(r"/v1/pools/[^/]+/items|/v1/pool-files|/v1/certificates/verify")


class BodyLimit:
    """Refuse bodies that are packed, too large, or that stand still.

    The length is judged as announced and again while the body arrives. Standing still means no
    byte for as long as a body may, or hardly any for longer.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its body watched, or refuse it."""
        if scope["type"] != "http" or scope["method"] not in _WITH_BODY:
            await self.app(scope, receive, send)
            return
        body = _Body(self._limit_bytes(scope), self.settings.body_timeout_seconds, receive)
        try:
            _check_headers(scope, body.limit_bytes)
        except Refusal as refusal:
            await of_refusal(refusal)(scope, receive, send)
            return
        await self.app(scope, body.receive, send)

    def _limit_bytes(self, scope: Scope) -> int:
        if _UPLOADS.fullmatch(scope["path"]):
            return self.settings.upload_limit_bytes
        if scope["path"] == "/v1/pools":
            return max(INLINE_LIMIT_BYTES, self.settings.json_limit_bytes)
        return self.settings.json_limit_bytes


class _Body:
    """The body of one request on its way in."""

    def __init__(self, limit_bytes: int, patience: float, receive: Receive) -> None:
        self.limit_bytes = limit_bytes
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
            async with asyncio.timeout_at(self._deadline()):
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
        return message

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
