"""The HAProxy of docker/: a session stays with one process as long as that process is there."""

import asyncio
import re
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import pytest

import celeus
from celeus.store import revisions
from tests.docker.test_compose import DOCKER
from tests.factories import known_pool, opened
from tests.faults.loads import BEHIND_HAPROXY, assert_nothing_lost, client_of, events, loaded
from tests.faults.machines.programs import haproxy, require
from tests.faults.processes import serving
from tests.faults.tally import Tally
from tests.servers import Service, data_folder, free_port, running_postgres, started_service

SESSIONS = 24
SERVED = re.compile(
    r'^celeus_http_requests_total\{method="GET",route="(/v1/[^"]*)",status="200"\} (\d+)',
    re.MULTILINE,
)
NEXT = "0123456789ab"
MIGRATION = f'''"""A column that the version before knows nothing of."""

import sqlalchemy as sa
from alembic import op

revision = "{NEXT}"
down_revision = "{revisions.head()}"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.add_column("sessions", sa.Column("later", sa.Text(), server_default="unknown"))
    op.add_column("events", sa.Column("later", sa.Text(), nullable=True))
'''

pytestmark = pytest.mark.nightly


@contextmanager
def before(ports: list[int]) -> Iterator[str]:
    """The configuration as it is shipped, but for its own address and the names of processes."""
    require("haproxy")
    port = free_port()
    servers = "\n".join(f"    server process-{it} 127.0.0.1:{it}" for it in ports)
    ours = (DOCKER / "haproxy.cfg").read_text()
    for line, instead in (
        (r"^    server-template .*$", servers),
        (r"bind :8000$", f"bind 127.0.0.1:{port}"),
        (r"acl proxied src .*$", "acl proxied src 127.0.0.9"),
    ):
        ours, changed = re.subn(line, instead, ours, flags=re.MULTILINE)
        assert changed == 1
    with data_folder() as folder, haproxy(ours, port, folder):
        yield f"http://127.0.0.1:{port}"


@asynccontextmanager
async def balanced(database_url: str) -> AsyncIterator[tuple[str, list[Service]]]:
    """Two processes behind it."""
    async with serving(2, database_url, trusted_proxies="127.0.0.1") as services:
        with before([port_of(service) for service in services]) as url:
            await answering(url)
            yield url, services


def port_of(service: Service) -> int:
    """Where it listens."""
    return int(service.url.rpartition(":")[2])


async def answering(url: str) -> None:
    """Wait until HAProxy has found a process alive."""
    async with httpx.AsyncClient() as client, asyncio.timeout(30):
        while not (await client.get(f"{url}/healthz")).is_success:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.1)


async def served(service: Service, route: str) -> int:
    """How many requests of a route this process has answered itself."""
    async with client_of(service.url) as client:
        told = dict(SERVED.findall((await client.get("/metrics")).text))
    return int(told.get(route, 0))


async def home(url: str, services: list[Service], session: str) -> Service:
    """The process that answers for a session, which is the same one every time."""
    route = "/v1/sessions/{session_id}"
    before = [await served(service, route) for service in services]
    async with client_of(url) as client:
        for _ in range(3):
            answer = await client.get(f"/v1/sessions/{session}")
            assert answer.status_code == 200
    after = [await served(service, route) for service in services]
    counts = [late - early for early, late in zip(before, after, strict=True)]
    assert sorted(counts) == [*[0] * (len(services) - 1), 3], counts
    return services[counts.index(3)]


async def test_a_session_stays_with_one_process_and_others_stay_when_one_goes(
    database_url: str,
) -> None:
    async with balanced(database_url) as (url, services), client_of(url) as client:
        pool = await known_pool(client, 40)
        sessions = [await opened(client, pool, budget=20) for _ in range(SESSIONS)]
        at_home = {one: await home(url, services, one) for one in sessions}
        shares = [sum(it is service for it in at_home.values()) for service in services]
        assert min(shares) >= SESSIONS // 6, "each has its share"
        before = [await served(service, "/v1/pools") for service in services]
        for _ in range(10):
            assert (await client.get("/v1/pools")).status_code == 200
        after = [await served(service, "/v1/pools") for service in services]
        assert min(late - early for early, late in zip(before, after, strict=True)) >= 3
        stays, goes = services
        goes.kill()
        # The check has not missed it yet; requests that were not sent are sent to the other
        answers = [await client.get(f"/v1/sessions/{one}") for one in sessions]
        assert [answer.status_code for answer in answers] == [200] * SESSIONS
        for one in (it for it, service in at_home.items() if service is stays):
            assert await home(url, [stays], one) is stays


