"""A judge without a name has the same one again after a restart, and shares it with nobody."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from celeus.client.worker_names import WorkerName

HOLD = """
from celeus.client.worker_names import WorkerName
name = WorkerName()
print(name.text, flush=True)
input()
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own for names."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_two_judges_at_once_have_two_names() -> None:
    one, two = WorkerName(), WorkerName()
    assert one.text != two.text
    first = one.text
    del one
    assert WorkerName().text == first


def test_a_killed_program_started_again_has_its_name_again() -> None:
    def started() -> tuple[subprocess.Popen[str], str]:
        program = subprocess.Popen(
            [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert program.stdout is not None
        return program, program.stdout.readline().strip()

    other = WorkerName()
    names = []
    for _ in range(2):
        program, name = started()
        os.kill(program.pid, signal.SIGKILL)
        program.communicate()
        names.append(name)
    assert names[0] == names[1] != other.text


def test_a_file_that_holds_something_else_gets_a_name(cache: Path) -> None:
    folder = cache / "celeus" / "workers"
    folder.mkdir(parents=True)
    (folder / "1").write_bytes(b"\xff\x00 no name")
    name = WorkerName()
    assert name.text.startswith("py-")
    assert (folder / "1").read_text() == name.text


def test_without_a_folder_a_name_is_made_up(cache: Path) -> None:
    (cache / "celeus").write_text("a file in its place")
    assert WorkerName().text != WorkerName().text
