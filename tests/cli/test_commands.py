"""What every command has in common, and the small ones."""

import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.main import get_command

from celeus.cli import cli
from celeus.store import revisions
from tests.cli.calling import Answer, Run

MOST_COMMANDS, MOST_OPTIONS = 31, 12
CONTRACT = Path(__file__).parents[2] / "openapi" / "openapi.json"


def test_a_command_loads_no_other_and_help_names_all_and_loads_nothing_heavy() -> None:
    program = (
        "import sys; from celeus.cli import cli; cli(['gate', '--help'], standalone_mode=False);"
        "loaded = {name for name in sys.modules if name.startswith('celeus.commands.')};"
        "assert loaded == {'celeus.commands.gate', 'celeus.commands.options'}, loaded;"
        "cli(['--help'], standalone_mode=False);"
        "heavy = {'numpy', 'fastapi', 'sqlalchemy', 'uvicorn', 'pydantic', 'matplotlib'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    for name in ("serve", "admin", "dev", "demo"):
        assert name in ended.stdout


def _loaded(modules: Iterable[str]) -> set[str]:
    """Every module that a process which imports these has afterwards."""
    program = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    return set(subprocess.check_output([sys.executable, "-P", "-c", program], text=True).split())


WORKERS = {
    "celeus.api.pools.sheet_worker",
    "celeus.operations.certificates.verify_worker",
    "celeus.operations.insights.claims_worker",
    "celeus.operations.insights.planning_worker",
    "celeus.operations.runs.push_worker",
}
SERVER = {
    "asyncio",
    "fastapi",
    "httpx2",
    "opentelemetry",
    "psycopg",
    "pydantic",
    "redis",
    "sqlalchemy",
}


@pytest.mark.parametrize(
    ("modules", "spared"),
    [
        ({"celeus.operations.access.keys"}, {"alembic", "fastapi", "jinja2", "redis", "uvicorn"}),
        (
            {"celeus.main"},
            {
                "alembic",
                "httpx",
                "matplotlib",
                "opentelemetry.sdk",
                "pyarrow",
                "redis",
                "typer",
                "celeus.core.certificate.verify",
                "celeus.intake.formats.registry",
            },
        ),
        # What all of them together are spared each is spared
        (WORKERS, SERVER),
    ],
    ids=["keys", "service", "workers"],
)
def test_a_start_waits_for_no_import_that_it_does_not_need(
    modules: set[str], spared: set[str]
) -> None:
    loaded = _loaded(modules)
    assert modules <= loaded
    assert not spared & loaded


def _every(command: Any, *names: str) -> Iterator[tuple[tuple[str, ...], Any]]:  # noqa: ANN401
    """Yield the command and all below it, with the words that call them."""
    yield names, command
    for name in getattr(command, "commands", ()):
        yield from _every(command.commands[name], *names, name)


def test_commands_are_few_and_so_are_the_options_of_each() -> None:
    commands = [each for each in _every(get_command(cli)) if not hasattr(each[1], "commands")]
    assert len(commands) <= MOST_COMMANDS
    for names, command in commands:
        kinds = [parameter.param_type_name for parameter in command.params]
        assert kinds.count("option") <= MOST_OPTIONS, names


def test_no_help_is_cut_or_wider_than_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for names, command in _every(get_command(cli)):
        answer = run(*names, "-h")
        assert answer.status == 0, names
        assert max(map(len, answer.out.splitlines())) <= 80, names
        members = getattr(command, "commands", {})
        texts = [command.help, *(parameter.help for parameter in command.params)]
        texts += [members[name].help.split("\n\n")[0] for name in members]
        words = "".join(answer.out.split())
        for text in filter(None, texts):
            assert "".join(text.replace("\b", "").split()) in words, (names, text)
        for parameter in command.params:
            for option in parameter.opts if parameter.param_type_name == "option" else ():
                assert option in answer.out, (names, option)


def test_the_version_is_that_of_the_package(run: Run) -> None:
    answer = run("--version")
    assert (answer.status, answer.out) == (0, version("celeus") + "\n")


def test_a_shell_completes_commands_and_options(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_CELEUS_COMPLETE", "complete_bash")
    for words, place, completed in (
        ("celeus sta", "1", "status"),
        ("celeus open --prec", "2", "--precision"),
    ):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", place)
        assert run().out.split() == [completed]


def test_openapi_prints_the_contract_or_writes_it(run: Run, tmp_path: Path) -> None:
    printed = run("dev", "openapi")
    assert printed.status == 0
    assert printed.out == CONTRACT.read_text(encoding="utf-8")
    path = tmp_path / "openapi.json"
    assert run("dev", "openapi", "--out", path).status == 0
    assert path.read_text(encoding="utf-8") == printed.out


def test_a_setting_that_cannot_be_is_named_in_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELEUS_PORT", "many")
    answer = run("serve")
    assert answer.status == 1
    assert answer.err.startswith("celeus: port: ")
    assert "'many'" in answer.err
    assert answer.err.count("\n") == 1


def test_a_taken_port_is_noticed_before_a_database_is_started(run: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        answer = run("serve", "--port", number, "--data-dir", tmp_path / "data")
    assert answer.status == 1
    assert f"127.0.0.1:{number}" in answer.err
    assert not (tmp_path / "data").exists()


def test_migrate_brings_the_named_database_to_head(
    run: Run, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELEUS_DATABASE_URL", postgres_url)
    answer = run("admin", "migrate")
    assert answer.status == 0
    assert "the database has schema" in answer.out


@pytest.fixture
def other_database(postgres_url: str, emptying: psycopg.Connection) -> Iterator[str]:
    """An empty database beside the one of the tests."""
    emptying.execute("CREATE DATABASE other")
    yield postgres_url.replace("/celeus?", "/other?")
    emptying.execute("DROP DATABASE other WITH (FORCE)")


@contextmanager
def stranger(reply: bytes) -> Iterator[int]:
    """A port of loopback where something answers that is no PostgreSQL."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with connection:
                        connection.recv(8)
                        connection.sendall(reply)

        threading.Thread(target=answer, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


def assert_one_line(answer: Answer, *parts: str) -> None:
    checks = answer.err.startswith("celeus: cannot be checked: ")
    assert (answer.status, answer.out) == (2 if checks else 1, ""), answer
    assert answer.err.startswith("celeus: "), answer.err
    assert answer.err.count("\n") == 1, answer.err
    for part in parts:
        assert part in answer.err
    assert "hunter2" not in answer.err


ON_A_DATABASE = [
    ("admin", "migrate"),
    ("serve", "--port", "0"),
    ("admin", "keys", "list"),
    ("admin", "audit"),
]


@pytest.mark.parametrize("command", ON_A_DATABASE, ids=" ".join)
@pytest.mark.parametrize(
    ("address", "cause"),
    [
        ("postgresql://me:hunter2@127.0.0.1:1/celeus", "Connection refused"),
        ("postgresql://me:hunter2@nowhere.invalid/celeus", "resolve"),
        ("postgresql://me:hunter2@127.0.0.1:{stranger}/celeus", "invalid response"),
        ("postgresql://me:hunter2@127.0.0.1:{silent}/celeus?connect_timeout=2", "timeout"),
        ("postgresql://me:hunter2@127.0.0.1:1/celeus?sslmode=hunter2", "sslmode"),
    ],
    ids=["nobody listens", "unknown host", "no PostgreSQL", "silence", "bad option"],
)
def test_a_database_that_is_away_or_something_else_is_told_in_one_line(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    address: str,
    cause: str,
) -> None:
    with (
        stranger(b"HTTP/1.1 400 Bad Request\r\n\r\n") as other,
        socket.create_server(("127.0.0.1", 0)) as silent,
    ):
        url = address.format(stranger=other, silent=silent.getsockname()[1])
        monkeypatch.setenv("CELEUS_DATABASE_URL", url)
        host = url.split("@")[1].split("/")[0]
        assert_one_line(run(*command), host, cause)


@pytest.mark.parametrize("address", ["no address", "postgresql://me:hunter2@host:port/x"])
def test_an_address_that_cannot_be_read_is_refused_without_its_password(
    run: Run, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("CELEUS_DATABASE_URL", address)
    assert_one_line(run("admin", "migrate"), "database_url is not an address")


@pytest.mark.parametrize("command", ON_A_DATABASE, ids=" ".join)
def test_a_database_that_does_not_exist_is_told_in_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, postgres_url: str, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("CELEUS_DATABASE_URL", postgres_url.replace("/celeus?", "/missing?"))
    answer = run(*command)
    assert_one_line(answer, 'database "missing" does not exist')
    assert answer.status == (2 if command == ("admin", "audit") else 1)


@pytest.mark.parametrize("command", ON_A_DATABASE[1:], ids=" ".join)
def test_an_empty_database_is_to_be_migrated_first(
    run: Run, monkeypatch: pytest.MonkeyPatch, other_database: str, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("CELEUS_DATABASE_URL", other_database)
    assert_one_line(run(*command), "other", "is empty", "celeus admin migrate")


def test_tables_of_another_program_are_not_migrated(
    run: Run, monkeypatch: pytest.MonkeyPatch, other_database: str
) -> None:
    monkeypatch.setenv("CELEUS_DATABASE_URL", other_database)
    with psycopg.connect(other_database) as db:
        db.execute("CREATE TABLE sessions (a int)")
        db.execute("CREATE TABLE pools (b text)")
    assert_one_line(run("admin", "migrate"), "other", "already exists")


def test_an_option_that_no_driver_knows_is_refused_without_the_password(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "postgresql://127.0.0.1:1/x?password=hunter2&bogus=1"
    monkeypatch.setenv("CELEUS_DATABASE_URL", url)
    assert_one_line(run("admin", "migrate"), 'invalid URI query parameter: "bogus"')


@pytest.mark.parametrize("command", ON_A_DATABASE, ids=" ".join)
@pytest.mark.parametrize("revision", ["9999", "097d15a9eef4"], ids=["newer", "before 0.1.0"])
def test_a_schema_not_of_this_version_is_left_alone_with_advice_for_each_cause(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    other_database: str,
    command: tuple[str, ...],
    revision: str,
) -> None:
    monkeypatch.setenv("CELEUS_DATABASE_URL", other_database)
    with psycopg.connect(other_database) as db:
        db.execute("CREATE TABLE alembic_version (version_num text)")
        db.execute("INSERT INTO alembic_version VALUES (%s)", [revision])
    assert_one_line(
        run(*command),
        f"has schema {revision!r}, which this version does not know",
        "if a newer Celeus made it, run that one",
        "if another program or a version before 0.1.0 (whose databases are not migrated) did",
        "name an empty database in CELEUS_DATABASE_URL or a new folder with --data-dir",
    )
    with psycopg.connect(other_database) as db:
        tables = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        assert tables.fetchall() == [("alembic_version",)]
        assert db.execute("SELECT version_num FROM alembic_version").fetchall() == [(revision,)]


@pytest.mark.parametrize("command", ON_A_DATABASE[1:], ids=" ".join)
def test_a_schema_of_an_older_version_is_to_be_migrated_first(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    other_database: str,
    tmp_path: Path,
    command: tuple[str, ...],
) -> None:
    monkeypatch.setenv("CELEUS_DATABASE_URL", other_database)
    assert run("admin", "migrate").status == 0
    later = shutil.copytree(revisions.SCRIPTS, tmp_path / "alembic")
    (later / "versions" / "later.py").write_text(
        f'revision = "later"\ndown_revision = "{revisions.head()}"\n\n\n'
        "def upgrade() -> None:\n    pass\n"
    )
    monkeypatch.setattr(revisions, "SCRIPTS", later)
    assert_one_line(run(*command), "at an older version", "run `celeus admin migrate` first")
    assert run("admin", "migrate").status == 0
    with psycopg.connect(other_database) as db:
        assert db.execute("SELECT version_num FROM alembic_version").fetchall() == [("later",)]


def test_a_role_that_may_not_make_tables_is_told_so(
    run: Run, monkeypatch: pytest.MonkeyPatch, other_database: str
) -> None:
    with psycopg.connect(other_database, autocommit=True) as db:
        db.execute("CREATE ROLE guest LOGIN")
        try:
            monkeypatch.setenv(
                "CELEUS_DATABASE_URL", other_database.replace("postgres@", "guest@", 1)
            )
            assert_one_line(run("admin", "migrate"), "permission denied for schema public")
        finally:
            db.execute("DROP ROLE guest")
