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


WRONG = (("lost", "lost: draw"), ("pool_id", "pool:"), ("low", ".low"))
"""Words of the compiler's complaints, and the misspelt members that they are about."""


def run(folder: Path, *command: str | Path) -> str:
    """What a program prints; it has to end well."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def misspelt(text: str) -> str:
    """The program with members that the contract does not have."""
    right = ("loss: draw", "pool_id:", ".lower")
    for member, (_, wrong) in zip(right, WRONG, strict=True):
        assert member in text
        text = text.replace(member, wrong)
    return text


def test_a_program_of_the_contract_s_types_finishes_a_session_and_a_misspelt_one_is_none(
    service: Service, tmp_path: Path
) -> None:
    """One run of the compiler, which takes seconds, sees both."""
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": SETTINGS}))
    shutil.copy(PROGRAM, tmp_path)
    (tmp_path / "misspelt.ts").write_text(misspelt(PROGRAM.read_text()))
    contract = ROOT / "openapi" / "openapi.json"
    # What has a default may be left out of a request
    options = ("--default-non-nullable=false", "--output", "api.d.ts")
    run(tmp_path, TOOLS / "openapi-typescript", contract, *options)
    command = [str(TOOLS / "tsc")]
    compiled = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert compiled.returncode != 0
    output = compiled.stdout
    assert {line.partition("(")[0] for line in output.splitlines() if line[0] != " "} == {
        "misspelt.ts"
    }
    assert [word for word, _ in WRONG if f"'{word}'" not in output] == []
    output = run(tmp_path, "node", "session.js", service.url, ADMIN, str(LABELS))
    state, labels, lower, upper = output.split()
    assert (state, int(labels)) == ("budget_spent", LABELS)
    assert 0 <= float(lower) < float(upper) <= 1
