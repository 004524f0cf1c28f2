"""Linters find nothing in the contract, and clients generated from it finish a session."""

import json
import os
import shutil
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
MODULES = Path(sys.prefix) / "node_modules" / ".bin"
LABELS = 10
UPLOADS = "content_type_overrides:\n  application/x-ndjson: application/octet-stream\n"
"""Of what an upload may be openapi-python-client knows bytes only."""
COMPILER = ["--strict", "--noUncheckedIndexedAccess", "--target", "ES2023", "--module", "NodeNext"]
COMPILER += ["--lib", "ES2023,DOM,DOM.Iterable"]


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
    output = run(
        *(sys.executable, HERE / program, service.url, service.key, str(LABELS)),
        PYTHONPATH=str(package),
    )
    assert_finished(output)


def assert_finished(output: str) -> None:
    """Compare what a program prints at the end of its session."""
    state, labels, lower, upper, valid, kind = output.split()
    assert (state, int(labels)) == ("budget_spent", LABELS)
    assert 0 <= float(lower) < float(upper) <= 1
    assert (valid.lower(), kind) == ("true", "final")


def test_the_contract_is_valid_openapi_3_1() -> None:
    contract = json.loads(CONTRACT.read_text())
    assert contract["openapi"].startswith("3.1.")
    faults = OpenAPIV31SpecValidator(contract).iter_errors()
    assert not [(list(one.absolute_path), one.message) for one in faults]


def test_redocly_finds_nothing_by_its_strictest_rules() -> None:
    lint = (MODULES / "redocly", "lint", "--extends", "recommended-strict", CONTRACT)
    run(*lint, REDOCLY_TELEMETRY="off", REDOCLY_SUPPRESS_UPDATE_NOTICE="true")


def test_spectral_finds_nothing(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text('extends: ["spectral:oas"]\n')
    run(MODULES / "spectral", "lint", "--ruleset", rules, "--fail-severity", "hint", CONTRACT)


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


def test_orval_makes_a_client_without_type_errors(service: Service, tmp_path: Path) -> None:
    output = {"target": "client.ts", "client": "fetch", "baseUrl": service.url}
    config = {"celeus": {"input": str(CONTRACT), "output": output}}
    (tmp_path / "orval.config.cjs").write_text(f"module.exports = {json.dumps(config)};")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    shutil.copy(HERE / "orval.ts", tmp_path)
    run(MODULES / "orval", "--config", tmp_path / "orval.config.cjs")
    run(MODULES / "tsc", *COMPILER, tmp_path / "orval.ts")
    assert_finished(run("node", tmp_path / "orval.js", service.key, str(LABELS)))
