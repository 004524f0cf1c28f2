"""Certificates over HTTP, from the real service."""

import asyncio
import base64
import json
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient, Response

from celeus.core.certificate.chain import chain_head, chain_start
from celeus.core.certificate.document import SessionFacts, certificate, digest_of
from celeus.core.certificate.ed25519 import public_from_pem
from celeus.core.certificate.verify import verify
from celeus.main import create_app
from celeus.operations.certificates import issue
from celeus.operations.certificates.npz import read_archive
from celeus.settings import Settings
from tests.api.serving import served
from tests.clients import serving
from tests.conftest import Execute
from tests.factories import KnownPool, closed, drawn, known_pool, labelled, opened
from tests.keys import bearer, key_in
from tests.pairs import pair
from tests.servers import children

JSON = {"Content-Type": "application/json"}


async def _certificate(client: AsyncClient, session: str) -> bytes:
    answer = await client.get(f"/v1/sessions/{session}/certificate")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["etag"] == f'"{digest_of(answer.content)}"'
    return answer.content


async def _issued(client: AsyncClient, session: str) -> bytes:
    answer = await client.post(f"/v1/sessions/{session}/certificate")
    assert answer.status_code == 201, answer.text
    return answer.content


async def _columns(client: AsyncClient, pool: KnownPool, folder: Path) -> Path:
    answer = await client.get(f"/v1/pools/{pool.id}/columns.npz")
    path = folder / "pool.npz"
    path.write_bytes(answer.content)
    return path


async def _amend(client: AsyncClient, session: str, round_: int, loss: float) -> None:
    body = {"round": round_, "loss": loss, "author": "bob", "reason": "a slip"}
    answer = await client.post(f"/v1/sessions/{session}/amendments", json=body)
    assert answer.status_code == 200, answer.text


async def _verified(client: AsyncClient, **parts: Any) -> Response:  # noqa: ANN401 -- httpx takes all
    return await client.post("/v1/certificates/verify", **parts)


@pytest.mark.smoke
async def test_a_certificate_follows_its_session_to_the_end(
    client: AsyncClient, tmp_path: Path
) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool, precision=0.2)
    empty = await _certificate(client, session)
    assert verify(empty).valid
    await labelled(client, session, pool, 30)
    interim = await _certificate(client, session)
    status = (await client.get(f"/v1/sessions/{session}")).json()
    document = json.loads(interim)
    assert (document["kind"], document["seed"]) == ("interim", None)
    assert document["claim"]["interval"] == {"lower": status["lower"], "upper": status["upper"]}
    assert document["chain"]["head"] == status["ledger_head"]
    await closed(client, session)
    final = await _certificate(client, session)
    assert json.loads(final)["kind"] == "final"
    key = (await client.get("/v1/certificates/key")).json()
    trusted = public_from_pem(key["pem"].encode())
    assert trusted.hex() == key["public_key"]
    with (await _columns(client, pool, tmp_path)).open("rb") as archive:
        evidence = read_archive(archive)
    for document, missing in ((interim, {"commitment", "draws", "items"}), (final, {"items"})):
        report = verify(document, evidence, trusted)
        assert report.valid, report.difference
        assert set(report.unchecked) == missing


