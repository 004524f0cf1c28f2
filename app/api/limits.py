"""How large a body may be before anything reads it."""

import re

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import of_refusal
from app.api.uploads import too_large

JSON_LIMIT_BYTES = 16 << 20
"""Bodies that are read as one JSON value, hence held in memory."""

_STREAMED = re.compile(r"/v1/pools/[^/]+/items")


class BodyLimit:
    """Refuse bodies beyond the limit, by their announced length or while they arrive.

    Routes that stream their body to disk enforce a limit of their own.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its body counted, or refuse it."""
        if scope["type"] != "http" or _STREAMED.fullmatch(scope["path"]):
            await self.app(scope, receive, send)
            return
        announced = dict(scope["headers"]).get(b"content-length", b"")
        if announced.isdigit() and int(announced) > JSON_LIMIT_BYTES:
            await of_refusal(too_large(JSON_LIMIT_BYTES, int(announced)))(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > JSON_LIMIT_BYTES:
                # The framework lets this one error through while it reads a body.
                raise HTTPException(413, f"The body has more than {JSON_LIMIT_BYTES} bytes.")
            return message

        await self.app(scope, counted, send)
