"""What grows can be cut up by `session_id` or `pool_id`: by hash over machines, by age in one.

docs/evidence/scale.md says which table goes where, and names the exceptions.
"""

from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import ForeignKeyConstraint, Table, UniqueConstraint

from celeus.settings import Settings
from celeus.store import revisions
from celeus.store.tables import metadata
from tests.clients import serving
from tests.factories import known_pool
from tests.keys import add_key

CUT_BY = {
    "sessions": "session_id",
    "events": "session_id",
    "trajectory": "session_id",
    "leases": "session_id",
    "labellers": "session_id",
    "comments": "session_id",
    "certificates": "session_id",
    "tombstones": "session_id",
    "items": "pool_id",
    "chunks": "pool_id",
}
"""The tables that grow with labels and items, and what each is cut by."""
EVERYWHERE = {
    "projects",
    "keys",
    "browser_sessions",
    "invitations",
    "idempotency",
    "pools",
    "mappings",
    "instructions",
    "webhooks",
    "deliveries",
    "shares",
}
"""A row for each pool, person, link or message: a copy on every machine."""
FROM_EVERYWHERE = {
    ("instructions", "session_id"),
    ("webhooks", "session_id"),
    ("shares", "session_id"),
}
"""Foreign keys that a copy on every machine cannot have: what goes with its session is then deleted
by the deletion of sessions."""
LONG = {name for name in CUT_BY if name not in {"sessions", "certificates", "tombstones"}}
"""Of those that grow the ones whose rows nobody refers to."""
DECEMBER = "019ad735-8400-7000-8000-000000000000"
"""The first UUIDv7 of 1 December 2025: ids follow time, so a range of them is an age."""


def test_every_table_is_cut_or_small() -> None:
    assert CUT_BY.keys() | EVERYWHERE == metadata.tables.keys()
    assert not CUT_BY.keys() & EVERYWHERE


@pytest.mark.parametrize("name", CUT_BY)
def test_every_unique_key_of_what_grows_begins_with_what_it_is_cut_by(name: str) -> None:
    table = metadata.tables[name]
    keys = list(_unique(table))
    assert keys
    assert all(key[0] == CUT_BY[name] for key in keys), keys


@pytest.mark.parametrize("name", CUT_BY)
def test_what_grows_refers_to_its_own_part_or_to_what_is_everywhere(name: str) -> None:
    for key in _foreign(metadata.tables[name]):
        other = key.referred_table.name
        if other not in EVERYWHERE:
            pairs = {(pair.parent.name, pair.column.name) for pair in key.elements}
            assert CUT_BY[other] == CUT_BY[name]
            assert (CUT_BY[name], CUT_BY[other]) in pairs, (name, other)


def test_what_is_everywhere_refers_to_what_grows_where_the_docs_say_so() -> None:
    found = {
        (name, pair.parent.name)
        for name in EVERYWHERE
        for key in _foreign(metadata.tables[name])
        for pair in key.elements
        if key.referred_table.name in CUT_BY
    }
    assert found == FROM_EVERYWHERE


@pytest.mark.parametrize("how", ["RANGE", "HASH"])
def test_postgresql_takes_every_table_that_grows_in_parts(how: str, database_url: str) -> None:
    """It refuses a unique key that leaves out what the table is cut by."""
    with psycopg.connect(database_url) as db:
        for name, column in CUT_BY.items():
            db.execute(
                f"CREATE TEMPORARY TABLE {name}_parts (LIKE {name} INCLUDING ALL)"
                f" PARTITION BY {how} ({column})".encode()
            )
        db.rollback()


_CUT = """
    ALTER TABLE {name} RENAME TO {name}_whole;
    CREATE TABLE {name} (LIKE {name}_whole INCLUDING ALL) PARTITION BY RANGE ({column});
    DROP TABLE {name}_whole;
    CREATE TABLE {name}_old PARTITION OF {name} FOR VALUES FROM (MINVALUE) TO ('{at}');
    CREATE TABLE {name}_new PARTITION OF {name} FOR VALUES FROM ('{at}') TO (MAXVALUE)
    """


@pytest.fixture
def cut_url(postgres_url: str, emptying: psycopg.Connection) -> Iterator[str]:
    """A migrated database whose long tables lie in two parts by age."""
    emptying.execute("CREATE DATABASE cut")
    url = postgres_url.replace("/celeus?", "/cut?")
    revisions.upgrade(url)
    with psycopg.connect(url) as db:
        add_key(db)
        for name in sorted(LONG):
            for statement in _CUT.format(name=name, column=CUT_BY[name], at=DECEMBER).split(";"):
                db.execute(statement.encode())
    yield url
    emptying.execute("DROP DATABASE cut WITH (FORCE)")


async def test_the_service_works_on_tables_in_parts(cut_url: str) -> None:
    settings = Settings(database_url=cut_url)
    async with serving(settings) as client:
        pool = await known_pool(client, 60)
        opened = await client.post("/v1/sessions", json={"pool_id": pool.id, "budget": 40})
        path = f"/v1/sessions/{opened.json()['id']}"
        draws = (await client.post(f"{path}/next", json={"worker": "a"})).json()["draws"]
        for _ in range(10):
            judged = {
                "round": draws[0]["round"],
                "loss": pool.losses[draws[0]["item"]["index"]],
                "comment": "so it is",
                "worker": "a",
                "next": 1,
            }
            answer = await client.post(f"{path}/observe", json=judged)
            assert answer.status_code == 200, answer.text
            draws = answer.json()["draws"]
    # A process that has never seen it finds all in the parts
    async with serving(settings) as client:
        answer = await client.post(f"{path}/next", json={"worker": "b"})
        assert answer.json()["draws"][0]["round"] == 12
        assert (await client.get(path)).json()["rounds"]["judged"] == 10
    with psycopg.connect(cut_url) as db:
        for name in ("events", "trajectory", "leases", "items"):
            old = db.execute(f"SELECT count(*) FROM {name}_old".encode()).fetchone()
            new = db.execute(f"SELECT count(*) FROM {name}_new".encode()).fetchone()
            assert old == (0,)
            assert new is not None
            assert new[0] > 0, name


def _unique(table: Table) -> Iterator[list[str]]:
    yield [column.name for column in table.primary_key]
    for constraint in table.constraints:
        if isinstance(constraint, UniqueConstraint):
            yield [column.name for column in constraint.columns]
    for index in table.indexes:
        if index.unique:
            yield [column.name for column in index.columns]


def _foreign(table: Table) -> Iterator[ForeignKeyConstraint]:
    for constraint in table.constraints:
        if isinstance(constraint, ForeignKeyConstraint):
            yield constraint
