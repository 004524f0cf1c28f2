"""The migrations make the schema; an empty database gets it as declared, which is the same."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import select

from celeus.errors import DatabaseUnavailable
from celeus.store import migrations, schema
from celeus.store.database import Database
from celeus.store.migrations import fresh
from celeus.store.tables import DEFAULT_PROJECT, metadata, projects


@pytest.fixture
def empty_url(postgres_url: str, emptying: psycopg.Connection) -> Iterator[str]:
    emptying.execute("CREATE DATABASE empty")
    yield postgres_url.replace("/celeus?", "/empty?")
    emptying.execute("DROP DATABASE empty WITH (FORCE)")


def _tables(url: str) -> set[str]:
    with psycopg.connect(url) as db:
        rows = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    return {row[0] for row in rows}


def test_upgrading_an_empty_database_makes_every_table(empty_url: str) -> None:
    migrations.upgrade(empty_url)
    assert _tables(empty_url) == {*metadata.tables, "alembic_version"}


def test_the_revisions_are_alembics() -> None:
    """They are read without it, as it takes long to import."""
    scripts = ScriptDirectory.from_config(migrations.configuration())
    assert migrations.head() == scripts.get_current_head()
    assert migrations.revisions() == {one.revision for one in scripts.walk_revisions()}


def test_upgrading_twice_changes_nothing(empty_url: str) -> None:
    migrations.upgrade(empty_url)
    migrations.upgrade(empty_url)
    assert _tables(empty_url) == {*metadata.tables, "alembic_version"}


def test_two_upgrades_at_once_both_succeed(empty_url: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        # Alembic's context is one per process, so the second must be a process of its own
        both = [pool.submit(_upgrade_elsewhere, empty_url) for _ in range(2)]
        assert [one.result() for one in both] == [0, 0]


def _upgrade_elsewhere(url: str) -> int:
    code = "import sys; from celeus.store import migrations; migrations.upgrade(sys.argv[1])"
    return subprocess.run([sys.executable, "-c", code, url], check=False).returncode


def test_the_migrated_schema_is_the_declared_one(empty_url: str) -> None:
    migrations.migrate(empty_url)
    command.check(migrations.configuration(empty_url))


CATALOGUE = {
    "columns": "SELECT attrelid::regclass::text, attname, format_type(atttypid, atttypmod),"
    " attnotnull, attstorage, attidentity, attgenerated, attcompression, attcollation,"
    " (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef"
    "  WHERE adrelid = attrelid AND adnum = attnum)"
    " FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid"
    " WHERE relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped",
    "constraints": "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)"
    " FROM pg_constraint WHERE connamespace = 'public'::regnamespace",
    "indexes": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "relations": "SELECT relname, relkind, reloptions::text, relpersistence FROM pg_class"
    " WHERE relnamespace = 'public'::regnamespace",
    "other": "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
    " UNION SELECT typname FROM pg_type WHERE typnamespace = 'public'::regnamespace",
    "version": "SELECT version_num FROM alembic_version",
    "projects": "SELECT project_id, name FROM projects",
}


def _catalogue(url: str) -> dict[str, set[tuple[Any, ...]]]:
    with psycopg.connect(url) as db:
        return {name: set(db.execute(query.encode())) for name, query in CATALOGUE.items()}


def test_an_empty_database_gets_what_all_migrations_lead_to(empty_url: str) -> None:
    assert fresh.make(empty_url)
    made = _catalogue(empty_url)
    assert not fresh.make(empty_url)
    with psycopg.connect(empty_url) as db:
        db.execute("DROP SCHEMA public CASCADE")
        db.execute("CREATE SCHEMA public")
    migrations.migrate(empty_url)
    assert made == _catalogue(empty_url)
    assert len(made["columns"]) > 50


def test_tables_of_another_program_are_left_alone(empty_url: str) -> None:
    with psycopg.connect(empty_url) as db:
        db.execute("CREATE TABLE items (mine integer)")
    with pytest.raises(DatabaseUnavailable, match="items"):
        schema.migrate(empty_url)
    assert _tables(empty_url) == {"items"}


def test_the_way_back_leaves_nothing(empty_url: str) -> None:
    migrations.migrate(empty_url)
    command.downgrade(migrations.configuration(empty_url), "base")
    assert _tables(empty_url) == {"alembic_version"}


def test_statuses_of_tables_say_how_many_claims_were_added(empty_url: str) -> None:
    """The audit compares them with those of this version."""
    config = migrations.configuration(empty_url)
    migrations.migrate(empty_url)
    command.downgrade(config, "4a9d02e6b7f3")
    with psycopg.connect(empty_url) as db:
        db.execute(
            "INSERT INTO pools (pool_id, name, loss_kind, loss_lower, loss_upper)"
            " VALUES (gen_random_uuid(), 'p', 'zero_one', 0, 1)"
        )
        db.execute(
            "INSERT INTO sessions (session_id, pool_id, plan, plan_digest, seed, commitment,"
            " lease_seconds, state, budget, status) SELECT gen_random_uuid(), pool_id,"
            " one.plan::jsonb, '', '', '', 60, 'active', 9, one.status::jsonb FROM pools,"
            """ (VALUES ('{"table": true}', '{"table": {"claims": 8}}'),"""
            """ ('{}', '{"table": null}')) AS one(plan, status)"""
        )
    migrations.migrate(empty_url)
    with psycopg.connect(empty_url) as db:
        found = db.execute("SELECT status -> 'table' FROM sessions ORDER BY plan").fetchall()
    assert found == [(None,), ({"claims": 8, "later": 0},)]
    command.downgrade(config, "4a9d02e6b7f3")
    with psycopg.connect(empty_url) as db:
        found = db.execute("SELECT status -> 'table' FROM sessions ORDER BY plan").fetchall()
    assert found == [(None,), ({"claims": 8},)]


async def test_everything_belongs_to_the_default_project(database: Database) -> None:
    async with database.transaction() as db:
        rows = (await db.execute(select(projects.c.project_id, projects.c.name))).all()
    assert [tuple(row) for row in rows] == [(DEFAULT_PROJECT, "default")]


async def test_a_database_is_at_head_only_after_its_migrations(
    empty_url: str, database: Database
) -> None:
    empty = Database.connect(empty_url)
    try:
        assert not await empty.at_head()
        assert await database.at_head()
        migrations.upgrade(empty_url)
        assert await empty.at_head()
    finally:
        await empty.close()


async def test_a_migration_of_later_code_is_not_head(empty_url: str) -> None:
    migrations.upgrade(empty_url)
    with psycopg.connect(empty_url) as db:
        db.execute("UPDATE alembic_version SET version_num = 'from the future'")
    ahead = Database.connect(empty_url)
    try:
        assert not await ahead.at_head()
    finally:
        await ahead.close()


def test_chunks_are_kept_uncompressed(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as db:
        row = db.execute(
            "SELECT attstorage FROM pg_attribute"
            " WHERE attrelid = 'chunks'::regclass AND attname = 'data'"
        ).fetchone()
    assert row is not None
    assert row[0] == "e"
