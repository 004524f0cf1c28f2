"""Health, readiness, version and metrics, and pages of other origins."""

import gzip

import httpx
import pytest
from sqlalchemy import text

from celeus.main import create_app
from celeus.settings import Settings
from celeus.store import revisions
from celeus.store.database import Database
from tests.clients import serving
from tests.keys import bearer


async def test_a_live_process_says_so_and_which_version_it_is(client: httpx.AsyncClient) -> None:
    assert (await client.get("/healthz")).json() == {"status": "ok"}
    assert (await client.get("/version")).json()["service"] == "celeus"


async def test_the_contract_is_compressed_for_those_who_accept_it(
    client: httpx.AsyncClient,
) -> None:
    sizes: dict[str, int] = {}
    bodies = set()
    for accepted in ("identity", "gzip;q=0, br", "br;q=1.0, GZIP;q=0.8"):
        headers = {"Accept-Encoding": accepted}
        async with client.stream("GET", "/openapi.json", headers=headers) as answer:
            raw = b"".join([part async for part in answer.aiter_raw()])
        assert answer.headers["Vary"] == "Accept-Encoding"
        packed = answer.headers.get("Content-Encoding") == "gzip"
        assert packed == ("GZIP" in accepted)
        sizes[accepted] = len(raw)
        bodies.add(gzip.decompress(raw) if packed else raw)
    assert len(bodies) == 1
    assert min(sizes.values()) < max(sizes.values()) / 5


async def test_what_differs_between_callers_is_never_compressed(
    client: httpx.AsyncClient,
) -> None:
    for path in ("/v1/pools", "/v1/keys", "/v1/sessions", "/docs"):
        answer = await client.get(path, headers={"Accept-Encoding": "gzip"})
        assert answer.is_success
        assert "Content-Encoding" not in answer.headers, path


async def test_ready_means_reachable_and_migrated(
    client: httpx.AsyncClient, database: Database
) -> None:
    assert (await client.get("/readyz")).status_code == 200
    async with database.transaction() as db:
        head = await db.scalar(text("UPDATE alembic_version SET version_num = 'x' RETURNING 1"))
        assert head == 1
    try:
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.json()["code"]) == (503, "schema_behind")
        assert answer.headers["Retry-After"]
    finally:
        async with database.transaction() as db:
            await db.execute(
                text("UPDATE alembic_version SET version_num = :head"),
                {"head": revisions.head()},
            )


async def test_not_ready_while_the_database_refuses_changes(settings: Settings) -> None:
    read_only = f"{settings.database_url}&options=-c%20default_transaction_read_only%3Don"
    async with serving(settings, database_url=read_only) as client:
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")
        assert "refuses changes" in answer.json()["detail"]


async def test_without_its_database_the_service_is_alive_but_not_ready() -> None:
    app = create_app(Settings(database_url="postgresql://nobody@127.0.0.1:1/none"))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=transport, base_url="http://celeus.test", headers=bearer()
        ) as client,
    ):
        assert (await client.get("/healthz")).status_code == 200
        for path in ("/readyz", "/v1/pools"):
            answer = await client.get(path)
            assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")


@pytest.mark.own_context
async def test_requests_are_counted_by_route_and_never_by_id(client: httpx.AsyncClient) -> None:
    await client.get("/v1/pools/pool_019aa3c4d5e67f8091a2b3c4d5e6f708")
    page = (await client.get("/metrics")).text
    assert (
        'celeus_http_requests_total{method="GET",route="/v1/pools/{pool_id}",status="404"} 1.0'
        in page
    )
    assert "019aa3c4" not in page


ASKS = {
    "Origin": "https://labels.example",
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization, content-type",
    # A browser sends no key when it asks
    "Authorization": "",
}


async def test_a_preflight_from_nowhere_named_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.options("/v1/pools", headers=ASKS)
    assert answer.status_code == 401
    assert "access-control-allow-origin" not in answer.headers


async def test_a_preflight_from_a_named_origin_is_answered_and_what_follows_is_readable(
    settings: Settings,
) -> None:
    origins = "https://other.example https://labels.example"
    async with serving(settings, cors_origins=origins) as client:
        answer = await client.options("/v1/pools", headers=ASKS)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == ASKS["Origin"]
        assert "POST" in answer.headers["access-control-allow-methods"]
        read = await client.get("/v1/pools", headers={"Origin": ASKS["Origin"]})
        assert read.headers["access-control-allow-origin"] == ASKS["Origin"]
        assert "X-Request-ID" in read.headers["access-control-expose-headers"]
        assert "access-control-allow-credentials" not in read.headers
        stranger = ASKS | {"Origin": "https://evil.example"}
        assert (await client.options("/v1/pools", headers=stranger)).status_code == 400
