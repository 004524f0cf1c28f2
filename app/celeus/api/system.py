"""Routes for whoever runs the service: alive, ready, which version, how much."""

import asyncio
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Field

from celeus.api.access.parameters import Administers, CallerOf, OpenContext
from celeus.api.wire.compression import GZIP, VARY, takes_gzip
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import BEHIND, responses
from celeus.errors import DatabaseUnavailable, SchemaBehind

router = APIRouter(tags=["system"], route_class=JsonRoute)


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"] = Field("ok", description="Always the same: an answer is the news.")


class Version(BaseModel):
    """The service and its version."""

    service: Literal["celeus"] = Field(
        "celeus", description="Always the same: by it a client knows that it met the right program."
    )
    version: str = Field(description="Of the package, such as 0.1.0.")


def service_version() -> str:
    """Version of the installed package."""
    try:
        return version("celeus")
    except PackageNotFoundError:
        # A checkout that was never installed.
        return "0"


@router.get("/healthz", operation_id="healthz", summary="Is the process alive?")
async def healthz() -> Health:
    """Touches nothing beside the process."""
    return Health()


@router.get(
    "/readyz",
    operation_id="readyz",
    summary="May it be sent requests?",
    responses=responses(DatabaseUnavailable, SchemaBehind),
)
async def readyz(context: OpenContext) -> Health:
    """The database takes changes, and its schema is the one this version was written for."""
    if await context.database.at_head():
        if await context.database.writable():
            return Health()
        raise DatabaseUnavailable("The database refuses changes: a standby, or set to read only.")
    if await context.database.behind():
        raise SchemaBehind(BEHIND)
    raise DatabaseUnavailable("The database does not answer.")


@router.get("/version", operation_id="version", summary="Which version is it?")
async def get_version() -> Version:
    """Name and version of the service."""
    return Version(version=service_version())


@router.get(
    "/openapi.json",
    operation_id="openapi",
    summary="This contract",
    response_class=JSONResponse,
    responses={200: {"description": "An OpenAPI document."}},
)
async def get_contract(_: CallerOf, request: Request) -> Response:
    """Requests and answers of every route, and the scope it needs."""
    packed = takes_gzip(request.headers)
    contract = await asyncio.to_thread(
        lambda: request.app.packed_contract if packed else request.app.contract
    )
    return Response(contract, headers=GZIP if packed else VARY, media_type="application/json")


@router.get(
    "/metrics",
    operation_id="metrics",
    summary="Prometheus metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}, "description": "Prometheus text format."}},
)
async def metrics(context: Administers, request: Request) -> Response:
    """Metrics of this process, or of all that share PROMETHEUS_MULTIPROC_DIR."""
    body: bytes = await request.app.state.metrics.rendered(context)
    return Response(body, media_type=CONTENT_TYPE_LATEST)
