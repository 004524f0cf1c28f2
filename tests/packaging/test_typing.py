"""The annotations of the package are those that a user's type checker sees."""

import subprocess
import sys
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.wheels import CHECKOUT, built

RIGHT = """import celeus

items = celeus.read_items("items.csv", mapping={"Frage": "question"})
id: str = items[0]["id"]
"""
WRONG = """import celeus

celeus.read_items("items.csv", mapping=3)
"""


def test_the_wheel_says_that_it_is_typed() -> None:
    builder = WheelBuilder(str(CHECKOUT))
    files = {file.distribution_path for file in builder.recurse_included_files()}
    assert {"celeus/__init__.py", "celeus/py.typed"} <= files


@pytest.mark.nightly
def test_a_users_file_is_checked_against_the_installed_wheel(tmp_path: Path) -> None:
    """An installed package without the mark has no types: everything of it would be Any."""
    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    python = str(place / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, str(built(tmp_path / "wheel"))], check=True)
    for name, text in (("right.py", RIGHT), ("wrong.py", WRONG)):
        (tmp_path / name).write_text(text)
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", python]
    found = subprocess.run(
        [*mypy, "right.py", "wrong.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert [line.partition(":")[0] for line in found.stdout.splitlines()[:-1]] == ["wrong.py"]
    assert "[arg-type]" in found.stdout