async def test_a_certificate_is_made_once_for_as_long_as_nothing_happens(
    client: AsyncClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def counted(account: SessionFacts, key: Ed25519PrivateKey) -> bytes:
        made.append(len(account.records))
        return certificate(account, key)

    monkeypatch.setattr(issue, "certificate", counted)
    pool = await known_pool(client)
    session = await opened(client, pool)
    await labelled(client, session, pool, 3)
    path = f"/v1/sessions/{session}/certificate"
    first = await client.get(path)
    assert (await client.get(path)).content == first.content
    assert (await client.post(path)).content == first.content
    known = {"If-None-Match": first.headers["ETag"]}
    assert (await client.get(path, headers=known)).status_code == 304
    assert len(made) == 1
    # Bytes that had to make room are not needed to say that they are known.
    app.state.context.certificates._kept.clear()
    again = await client.get(path, headers=known)
    assert (again.status_code, again.headers["ETag"]) == (304, first.headers["ETag"])
    assert (await client.get(path, headers={"If-None-Match": "*"})).status_code == 304
    assert len(made) == 1
    await labelled(client, session, pool, 1)
    other = await client.get(path, headers=known)
    assert (other.status_code, len(made)) == (200, 2)
    assert other.headers["Content-Length"] == str(len(other.content))
    await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    final = await client.get(path)
    assert (final.json()["final"], len(made)) == (True, 3)
    assert final.headers["ETag"] == f'"{digest_of(final.content)}"'


@pytest.mark.parametrize("ended", [False, True])
async def test_callers_at_once_get_the_same_certificate(
    client: AsyncClient, app: FastAPI, settings: Settings, *, ended: bool
) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    await labelled(client, session, pool, 8)
    if ended:
        await closed(client, session)
    # A second process has no slot in common with the first: the row lock alone orders them.
    second = create_app(settings)
    async with second.router.lifespan_context(second):
        transports = [ASGITransport(app), ASGITransport(second)]
        base = "http://celeus.test"
        clients = [
            AsyncClient(transport=transport, base_url=base, headers=bearer(), timeout=60)
            for transport in transports
        ]
        found = await asyncio.gather(
            *(_certificate(clients[count % 2], session) for count in range(8))
        )
        for client_of_process in clients:
            await client_of_process.aclose()
    assert len(set(found)) == 1


async def test_a_corrected_session_supersedes_what_was_certified_before(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    await labelled(client, session, pool, 6)
    before = await _issued(client, session)
    await labelled(client, session, pool, 1)
    latest = await _issued(client, session)
    assert json.loads(latest)["supersedes"] is None
    assert await _certificate(client, session) == latest
    await labelled(client, session, pool, 1)
    await _certificate(client, session)
    await _amend(client, session, 2, 1.0)
    after = json.loads(await _certificate(client, session))
    assert after["supersedes"] == digest_of(latest) != digest_of(before)
    codes = [assumption["code"] for assumption in after["claim"]["assumptions"]]
    assert codes == ["these_answers", "one_version", "independent_corrections"]
    await labelled(client, session, pool, 1)
    assert json.loads(await _certificate(client, session))["supersedes"] == digest_of(latest)
    await closed(client, session)
    final = await _certificate(client, session)
    assert json.loads(final)["supersedes"] == digest_of(latest)
    assert verify(final).valid


async def test_reading_a_certificate_or_report_writes_nothing_and_waits_for_nobody(
    client: AsyncClient, database_url: str
) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    await labelled(client, session, pool, 5)
    with psycopg.connect(database_url) as db:
        db.execute("SELECT 1 FROM sessions FOR UPDATE")
        for state in ("active", "closed"):
            db.execute("UPDATE sessions SET lifecycle = %s", [state])
            for what in ("certificate", "report"):
                answer = await client.get(f"/v1/sessions/{session}/{what}")
                assert answer.status_code == 200, answer.text
        assert db.execute("SELECT count(*) FROM certificates").fetchone() == (0,)


async def test_closing_issues_the_final_certificate_and_says_why_not(
    settings: Settings, database_url: str, execute: Execute
) -> None:
    async with serving(settings) as client:
        session = await opened(client, await known_pool(client))
        shut = await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
        assert shut.json()["warnings"] == []
        final = await _certificate(client, session)
    async with serving(settings, signing_key_file=None) as client:
        assert await _certificate(client, session) == final
        other = await opened(client, await known_pool(client))
        shut = await client.patch(f"/v1/sessions/{other}", json={"state": "closed"})
        [warning] = shut.json()["warnings"]
        assert shut.status_code == 200
        assert "final certificate was not issued" in warning
        assert "celeus admin signing-key" in warning
    async with serving(settings) as client:
        reading = bearer(key_in(database_url, "read"))
        address = f"/v1/sessions/{other}/certificate"
        refused = await client.post(address, headers=reading)
        assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing")
        read = await client.get(address, headers=reading)
        assert await _issued(client, other) == await _certificate(client, other) == read.content
    kept = execute("SELECT count(*) FROM certificates WHERE final").fetchone()
    assert kept == (2,)


async def test_the_first_reader_of_a_closed_session_has_its_certificate_issued(
    settings: Settings, database_url: str
) -> None:
    async with serving(settings, signing_key_file=None) as client:
        pool = await known_pool(client)
        session = await opened(client, pool)
        await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    async with serving(settings) as client, serving(settings) as other:
        reading = bearer(key_in(database_url, "read"))
        address = f"/v1/sessions/{session}/certificate"
        first = await client.get(address, headers=reading)
        assert json.loads(first.content)["pool_sessions"]["total"] == 1
        await opened(client, pool)
        for reader in (client, other):
            again = await reader.get(address, headers=reading)
            assert (again.content, again.headers["ETag"]) == (first.content, first.headers["ETag"])
        assert await _issued(client, session) == first.content


async def test_anybody_can_compute_the_head_of_the_chain_from_the_ledger(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool, precision=0.1)
    document = json.loads(await _certificate(client, session))
    start = chain_start(
        bytes.fromhex(session.removeprefix("ses_")), bytes.fromhex(document["plan_digest"])
    )
    opening = (await client.get(f"/v1/sessions/{session}")).json()
    assert opening["ledger_head"] == start.hex()
    await labelled(client, session, pool, 12)
    hold = await drawn(client, session, 3)
    body = {"round": hold["draws"][1]["round"], "unjudgeable": "blurred", "worker": "ada"}
    await client.post(f"/v1/sessions/{session}/observe", json=body)
    await _amend(client, session, 3, 0.0)
    await client.patch(f"/v1/sessions/{session}", json={"precision": 0.05})
    entries = (await client.get(f"/v1/sessions/{session}/ledger")).json()["data"]
    records = [
        {name: value for name, value in entry.items() if value is not None} for entry in entries
    ]
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert status["ledger_head"] == chain_head(start, records).hex()
    assert json.loads(await _certificate(client, session))["ledger"] == records


async def test_a_ledger_changed_behind_the_service_is_not_certified(
    client: AsyncClient, execute: Execute
) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    await labelled(client, session, pool, 5)
    execute('UPDATE events SET detail = \'{"worker": "eve"}\' WHERE sequence = 3')
    answer = await client.get(f"/v1/sessions/{session}/certificate")
    assert (answer.status_code, answer.json()["code"]) == (409, "ledger_broken")


async def test_the_seed_of_an_open_session_is_nowhere(
    client: AsyncClient, caplog: pytest.LogCaptureFixture, execute: Execute
) -> None:
    caplog.set_level(logging.DEBUG)
    pool = await known_pool(client)
    answers: list[bytes] = []

    async def remember(answer: Response) -> None:
        answers.append(await answer.aread() + str(answer.headers).encode())

    client.event_hooks["response"].append(remember)
    session = await opened(client, pool)
    await labelled(client, session, pool, 5)
    await _amend(client, session, 2, 0.0)
    for path in ("", "/ledger", "/trajectory", "/certificate"):
        await client.get(f"/v1/sessions/{session}{path}")
    await client.get("/v1/sessions")
    await client.patch(f"/v1/sessions/{session}", json={"state": "paused"})
    await client.get(f"/v1/sessions/{session}/certificate")
    seed = execute("SELECT seed FROM sessions").fetchall()[0][0]
    kept = execute("SELECT status::text FROM sessions").fetchall()[0][0].encode()
    everything = b"".join(answers) + caplog.text.encode() + kept
    spellings = (seed, seed.hex().encode(), base64.b64encode(seed).rstrip(b"="))
    assert not any(spelling in everything for spelling in spellings)
    await closed(client, session)
    assert json.loads(await _certificate(client, session))["seed"] == seed.hex()


async def test_without_a_signing_key_nothing_is_certified(settings: Settings) -> None:
    async with serving(settings, signing_key_file=None) as client:
        session = await opened(client, await known_pool(client))
        for path in (f"/v1/sessions/{session}/certificate", "/v1/certificates/key"):
            answer = await client.get(path)
            problem = answer.json()
            assert (answer.status_code, problem["code"]) == (503, "signing_key_missing")
            assert "celeus admin signing-key" in problem["detail"]


@pytest.fixture
async def final(client: AsyncClient, tmp_path: Path) -> tuple[bytes, Path]:
    """A final certificate and the archive of its pool."""
    pool = await known_pool(client)
    session = await opened(client, pool, precision=0.2)
    await labelled(client, session, pool, 20)
    await closed(client, session)
    return await _certificate(client, session), await _columns(client, pool, tmp_path)


async def test_a_certificate_is_verified_alone_and_with_its_pool(
    client: AsyncClient, final: tuple[bytes, Path]
) -> None:
    body, archive = final
    key = (await client.get("/v1/certificates/key")).json()
    alone = await _verified(client, content=body, headers=JSON)
    assert alone.status_code == 200, alone.text
    assert alone.json() == verify(body).to_dict()
    files = {"certificate": ("c.json", body), "pool": ("p.npz", archive.read_bytes())}
    beside = (await _verified(client, files=files, data={"key": key["pem"]})).json()
    assert (beside["valid"], set(beside["unchecked"])) == (True, {"items"})
    assert "issuer" in beside["checked"]
    asked = {"key": key["public_key"]}
    trusted = (await _verified(client, content=body, headers=JSON, params=asked)).json()
    assert trusted["signature"]["trusted"] is True
    stranger = {"key": "ab" * 32}
    foreign = (await _verified(client, content=body, headers=JSON, params=stranger)).json()
    assert (foreign["valid"], foreign["difference"]["where"]) == (False, "signature.public_key")


@pytest.mark.parametrize(("judged", "state"), [("preference", "active"), ("losses", "closed")])
async def test_a_verification_says_the_sentence_of_the_session(
    judged: str, state: str, client: AsyncClient
) -> None:
    two = await pair(client, judged, 60)
    opening = {"pool_id": two.id, "decide": {"margin": 0.2}}
    session = (await client.post("/v1/sessions", json=opening)).json()["id"]
    draws = await client.post(f"/v1/sessions/{session}/next", json={"worker": "ada", "count": 20})
    for draw in draws.json()["draws"]:
        observation = {"round": draw["round"], "worker": "ada"} | two.said(draw["item"]["index"])
        answer = await client.post(f"/v1/sessions/{session}/observe", json=observation)
        assert answer.is_success, answer.text
    if state == "closed":
        await closed(client, session)
    judgement = (await client.get(f"/v1/sessions/{session}")).json()["sentence"]
    body = await _certificate(client, session)
    report = (await _verified(client, content=body, headers=JSON)).json()
    assert (report["valid"], report["sentence"]) == (True, judgement)


async def test_a_forged_certificate_gets_a_report_that_says_where(
    client: AsyncClient, final: tuple[bytes, Path]
) -> None:
    body, _ = final
    forged = body.replace(b'"alpha":0.05', b'"alpha":0.01', 1)
    report = (await _verified(client, content=forged, headers=JSON)).json()
    assert (report["valid"], report["difference"]["where"]) == (False, "claim.alpha")
    # Other junk gets the same report without a service, in tests/core/certificate
    answer = await _verified(client, content=b"[" * 100_000, headers=JSON)
    assert (answer.status_code, answer.json()["valid"]) == (200, False), answer.text
    other = await known_pool(client, seed=9)
    foreign = (await client.get(f"/v1/pools/{other.id}/columns.npz")).content
    files = {"certificate": ("c.json", body), "pool": ("p.npz", foreign)}
    report = (await _verified(client, files=files)).json()
    assert report["difference"]["where"].startswith("pool.")


async def test_what_is_no_certificate_and_no_form_is_refused_by_name(
    client: AsyncClient, final: tuple[bytes, Path], settings: Settings
) -> None:
    body, archive = final
    file = ("c.json", body)
    packed = ("p.npz", archive.read_bytes()[:-30])
    asked: list[tuple[dict[str, Any], int, str]] = [
        ({"content": body, "headers": {"Content-Type": "text/plain"}}, 415, "unsupported_format"),
        ({"content": body}, 415, "unsupported_format"),
        ({"files": {"pool": packed}}, 422, "invalid_value"),
        ({"files": {"certificate": file, "more": file}}, 422, "invalid_value"),
        ({"files": {"certificate": file, "pool": packed}}, 422, "invalid_value"),
        ({"files": {"certificate": file, "pool": ("p", b"")}}, 422, "invalid_value"),
        ({"files": {"certificate": file}, "data": {"pool": "x"}}, 422, "invalid_value"),
        ({"files": {"certificate": file}, "data": {"key": "x"}}, 422, "invalid_value"),
        ({"data": {"certificate": "{}"}, "files": {}}, 415, "unsupported_format"),
        (
            {"content": b"--x", "headers": {"Content-Type": "multipart/form-data"}},
            422,
            "invalid_value",
        ),
        (
            {"content": b"--x", "headers": {"Content-Type": "multipart/form-data; boundary=x"}},
            422,
            "invalid_value",
        ),
        ({"content": body, "headers": JSON, "params": {"key": "x"}}, 422, "invalid_value"),
    ]
    for parts, status, code in asked:
        answer = await _verified(client, **parts)
        assert (answer.status_code, answer.json()["code"]) == (status, code), (parts, answer.text)
    async with serving(settings, certificate_limit_bytes=len(body) - 1) as other:
        for parts in ({"content": body, "headers": JSON}, {"files": {"certificate": file}}):
            answer = await _verified(other, **parts)
            assert (answer.status_code, answer.json()["code"]) == (413, "upload_too_large")


async def test_a_key_has_one_verification_from_its_upload_on(
    client: AsyncClient, app: FastAPI, final: tuple[bytes, Path], database_url: str
) -> None:
    body, _ = final
    go_on = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield body[:1000]
        await go_on.wait()
        yield body[1000:]

    gates = app.state.context.gates
    sending = asyncio.create_task(_verified(client, content=slow(), headers=JSON))
    await _until(lambda: gates.verifications_of_keys.taken)
    parked: list[bytes] = []

    async def second() -> AsyncIterator[bytes]:
        parked.append(body)
        yield body

    busy = await _verified(client, content=second(), headers=JSON)
    assert (busy.status_code, busy.json()["code"], parked) == (503, "verification_busy", [])
    assert "This key" in busy.json()["detail"]
    other = bearer(key_in(database_url, "label"))
    assert (await _verified(client, content=body, headers=JSON | other)).json()["valid"]
    go_on.set()
    assert (await sending).json()["valid"]
    assert gates.verifications_of_keys.taken == 0


async def test_a_verification_whose_client_leaves_gives_its_place_back(
    settings: Settings, final: tuple[bytes, Path]
) -> None:
    """Its child is ended: it would otherwise hold a place for a minute."""
    body, _ = final
    with served(settings) as port:
        head = (
            f"POST /v1/certificates/verify HTTP/1.1\r\nHost: c\r\nContent-Length: {len(body)}\r\n"
        )
        head += "Content-Type: application/json\r\n"
        head += f"Authorization: {bearer()['Authorization']}\r\n\r\n"
        known = children()
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head.encode() + body)
        await writer.drain()
        await _until(lambda: children() - known)
        (child,) = children() - known
        os.kill(child, signal.SIGSTOP)
        writer.close()
        await _until(lambda: child not in children())
        async with AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=bearer()) as client:
            answer = await _verified(client, content=body, headers=JSON, timeout=60)
        assert answer.json()["valid"]


