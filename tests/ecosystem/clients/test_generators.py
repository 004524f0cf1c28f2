"""Clients that others generate from the contract finish a session at a real service."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.ecosystem.service import Service

pytestmark = pytest.mark.ecosystem
HERE = Path(__file__).parent
CONTRACT = HERE.parents[2] / "openapi" / "openapi.json"
PROGRAMS = Path(sys.executable).parent
LABELS = 10
UPLOADS = "content_type_overrides:\n  application/x-ndjson: application/octet-stream\n"
"""Of what an upload may be openapi-python-client knows bytes only."""


def run(*command: str | Path, **environment: str) -> str:
    """What a program prints; it has to end well."""
    # Its own tools, such as ruff, are beside it
    path = os.pathsep.join((str(PROGRAMS), os.environ["PATH"]))
    done = subprocess.run(
        command,
        env=os.environ | {"PATH": path} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def finishes_a_session(program: str, package: Path, service: Service) -> None:
    """A file becomes a pool, a session is judged to its end, and its certificate holds."""
    told = run(
        *(sys.executable, HERE / program, service.url, service.key, str(LABELS)),
        PYTHONPATH=str(package),
    )
    state, labels, lower, upper, valid, kind = told.split()
    assert (state, int(labels)) == ("budget_spent", LABELS)
    assert 0 <= float(lower) < float(upper) <= 1
    assert (valid, kind) == ("True", "final")


def test_the_contract_is_valid_openapi_3_1() -> None:
    contract = json.loads(CONTRACT.read_text())
    assert contract["openapi"].startswith("3.1.")
    faults = OpenAPIV31SpecValidator(contract).iter_errors()
    assert not [(list(one.absolute_path), one.message) for one in faults]


def test_openapi_python_client_makes_a_client(service: Service, tmp_path: Path) -> None:
    config, package = tmp_path / "config.yaml", tmp_path / "client"
    config.write_text(UPLOADS)
    where = ("--path", CONTRACT, "--output-path", package, "--config", config)
    run(PROGRAMS / "openapi-python-client", "generate", *where)
    finishes_a_session("openapi_python_client.py", package, service)
    made = {path.stem for path in (package / "celeus_client" / "api").rglob("*.py")}
    paths = json.loads(CONTRACT.read_text())["paths"].values()
    assert {one["operationId"] for path in paths for one in path.values()} <= made


def test_openapi_generator_makes_a_client(service: Service, tmp_path: Path) -> None:
    where = ("-i", CONTRACT, "-o", tmp_path, "--package-name", "celeus_generated")
    run(PROGRAMS / "openapi-generator-cli", "generate", "-g", "python", *where)
    finishes_a_session("openapi_generator.py", tmp_path, service)
