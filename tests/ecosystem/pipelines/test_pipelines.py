"""What pipelines read is as GitHub, GitLab and readers of JUnit have it."""

import os
import subprocess
import sys
from pathlib import Path

import junitparser
import pytest

from tests.docs.pages import ROOT, blocks
from tests.ecosystem.service import PROGRAM, Service

pytestmark = pytest.mark.ecosystem
SESSION = """
import celeus
with celeus.Client() as client:
    pool = client.create_pool("p", [{"id": str(number)} for number in range(50)])
    asked = [{"side": "at_most", "threshold": one} for one in (0.1, 0.9)]
    session = client.open_session(pool, questions=asked, stop_when_decided=False, budget=30)
    for item in session.draws():
        item.observe(1.0)
    print(session.id)
"""


def checked(schema: str, *files: Path) -> None:
    """Refuse files that a schema in check-jsonschema refuses."""
    checker = Path(sys.executable).parent / "check-jsonschema"
    command = [str(checker), "--builtin-schema", f"vendor.{schema}", *map(str, files)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout


def test_the_action_is_one() -> None:
    checked("github-actions", ROOT / "action.yml")


def test_the_workflows_of_the_page_are_such(tmp_path: Path) -> None:
    texts = [block.text for block in blocks(ROOT / "docs" / "gate.md", "yaml")]
    for name, text in zip(("github-workflows", "gitlab-ci"), texts, strict=True):
        file = tmp_path / f"{name}.yml"
        file.write_text(text)
        checked(name, file)


def test_a_reader_of_junit_finds_every_question(service: Service, tmp_path: Path) -> None:
    python, own = PROGRAM.with_name("python"), os.environ | service.environment
    made = subprocess.run([python, "-c", SESSION], env=own, check=True, capture_output=True)
    session, file = made.stdout.decode().strip(), tmp_path / "gate.xml"
    asked = [str(PROGRAM), "gate", session, "--report", str(file)]
    assert subprocess.run(asked, env=own, check=False).returncode == 2
    (suite,) = junitparser.JUnitXml.fromfile(str(file))
    found = {case.name: [one.type for one in case.result] for case in suite}
    assert found["risk at most 0.1"] == ["no"]
    assert set(found) == {"risk at most 0.1", "risk at most 0.9"}
    assert (suite.tests, suite.errors) == (2, 0)
