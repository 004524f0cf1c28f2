"""Folders of running processes: gone with them, however they end."""

import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from celeus.temp_dirs import scratch_folder

_HOLD = """
import time
from celeus.temp_dirs import scratch_folder
with scratch_folder() as folder:
    (folder / "file").touch()
    print(folder, flush=True)
    time.sleep(600)
"""

_FORK = """
import os
from celeus.temp_dirs import scratch_folder
with scratch_folder() as folder:
    child = os.fork()
    if child == 0:
        raise SystemExit
    os.waitpid(child, 0)
    print(folder.exists())
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system's temporary folder of this test's own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_a_folder_is_its_users_alone_and_goes_with_the_block(tmp_path: Path) -> None:
    with scratch_folder() as folder, scratch_folder() as other:
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "file").touch()
        assert other.exists()
    assert list(tmp_path.iterdir()) == []


def test_the_next_one_clears_what_a_killed_process_has_left_and_nothing_else(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", _HOLD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        theirs = Path(process.stdout.readline().strip())
        (tmp_path / "celeus-run-file").touch()
        (tmp_path / "celeus-run-link").symlink_to(tmp_path / "kept")
        (tmp_path / "kept").mkdir()
        try:
            with scratch_folder():
                assert (theirs / "file").exists(), "its process runs"
        finally:
            process.kill()
    assert theirs.exists()
    with scratch_folder():
        assert not theirs.exists()
    left = {one.name for one in tmp_path.iterdir()}
    assert left == {"celeus-run-file", "celeus-run-link", "kept"}


def test_a_fork_leaves_the_folder_to_its_maker() -> None:
    done = subprocess.run([sys.executable, "-c", _FORK], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_a_folder_for_sockets_is_where_their_paths_are_short_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with scratch_folder() as folder, scratch_folder(sockets=True) as short:
        assert folder.parent == long
        assert folder.stat().st_mode & 0o777 == short.stat().st_mode & 0o777 == 0o700
        sockets = short / "sockets"
        sockets.mkdir()
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(sockets / ".s.PGSQL.5432"))
    assert not short.exists()
