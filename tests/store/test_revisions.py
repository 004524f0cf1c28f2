"""The migrations make the schema as it is declared."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import select

from celeus.errors import DatabaseUnavailable, SchemaBehind
from celeus.store import migrate, revisions
from celeus.store.database import Database
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


def test_the_revisions_are_alembics() -> None:
    """They are read without it, as it takes long to import."""
    scripts = ScriptDirectory.from_config(revisions.configuration())
    assert revisions.head() == scripts.get_current_head()
    assert revisions.revisions() == {script.revision for script in scripts.walk_revisions()}


def test_upgrading_an_empty_database_makes_every_table_and_twice_changes_nothing(
    empty_url: str,
) -> None:
    revisions.upgrade(empty_url)
    revisions.upgrade(empty_url)
    assert _tables(empty_url) == {*metadata.tables, "alembic_version"}


def test_two_upgrades_at_once_both_succeed(empty_url: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        # Alembic's context is one per process, so the second must be a process of its own
        both = [pool.submit(_upgrade_elsewhere, empty_url) for _ in range(2)]
        assert [upgrade.result() for upgrade in both] == [0, 0]


def _upgrade_elsewhere(url: str) -> int:
    code = "import sys; from celeus.store import revisions; revisions.upgrade(sys.argv[1])"
    return subprocess.run([sys.executable, "-c", code, url], check=False).returncode


def test_the_migrated_schema_is_the_declared_one(empty_url: str) -> None:
    revisions.upgrade(empty_url)
    command.check(revisions.configuration(empty_url))


def test_tables_of_another_program_are_left_alone(empty_url: str) -> None:
    with psycopg.connect(empty_url) as db:
        db.execute("CREATE TABLE items (mine integer)")
    with pytest.raises(DatabaseUnavailable, match="items"):
        migrate.migrate(empty_url)
    assert _tables(empty_url) == {"items"}


def test_the_way_back_leaves_nothing(empty_url: str) -> None:
    revisions.upgrade(empty_url)
    command.downgrade(revisions.configuration(empty_url), "base")
    assert _tables(empty_url) == {"alembic_version"}


def test_a_database_of_before_the_first_release_is_refused_with_what_to_do(empty_url: str) -> None:
    revisions.upgrade(empty_url)
    with psycopg.connect(empty_url) as db:
        db.execute("UPDATE alembic_version SET version_num = '4a9d02e6b7f3'")
    with pytest.raises(SchemaBehind, match=r"before 0\.1\.0 \(whose databases are not migrated"):
        migrate.migrate(empty_url)


def test_alembic_runs_at_the_top_of_the_checkout(empty_url: str) -> None:
    """As a developer types it, where the folder `alembic` must not hide the library."""
    root = revisions.SCRIPTS.parent
    done = subprocess.run(
        [sys.executable, "-m", "alembic", "upgrade", "head"],
        cwd=root,
        env={"PATH": "/usr/bin:/bin", "CELEUS_DATABASE_URL": empty_url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert _tables(empty_url) == {*metadata.tables, "alembic_version"}


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
        revisions.upgrade(empty_url)
        assert await empty.at_head()
    finally:
        await empty.close()


async def test_a_migration_of_later_code_is_not_head(empty_url: str) -> None:
    revisions.upgrade(empty_url)
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