async def _until(happened: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not happened():  # noqa: ASYNC110 - another process or task, without an event
            await asyncio.sleep(0.01)


async def test_a_verification_that_takes_too_long_is_given_up(
    settings: Settings, client: AsyncClient, final: tuple[bytes, Path]
) -> None:
    body, _ = final
    async with serving(settings, verification_seconds=0.001) as hasty:
        answer = await _verified(hasty, content=body, headers=JSON)
        assert answer.json()["code"] == "verification_too_costly"
        assert answer.status_code == 413
    assert (await _verified(client, content=body, headers=JSON)).json()["valid"]


async def test_settings_fixed_at_the_opening_cannot_be_changed(client: AsyncClient) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool, precision=0.2, fixed=True)
    path = f"/v1/sessions/{session}"
    for change in ({"precision": 0.1}, {"precision": None}, {"budget": 50}):
        refused = await client.patch(path, json=change)
        assert (refused.status_code, refused.json()["code"]) == (409, "session_fixed")
    assert (await client.patch(path, json={"precision": 0.2, "state": "paused"})).is_success
    await closed(client, session)
    claim = json.loads(await _certificate(client, session))["claim"]
    assert (claim["fixed"], claim["changes"]) == (True, 0)
    assert [assumption["code"] for assumption in claim["assumptions"]] == ["these_answers"]


async def test_a_certificate_tells_of_the_other_sessions_on_its_pool(client: AsyncClient) -> None:
    pool, other = await known_pool(client, items=40), await known_pool(client, items=41)
    sessions = [await opened(client, pool) for _ in range(4)]
    await opened(client, other)
    for session in (sessions[0], sessions[3]):
        await closed(client, session)

    async def counts(session: str) -> dict[str, int]:
        document = json.loads(await _certificate(client, session))
        numbers: dict[str, int] = document["pool_sessions"]
        return numbers

    expected = {"total": 4, "others_certified": 2, "others_closed_without_certificate": 0}
    assert await counts(sessions[2]) == expected | {"number": 3, "others_open": 1}
    # The same items under another name are the same pool
    again = await opened(client, await known_pool(client, items=40))
    assert (await counts(again))["number"] == 5
    # The final certificate stays as it was issued
    assert (await counts(sessions[0]))["total"] == 4