async def test_streams_pass_event_by_event(database_url: str) -> None:
    async with balanced(database_url) as (url, _), client_of(url) as client:
        pool = await known_pool(client, 40)
        session = await opened(client, pool, budget=20)
        news = aiter(events(client, session))
        assert (await anext(news))["session"]["rounds"]["judged"] == 0
        body = {"worker": "ada", "count": 1}
        (draw,) = (await client.post(f"/v1/sessions/{session}/next", json=body)).json()["draws"]
        assert (await anext(news))["session"]["rounds"]["drawn"] == 1
        began = time.monotonic()
        loss = {"round": draw["round"], "loss": pool.losses[draw["item"]["index"]]}
        await client.post(f"/v1/sessions/{session}/observe", json=loss | {"worker": "ada"})
        assert (await anext(news))["session"]["rounds"]["judged"] == 1
        assert time.monotonic() - began < 10, "nothing gathers events"


async def test_a_process_killed_behind_the_proxy_loses_nothing(
    database_url: str, tally: Tally
) -> None:
    async with balanced(database_url) as (url, services), loaded([url], 120) as load:
        load.worth_repeating = BEHIND_HAPROXY
        work = asyncio.create_task(load.judged())
        await load.reached(40)
        (await home_of_busy(services)).kill()
        await work
        await assert_nothing_lost(load, database_url)
    tally.count("`kill -9` of the process that has a session warm, behind HAProxy", 1)


async def home_of_busy(services: list[Service]) -> Service:
    """The process that the one session there is lives in."""
    posts = re.compile(r'requests_total\{method="POST",route="[^"]*/observe",status="200"\} (\d+)')
    counts = []
    for service in services:
        async with client_of(service.url) as client:
            found = posts.search((await client.get("/metrics")).text)
            counts.append(int(found[1]) if found else 0)
    assert min(counts) == 0, "one session, one process"
    return services[counts.index(max(counts))]


def later_version(folder: Path) -> dict[str, str]:
    """The same with one more migration, and the environment in which that is the version that runs.

    Only a change that the version before can live with is rolled out in this way: something new.
    """
    package = Path(celeus.__file__).parent
    shutil.copytree(package, folder / "celeus", ignore=shutil.ignore_patterns("__pycache__"))
    scripts = folder / "celeus" / "_alembic"
    shutil.copytree(revisions.SCRIPTS, scripts, ignore=shutil.ignore_patterns("__pycache__"))
    (scripts / "versions" / "later.py").write_text(MIGRATION)
    return {"PYTHONPATH": str(folder)}


async def test_a_version_is_rolled_out_under_load(tally: Tally, tmp_path: Path) -> None:
    """Old and new processes side by side, the migration in between, and no pause."""
    later = later_version(tmp_path)
    with running_postgres() as database_url:
        async with serving(2, database_url) as old:
            ports = [free_port(), free_port()]
            new: list[Service] = []
            try:
                with before([*map(port_of, old), *ports]) as url:
                    await answering(url)
                    async with loaded([url], 400) as load:
                        load.worth_repeating = BEHIND_HAPROXY
                        work = asyncio.create_task(load.judged(pause=2))
                        await load.reached(20)
                        await asyncio.to_thread(migrated, database_url, later)
                        assert await not_ready(old), "the schema is ahead of them"
                        await load.reached(len(load.acknowledged) + 20)
                        for number, port in enumerate(ports):
                            new.append(
                                await asyncio.to_thread(
                                    started_service, database_url, None, later, port
                                )
                            )
                            await load.reached(len(load.acknowledged) + 20)
                            old[number].process.terminate()
                            await asyncio.to_thread(old[number].process.wait, 30)
                        assert len(load.acknowledged) < load.rounds, "all of it under load"
                        load.pause = 0.02
                        await work
                        await assert_nothing_lost(load, database_url)
            finally:
                for service in new:
                    service.process.terminate()
                    service.process.wait(60)
    tally.count("versions rolled out under load, process by process, behind HAProxy", 1)


def migrated(database_url: str, later: dict[str, str]) -> None:
    """Have the later version bring the database to its schema."""
    command = [sys.executable, "-m", "celeus.cli", "admin", "migrate"]
    environment = {"CELEUS_DATABASE_URL": database_url, "PATH": "/usr/bin:/bin", **later}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert NEXT in done.stdout


async def not_ready(services: list[Service]) -> bool:
    """Whether `/readyz` says of all that they and the schema differ."""
    async with httpx.AsyncClient() as client:
        answers = [await client.get(f"{service.url}/readyz") for service in services]
    return {answer.json()["code"] for answer in answers} == {"schema_behind"}
