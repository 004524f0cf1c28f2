"""A TypeScript program written against the contract finishes a session at a real service."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.keys import ADMIN
from tests.servers import Service

TOOLS = ROOT / "app" / "celeus" / "web" / "node_modules" / ".bin"
PROGRAM = Path(__file__).parent / "generated" / "session.ts"
LABELS = 10
SETTINGS = {
    "strict": True,
    "noUncheckedIndexedAccess": True,
    "types": [],
    "target": "ES2023",
    "lib": ["ES2023", "DOM"],
    "module": "ESNext",
    "moduleResolution": "Bundler",
}

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not (TOOLS / "openapi-typescript").exists(),
    reason="Node or its packages are missing: make lint-js",
)


def run(folder: Path, *command: str | Path) -> str:
    """What a program prints; it has to end well."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project of the program and the types of the contract."""
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": SETTINGS}))
    shutil.copy(PROGRAM, tmp_path)
    contract = ROOT / "openapi" / "openapi.json"
    # What has a default may be left out of a request
    options = ("--default-non-nullable=false", "--output", "api.d.ts")
    run(tmp_path, TOOLS / "openapi-typescript", contract, *options)
    return tmp_path


def test_a_program_of_the_contract_s_types_finishes_a_session(
    service: Service, folder: Path
) -> None:
    run(folder, TOOLS / "tsc")
    told = run(folder, "node", "session.js", service.url, ADMIN, str(LABELS))
    state, labels, lower, upper = told.split()
    assert (state, int(labels)) == ("budget_spent", LABELS)
    assert 0 <= float(lower) < float(upper) <= 1


def test_misspelt_members_are_no_program(folder: Path) -> None:
    text = (folder / PROGRAM.name).read_text()
    for right, wrong in (("loss: draw", "lost: draw"), ("pool_id:", "pool:"), (".lower", ".low")):
        assert right in text
        text = text.replace(right, wrong)
    (folder / PROGRAM.name).write_text(text)
    command = [str(TOOLS / "tsc"), "--noEmit"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert [word for word in ("lost", "pool_id", "low") if f"'{word}'" not in done.stdout] == []
