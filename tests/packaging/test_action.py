"""`action.yml`, its steps run in bash with the environment that GitHub would give them."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from httpx import AsyncClient

from celeus import Client
from tests.factories import known_pool, labelled, opened
from tests.keys import ADMIN, bearer
from tests.servers import Service
from tests.wheels import CHECKOUT

pytestmark = pytest.mark.nightly

ACTION: dict[str, Any] = yaml.safe_load((CHECKOUT / "action.yml").read_text())
EXPRESSION = re.compile(r"\$\{\{\s*([\w.-]+)\s*\}\}")
BASH = shutil.which("bash") or "/bin/bash"
HOSTILE = "\"; touch owned; echo $(touch owned) `touch owned` ${{ secrets.X }} '\n::error::owned"


@dataclass(frozen=True)
class Ended:
    """What the steps left behind."""

    status: int
    log: str
    outputs: dict[str, str]
    summary: str


@dataclass(frozen=True)
class Runner:
    """A folder in which the action's steps run, one after the other until one fails."""

    folder: Path

    def run(self, inputs: dict[str, str], steps: slice = slice(None)) -> Ended:
        known = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
        known |= inputs
        output, summary = self.folder / "output", self.folder / "summary.md"
        for file in (output, summary):
            file.write_text("")
        log, status = "", 0
        for step in ACTION["runs"]["steps"][steps]:
            script = self.folder / "step.sh"
            script.write_text(step["run"])
            ended = subprocess.run(
                [BASH, "--noprofile", "--norc", "-eo", "pipefail", str(script)],
                cwd=self.folder,
                env={
                    **{name: os.environ[name] for name in os.environ if name.startswith("PIP_")},
                    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                    "HOME": str(self.folder),
                    "RUNNER_TEMP": str(self.folder),
                    "GITHUB_OUTPUT": str(output),
                    "GITHUB_STEP_SUMMARY": str(summary),
                    **{name: value_of(it, known) for name, it in step["env"].items()},
                },
                capture_output=True,
                text=True,
                check=False,
            )
            log += ended.stdout + ended.stderr
            status = ended.returncode
            if status:
                break
        return Ended(status, log, told(output.read_text()), summary.read_text())


def value_of(expression: str, inputs: dict[str, str]) -> str:
    """The value of a member of `env`: GitHub puts values in place of expressions, once."""
    known = {f"inputs.{name}": value for name, value in inputs.items()}
    known["github.action_path"] = str(CHECKOUT)
    return EXPRESSION.sub(lambda found: known[found[1]], expression)


def told(written: str) -> dict[str, str]:
    """Outputs of the step, by the names that the action passes on."""
    found = re.findall(r"^(\w+)<<(\w+)\n(.*?)\n\2\n", written, re.MULTILINE | re.DOTALL)
    values = {name: value for name, _, value in found}
    passed = {}
    for name, one in ACTION["outputs"].items():
        (expression,) = EXPRESSION.findall(one["value"])
        step, source = re.fullmatch(r"steps\.(\w+)\.outputs\.(\w+)", expression).groups()  # type: ignore[union-attr]
        assert step == "gate"
        passed[name] = values.get(source, "")
    return passed


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """One on which the command is installed already."""
    place = tmp_path / "celeus" / "bin"
    place.mkdir(parents=True)
    (place / "celeus").symlink_to(Path(sys.executable).parent / "celeus")
    return Runner(tmp_path)


@pytest.fixture
def asked(service: Service) -> dict[str, str]:
    """Inputs that name a session without questions, about half judged."""

    async def made() -> str:
        async with AsyncClient(base_url=service.url, headers=bearer(), timeout=30) as client:
            pool = await known_pool(client, 200)
            session = await opened(client, pool)
            await labelled(client, session, pool, 80)
            return session

    return {"session": asyncio.run(made()), "url": service.url, "key": ADMIN}


def test_no_script_holds_an_expression() -> None:
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert set(step) <= {"name", "id", "shell", "env", "run"}
    used = EXPRESSION.findall(str([step["env"] for step in ACTION["runs"]["steps"]]))
    assert set(used) == {"github.action_path", *(f"inputs.{name}" for name in ACTION["inputs"])}


def test_it_installs_the_command_and_asks(
    tmp_path: Path, asked: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = tmp_path / "versions.txt"
    lock = (CHECKOUT / "requirements" / "requirements.lock").read_text()
    versions.write_text("\n".join(re.findall(r"^[\w.-]+==[\w.]+", lock, re.MULTILINE)))
    monkeypatch.setenv("PIP_CONSTRAINT", str(versions))
    ended = Runner(tmp_path).run(asked | {"at-most": "0.9"})
    assert ended.status == 0, ended.log
    assert "::notice title=Celeus gate%3A yes::" in ended.log
    assert ended.outputs["answer"] == "yes"
    assert float(ended.outputs["lower"]) < float(ended.outputs["estimate"]) < 0.9
    assert ended.outputs["state"] == "active"
    assert ended.summary.startswith("### Celeus gate: yes\n")
    own = [str(tmp_path / "celeus/bin/python"), "-m", "pip", "list", "--format=freeze"]
    listed = subprocess.run(own, check=True, capture_output=True, text=True).stdout
    assert "celeus==" in listed
    assert "fastapi" not in listed


def test_the_answer_is_the_status_of_the_step(runner: Runner, asked: dict[str, str]) -> None:
    with Client(asked["url"], ADMIN) as client:
        # Within its interval, whatever was drawn
        estimate = str(client.session(asked["session"]).status().estimate)
    for inputs, status, answer in (
        ({"at-most": "0.1"}, 2, "no"),
        ({"at-least": estimate}, 3, "undecided"),
        ({"at-least": estimate, "undecided": "pass"}, 0, "undecided"),
        ({"at-most": "0.1", "undecided": "pass"}, 2, "no"),
        ({}, 1, ""),
        ({"undecided": "pass"}, 1, ""),
        ({"undecided": "neutral"}, 1, ""),
        ({"compare": "b"}, 1, ""),
        ({"metric": "x", "group": "a=b"}, 1, ""),
        ({"margin": "0.1"}, 1, ""),
        ({"score-at-least": "0.5", "score-at-most": "0.5"}, 1, ""),
    ):
        ended = runner.run(asked | inputs, slice(1, None))
        assert (ended.status, ended.outputs["answer"]) == (status, answer), ended.log
        assert len(re.findall("^::", ended.log, re.MULTILINE)) == 1
        assert ADMIN not in ended.log + ended.summary + str(ended.outputs)


@pytest.mark.parametrize("name", sorted(ACTION["inputs"]))
def test_no_input_is_run_or_taken_for_another_option(runner: Runner, name: str) -> None:
    inputs = {"session": "ses_1", "url": "http://127.0.0.1:1", "key": ADMIN, "undecided": "pass"}
    steps = slice(0, 1) if name == "version" else slice(1, None)
    for value in (HOSTILE, "--help", "0.1 --help"):
        ended = runner.run(inputs | {name: value}, steps)
        assert ended.status != 0, ended.log
        assert [line for line in ended.log.splitlines() if line.startswith("::error::owned")] == []
    assert not list(runner.folder.rglob("owned"))
