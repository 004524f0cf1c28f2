"""What every command has in common, and the small ones."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from app.main import create_app
from app.settings import Settings
from tests.cli.calling import Answer

Run = Callable[..., Answer]


def test_help_names_every_command_and_loads_nothing_heavy() -> None:
    program = (
        "import sys; from app.cli import cli; cli(['--help'], standalone_mode=False);"
        "heavy = {'numpy', 'fastapi', 'sqlalchemy', 'uvicorn', 'pydantic', 'matplotlib'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    for name in ("serve", "migrate", "keys", "simulate", "openapi", "demo"):
        assert name in ended.stdout


def test_the_version_is_that_of_the_package(run: Run) -> None:
    answer = run("--version")
    assert (answer.status, answer.out) == (0, version("celeus") + "\n")


def test_openapi_prints_the_contract_or_writes_it(run: Run, tmp_path: Path) -> None:
    printed = run("openapi")
    assert printed.status == 0
    assert json.loads(printed.out) == create_app(Settings()).openapi()
    path = tmp_path / "openapi.json"
    assert run("openapi", "--out", path).status == 0
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
    answer = run("migrate")
    assert answer.status == 0
    assert "the database is at" in answer.out
