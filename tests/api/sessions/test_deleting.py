"""Sessions deleted for good: out of sight at once, counted for ever, and nothing else hurt."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response

from celeus.core.certificate.document import digest_of
from celeus.core.certificate.verify import verify
from celeus.errors import SessionNotFound
from celeus.operations.certificates.audit import audit
from celeus.operations.deletion import tombstones
from celeus.operations.deletion.tombstones import LeftoverDeletion, delete_part
from celeus.operations.sessions.labelling import labels
from celeus.settings import Settings
from celeus.store.database import Database
from tests.clients import serving
from tests.conftest import Execute
from tests.factories import KnownPool, drawn, evidence_of, judged, known_pool, labelled, opened
from tests.keys import bearer, key_in
from tests.receivers import until
from tests.runs.files import exam
from tests.versions import Versions, made
from tests.versions import judged as judged_version

KEYED = {"Idempotency-Key": "another"}
STREAMING = "celeus_http_streams_open 1.0"
TABLES = ("sessions", "events", "trajectory", "comments", "leases", "labellers", "shares")


async def archived(client: AsyncClient, pool: KnownPool, most: int = 12, **settings: object) -> str:
    session = await opened(client, pool, **settings)
    await labelled(client, session, pool, most)
    answer = await client.patch(f"/v1/sessions/{session}", json={"archived": True})
    assert answer.status_code == 200
    return session


async def deleted(client: AsyncClient, session: str, purge: str | None = None) -> dict[str, Any]:
    answer = await delete(client, session, purge)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def delete(client: AsyncClient, session: str, purge: str | None = None) -> Response:
    params = {} if purge is None else {"purge": purge}
    return await client.delete(f"/v1/sessions/{session}", params=params)


def rows(database_url: str, session: str) -> dict[str, int]:
    """Rows of the session, by table, where there are any."""
    counts = {}
    with psycopg.connect(database_url) as db:
        for table in TABLES:
            query = f"SELECT count(*) FROM {table} WHERE session_id = %s"
            found = db.execute(query.encode(), [session.removeprefix("ses_")]).fetchone()
            counts[table] = 0 if found is None else int(found[0])
    return {table: count for table, count in counts.items() if count}


async def emptied(database_url: str, session: str) -> None:
    """Wait until nothing is left of a deleted session."""
    for _ in range(1500):
        if not rows(database_url, session):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(rows(database_url, session))


async def test_a_deleted_session_is_out_of_sight_at_once_and_gone_soon(
    client: AsyncClient, app: FastAPI, database_url: str
) -> None:
    pool = await known_pool(client, 60)
    session, kept = await archived(client, pool), await opened(client, pool)
    await labelled(client, kept, pool, 12)
    share = (await client.post(f"/v1/sessions/{session}/shares", json={})).json()
    before = rows(database_url, kept)
    assert {"events", "trajectory", "labellers", "shares"} <= rows(database_url, session).keys()

    stone = await deleted(client, session)
    assert (stone["id"], stone["pool_id"], stone["issued"]) == (session, pool.id, 0)
    assert "seed" not in stone
    assert (await client.get("/v1/sessions", params={"archived": "true"})).json()["data"][0][
        "id"
    ] == kept
    contract = app.openapi()["paths"]
    asked = 0
    for path, methods in contract.items():
        if "/sessions/{session_id}" not in path:
            continue
        for method in methods.keys() & {"get", "post", "patch", "delete"}:
            where = re.sub(r"\{session_id\}", session, path)
            where = re.sub(r"\{\w+\}", "1", where)
            body = {"worker": "ada", "round": 1, "loss": 1} if method in {"post", "patch"} else None
            answer = await client.request(method.upper(), where, json=body)
            assert answer.status_code in {404, 422}, (method, where, answer.text)
            asked += answer.status_code == 404
    assert asked >= 20
    body = {"worker": "ada", "round": 1, "loss": 1}
    for path, sent in (("next", {"worker": "ada"}), ("observe", body)):
        answer = await client.post(f"/v1/sessions/{session}/{path}", json=sent)
        assert (answer.status_code, answer.json()["code"]) == (404, "session_not_found")
    assert (await client.get(share["url"].removeprefix("http://127.0.0.1:8000"))).status_code == 404
    await emptied(database_url, session)
    assert rows(database_url, kept) == before
    assert (await client.get(f"/v1/tombstones/{session}")).json() == stone
    found = await audit(app.state.context.database)
    assert (found.findings, found.sessions, found.deleted) == ([], 1, 1)


async def test_only_an_archived_session_is_deleted_and_only_by_an_admin(
    client: AsyncClient, database_url: str
) -> None:
    pool = await known_pool(client, 60)
    session = await opened(client, pool)
    answer = await delete(client, session)
    assert (answer.status_code, answer.json()["code"]) == (409, "session_not_archived")
    await client.patch(f"/v1/sessions/{session}", json={"archived": True})
    for scopes in (["manage", "label"], ["read"], ["label"]):
        headers = bearer(key_in(database_url, *scopes))
        for path in (f"/v1/sessions/{session}", f"/v1/pools/{pool.id}"):
            answer = await client.delete(path, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")
    other = bearer(key_in(database_url, "admin", project="other"))
    answer = await client.delete(f"/v1/sessions/{session}", headers=other)
    assert (answer.status_code, answer.json()["code"]) == (404, "session_not_found")
    stone = await deleted(client, session)
    for headers in (other, bearer(key_in(database_url, "label"))):
        answer = await client.get(f"/v1/tombstones/{session}", headers=headers)
        assert answer.status_code in {403, 404}
    listed = await client.get("/v1/tombstones", headers=other)
    assert listed.json() == {"data": [], "next": None}
    assert (await client.get("/v1/tombstones")).json() == {"data": [stone], "next": None}
    again = await delete(client, session)
    assert (again.status_code, again.json()["code"]) == (404, "session_not_found")


async def test_what_a_certificate_rests_on_is_deleted_by_its_name_alone(
    client: AsyncClient, execute: Execute
) -> None:
    pool = await known_pool(client, 60)
    session = await opened(client, pool, name="Exam of May")
    await labelled(client, session, pool, 12)
    interim = (await client.post(f"/v1/sessions/{session}/certificate")).content
    path = f"/v1/sessions/{session}"
    await client.patch(path, json={"state": "closed", "archived": True})
    final = (await client.get(f"{path}/certificate")).content

    answer = await delete(client, session)
    assert (answer.status_code, answer.json()["code"]) == (409, "session_certified")
    assert "2 certificates" in answer.json()["detail"]
    for wrong in ("exam of may", "", pool.id):
        answer = await delete(client, session, wrong)
        assert (answer.status_code, answer.json()["field"]) == (422, "purge")
    assert (await client.get(f"{path}/certificate")).content == final

    stone = await deleted(client, session, "Exam of May")
    digests = [
        (certificate["digest"], certificate["final"]) for certificate in stone["certificates"]
    ]
    assert digests == [(digest_of(final), True), (digest_of(interim), False)]
    assert stone["ledger_head"] in final.decode()
    assert execute("SELECT count(body) FROM certificates").fetchone() == (0,)
    # At home it is worth what it was worth
    evidence = await evidence_of(client, pool.id)
    report = verify(final, evidence)
    assert report.valid, report.line


async def test_deleted_sessions_count_in_later_certificates_even_of_the_pool_made_again(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client, 60)
    first = await archived(client, pool)
    session = await opened(client, pool)
    await labelled(client, session, pool, 5)
    await deleted(client, first)

    async def counts(session: str) -> dict[str, int]:
        certificate = (await client.get(f"/v1/sessions/{session}/certificate")).content
        report = verify(certificate)
        assert report.difference is None, report.line
        assert report.pool_sessions is not None
        return report.pool_sessions

    numbers = await counts(session)
    assert (numbers["number"], numbers["total"], numbers["others_deleted"]) == (2, 2, 1)
    shown = await client.get(f"/v1/sessions/{session}/report")
    assert "session 2 of 2" in shown.text
    assert "1 deleted" in shown.text

    await client.patch(f"/v1/sessions/{session}", json={"archived": True})
    await deleted(client, session)
    await client.patch(f"/v1/pools/{pool.id}", json={"archived": True})
    assert (await client.delete(f"/v1/pools/{pool.id}")).status_code == 200
    again = await known_pool(client, 60)
    numbers = await counts(await opened(client, again))
    assert (numbers["number"], numbers["total"], numbers["others_deleted"]) == (3, 3, 2)
    # The order of the tombstones is that of the openings
    stones = (await client.get("/v1/tombstones", params={"limit": 1})).json()
    assert [tombstone["id"] for tombstone in stones["data"]] == [session]
    rest = (await client.get("/v1/tombstones", params={"after": stones["next"]})).json()
    assert [document["id"] for document in rest["data"]] == [first]
    of_pool = {"pool_id": again.id}
    assert (await client.get("/v1/tombstones", params=of_pool)).json()["data"] == []


async def test_a_session_that_a_pool_is_based_on_stays(client: AsyncClient) -> None:
    versions = Versions.of()
    source, _ = await judged_version(client, versions, 25)
    based = {"session": source, "labels_seen": "no"}
    pool = await made(client, items=versions.rows(versions.new), based_on=based)
    await client.patch(f"/v1/sessions/{source}", json={"archived": True})
    answer = await delete(client, source, source)
    assert (answer.status_code, answer.json()["code"]) == (409, "session_in_use")
    assert pool["id"] in answer.json()["detail"]
    await client.patch(f"/v1/pools/{pool['id']}", json={"archived": True})
    assert (await client.delete(f"/v1/pools/{pool['id']}")).status_code == 200
    await deleted(client, source, source)
    body = {"name": "late", "based_on": based, "loss": {"kind": "zero_one"}}
    answer = await client.post("/v1/pools", json=body)
    assert answer.status_code in {404, 422}, answer.text


async def test_of_a_deletion_and_a_pool_based_on_the_session_one_succeeds(
    client: AsyncClient,
) -> None:
    versions = Versions.of()
    for _ in range(3):
        source, _ = await judged_version(client, versions, 5)
        await client.patch(f"/v1/sessions/{source}", json={"archived": True})
        body = {
            "name": "new",
            "loss": {"kind": "zero_one"},
            "items": versions.rows(versions.new),
            "based_on": {"session": source, "labels_seen": "no"},
        }
        making, deletion = await asyncio.gather(
            client.post("/v1/pools", json=body), delete(client, source, source)
        )
        assert (making.status_code, deletion.status_code) in {(201, 409), (404, 200)}, (
            making.text,
            deletion.text,
        )


async def test_of_several_deletions_at_once_one_succeeds(
    client: AsyncClient, settings: Settings
) -> None:
    pool = await known_pool(client, 60)
    async with serving(settings) as elsewhere:
        for _ in range(5):
            session = await archived(client, pool, 3)
            answers = await asyncio.gather(
                *(delete(caller, session) for caller in (client, elsewhere) for _ in range(3))
            )
            statuses = sorted(answer.status_code for answer in answers)
            assert statuses == [200, *[404] * 5]


async def test_another_process_knows_at_once_and_its_streams_end(
    client: AsyncClient, settings: Settings, database_url: str
) -> None:
    pool = await known_pool(client, 60)
    session = await archived(client, pool)
    path = f"/v1/sessions/{session}"
    async with serving(settings) as elsewhere:
        assert (await elsewhere.get(path)).status_code == 200
        assert (await elsewhere.get(f"{path}/certificate")).status_code == 200
        watching = asyncio.create_task(elsewhere.get(f"{path}/stream"))
        await until(lambda: elsewhere.get("/metrics"), lambda answer: STREAMING in answer.text)
        await deleted(client, session)
        for part in ("", "/certificate", "/report", "/surrogate", "/labels", "/ledger", "/task"):
            answer = await elsewhere.get(path + part)
            assert (answer.status_code, answer.json()["code"]) == (404, "session_not_found"), part
        for part, body in (("next", {"worker": "ada"}), ("certificate", None)):
            answer = await elsewhere.post(f"{path}/{part}", json=body)
            assert (answer.status_code, answer.json()["code"]) == (404, "session_not_found"), part
        async with asyncio.timeout(20):
            assert (await watching).text.count("event: session") == 1
    await emptied(database_url, session)


async def test_whoever_works_on_a_session_while_it_is_deleted_is_told_plainly(
    client: AsyncClient, settings: Settings, app: FastAPI
) -> None:
    pool = await known_pool(client, 120)
    other = await opened(client, pool)
    held = (await drawn(client, other, 20))["draws"]
    async with serving(settings) as elsewhere:
        for _ in range(6):
            session = await archived(client, pool, 8)
            path = f"/v1/sessions/{session}"
            observed = {"worker": "ada", "round": 1, "loss": 1}
            amended = {"round": 1, "loss": 1, "author": "ada", "reason": "misread"}
            working = asyncio.create_task(judged(client, other, pool, held.pop()))
            answers = await asyncio.gather(
                delete(client, session),
                elsewhere.post(f"{path}/certificate"),
                elsewhere.post(f"{path}/next", json={"worker": "ada"}),
                client.post(f"{path}/observe", json=observed),
                elsewhere.post(f"{path}/amendments", json=amended),
                elsewhere.get(f"{path}/certificate"),
                elsewhere.get(f"{path}/labels"),
                elsewhere.get(f"{path}/report"),
                elsewhere.patch(path, json={"archived": False}),
                elsewhere.post(f"{path}/shares", json={}),
            )
            await working
            for answer in answers:
                assert answer.status_code in {200, 201, 404, 409, 503}, answer.text
            gone = answers[0].status_code == 200
            found = await elsewhere.get(path)
            assert found.status_code == (404 if gone else 200)
    labels_of_other = await client.get(f"/v1/sessions/{other}/labels")
    assert len(labels_of_other.json()["data"]) == 6
    for _ in range(100):
        if not (await audit(app.state.context.database)).findings:
            break
        await asyncio.sleep(0.05)
    assert not (await audit(app.state.context.database)).findings


async def test_a_file_of_labels_is_broken_off_and_not_cut_short(
    client: AsyncClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labels, "EVENTS_AT_ONCE", 4)
    pool = await known_pool(client, 60)
    session = await archived(client, pool)
    context = app.state.context
    found = await labels.labels_of(context, UUID(session.removeprefix("ses_")))
    parts = labels.all_labels(context, found, labels.LabelFilter())
    assert await anext(parts)
    await deleted(client, session)
    with pytest.raises(SessionNotFound):
        await anext(parts)


async def test_a_run_that_was_deleted_is_not_pushed_again(
    client: AsyncClient, tmp_path: Path
) -> None:
    data = exam(tmp_path / "exam.celeus", most=2)
    headers = {"Content-Type": "application/x-ndjson"}
    pushed = await client.post("/v1/session-files", content=data, headers=headers)
    session = pushed.json()["id"]
    await client.patch(f"/v1/sessions/{session}", json={"archived": True})
    stone = await deleted(client, session, session)
    assert stone["pushed"]
    again = await client.post("/v1/session-files", content=data, headers=headers)
    assert (again.status_code, again.json()["code"]) == (409, "session_deleted")


async def test_webhooks_are_told_nothing_more_of_the_session_and_keep_nothing_it_said(
    client: AsyncClient, database_url: str
) -> None:
    pool = await known_pool(client, 60)
    session, kept = [await archived(client, pool) for _ in range(2)]
    content = {
        "name": "wards",
        "sentence": "The loss is 0.2.",
        "words": ["yes"],
        "stop_reason": None,
    }
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute(
            "INSERT INTO webhooks (webhook_id, project_id, url, format, events, secret)"
            " SELECT gen_random_uuid(), project_id, 'https://receiver.invalid/', 'json', '[]', ''"
            " FROM projects WHERE name = 'default'"
        )
        for about in (session, kept):
            for state in ("pending", "failed", "delivered"):
                db.execute(
                    "INSERT INTO deliveries (delivery_id, webhook_id, project_id, event, data,"
                    " state, answer) SELECT gen_random_uuid(), webhook_id, project_id,"
                    " 'session.stopped', %s, %s, 'wards, indeed' FROM webhooks",
                    [json.dumps(content | {"session": about}), state],
                )
        await deleted(client, session)
        found = db.execute(
            "SELECT data ->> 'session', state, data ->> 'name', data ->> 'sentence', answer"
            " FROM deliveries ORDER BY 1, 2"
        ).fetchall()
    kept_rows = [row for row in found if row[0] == kept]
    assert {row[1:] for row in kept_rows} == {
        (state, "wards", "The loss is 0.2.", "wards, indeed")
        for state in ("delivered", "failed", "pending")
    }
    assert [row[1:] for row in found if row[0] == session] == [
        (state, None, "The session was deleted.", None) for state in ("delivered", "failed")
    ]
    hook = (await client.get("/v1/webhooks")).json()["data"][0]["id"]
    assert len((await client.get(f"/v1/webhooks/{hook}/deliveries")).json()["data"]) == 5


async def test_an_open_invitation_to_the_session_leads_to_the_start(
    client: AsyncClient, execute: Execute
) -> None:
    pool = await known_pool(client, 60)
    session, kept = await archived(client, pool), await opened(client, pool)
    for session_id in (session, kept):
        body = {"name": "Anna", "scopes": ["label"], "session_id": session_id}
        answer = await client.post("/v1/invitations", json=body)
        assert answer.status_code == 201, answer.text
    await deleted(client, session)
    found = execute("SELECT path FROM invitations ORDER BY path").fetchall()
    assert found == [("/",), (f"/label/{kept}",)]


async def test_what_is_left_goes_in_parts_that_several_processes_share(
    client: AsyncClient, database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LeftoverDeletion, "ask", lambda _: None)
    pool = await known_pool(client, 60)
    sessions = [await archived(client, pool) for _ in range(2)]
    for session in sessions:
        await deleted(client, session)
    left = [sum(rows(database_url, session).values()) for session in sessions]
    assert min(left) > 20
    assert await delete_part(database, rows=5)
    assert sum(sum(rows(database_url, session).values()) for session in sessions) == sum(left) - 10

    async def work() -> int:
        parts = 0
        while await delete_part(database, rows=5):
            parts += 1
        return parts

    async with asyncio.timeout(30):
        await asyncio.gather(work(), work())
        # The one that found the other at work left the rest to it
        while await delete_part(database, rows=5):
            pass
    assert [rows(database_url, session) for session in sessions] == [{}, {}]
    assert tombstones.ROWS_AT_ONCE <= 5_000


async def test_an_audit_finds_what_is_left_of_no_session(
    client: AsyncClient, app: FastAPI, database_url: str, execute: Execute
) -> None:
    pool = await known_pool(client, 60)
    session = await archived(client, pool)
    await deleted(client, session)
    await emptied(database_url, session)
    orphan = UUID(int=7)
    execute(
        "INSERT INTO trajectory (session_id, round, sequence, estimate, lower, upper)"
        " VALUES (%s, 1, 1, 0, 0, 1)",
        [orphan],
    )
    found = await audit(app.state.context.database)
    assert [(finding.name, finding.where) for finding in found.findings] == [
        (f"ses_{orphan.hex}", "trajectory")
    ]


async def test_what_made_the_session_is_not_answered_again_with_it(
    client: AsyncClient, execute: Execute
) -> None:
    pool = await known_pool(client)
    others = await client.post("/v1/sessions", json={"pool_id": pool.id}, headers=KEYED)
    body = {"pool_id": pool.id, "name": "Ada's exam"}
    keyed = {"Idempotency-Key": "mine"}
    session = (await client.post("/v1/sessions", json=body, headers=keyed)).json()["id"]
    guest, inviting = {"name": "Ada", "session_id": session}, {"Idempotency-Key": "guest"}
    invited = await client.post("/v1/invitations", json=guest, headers=inviting)
    assert invited.status_code == 201
    assert (await client.patch(f"/v1/sessions/{session}", json={"archived": True})).is_success
    await deleted(client, session)
    again = await client.post("/v1/sessions", json=body, headers=keyed)
    assert (again.status_code, again.json()["code"]) == (404, "session_not_found"), again.text
    assert again.json()["value"] == session
    other = await client.post("/v1/sessions", json=body | {"precision": 0.2}, headers=keyed)
    assert other.json()["code"] == "idempotency_key_reused"
    kept = execute("SELECT answer FROM idempotency").fetchall()
    assert not any(b"Ada's exam" in answer for (answer,) in kept)
    # What is there is answered as ever
    same = await client.post("/v1/sessions", json={"pool_id": pool.id}, headers=KEYED)
    assert (same.status_code, same.content) == (201, others.content)
    invited = await client.post("/v1/invitations", json=guest, headers=inviting)
    assert invited.status_code == 201
