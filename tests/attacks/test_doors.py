"""Ways around the door: paths, methods, headers, hidden requests, other projects' things."""

import itertools
from typing import Any

import anyio
import httpx
import psycopg
import pytest
from sqlalchemy import event

from celeus.api.wire.connections import OPEN
from celeus.main import create_app
from celeus.settings import Settings
from tests.api.contract import MISSING, ROUTES
from tests.attacks.tally import TRIES
from tests.attacks.wire import request, sent
from tests.attacks.world import World, build, client_of, made
from tests.keys import ADMIN, bearer, key_in
from tests.operations.wire import quiet
from tests.servers import Service

METHODS = ("HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "PATCH", "POST", "QUERY", "get", "GET\t")
PATHS = sorted({route.path for route in ROUTES} - OPEN)
DISGUISES = (
    "/{path}",
    "/.{path}",
    "/v1/..{path}",
    "/healthz/..{path}",
    "/login/..{path}",
    "/login{path}",
    "/login?next={path}",
    "/static/..{path}",
    "/static/%2e%2e{path}",
    "/static{path}",
    "/healthz/%2e%2e{path}",
    "/healthz%2f..{path}",
    "/healthz;{path}",
    "/healthz%00{path}",
    "/healthz?{path}#",
    "/version/..{path}",
    "http://127.0.0.1/healthz/..{path}",
    "http://user:pass@celeus.test{path}",
    "{path}/",
    "{path}//",
    "{path}/.",
    "{path};.css",
    "{path}%20",
    "{path}%00",
    "{path}?key={key}",
    "{path}?access_token={key}",
    "{path}?Authorization=Bearer%20{key}",
    "{path}#/healthz",
    "{encoded}",
    "{upper}",
    "\\{path}",
)
HEADERS = (
    "X-HTTP-Method-Override: GET",
    "X-Original-URL: /healthz",
    "X-Rewrite-URL: /healthz",
    "X-Forwarded-Prefix: /healthz",
    "X-Forwarded-For: 127.0.0.1",
    "X-Api-Key: {key}",
    "Cookie: Authorization=Bearer {key}",
    "Cookie: celeus={key}",
    "Cookie: celeus=" + "x" * 43,
    "Cookie: celeus=x; celeus={key}\r\nAuthorization: Bearer x",
    "Proxy-Authorization: Bearer {key}",
    "Authorization_: Bearer {key}",
    "Authorization : Bearer {key}",
    "Authorization: Bearer {encoded}",
    "Authorization: Token {key}",
    "Authorization: Bearer\r\n {key}",
    "Authorization: Bearer {key}\r\nAuthorization: Bearer {key}",
    "Authorization: Bearer x\r\nauthorization: Bearer {key}",
    'If-None-Match: *, "0.0"',
    "Last-Event-ID: 0-0",
    (
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    ),
)


@pytest.fixture
def world(client: httpx.Client) -> World:
    return build(client)


def told_nothing(content: bytes, world: World) -> bool:
    """No id of the world came back that had not been sent."""
    ids = (world.pools["likely"], world.sessions["labelled"])
    return not any(one.encode() in content for one in ids)


def real(path: str, world: World) -> str:
    ids = {"pool_id": world.pools["scored"], "session_id": world.sessions["closed"]}
    return path.format_map(MISSING | ids | {"round": "1"})


def test_no_method_opens_a_closed_route_without_a_key(service: Service, world: World) -> None:
    for method, path in itertools.product(METHODS, PATHS):
        TRIES["methods without a key"] += 1
        answer = sent(service.url, request(method, real(path, world)))
        assert set(answer.statuses) <= {400, 401}, (method, path, answer.content[:200])
        assert told_nothing(answer.content, world)


def test_an_open_route_takes_no_other_method(service: Service) -> None:
    for method, path in itertools.product(METHODS, sorted(OPEN)):
        TRIES["methods on open routes"] += 1
        answer = sent(service.url, request(method, path))
        expected = {200} if method == "HEAD" else {400, 405}
        assert set(answer.statuses) <= expected, (method, path, answer.content[:200])


def test_no_disguise_of_a_path_opens_it_without_a_key(service: Service, world: World) -> None:
    for disguise, path in itertools.product(DISGUISES, PATHS):
        place = real(path, world)
        encoded = place.replace("/", "%2f")
        target = disguise.format(path=place, encoded=encoded, upper=place.upper(), key=ADMIN)
        TRIES["disguised paths"] += 1
        answer = sent(service.url, request("GET", target))
        # Whatever follows the question mark of an open route is its query
        own_query = {"/healthz?": {200, 422}, "/login?": {200}}
        start = target.partition("?")[0] + "?"
        expected = own_query.get(start, {400, 401, 404}) if "?" in target else {400, 401, 404}
        assert set(answer.statuses) <= expected, (target, answer.content[:200])
        assert told_nothing(answer.content, world)


def test_a_key_counts_in_its_one_header_only(service: Service, world: World) -> None:
    encoded = ADMIN.replace("_", "%5f")
    for header, path in itertools.product(HEADERS, PATHS):
        TRIES["keys in other places, other headers"] += 1
        shown = header.format(key=ADMIN, encoded=encoded)
        answer = sent(service.url, request("GET", real(path, world), shown))
        assert set(answer.statuses) <= {400, 401, 403}, (header, path, answer.content[:200])
        assert told_nothing(answer.content, world)


TWO_LENGTHS = (
    "Content-Length: 6\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nContent-Length: 6",
    "Content-Length: 0\r\nContent-Length: 60",
    "Content-Length: 0, 60",
    "Content-Length: +0",
    "Content-Length: -1",
    "Content-Length: 0x3c",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding : chunked",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding:\x0bchunked",
    "Expect: 100-continue\r\nContent-Length: 0",
)
"""Headers of which one reader may take another than the next."""


def test_a_second_request_hidden_in_the_first_gets_nothing(service: Service, world: World) -> None:
    hidden = b"GET /v1/sessions HTTP/1.1\r\nHost: celeus.test\r\nConnection: close\r\n\r\n"
    for first, headers in itertools.product(("POST /v1/pools", "GET /healthz"), TWO_LENGTHS):
        opening = f"{first} HTTP/1.1\r\nHost: celeus.test\r\n{headers}\r\n\r\n0\r\n\r\n"
        answer = sent(service.url, opening.encode("latin-1") + hidden, patience=1.0)
        TRIES["requests hidden in others"] += 1
        closed = answer.statuses if first.startswith("POST") else answer.statuses[1:]
        assert set(closed) <= {400, 401}, (first, headers, answer.content[:400])
        assert told_nothing(answer.content, world), (first, headers)


def test_no_key_that_fails_costs_the_database_other_work_than_another(
    database_url: str, redis_url: str
) -> None:
    """Equal statements for equal refusals: wall time would measure the machine."""
    working = key_in(database_url, "read")
    revoked, expired = key_in(database_url), key_in(database_url)
    with psycopg.connect(database_url) as db:
        ids = [token.split("_")[1] for token in (revoked, expired)]
        db.execute("UPDATE keys SET revoked_at = now() WHERE key_id = %s", ids[:1])
        db.execute("UPDATE keys SET expires_at = now() WHERE key_id = %s", ids[1:])
    tokens = {
        "unknown": "ce_" + "f" * 16 + "_" + "x" * 43,
        "wrong secret": working[:20] + "x" * 43,
        "revoked": revoked,
        "expired": expired,
        "revoked, wrong secret": revoked[:20] + "x" * 43,
    }
    asked, told = _work_of(database_url, redis_url, tokens)
    assert len(set(told.values())) == 1
    assert all(asked.values()), "nothing was heard"
    assert len(set(asked.values())) == 1, asked


def _work_of(
    database_url: str, redis_url: str, tokens: dict[str, str]
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[int, str]]]:
    """Statements and answer for every key."""
    asked: dict[str, tuple[str, ...]] = {}
    told: dict[str, tuple[int, str]] = {}

    async def run() -> None:
        settings = Settings(database_url=database_url, redis_url=redis_url)
        app = create_app(settings)
        async with quiet(app) as context:
            statements: list[str] = []
            engine = context.database._engine.sync_engine

            def note(*arguments: Any) -> None:  # noqa: ANN401 - what the library passes
                statements.append(arguments[2])

            event.listen(engine, "before_cursor_execute", note)
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://c.test") as client:
                await client.get("/v1/pools")
                for name, token in tokens.items():
                    statements.clear()
                    answer = await client.get("/v1/pools", headers=bearer(token))
                    asked[name] = tuple(statements)
                    told[name] = (answer.status_code, answer.text)

    anyio.run(run)
    return asked, told


