"""The commands and programs of docs/inspect.md run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks
from tests.ecosystem.inspect_live.installed import CHECKOUT, installed
from tests.ecosystem.inspect_live.runs import logs
from tests.ecosystem.service import Service

pytestmark = pytest.mark.ecosystem
PAGE = ROOT / "docs" / "inspect.md"
PLACES = (
    ("openai/gpt-4.1-mini", "madeup/large"),
    ("openai/gpt-4.1", "madeup/small"),
)


def filled(text: str, *places: tuple[str, str]) -> str:
    """A text of the page with what is real in the place of what it shows."""
    for shown, real in places:
        text = text.replace(shown, real)
    assert "…" not in text.split("#")[0]
    return text


def run(folder: Path, *command: str, **names: str) -> str:
    """What a command prints, in a folder where both are installed."""
    own = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": f"{folder / 'installed' / 'site-packages'}:{CHECKOUT}",
        "INSPECT_DISPLAY": "plain",
    }
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | own | names,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_what_the_page_tells_to_type_runs(service: Service, tmp_path: Path) -> None:
    installed(tmp_path / "installed")
    (tmp_path / "exam.py").symlink_to(Path(__file__).parent / "exam.py")
    alone, served = (block.text for block in blocks(PAGE, "sh"))
    opening, program, comparison = (block.text for block in blocks(PAGE, "python"))
    shown = re.findall(r"^    (\w+) +[\d.]+$", PAGE.read_text(), re.MULTILINE)
    assert shown == ["estimate", "lower", "upper", "labels"]

    said = run(tmp_path, "bash", "-euc", filled(alone, *PLACES))
    printed = re.findall(r"^(\w+) +[\d.]+ *$", said, re.MULTILINE)
    assert [name for name in shown if name not in printed] == []

    (session,) = run(tmp_path, "python", "-c", opening, **service.environment).split()
    there = (("http://127.0.0.1:8000", service.url), ("ce_…", service.key), ("ses_…", session))
    run(tmp_path, "bash", "-euc", filled(served, *PLACES, *there))

    both = opening.partition("with")[0] + filled(program + comparison, *PLACES)
    assert "Verdict(margin=0.1" in run(tmp_path, "python", "-c", both)
    assert [log.status for log in logs(tmp_path)] == ["success"] * 5
