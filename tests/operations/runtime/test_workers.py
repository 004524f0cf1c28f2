"""A child process keeps to its bounds, whatever it does, and its parent says which one it met."""

import ast
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import celeus
from celeus.errors import InvalidValue
from celeus.operations.runtime import workers
from celeus.operations.runtime.gathering import gather
from celeus.operations.runtime.workers import Bounds, Frame, WorkerFailed, answers
from celeus.subprocesses import environment

HEAD = """
import gc, os, resource, sys, time
import numpy as np
from celeus.subprocesses import environment
from celeus.errors import InvalidValue
from celeus.operations.runtime.workers import Frame, serve
"""
Child = Callable[..., str]

BOUNDS = Bounds(seconds=60.0, processor_seconds=30.0, memory=1 << 30)


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Child:
    """Makes a module of the body of ``work(job, files)``."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def module(*body: str) -> str:
        lines = [HEAD, "def work(job, files):", *(f"    {line}" for line in body), "serve(work)"]
        (tmp_path / "some_worker.py").write_text("\n".join(lines), encoding="utf-8")
        return "some_worker"

    return module


def failure_of(module: str, bounds: Bounds = BOUNDS) -> WorkerFailed:
    with pytest.raises(WorkerFailed) as caught:
        list(answers(module, Frame({}), bounds))
    return caught.value


def test_values_and_arrays_come_back_as_they_went(child: Child, tmp_path: Path) -> None:
    module = child("yield job", "yield Frame({'text': files[0].read().decode()})")
    values = {"number": 0.1 + 0.2, "none": None, "many": [1, {"a": "ü"}], "endless": float("inf")}
    arrays = {
        "matrix": np.arange(6.0).reshape(2, 3).T,
        "none": np.empty(0),
        "codes": np.array([3, -1], dtype=np.int32),
    }
    (tmp_path / "file").write_text("what it reads", encoding="utf-8")
    with (tmp_path / "file").open("rb") as file:
        first, second = answers(module, Frame(values, arrays), BOUNDS, [file])
    assert first.values == values
    assert {name: array.tolist() for name, array in first.arrays.items()} == {
        name: array.tolist() for name, array in arrays.items()
    }
    assert second.values == {"text": "what it reads"}


def test_the_kernel_ends_what_swallows_every_exception(child: Child) -> None:
    """A limit that is an exception is lost in a callback of the garbage collector."""
    module = child(
        "def endless(phase, info):",
        "    while True:",
        "        try:",
        "            sum(range(1000))",
        "        except BaseException:",
        "            pass",
        "gc.callbacks.append(endless)",
        "gc.collect()",
        "yield job",
    )
    failure = failure_of(module, Bounds(seconds=60.0, processor_seconds=0.5))
    assert (failure.reason, failure.status) == ("processor time", -signal.SIGXCPU)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("np.ones(1 << 28).sum()", "memory"),
        ("os.kill(os.getpid(), 9)", "memory"),
        ("raise SystemExit(1)", "status"),
        ("raise RuntimeError", "status"),
    ],
)
def test_the_reason_of_an_end_is_named(child: Child, line: str, reason: str) -> None:
    assert failure_of(child(line, "yield job")).reason == reason


@pytest.mark.parametrize("line", ["atexit.register(os.abort)", "atexit.register(os._exit, 1)"])
def test_how_libraries_end_does_not_matter_once_all_is_answered(child: Child, line: str) -> None:
    """Their threads may abort a process that ends while they begin."""
    module = child("import atexit", line, "yield job")
    assert len(list(answers(module, Frame({}), BOUNDS))) == 1


def test_too_long_by_the_clock_keeps_what_came_before(child: Child) -> None:
    module = child("yield Frame({'at': 1})", "time.sleep(1000)")
    bounds = Bounds(seconds=8.0, processor_seconds=30.0)
    frames, failure = asyncio.run(gather(module, lambda: Frame({}), bounds))
    assert [frame.values for frame in frames] == [{"at": 1}]
    assert failure is not None
    assert failure.reason == "time"


@pytest.mark.parametrize(("frame", "answer"), [(500, 1 << 20), (1 << 20, 2000)])
def test_frames_are_bounded_one_by_one_and_together(child: Child, frame: int, answer: int) -> None:
    """Three small ones are within both bounds; two larger ones are beyond one of them."""
    bounds = Bounds(60.0, 30.0, frame=frame, answer=answer)
    module = child("for _ in range(3): yield Frame({'text': 'x' * 400})")
    assert len(list(answers(module, Frame({}), bounds))) == 3
    module = child("for _ in range(2): yield Frame({'text': 'x' * 1100})")
    assert failure_of(module, bounds).reason == "answer"


def test_a_refusal_is_raised_here(child: Child) -> None:
    module = child("raise InvalidValue('No.', field='f', rule='r', value=[1])", "yield job")
    with pytest.raises(InvalidValue) as caught:
        list(answers(module, Frame({}), BOUNDS))
    refusal = caught.value
    assert (refusal.detail, refusal.field, refusal.rule, refusal.value) == ("No.", "f", "r", [1])


def test_a_child_has_neither_secrets_nor_a_folder_of_the_parents(
    child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELEUS_DATABASE_URL", "postgresql://user:secret@host/name")
    module = child(
        "print('no answer')", "yield Frame({'env': dict(os.environ), 'at': os.getcwd()})"
    )
    [frame] = answers(module, Frame({}), BOUNDS)
    assert "secret" not in json.dumps(frame.values)
    assert frame.values["at"] == "/"


def test_a_child_comes_after_judges_who_wait(child: Child) -> None:
    """Also where the kernel gives every session of processes the same share."""
    [frame] = answers(
        child(
            "group = open('/proc/self/autogroup').read()",
            "yield Frame({'at': [os.nice(0), group]})",
        ),
        Frame({}),
        BOUNDS,
    )
    niceness, group = frame.values["at"]
    assert niceness == min(19, os.nice(0) + workers.NICENESS)
    assert group.endswith(f" nice {workers.NICENESS}\n")


async def test_a_child_ends_with_a_caller_who_is_cancelled(child: Child, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    module = child(
        f"open({str(note)!r}, 'w').write(str(os.getpid()))", "time.sleep(1000)", "yield job"
    )
    task = asyncio.create_task(gather(module, lambda: Frame({}), BOUNDS))
    while not (note.exists() and note.read_text()):  # noqa: ASYNC110 - another process writes it
        await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(30):
        while alive(int(note.read_text())):  # noqa: ASYNC110 - the kernel ends it
            await asyncio.sleep(0.05)


def test_a_child_ends_with_its_reader(child: Child) -> None:
    module = child("while True: yield Frame({'pid': os.getpid()})")
    frames = answers(module, Frame({}), BOUNDS)
    pid = next(frames).values["pid"]
    assert alive(pid)
    frames.close()
    assert not alive(pid)


def test_no_module_can_read_a_pickle() -> None:
    root = Path(celeus.__file__).parent
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            stems = {name.partition(".")[0] for name in names}
            assert not stems & {"pickle", "marshal", "shelve", "dill"}, path


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with suppress(FileNotFoundError):
        # Ended, and nobody has looked at its status yet
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


def test_what_a_child_has_started_ends_with_its_time(child: Child, tmp_path: Path) -> None:
    """A process that outlives the child holds its output, and must not hold the reader."""
    note = tmp_path / "pid"
    module = child(
        "pid = os.fork()",
        "if pid == 0: time.sleep(1000)",
        f"open({str(note)!r}, 'w').write(str(pid))",
        "os._exit(0)",
        "yield job",
    )
    list(answers(module, Frame({}), Bounds(seconds=5.0, processor_seconds=30.0)))
    deadline = time.monotonic() + 30.0
    while alive(int(note.read_text())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(int(note.read_text()))


def test_a_child_ends_with_a_parent_that_is_killed(child: Child, tmp_path: Path) -> None:
    note = tmp_path / "note"
    module = child(
        f"open({str(note)!r}, 'w').write(str(os.getpid()))",
        "time.sleep(1000)",
        "yield job",
    )
    code = f"""
