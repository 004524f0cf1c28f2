"""Clients that others generate from the contract finish a session at a real service.

The generators live in an environment of their own: `make ecosystem`, or any folder of programs that
CELEUS_GENERATORS names. Without them these tests are skipped.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT
from tests.keys import ADMIN
from tests.servers import Service

CONTRACT = ROOT / "openapi" / "openapi.json"
PROGRAMS = Path(os.environ.get("CELEUS_GENERATORS", ROOT / ".venv-ecosystem" / "bin"))
HERE = Path(__file__).parent / "generated"
LABELS = 10
UPLOADS = "content_type_overrides:\n  application/x-ndjson: application/octet-stream\n"
"""Of what an upload may be openapi-python-client knows bytes only."""


def generated(program: str, *arguments: str, needs: str | None = None) -> str:
    """What a generator says while it makes a client; skips the test where it is not there."""
    path = PROGRAMS / program
    if not path.exists():
        pytest.skip(f"{program} is not in {PROGRAMS}")
    if needs is not None and shutil.which(needs) is None:
        pytest.skip(f"{program} needs {needs}")
    done = subprocess.run([path, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def session_of(program: str, package: Path, service: Service) -> list[str]:
    """State, labels and interval where a session by a generated client ends."""
    python = [str(PROGRAMS / "python"), str(HERE / program)]
    done = subprocess.run(
        [*python, service.url, ADMIN, str(LABELS)],
        env=os.environ | {"PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_openapi_python_client_makes_a_client(service: Service, tmp_path: Path) -> None:
    config, package = tmp_path / "config.yaml", tmp_path / "client"
    config.write_text(UPLOADS)
    where = ("--path", str(CONTRACT), "--output-path", str(package), "--config", str(config))
    generated("openapi-python-client", "generate", *where)
    state, labels, lower, upper = session_of("openapi_python_client.py", package, service)
    assert (state, int(labels)) == ("budget_spent", LABELS)
    assert 0 <= float(lower) < float(upper) <= 1
    made = {path.stem for path in (package / "celeus_client" / "api").rglob("*.py")}
    assert {one["operationId"] for one in operations()} <= made


def test_openapi_generator_makes_a_client(service: Service, tmp_path: Path) -> None:
    where = ("-i", str(CONTRACT), "-o", str(tmp_path), "--package-name", "celeus_generated")
    generated("openapi-generator-cli", "generate", "-g", "python", *where, needs="java")
    state, labels, lower, upper = session_of("openapi_generator.py", tmp_path, service)
    assert (state, int(labels)) == ("budget_spent", LABELS)
    assert 0 <= float(lower) < float(upper) <= 1


def test_every_schema_is_named_once_and_by_its_name() -> None:
    schemas = json.loads(CONTRACT.read_text())["components"]["schemas"]
    titles = [one["title"] for one in schemas.values()]
    assert sorted(titles) == sorted(set(titles))
    assert not [name for name in schemas if "__" in name]


def test_a_judgement_is_one_plain_object() -> None:
    schemas = json.loads(CONTRACT.read_text())["components"]["schemas"]
    for name in ("OneObservation", "ListedObservation", "AmendmentRequest", "Losses"):
        assert not schemas[name].keys() & {"oneOf", "anyOf", "allOf"}
        assert schemas[name]["type"] == "object"


def operations() -> list[dict[str, Any]]:
    paths = json.loads(CONTRACT.read_text())["paths"]
    return [operation for path in paths.values() for operation in path.values()]
