"""HEAD: the head of what GET answers."""

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadRequests:
    """Answer HEAD as GET, without the body.

    A route that would stream for ever is told that the client has left.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, as GET if it is HEAD."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return
        inner = {**scope, "method": "GET"}
        try:
            await self.app(inner, *_without_bodies(send))
        finally:
            # Whoever looks from outside sees the route, too
            scope.update(inner | {"method": "HEAD"})


def _without_bodies(send: Send) -> tuple[Receive, Send]:
    """A request that has no body, and an answer of which the head is sent."""
    left = asyncio.Event()
    received = False

    async def receive() -> Message:
        nonlocal received
        if not received:
            received = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await left.wait()
        return {"type": "http.disconnect"}

    async def send_head(message: Message) -> None:
        if message["type"] != "http.response.start":
            return
        await send(message)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        if Headers(scope=message).get("content-type", "").startswith("text/event-stream"):
            left.set()

    return receive, send_head
