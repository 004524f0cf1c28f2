"""A private database of an older PostgreSQL becomes one of this version, whole or not at all.

The wheel brings an older version, too: what happens here happens from one real version to another.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from celeus.errors import DataFolderBusy, DataFolderUnusable
from celeus.store.embedded import server
from celeus.store.embedded.upgrade import upgrade
from tests.servers import OLDER, data_folder, older_cluster, older_programs


@pytest.fixture(scope="module")
def original() -> Iterator[Path]:
    """A data folder with a cluster of the older version, and a table in it."""
    with data_folder() as folder:
        older_cluster(folder)
        with (
            server.postgres(folder, durable=False, programs=older_programs()) as url,
            psycopg.connect(url) as db,
        ):
            db.execute("CREATE TABLE kept (number bigint GENERATED ALWAYS AS IDENTITY, value text)")
            db.execute("INSERT INTO kept (value) SELECT repeat('é', 9) FROM generate_series(1, 99)")
        yield folder


@pytest.fixture
def folder(original: Path) -> Iterator[Path]:
    """A copy of it."""
    with data_folder() as folder:
        copy = ["cp", "-a", str(original / "postgres"), str(folder)]
        subprocess.run(copy, check=True)
        yield folder


def rows(folder: Path) -> tuple[int, int]:
    """How many rows this version's server finds in the folder, and the next number it gives."""
    with server.postgres(folder, durable=False) as url, psycopg.connect(url) as db:
        found = db.execute("SELECT count(*) FROM kept WHERE value = repeat('é', 9)").fetchone()
        added = db.execute("INSERT INTO kept (value) VALUES ('') RETURNING number").fetchone()
        assert found is not None
        assert added is not None
        return found[0], added[0]


def test_a_start_on_an_older_database_names_the_command(folder: Path) -> None:
    with (
        pytest.raises(DataFolderUnusable, match=f"upgrade-database --data-dir {folder}`"),
        server.postgres(folder, durable=False),
    ):
        pass


def test_an_older_database_is_upgraded_and_kept(folder: Path) -> None:
    (folder / "signing.pem").write_text("as it was")
    kept = upgrade(folder)
    assert kept == folder / f"postgres.{OLDER}"
    assert server.version_of(kept) == OLDER
    assert server.version_of(folder / "postgres") == server.MAJOR
    assert rows(folder) == (99, 100)
    assert (folder / "signing.pem").read_text() == "as it was"
    assert not (folder / "upgrade").exists()
    assert upgrade(folder) is None, "there is nothing more to do"
    # Back again: the older one is as it was
    shutil.rmtree(folder / "postgres")
    kept.rename(folder / "postgres")
    with (
        server.postgres(folder, durable=False, programs=older_programs()) as url,
        psycopg.connect(url) as db,
    ):
        assert db.execute("SELECT count(*) FROM kept").fetchone() == (99,)


def test_an_upgrade_that_was_cut_off_is_done_again(folder: Path) -> None:
    for rest in ("upgrade/new/postgres", "upgrade/old", server.UPGRADED):
        (folder / rest).mkdir(parents=True)
    (folder / "upgrade" / "old" / "postgres").symlink_to(folder / "postgres")
    upgrade(folder)
    assert rows(folder) == (99, 100)


def test_an_upgrade_that_lacks_its_last_step_gets_it_at_the_next_start(folder: Path) -> None:
    upgrade(folder)
    (folder / "postgres").rename(folder / server.UPGRADED)
    assert rows(folder) == (99, 100)


def test_programs_are_found_below_a_folder_and_the_refusal_says_where_to_get_them(
    folder: Path,
) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(DataFolderUnusable, match=f"no PostgreSQL {OLDER} below .*pip install"):
        upgrade(folder, folder / "empty")
    assert server.version_of(folder / "postgres") == OLDER
    upgrade(folder, older_programs().parents[1])
    assert rows(folder) == (99, 100)


def test_a_database_of_a_newer_version_is_left_alone(folder: Path) -> None:
    (folder / "postgres" / "PG_VERSION").write_text("99\n")
    with pytest.raises(DataFolderUnusable, match="made by PostgreSQL 99; this is"):
        upgrade(folder)


def test_a_folder_that_is_served_is_not_upgraded(folder: Path) -> None:
    with (
        server.postgres(folder, durable=False, programs=older_programs()),
        pytest.raises(DataFolderBusy),
    ):
        upgrade(folder)


def test_an_earlier_upgrade_is_not_overwritten(folder: Path) -> None:
    (folder / f"postgres.{OLDER}").mkdir()
    with pytest.raises(DataFolderUnusable, match="move it away"):
        upgrade(folder)
