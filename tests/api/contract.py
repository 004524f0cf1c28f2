"""Every route as the contract tells of it, to be tried with every key."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient, Response

from tests.keys import bearer

CONTRACT = json.loads((Path(__file__).parents[2] / "openapi" / "openapi.json").read_text())
MISSING = {
    "pool_id": "pool_" + "0" * 31 + "1",
    "session_id": "ses_" + "0" * 31 + "1",
    "key_id": "f" * 16,
    "invitation_id": "inv_" + "0" * 31 + "1",
    "webhook_id": "hook_" + "0" * 31 + "1",
    "delivery_id": "msg_" + "0" * 31 + "1",
    "share_id": "share_" + "0" * 31 + "1",
}


@dataclass(frozen=True)
class Route:
    """A route as the contract tells of it."""

    method: str
    path: str
    operation: dict[str, Any]

    @property
    def needed(self) -> set[str] | None:
        """Scopes; None where no key is needed."""
        asked = self.operation["security"]
        return {scope for one in asked for scope in one if scope != "key"} if asked else None

    def opens_to(self, scopes: set[str]) -> bool:
        """Whether a key with these scopes may ask, by any of the ways the contract names."""
        asked = self.operation["security"]
        return not asked or any(one.keys() <= scopes | {"key"} for one in asked)

    async def ask(self, client: AsyncClient, ids: dict[str, str], **more: Any) -> Response:  # noqa: ANN401
        """Send it with the body of its example."""
        content = self.operation.get("requestBody", {}).get("content", {})
        headers = dict(more.pop("headers", {}))
        body = None
        for media in sorted(content.keys() - {"multipart/form-data"})[:1]:
            headers["Content-Type"], told = media, content[media]
            body = told.get("example") or _example(told["schema"])
            body = body if isinstance(body, str) else json.dumps(body)
        path = self.path.format_map({"round": "1"} | ids)
        return await client.request(self.method, path, content=body, headers=headers, **more)


def _example(schema: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the contract shows
    if "$ref" in schema:
        schema = CONTRACT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "examples" in schema:
        return schema["examples"][0]
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return _example(schema[several][0])
    return {}


ROUTES = [
    Route(method.upper(), path, operation)
    for path, operations in CONTRACT["paths"].items()
    for method, operation in operations.items()
]
CLOSED = [route for route in ROUTES if route.needed is not None]


def every(routes: list[Route]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "route", routes, ids=lambda route: str(route.operation["operationId"])
    )


@asynccontextmanager
async def client_with(app: FastAPI, token: str | None) -> AsyncIterator[AsyncClient]:
    """A client of the service with this key."""
    transport = ASGITransport(app, raise_app_exceptions=False)
    headers = {} if token is None else bearer(token)
    async with AsyncClient(
        transport=transport, base_url="http://celeus.test", headers=headers
    ) as client:
        yield client