def test_another_projects_key_gets_nothing_by_cursor_key_or_filter(
    service: Service, world: World, database_url: str
) -> None:
    named = {"Idempotency-Key": "the same"}
    body = {"name": "mine", "loss": {"kind": "zero_one"}}
    with client_of(service.url) as ours:
        first = ours.post("/v1/pools", json=body, headers=named).json()
    with client_of(service.url, key_in(database_url, "manage", project="other")) as theirs:
        answer = theirs.post("/v1/pools", json=body, headers=named)
        assert "Idempotency-Replayed" not in answer.headers
        own = answer.json()["id"]
        assert own != first["id"]
        changed = theirs.post("/v1/pools", json=body | {"name": "x"}, headers=named)
        assert changed.json()["code"] == "idempotency_key_reused"
        for cursor in [None, *world.pools.values(), first["id"]]:
            asked = {} if cursor is None else {"after": cursor}
            listed = theirs.get("/v1/pools", params=asked).json()["data"]
            assert {one["id"] for one in listed} <= {own}
        for cursor in world.sessions.values():
            assert theirs.get("/v1/sessions", params={"after": cursor}).json()["data"] == []
            # The name of the one it follows would tell by its place among one's own
            for order in ("name", "-name", "owner", "-state", "active"):
                asked = {"after": cursor, "order": order}
                answer = theirs.get("/v1/sessions", params=asked)
                assert (answer.status_code, answer.json()["field"]) == (422, "after")
        for name, session in world.sessions.items():
            etag = {"If-None-Match": "*"}
            assert theirs.get(f"/v1/sessions/{session}", headers=etag).status_code == 404, name
            stream = theirs.get(f"/v1/sessions/{session}/stream", headers={"Last-Event-ID": "1-1"})
            assert stream.status_code == 404
        for pool in world.pools.values():
            found = theirs.get("/v1/sessions", params={"pool_id": pool})
            assert found.is_error or found.json()["data"] == []
            assert theirs.post("/v1/sessions", json={"pool_id": pool}).status_code == 404


