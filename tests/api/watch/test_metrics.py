"""What /metrics tells of requests and sessions, and what it costs the database."""

import asyncio
import re
import shutil
from pathlib import Path

import httpx
import pytest

from tests.factories import drawn, judged, known_pool, labelled, opened
from tests.keys import bearer
from tests.receivers import until
from tests.servers import running_services

pytestmark = pytest.mark.own_context


def values(page: str) -> dict[str, float]:
    """Every sample by its name with its labels."""
    lines = [line for line in page.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


async def told(client: httpx.AsyncClient) -> dict[str, float]:
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    return values(answer.text)


async def test_a_label_shows_in_what_is_counted_and_timed(client: httpx.AsyncClient) -> None:
    before = await told(client)
    pool = await known_pool(client)
    session = await opened(client, pool)
    await labelled(client, session, pool, 3)
    after = await told(client)

    def more(name: str) -> float:
        return after[name] - before.get(name, 0)

    assert more('celeus_events_total{kind="draw"}') == 4
    assert more('celeus_events_total{kind="observation"}') == 3
    assert more("celeus_rounds_folded_total") == 3
    for part in ("session_lock", "session_fold", "database"):
        # Once for every request that draws or judges, or more of what only asks
        assert more(f"celeus_{part}_seconds_count") >= 4, part
        assert more(f"celeus_{part}_seconds_sum") > 0, part
    assert after["celeus_sessions_warm"] == 1
    # The one that asks
    assert after["celeus_http_requests_in_flight"] == 1
    assert session.removeprefix("ses_") not in str(after.keys())


async def test_sessions_are_counted_with_what_they_wait_for(client: httpx.AsyncClient) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    draws = (await drawn(client, session, 3))["draws"]
    # The first one is still out, so the second one waits for it
    await judged(client, session, pool, draws[1])
    paused = await opened(client, pool)
    await client.patch(f"/v1/sessions/{paused}", json={"state": "paused"})
    found = await told(client)
    assert found['celeus_sessions{state="active"}'] == 1
    assert found['celeus_sessions{state="paused"}'] == 1
    assert found['celeus_sessions{state="budget_spent"}'] == 0
    assert found["celeus_sessions_recent"] == 2
    assert found["celeus_draws_out"] == 2
    assert found["celeus_labels_waiting"] == 1
    assert 0 < found["celeus_oldest_draw_seconds"] < 60
    # Once a minute the database is asked, however often somebody looks
    await opened(client, pool)
    assert (await told(client))['celeus_sessions{state="active"}'] == 1


async def test_a_made_up_method_is_no_label(client: httpx.AsyncClient) -> None:
    for method in ("BREW", "PROPFIND"):
        assert (await client.request(method, "/healthz")).status_code == 405
    await client.head("/healthz")
    found = await told(client)
    named = [name for name in found if "_requests_total" in name]
    assert not re.search("BREW|PROPFIND", str(named))
    assert found['celeus_http_requests_total{method="HEAD",route="/healthz",status="200"}'] == 1


async def test_a_stream_is_no_request_under_way(client: httpx.AsyncClient) -> None:
    session = await opened(client, await known_pool(client))
    stream = asyncio.create_task(client.get(f"/v1/sessions/{session}/stream"))
    found = await until(
        lambda: told(client), lambda metrics: metrics["celeus_http_streams_open"] == 1
    )
    assert found["celeus_http_requests_in_flight"] == 1
    await client.delete(f"/v1/sessions/{session}")
    stream.cancel()
    await asyncio.wait({stream})
    await until(lambda: told(client), lambda metrics: metrics["celeus_http_streams_open"] == 0)


async def test_workers_answer_for_each_other_but_not_for_the_dead(
    database_url: str, tmp_path: Path
) -> None:
    """What a process knew of itself ends with it; what it counted does not."""
    folder = tmp_path / "metrics"
    folder.mkdir()
    environment = {"CELEUS_WORKERS": "2", "PROMETHEUS_MULTIPROC_DIR": str(folder)}
    with running_services(1, database_url, environment=environment) as (service,):
        async with httpx.AsyncClient(base_url=service.url, headers=bearer()) as client:
            pool = await known_pool(client)
            await labelled(client, await opened(client, pool), pool, 5)
            # Each says every five seconds what it has done
            found = await until(
                lambda: told(client), lambda metrics: metrics.get("celeus_rounds_folded_total") == 5
            )
            assert found["celeus_http_requests_in_flight"] >= 1
            assert found['celeus_sessions{state="active"}'] == 1
            (gauge_file, *_) = folder.glob("gauge_livesum_*.db")
            # Of a process that cannot be: the largest number is smaller
            shutil.copy(gauge_file, folder / "gauge_livesum_99999999.db")
            await told(client)
            assert not (folder / "gauge_livesum_99999999.db").exists()
