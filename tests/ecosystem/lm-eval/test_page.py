"""What the guide to live runs tells to type works as it stands, with a made-up model."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks
from tests.ecosystem.lm_eval_runs import write_tasks
from tests.ecosystem.service import Service

pytestmark = pytest.mark.ecosystem
PAGE = ROOT / "docs" / "lm-eval.md"
PROGRAM = """#!{python}
import os, sys
sys.path[:0] = {paths}
import tests.ecosystem.hashlm
from celeus.cli import main
if sys.argv[1] == "run":
    sys.argv += ["--include_path", {tasks!r}]
main()
"""
NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?|ses_…|ses_[0-9a-f]+")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where `celeus` is installed, with a task and logs of two other models."""
    tasks, programs = tmp_path / "tasks", tmp_path / "bin"
    for one in (tasks, programs):
        one.mkdir()
    write_tasks(tasks, 400)
    task = (tasks / "toy_mc.yaml").read_text().replace("toy_mc", "toy_astronomy")
    (tasks / "toy_astronomy.yaml").write_text(task)
    program = programs / "celeus"
    paths = [str(ROOT / "app"), str(ROOT)]
    program.write_text(PROGRAM.format(python=sys.executable, paths=paths, tasks=str(tasks)))
    program.chmod(0o755)
    script = PROGRAM.format(python=sys.executable, paths=paths, tasks=str(tasks))
    script = script.replace(
        "celeus.cli import main", "lm_eval.__main__ import cli_evaluate as main"
    )
    for name in ("small", "large"):
        words = ["run", "--model", "hashlm", "--model_args", f"pretrained=org/{name}"]
        words += ["--tasks", "toy_astronomy", "--num_fewshot", "3", "--log_samples"]
        command = [sys.executable, "-c", script, *words, "--output_path", str(tmp_path / "logs")]
        subprocess.run(command, check=True, capture_output=True)
    return tmp_path


def typed(folder: Path, script: str, service: Service) -> str:
    path = f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", script],  # noqa: S607 -- the shell of the page
        cwd=folder,
        env=os.environ | service.environment | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_commands_run_and_print_what_is_shown(folder: Path, service: Service) -> None:
    commands = [block.text for block in blocks(PAGE, "sh")]
    *scripts, last = [text for text in commands if "celeus run lm-eval " in text]
    (program,) = blocks(PAGE, "python")
    places = {"mmlu_astronomy": "toy_astronomy", "--model hf": "--model hashlm"}

    def filled(script: str) -> str:
        for shown, real in places.items():
            assert shown in script
            script = script.replace(shown, real)
        return script

    said = typed(folder, "\n".join(map(filled, scripts)), service)
    lines = {NUMBER.sub("0", line) for line in said.splitlines()}
    [printed] = blocks(PAGE, "text")
    shown = printed.text.splitlines()
    assert len(shown) == 4
    assert said.startswith(shown[0]), "what it is about comes first"
    for line in shown:
        assert NUMBER.sub("0", line.replace("mmlu_", "toy_")) in lines
    assert "surrogate: the mean loss of org/large, org/small" in said
    opened = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(ROOT / 'app')!r})\n{program.text}",
        ],
        cwd=folder,
        env=os.environ | service.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    session = opened.stdout.strip()
    said = typed(folder, filled(last).replace("ses_…", session), service)
    assert session in said
    assert "target_reached" in said
    names = {
        re.sub(r"_[0-9a-fT.-]{16,}(?=[.]json)", "_…", path.name)
        for path in folder.rglob("results/**/*")
    }
    listed = re.findall(r"`(?:org__new/)?([a-z_]+_…[a-z.]+)`", PAGE.read_text())
    assert len(listed) == 5
    assert {name.replace("mmlu", "toy") for name in listed} <= names