def test_a_labellers_answers_carry_no_version_of_the_session(
    service: Service, world: World, database_url: str
) -> None:
    session = world.sessions["judged"]
    with client_of(service.url, key_in(database_url, "label")) as labeller:
        held = labeller.post(f"/v1/sessions/{session}/next", json={"worker": "w", "count": 1})
        draw = held.json()["draws"][0]
        body = {"round": draw["round"], "loss": 0, "worker": "w"}
        answers = [held, labeller.post(f"/v1/sessions/{session}/observe", json=body)]
        asked = {"If-None-Match": "*"}
        answers += [labeller.get(f"/v1/sessions/{session}", headers=asked)]
    for answer in answers:
        named = {name.lower() for name in answer.headers}
        assert named <= {"date", "server", "content-length", "content-type", "x-request-id"}, named
        assert answer.status_code != 304


def test_an_answer_to_one_key_is_not_kept_for_another(service: Service, world: World) -> None:
    """What may be stored on the way says so: nothing may be."""
    session = world.sessions["judged"]
    with client_of(service.url) as client:
        etag = client.get(f"/v1/sessions/{session}").headers["ETag"]
        again = client.get(f"/v1/sessions/{session}", headers={"If-None-Match": etag})
        assert again.status_code == 304
        made(client, f"/v1/sessions/{session}/next", {"worker": "w", "count": 20})
        fresh = client.get(f"/v1/sessions/{session}", headers={"If-None-Match": etag})
        assert fresh.status_code == 200
    shown = request("GET", f"/v1/sessions/{session}", f"If-None-Match: {etag}")
    assert sent(service.url, shown).statuses == [401]
