"""`import celeus` costs nothing, and the client brings no server along."""

import subprocess
import sys

import pytest

import celeus

HEAVY = {"numpy", "pydantic", "fastapi", "sqlalchemy", "typer", "celeus.core", "celeus.api"}


def loaded(program: str) -> set[str]:
    """Modules that are there after a program."""
    command = [sys.executable, "-c", f"import sys; {program}; print(*sys.modules)"]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


def test_the_package_alone_loads_nothing() -> None:
    assert not loaded("import celeus") & ({"httpx2", "json", "asyncio"} | HEAVY)


def test_a_client_loads_only_what_meets_a_service() -> None:
    modules = loaded("import celeus; celeus.Client; celeus.AsyncClient")
    assert "httpx2" in modules
    assert not modules & HEAVY


def test_it_is_imported_at_once() -> None:
    program = (
        "import time; begun = time.process_time(); import celeus;"
        "assert time.process_time() - begun < 0.15"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_name_for_users_is_there() -> None:
    assert all(getattr(celeus, name).__name__ == name for name in celeus._HOMES)
    assert celeus._HOMES.keys() <= set(dir(celeus))
    with pytest.raises(AttributeError, match="no attribute 'Nobody'"):
        celeus.Nobody  # noqa: B018
