"""The page on gates: its commands, workflows and tests run as they stand."""

import asyncio
import json
import re
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml  # type: ignore[import-untyped]
from httpx import AsyncClient

from tests.docs.pages import ROOT, blocks
from tests.docs.test_howtos import filled, in_bash
from tests.factories import KnownPool, labelled
from tests.keys import ADMIN, bearer
from tests.packaging.test_action import ACTION
from tests.servers import Service

PAGE = ROOT / "docs" / "gate.md"
ID = re.compile(r"^ses_[0-9a-f]{32}$", re.MULTILINE)


def judged(url: str, key: str, session: str) -> None:
    """Every answer right but each fiftieth."""
    losses = [int(number % 50 == 0) for number in range(200)]

    async def judge() -> None:
        async with AsyncClient(base_url=url, headers=bearer(key), timeout=30) as client:
            await labelled(client, session, KnownPool("", losses), 200)

    asyncio.run(judge())


@pytest.mark.timeout(400)
def test_the_commands_and_tests_of_the_page_run(tmp_path: Path, service: Service) -> None:
    rows = [{"id": f"q-{number}", "payload": f"{number} + 1"} for number in range(200)]
    (tmp_path / "pool.jsonl").write_text("\n".join(map(json.dumps, rows)))
    opening, asking, testing = (block.text for block in blocks(PAGE, "sh"))
    (release,) = (block.text for block in blocks(PAGE, "python"))
    gitlab = yaml.safe_load(blocks(PAGE, "yaml")[1].text)["celeus-gate"]
    where = f"export CELEUS_URL={service.url} CELEUS_KEY={ADMIN}\n"
    opened = in_bash(where + opening, tmp_path)
    assert opened.returncode == 0, opened.stderr
    (session,) = ID.findall(opened.stdout)
    judged(service.url, ADMIN, session)
    (tmp_path / "test_release.py").write_text(filled(release, ("ses_…", session)))

    def typed(script: str) -> subprocess.CompletedProcess[str]:
        plugins = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 PYTEST_PLUGINS=celeus.gates.plugin"
        return in_bash(f"{where}export {plugins} CELEUS_SESSION={session}\n{script}", tmp_path)

    asked = typed(filled(asking, ("ses_…", session)))
    assert (asked.returncode, asked.stderr) == (0, "")
    (suite,) = ET.parse(tmp_path / "gate.xml").getroot()  # noqa: S314 -- our own
    assert suite.attrib["tests"] == "1"
    assert (tmp_path / "gate.md").read_text().startswith("### Celeus gate: yes\n")
    install, command = gitlab["script"]
    assert install.startswith("pip install ")
    assert typed(command).returncode == 0
    tested = typed(testing)
    assert "2 passed" in tested.stdout, tested.stdout


def test_the_workflow_uses_the_action_as_it_is() -> None:
    workflow: dict[str, Any] = yaml.safe_load(blocks(PAGE, "yaml")[0].text)
    uses, echoes = workflow["jobs"]["gate"]["steps"]
    required = {name for name, one in ACTION["inputs"].items() if one.get("required")}
    assert required <= set(uses["with"]) <= set(ACTION["inputs"])
    read = re.findall(r"steps\.celeus\.outputs\.(\w+)", str(echoes["env"]))
    assert uses["id"] == "celeus"
    assert set(read) <= set(ACTION["outputs"])
    assert "${{" not in echoes["run"]


def test_every_output_of_the_action_is_one_that_the_command_writes() -> None:
    told = re.findall(r"`(\w+)`", (ROOT / "docs" / "gate.md").read_text().split("outputs ")[1])
    assert set(ACTION["outputs"]) == set(told[: len(ACTION["outputs"])])
