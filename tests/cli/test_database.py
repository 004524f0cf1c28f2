"""`celeus admin database`: PostgreSQL's tools on a named database and on the private one."""

from pathlib import Path

import pytest

from celeus.store.embedded import server
from tests.cli.calling import Run
from tests.servers import data_folder, put_cluster


def test_without_a_tool_it_says_where_the_database_and_the_tools_are(
    run: Run, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELEUS_DATABASE_URL", database_url)
    answer = run("admin", "database")
    assert answer.status == 0
    address, tools = (line.split(maxsplit=1)[1] for line in answer.out.splitlines())
    assert address.startswith("postgresql://")
    assert tools == str(server.programs_folder())


def test_a_tool_finds_the_named_database_by_its_environment(
    run: Run, database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CELEUS_DATABASE_URL", database_url)
    dump = tmp_path / "schema.sql"
    answer = run("admin", "database", "pg_dump", "--schema-only", "-f", dump)
    assert answer.status == 0, answer.err
    assert "CREATE TABLE public.sessions" in dump.read_text()


def test_the_tools_exit_status_is_the_commands(
    run: Run, database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CELEUS_DATABASE_URL", database_url)
    assert run("admin", "database", "pg_restore", "-d", "celeus", tmp_path / "missing").status == 1


def test_a_tool_that_does_not_exist_is_refused(
    run: Run, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELEUS_DATABASE_URL", database_url)
    answer = run("admin", "database", "pg_everything")
    assert answer.status == 1
    assert "there is no pg_everything" in answer.err


def test_the_private_database_is_joined_or_started(run: Run, tmp_path: Path) -> None:
    with data_folder() as folder:
        data = put_cluster(folder / "data")
        with server.postgres(data, durable=False):
            first = folder / "first"
            tool = ("admin", "database", "--data-dir", data, "pg_dump", "-f")
            assert run(*tool, first).status == 0
            assert server.pid(data) is not None
        assert run(*tool, folder / "second").status == 0
        assert server.pid(data) is None
    assert run("admin", "database", "--data-dir", tmp_path / "none", "pg_dump").status == 1
