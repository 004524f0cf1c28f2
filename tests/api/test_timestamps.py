"""Openings stamped by a timestamping service, over HTTP and in the database."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient

from celeus.core.certificate.stamps import roots_in
from celeus.core.certificate.verify import verify
from celeus.operations.certificates.signing_keys import key_of_folder
from celeus.settings import Settings
from tests.clients import serving
from tests.conftest import Execute
from tests.factories import known_pool, labelled, opened
from tests.servers import free_port
from tests.timestamps import Authority, answering

PATIENCE = 60.0


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return Settings(database_url=database_url, signing_key_file=key_of_folder(tmp_path))


async def certificate(client: AsyncClient, session: str) -> bytes:
    answer = await client.get(f"/v1/sessions/{session}/certificate")
    assert answer.status_code == 200, answer.text
    return answer.content


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await condition():  # noqa: ASYNC110 - as a caller polls
            await asyncio.sleep(0.02)


def stamped(client: AsyncClient, session: str) -> Callable[[], Awaitable[bool]]:
    async def is_stamped() -> bool:
        return "timestamp" in json.loads(await certificate(client, session))

    return is_stamped


async def test_an_opening_is_stamped_and_every_certificate_carries_it(
    settings: Settings, authority: Authority
) -> None:
    roots = roots_in(authority.roots.read_bytes())
    with answering(authority) as url:
        async with serving(settings, timestamp_url=url) as client:
            pool = await known_pool(client, 40)
            session = await opened(client, pool, precision=0.3)
            await until(stamped(client, session))
            await labelled(client, session, pool, 10)
            interim = await certificate(client, session)
            page = (await client.get(f"/v1/sessions/{session}/report")).text
            await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
            final = await certificate(client, session)
            parts = {"certificate": final, "timestamp_roots": authority.roots.read_bytes()}
            files = {name: (name, part) for name, part in parts.items()}
            document = (await client.post("/v1/certificates/verify", files=files)).json()
            files["timestamp_roots"] = ("roots", b"no roots")
            refused = await client.post("/v1/certificates/verify", files=files)
    assert "celeus verify --timestamp-roots" in page
    for data in (interim, final):
        report = verify(data, roots=roots)
        assert (report.valid, report.difference) == (True, None)
        assert "timestamp" in report.checked
        assert report.stamped_at == document["stamped_at"]
    assert (refused.status_code, refused.json()["field"]) == (422, "timestamp_roots")


async def test_a_session_opens_without_its_stamp_and_the_next_start_asks_again(
    settings: Settings, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    nobody = f"http://127.0.0.1:{free_port()}/tsr"

    async def is_told() -> bool:
        return "no time stamp of ses_" in caplog.text

    with caplog.at_level(logging.WARNING, logger="celeus"):
        async with serving(settings, timestamp_url=nobody) as client:
            pool = await known_pool(client, 40)
            waiting = await opened(client, pool, precision=0.3)
            begun = await opened(client, pool, precision=0.3)
            await labelled(client, begun, pool, 2)
            await until(is_told)
            data = await certificate(client, waiting)
            page = (await client.get(f"/v1/sessions/{waiting}/report")).text
            assert "none: the time of the opening is the service’s own word" in page
    report = verify(data, roots=roots_in(authority.roots.read_bytes()))
    assert verify(data).valid
    assert (report.difference and report.difference.where) == "timestamp"
    with answering(authority) as url:
        async with serving(settings, timestamp_url=url) as client:
            await until(stamped(client, waiting))
            later = await certificate(client, begun)
    assert "timestamp" not in json.loads(later), "too late: something was drawn"


@asynccontextmanager
async def saying(answer: bytes) -> AsyncIterator[str]:
    """The address of something that gives this answer to whatever comes."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1 << 16)
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\njunk",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100_000,
        # A refusal as RFC 3161 has it
        b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n0\x050\x03\x02\x01\x02",
    ],
)
async def test_what_is_no_stamp_is_not_kept(
    settings: Settings, caplog: pytest.LogCaptureFixture, answer: bytes, execute: Execute
) -> None:
    async def is_told() -> bool:
        return "no time stamp of ses_" in caplog.text

    with caplog.at_level(logging.WARNING, logger="celeus"):
        async with saying(answer) as url, serving(settings, timestamp_url=url) as client:
            session = await opened(client, await known_pool(client, 40), precision=0.3)
            await until(is_told)
            assert "timestamp" not in json.loads(await certificate(client, session))
    rows: list[Any] = []
    rows = execute("SELECT stamp FROM sessions").fetchall()
    assert rows == [(None,)]
