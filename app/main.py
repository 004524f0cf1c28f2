"""The application: the only place where the rooms are wired together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, FastAPI

from app.api import (
    certificates,
    history,
    insights,
    items,
    links,
    planning,
    poolfiles,
    pools,
    problems,
    reports,
    rounds,
    sessions,
    system,
    tasks,
)
from app.api.auth import Door
from app.api.limits import BodyLimit
from app.api.metrics import Measured, Metrics
from app.errors import InvalidValue
from app.operations.callers import KnownCallers
from app.operations.forecasts import Forecasts
from app.operations.hot import HotStates
from app.operations.rooms import Rooms
from app.operations.signers import read_key
from app.settings import Settings
from app.store.cache import Cache
from app.store.database import Database
from app.store.rates import Rates
from app.web import assets, dashboard, documents, labelling, newsession, sessionpage, signin
from app.web.assets import Assets
from app.web.pages import doors_pages, show_refusals
from app.web.rendering import Templates

PAGES: tuple[APIRouter, ...] = (
    assets.router,
    documents.router,
    signin.router,
    labelling.router,
    newsession.router,
    dashboard.router,
    # Behind the page of a new session, whose path would be the id of one
    sessionpage.router,
)
"""The pages people look at; they stand in no contract."""

DESCRIPTION = """\
Certified evaluation scores from few labels: the service says which item to judge next, takes the
judge's loss, and answers with an interval that covers the true mean loss with probability at
least 1 - alpha at every moment at once.

Errors are `application/problem+json` (RFC 9457) with a stable `code`, the field, the rule and the
value. Lists are paged: give `next` of a page as `after` for the one behind it.

Every route but `/healthz`, `/readyz` and `/version` needs a key, `Authorization: Bearer ce_…`, with
the scope it names: `read`, `label` (judging only), `manage` (pools and sessions; implies `read`) or
`admin` (implies all). What belongs to another project than the key's is not found.
"""


class Service(FastAPI):
    """The application, whose contract tells of problems as they are sent."""

    def openapi(self) -> dict[str, Any]:
        """The contract; made once."""
        if self.openapi_schema is None:
            self.openapi_schema = links.linked(problems.described(super().openapi()))
        return self.openapi_schema


def create_app(settings: Settings) -> FastAPI:
    """The service for these settings; nothing is connected before its lifespan begins."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_rooms(settings) as rooms:
            app.state.rooms = rooms
            yield

    app = Service(
        title="Celeus",
        version=system.service_version(),
        description=DESCRIPTION,
        lifespan=lifespan,
        # Served by a route of ours, which asks for a key
        openapi_url=None,
        # A redirection would repeat whatever host the request names
        redirect_slashes=False,
    )
    app.state.metrics = Metrics()
    problems.install(app)
    app.include_router(system.router)
    app.include_router(pools.router)
    app.include_router(items.router)
    app.include_router(poolfiles.router)
    app.include_router(planning.router)
    app.include_router(sessions.router)
    app.include_router(rounds.router)
    app.include_router(tasks.router)
    app.include_router(history.router)
    app.include_router(insights.router)
    app.include_router(certificates.router)
    app.include_router(reports.router)
    app.state.assets = Assets.read()
    app.state.templates = Templates(app.state.assets)
    for router in PAGES:
        app.include_router(router)
    show_refusals(app)
    app.add_middleware(BodyLimit, settings=settings)
    app.add_middleware(Door, pages=doors_pages(PAGES))
    app.add_middleware(Measured, metrics=app.state.metrics)
    return app


@asynccontextmanager
async def open_rooms(settings: Settings) -> AsyncIterator[Rooms]:
    """Connections and warm states, closed on leaving."""
    if settings.database_url is None:
        raise InvalidValue(
            "There is no database: `celeus serve` starts a private one, others have to be named.",
            field="CELEUS_DATABASE_URL",
            rule="postgresql://…",
        )
    signing_key = None
    if settings.signing_key_file is not None:
        signing_key = read_key(settings.signing_key_file)
    database = Database.connect(
        settings.database_url,
        pool_size=settings.database_pool_size,
        lock_timeout_ms=settings.lock_timeout_ms,
        statement_timeout_ms=settings.statement_timeout_ms,
    )
    cache = Cache.connect(settings.redis_url, status_ttl_seconds=settings.status_ttl_seconds)
    hot = HotStates(
        settings.hot_sessions,
        settings.hot_pools,
        patience_seconds=settings.lock_timeout_ms / 1000,
    )
    rates = Rates.connect(settings.redis_url)
    forecasts = Forecasts(database, cache, settings.forecast_every_rounds)
    try:
        async with cache.listen() as wakes:
            callers = KnownCallers(settings.key_cache_seconds)
            imports = asyncio.Semaphore(max(1, settings.database_pool_size // 2))
            rooms = Rooms(database, cache, wakes, hot, forecasts, settings, callers, rates, imports)
            yield replace(rooms, signing_key=signing_key)
    finally:
        await forecasts.close()
        await rates.close()
        await cache.close()
        await database.close()
