"""The application: the only place where the parts are wired together."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from threading import Lock
from typing import Any

import orjson
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from celeus.api import certificates, deletion, system, webhooks
from celeus.api.access import invitations, keys
from celeus.api.access.auth import Authentication
from celeus.api.insights import claims, planning, surrogate, table
from celeus.api.pools import files, items, pools
from celeus.api.sessions import (
    guest_links,
    history,
    instructions,
    labels,
    rounds,
    run_files,
    sessions,
    stream,
    task,
)
from celeus.api.watch.metrics import Metrics
from celeus.api.watch.middleware import Watch
from celeus.api.watch.spans import untraced
from celeus.api.wire import document, links, problems
from celeus.api.wire.connections import Answers
from celeus.api.wire.head_requests import HeadRequests
from celeus.api.wire.limits import BodyLimit
from celeus.operations.runtime.context import open_context
from celeus.settings import Settings
from celeus.web import (
    documents,
    judged,
    new_session,
    people,
    reference,
    signin,
    views,
)
from celeus.web import webhooks as webhooks_page
from celeus.web.assets import Assets, serve
from celeus.web.pages import pages_for_access, show_refusals
from celeus.web.rendering import Templates
from celeus.web.report import page as report
from celeus.web.report import shared
from celeus.web.session import page as session_page

ROUTES: tuple[APIRouter, ...] = (
    system.router,
    pools.router,
    items.router,
    files.router,
    planning.router,
    sessions.router,
    sessions.status_router,
    deletion.router,
    run_files.router,
    rounds.router,
    task.router,
    history.router,
    instructions.router,
    labels.router,
    stream.router,
    surrogate.router,
    claims.router,
    table.router,
    certificates.router,
    keys.router,
    invitations.router,
    report.router,
    webhooks.router,
    guest_links.router,
)
"""The interface, in the order of its contract."""

PAGES: tuple[APIRouter, ...] = (
    documents.router,
    reference.router,
    signin.router,
    shared.router,
    views.router,
    new_session.router,
    people.router,
    webhooks_page.router,
    session_page.router,
    judged.router,
)
"""Routers of the pages, which are not part of the API contract."""

LAST_SECONDS = 1.5
"""Seconds a stopping server waits for the answers to requests that it has cancelled."""
CORS_HEADERS = (
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
    "If-Match",
    "If-None-Match",
    "Last-Event-ID",
    "X-Request-ID",
)
CORS_EXPOSED = (
    *("ETag", "Idempotency-Replayed", "Location", "RateLimit", "RateLimit-Policy", "Retry-After"),
    "X-Request-ID",
)

DESCRIPTION = """\
Certified evaluation scores from few labels: the service says which item to judge next, takes the
judge's loss, and answers with an interval that covers the true mean loss with probability at
least 1 - alpha at every moment at once.

Errors are `application/problem+json` (RFC 9457) with a stable `code`, the field, the rule and the
value; `type` leads to the page that explains them. Lists are paged: give `next` of a page as
`after` for the one behind it. A query parameter that a route does not know is refused. `HEAD` is
answered wherever `GET` is. Times are in UTC, as in `2026-11-21T09:30:00.000000+00:00`.

Every answer carries `X-Request-ID`, which the service's log has too: yours, if it is 1 to 128
letters, digits, dots, dashes and underscores, else a new one.

Every route below but `/healthz`, `/readyz` and `/version` needs a key,
`Authorization: Bearer ce_…`, with the scope it names: `read`, `label` (judging only), `manage`
(pools and sessions; implies `read`) or `admin` (implies all). What belongs to another project than
the key's is not found.
"""


_BUILDING = Lock()


class Service(FastAPI):
    """Application whose OpenAPI document describes problems as they are sent."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document, built once in 0.2 s, for which others wait in threads."""
        with _BUILDING:
            return self._built()

    def _built(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            found = document.completed(links.linked(problems.described(super().openapi())))
            routes = (route for router in ROUTES for route in router.routes)
            places = (route.path for route in routes if isinstance(route, APIRoute))
            found["paths"] = {place: found["paths"][place] for place in places}
            self.openapi_schema = found
        return self.openapi_schema

    @cached_property
    def contract(self) -> bytes:
        """Return the OpenAPI document as JSON."""
        return orjson.dumps(self.openapi())

    @cached_property
    def packed_contract(self) -> bytes:
        """Return the OpenAPI document as JSON, compressed by gzip."""
        return gzip.compress(self.contract, mtime=0)

    def build_middleware_stack(self) -> ASGIApp:
        """Wrap the middleware so that it also sees the answers to unexpected failures."""
        inner = problems.RefusesWhenStopping(super().build_middleware_stack(), self.state.under_way)
        return Answers(Watch(HeadRequests(inner), self.state.metrics, self.state.settings))


def create_app(settings: Settings) -> FastAPI:
    """Return the service for these settings; it connects when its lifespan begins."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_context(settings) as context:
            app.state.context = context
            # Only in the service: a command has other settings and ends soon
            context.stamps.resume()
            context.leftovers.ask()
            context.deliveries.begin()
            _complete(app)
            keeping = asyncio.create_task(app.state.metrics.keep(context))
            yield
            keeping.cancel()
            if app.state.under_way:
                # The server has given them up, and would not wait until they have said so
                await asyncio.wait(app.state.under_way, timeout=LAST_SECONDS)

    app = Service(
        title="Celeus",
        version=system.service_version(),
        description=DESCRIPTION,
        servers=[{"url": "/", "description": "The service that this document is from."}],
        contact={"name": "The contributors of Celeus"},
        license_info={"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        openapi_tags=document.TAGS,
        lifespan=lifespan,
        # Served by a route of ours, which asks for a key
        openapi_url=None,
        # A redirection would repeat whatever host the request names
        redirect_slashes=False,
        # By the variables OTEL_…; what it would log of a failure may hold what a client sent
        telemetry={
            "auto_configure": True,
            "logs": False,
            "operation_spans": False,
            "exclude": untraced,
        },
    )
    app.state.metrics = Metrics()
    app.state.settings = settings
    app.state.under_way = set()
    problems.install(app)
    # Routes are tried one after the other, and judges and dashboards ask most
    asked_most = (sessions.status_router, rounds.router)
    for router in (*asked_most, *(router for router in ROUTES if router not in asked_most)):
        app.include_router(router)
    assets = Assets()
    app.state.templates = Templates(assets, settings.media_hosts or "")
    serve(app, assets)
    for router in PAGES:
        app.include_router(router)
    show_refusals(app)
    app.add_middleware(BodyLimit, settings=settings)
    app.add_middleware(Authentication, pages=pages_for_access(PAGES))
    if settings.cors_origins:
        # Before authentication: a browser sends preflight requests without a key
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins.split(),
            allow_methods=["GET", "HEAD", "POST", "PATCH", "DELETE"],
            allow_headers=CORS_HEADERS,
            expose_headers=CORS_EXPOSED,
        )
    return app


def _complete(app: FastAPI) -> None:
    """Build every route now, since building them in the first request takes 70 ms."""
    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    for route in app.routes:
        route.matches(scope)
