"""SQL, and other languages', in every string a request may hold: kept verbatim, or refused."""

import copy
import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import httpx
import psycopg
import pytest

from celeus.store.tables import metadata
from tests.api.contract import CONTRACT, MISSING, ROUTES, Route
from tests.attacks.tally import TRIES
from tests.attacks.wire import request, sent
from tests.attacks.world import World, build, made
from tests.keys import ADMIN
from tests.nightly import NIGHTLY
from tests.servers import Service

PAYLOADS = ["x' || (SELECT nextval('injected')::text) || '"]
MORE = [
    "'); DROP TABLE events CASCADE; --",
    "\\'); DELETE FROM keys; --",
    "%(session_id)s :after {0} ${jndi:ldap://celeus.test/a} %n%n",
    "' OR '1'='1",
    "\"; UPDATE sessions SET status = '{}'; --",
    "1); TRUNCATE items CASCADE; --",
    "\\.\nDELETE FROM items;\n",
    "a\tb\\N\\.",
    "$$; COPY keys TO PROGRAM 'id'; $$",
    "' UNION SELECT secret_hash, seed FROM keys, sessions --",
    "\u02bc; DROP TABLE pools; --",
    "{{7*7}}<script>alert(1)</script>",
    "*\x1a\x1b]0;x\x07",
    "EVAL 'redis.call(\"FLUSHALL\")' 0\r\nFLUSHALL\r\n",
]
TRIED = PAYLOADS + (MORE if NIGHTLY else [])
KEPT = PAYLOADS + MORE


@pytest.fixture
def world(client: httpx.Client) -> World:
    return build(client)


