"""A judge without a name has the same one again after a restart, and shares it with nobody."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from celeus.client.worker_names import WorkerName

SESSION = "ses_1"
HOLD = """
from celeus.client.worker_names import WorkerName
name = WorkerName("ses_1")
print(name.text, flush=True)
input()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own for names."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "celeus" / "workers"
    folder.mkdir(parents=True)
    return folder


def test_two_judges_at_once_have_two_names() -> None:
    name, other = WorkerName(SESSION), WorkerName(SESSION)
    assert name.text != other.text
    first = name.text
    del name
    assert WorkerName(SESSION).text == first


def test_sessions_and_hosts_have_names_of_their_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [WorkerName(session).text for session in (SESSION, "ses_2", SESSION)]
    assert names[0] == names[2] != names[1]
    assert [file.name for file in folder.iterdir()] == ["1"]
    assert (folder / "1").read_text() not in names[0]
    host = f"not-{socket.gethostname()}"
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    assert WorkerName(SESSION).text not in names


def test_a_forked_process_has_a_name_of_its_own() -> None:
    name, (reads, writes) = WorkerName(SESSION), os.pipe()
    before = name.text
    child = os.fork()
    if child == 0:
        os.write(writes, name.text.encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as pipe:
        childs = pipe.read()
    os.waitpid(child, 0)
    assert childs.startswith("py-")
    assert childs != before == name.text


def test_a_killed_program_started_again_has_its_name_again() -> None:
    def started() -> tuple[subprocess.Popen[str], str]:
        program = subprocess.Popen(
            [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert program.stdout is not None
        return program, program.stdout.readline().strip()

    other = WorkerName(SESSION)
    names = []
    for _ in range(2):
        program, name = started()
        os.kill(program.pid, signal.SIGKILL)
        program.communicate()
        names.append(name)
    assert names[0] == names[1] != other.text


def test_what_is_no_file_of_names_is_left_as_it_is(folder: Path) -> None:
    theirs = folder / "theirs"
    theirs.write_bytes(b"")
    (folder / "1").symlink_to(theirs)
    os.mkfifo(folder / "2")
    (folder / "3").write_bytes(b"\xff\x00 no name")
    (folder / "4").mkdir()
    name = WorkerName(SESSION)
    assert (theirs.read_bytes(), (folder / "3").read_bytes()) == (b"", b"\xff\x00 no name")
    assert len((folder / "5").read_text()) == 32
    first = name.text
    del name
    assert WorkerName(SESSION).text == first


def test_a_file_of_somebody_else_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "1").touch()
    somebody = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: somebody)
    assert WorkerName(SESSION).text != WorkerName(SESSION).text
    assert (folder / "1").read_bytes() == b""


def test_without_locks_a_name_is_made_up_and_nothing_stays_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none_left(*_: int) -> NoReturn:
        raise OSError("no locks available")

    monkeypatch.setattr(fcntl, "flock", none_left)
    before = len([*Path("/proc/self/fd").iterdir()])
    name, other = WorkerName(SESSION), WorkerName(SESSION)
    assert name.text != other.text
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_without_a_folder_a_name_is_made_up(folder: Path) -> None:
    folder.rmdir()
    folder.write_text("a file in its place")
    assert WorkerName(SESSION).text != WorkerName(SESSION).text