from celeus.operations.runtime.workers import Bounds, Frame, answers
list(answers({module!r}, Frame({{}}), Bounds(seconds=900.0, processor_seconds=30.0)))
"""
    with subprocess.Popen([sys.executable, "-c", code]) as parent:
        deadline = time.monotonic() + 60.0
        while not (note.exists() and note.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        parent.kill()
    while alive(int(note.read_text())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(int(note.read_text()))


def test_a_lower_limit_of_the_parent_stands(child: Child) -> None:
    """Nobody but root may raise it: a child that tried would end with an error of ours."""
    limits = "[resource.getrlimit(what) for what in (resource.RLIMIT_AS, resource.RLIMIT_CPU)]"
    module = child(f"yield Frame({{'limits': {limits}}})")
    code = f"""
import json, resource
from celeus.operations.runtime.workers import Bounds, Frame, answers
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
bounds = Bounds(seconds=60.0, processor_seconds=30.0, memory=64 << 30)
print(json.dumps(next(answers({module!r}, Frame({{}}), bounds)).values["limits"]))
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert json.loads(out) == [[8 << 30, 8 << 30], [20, 20]]


def test_a_child_finds_the_package_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the parent found it in its working folder: the child has another."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert environment()["PYTHONPATH"] == str(Path(celeus.__file__).parents[1])


async def test_a_caller_who_leaves_at_once_leaves_no_child(child: Child) -> None:
    module = child("time.sleep(1000)", "yield job")
    before = children()
    task = asyncio.create_task(gather(module, lambda: Frame({}), BOUNDS))
    await asyncio.sleep(0)
    assert children() - before
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(30):
        while children() - before:  # noqa: ASYNC110 - a thread ends it
            await asyncio.sleep(0.05)


def test_a_loop_that_ends_at_once_leaves_no_child(child: Child) -> None:
    """Not even one whose status nobody looks at: each thread of reading ends it first."""
    module = child("time.sleep(1000)", "yield job")
    before = children()

    async def leave() -> asyncio.Task[object]:
        task = asyncio.create_task(gather(module, lambda: Frame({}), BOUNDS))
        await asyncio.sleep(0)
        assert children() - before
        return task

    assert asyncio.run(leave()).cancelled()
    deadline = time.monotonic() + 30.0
    while children() - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not children() - before


def children() -> set[int]:
    """Process ids of this process's children, also of those that have ended unseen."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        # A thread may end meanwhile; its children are then another's
        with suppress(FileNotFoundError, ProcessLookupError):
            found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


def test_what_a_child_logs_is_bounded(child: Child, capfd: pytest.CaptureFixture[str]) -> None:
    module = child(
        "sys.stderr.write('the beginning')",
        "for _ in range(300): sys.stderr.write('x' * 10_000)",
        "yield job",
    )
    assert len(list(answers(module, Frame({}), BOUNDS))) == 1
    logged = ""
    while len(logged) < workers.MOST_LOGGED_BYTES:
        logged += capfd.readouterr().err
    assert logged.startswith("the beginning")
    assert len(logged) == workers.MOST_LOGGED_BYTES