def places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where texts stand in a body; every other value is a place as well, and every name."""
    yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places(inner, (*path, name))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from places(inner, (*path, position))


def with_text(body: object, path: tuple[Any, ...], text: str) -> object:
    if not path:
        return text
    changed = copy.deepcopy(body)
    inner: Any = changed
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = text
    return changed


def attempts(route: Route, ids: dict[str, str], text: str) -> Iterator[dict[str, Any]]:
    """Requests with the text in one place each."""
    named = {name: ids[name] for name in ids if f"{{{name}}}" in route.path}
    media, example = example_of(route)
    base = {"method": route.method, "url": route.path.format_map(ids), "content": example}
    headers = {} if media is None else {"Content-Type": media}
    for name in named:
        url = route.path.format_map(ids | {name: quote(text, safe="")})
        yield base | {"url": url, "headers": headers}
    for parameter in route.operation.get("parameters", []):
        if parameter.get("in") == "query":
            yield base | {"params": {parameter["name"]: text}, "headers": headers}
    for header in ("Idempotency-Key", "Last-Event-ID", "If-None-Match", "Accept", "User-Agent"):
        if text.isascii() and text.isprintable():
            yield base | {"headers": headers | {header: text}}
    # A client sends no line breaks in a header
    printable = "".join(letter for letter in text if letter.isascii() and letter.isprintable())
    yield base | {"headers": {"Content-Type": printable.strip()}}
    if media == "application/json" and example is not None:
        body = json.loads(example)
        for path in places(body):
            content = json.dumps(with_text(body, path, text))
            yield base | {"content": content, "headers": headers}


def example_of(route: Route) -> tuple[str | None, str | None]:
    content = route.operation.get("requestBody", {}).get("content", {})
    for media, told in content.items():
        if "example" in told:
            example = told["example"]
            return media, example if isinstance(example, str) else json.dumps(example)
        schema = told["schema"]
        while "examples" not in schema and schema.keys() & {"$ref", "anyOf", "oneOf"}:
            several = schema.get("anyOf") or schema.get("oneOf") or [schema]
            name = several[0].get("$ref", "").rpartition("/")[2]
            schema = CONTRACT["components"]["schemas"].get(name, several[0])
        return media, json.dumps(schema.get("examples", [{}])[0])
    return None, None


def schema_of(db: psycopg.Connection) -> list[tuple[Any, ...]]:
    return db.execute(
        "SELECT table_name, column_name, data_type FROM information_schema.columns"
        " WHERE table_schema = 'public' ORDER BY 1, 2"
    ).fetchall()


def victims(db: psycopg.Connection, world: World, begun: datetime) -> list[tuple[Any, ...]]:
    """All rows of before ``begun`` that no request of the attack names."""
    pool = world.pools["likely"].removeprefix("pool_")
    session = world.sessions["labelled"].removeprefix("ses_")
    found: list[tuple[Any, ...]] = []
    for table in metadata.sorted_tables:
        key = next((k for k in ("session_id", "pool_id") if k in table.c), None)
        where = "true" if table.name == "projects" else "false"
        if table.name == "keys":
            # Requests of the attack that are in order make others
            where = f"created_at < '{begun.isoformat()}'"
        if key is not None:
            where = f"{key} = '{session if key == 'session_id' else pool}'"
        rows = (
            f"(SELECT (to_jsonb(t) - 'last_used_at')::text AS r FROM {table.name} t WHERE {where})"
        )
        row = db.execute(f"SELECT count(*), md5(string_agg(r, '' ORDER BY r)) FROM {rows} x")
        found.append((table.name, *row.fetchall()[0]))
    return found


@contextmanager
def counted(db: psycopg.Connection) -> Iterator[Callable[[], bool]]:
    """Whether SQL of the attack has ever run: a sequence is not set back with its transaction."""
    db.execute("CREATE SEQUENCE injected")
    try:
        yield lambda: db.execute("SELECT is_called FROM injected").fetchall() == [(True,)]
    finally:
        db.execute("DROP SEQUENCE injected")


def test_sql_in_any_place_of_any_request_changes_nothing_else(
    client: httpx.Client, world: World, database_url: str
) -> None:
    own = {"pool_id": world.pools["open"], "session_id": world.sessions["closed"], "round": "1"}
    ids = MISSING | own
    seen = client.get(f"/v1/sessions/{world.sessions['labelled']}")
    tries = 0
    with psycopg.connect(database_url, autocommit=True) as db, counted(db) as injected:
        begun = datetime.now(UTC)
        before = schema_of(db), victims(db, world, begun)
        for route, text in itertools.product(ROUTES, TRIED):
            for attempt in attempts(route, ids, text):
                tries += 1
                TRIES["SQL in a place of a request"] += 1
                answer = client.request(**attempt)
                assert answer.status_code < 500 or answer.status_code == 503, (attempt, answer.text)
                assert not injected(), attempt
        assert (schema_of(db), victims(db, world, begun)) == before
    again = client.get(f"/v1/sessions/{world.sessions['labelled']}")
    # The database and the cache write the members in different order
    assert (again.json(), again.headers["ETag"]) == (seen.json(), seen.headers["ETag"])
    assert tries > 300


def test_what_is_kept_is_kept_letter_by_letter(client: httpx.Client) -> None:
    rows = [
        {"id": f"{text}{number}", "group": text, "payload": {text: [text]}, "surrogate": 0.5}
        for number, text in enumerate(KEPT)
    ]
    for text in KEPT:
        body = {"name": text, "loss": {"kind": "zero_one"}, "items": rows, "sealed": True}
        pool = made(client, "/v1/pools", body)
        assert pool["name"] == text
        assert pool["groups"] == KEPT
        listed = client.get(f"/v1/pools/{pool['id']}/items").json()["data"]
        assert [(one["id"], one["payload"]) for one in listed] == [
            (row["id"], row["payload"]) for row in rows
        ]
        opening = {"pool_id": pool["id"], "target": "population", "population_bound": "margin"}
        opening |= {"margin": 0.1, "margin_assumption": text}
        session = made(client, "/v1/sessions", opening)["id"]
        kept_in_session(client, session, text)


def kept_in_session(client: httpx.Client, session: str, text: str) -> None:
    held = made(client, f"/v1/sessions/{session}/next", {"worker": text, "count": 2})["draws"]
    assert len(held) == 2
    judged = {"round": held[0]["round"], "unjudgeable": text, "worker": text}
    made(client, f"/v1/sessions/{session}/observe", judged)
    again = made(client, f"/v1/sessions/{session}/next", {"worker": text, "count": 1})["draws"]
    assert [one["round"] for one in again] == [held[1]["round"]]
    corrected = {"round": held[0]["round"], "loss": 1, "author": text, "reason": text}
    made(client, f"/v1/sessions/{session}/amendments", corrected)
    details = [
        entry["detail"] for entry in client.get(f"/v1/sessions/{session}/ledger").json()["data"]
    ]
    assert details[0]["worker"] == text
    assert details[2]["unjudgeable"] == text
    assert (details[3]["author"], details[3]["reason"]) == (text, text)


def test_sql_in_the_key_itself_opens_nothing(
    service: Service, world: World, database_url: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as db:
        begun = datetime.now(UTC)
        before = victims(db, world, begun)
        for text in KEPT:
            safe = text.encode("ascii", "ignore").decode().replace("\r", "").replace("\n", "")
            for token in (safe, f"ce_{safe}_{'x' * 43}", f"{ADMIN[:20]}{safe}", f"{ADMIN}{safe}"):
                TRIES["SQL in the key"] += 1
                shown = f"Authorization: Bearer {token}"
                assert set(sent(service.url, request("GET", "/v1/pools", shown)).statuses) <= {
                    400,
                    401,
                }
        assert victims(db, world, begun) == before
