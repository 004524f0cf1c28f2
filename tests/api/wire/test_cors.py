"""Pages of other places: nobody's unless the operator names them."""

import httpx

from celeus.settings import Settings
from tests.clients import serving

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
