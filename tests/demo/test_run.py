"""The demo from beginning to end, with the real server, as a person starts it."""

import io
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from celeus.core.plans.policies import DEFAULT_POLICY
from celeus.demo.digits import digits
from celeus.demo.run import FIGURE_NAME, Options, Summary, run_demo
from celeus.demo.screen import count
from tests.servers import data_folder

pytestmark = pytest.mark.timeout(300)
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def scratch() -> Iterator[Path]:
    """An empty folder for everything temporary, which the database's user may pass."""
    with data_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def printed() -> io.StringIO:
    return io.StringIO()


@pytest.fixture(scope="module")
def temporary() -> Iterator[Path]:
    """The folder for everything temporary while the demo runs."""
    with data_folder() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(tempfile, "tempdir", str(folder))
        patched.setenv("TMPDIR", str(folder))
        yield folder


@pytest.fixture(scope="module")
def summary(
    printed: io.StringIO, temporary: Path, tmp_path_factory: pytest.TempPathFactory
) -> Summary:
    assert temporary.is_dir()
    out = tmp_path_factory.mktemp("demo") / "made by the demo"
    return run_demo(Options(out=out), Console(file=printed, width=100))


def test_the_summary_is_true(summary: Summary) -> None:
    """The session's seed is secret, so that its interval may miss, in 1 of 20 runs at most.

    The estimate has a standard deviation of 0.011 here.
    """
    material = digits(0)
    wrong = [
        max(range(10), key=item["target_probs"].__getitem__) != material.labels[item["id"]]
        for item in material.items
    ]
    certified = summary.certified
    assert summary.items == len(wrong) == 1737
    assert summary.risk == pytest.approx(sum(wrong) / len(wrong))
    assert certified.policy == DEFAULT_POLICY == "sharp"
    assert certified.lower <= certified.estimate <= certified.upper
    assert certified.upper - certified.lower <= 0.05
    assert certified.estimate == pytest.approx(summary.risk, abs=0.07)


def test_it_stands_beside_two_other_policies(summary: Summary) -> None:
    """Their seeds are fixed, and with them what they find."""
    assert [policy.policy for policy in summary.compared] == ["celeus", "evalue"]
    for policy in summary.compared:
        assert policy.always_held(summary.risk)
        assert policy.upper - policy.lower <= 0.05
        assert policy.labels == policy.sufficed == len(policy.course) == policy.course[-1].round
        assert policy.course[-1].sequence == 2 * policy.labels, "a draw and a judgement a round"


def test_a_session_needs_fewer_labels_than_either(summary: Summary) -> None:
    celeus, evalue = summary.compared
    assert summary.certified.labels < celeus.labels < evalue.labels < summary.items
    assert summary.certified.sufficed <= summary.certified.labels
    assert len(summary.certified.course) == summary.certified.labels


def test_the_picture_is_a_png(summary: Summary) -> None:
    assert summary.figure.name == FIGURE_NAME
    assert summary.figure.read_bytes().startswith(PNG)


def test_the_story_tells_the_figures(summary: Summary, printed: io.StringIO) -> None:
    text = " ".join(printed.getvalue().split())
    assert re.search(r"\b1\d\d of 1 737 labels: \d+\.\d % to \d+\.\d %", text)
    assert f"labels used {summary.certified.labels} of 1 737" in text
    assert f"true error rate {100 * summary.risk:.1f} %" in text
    for policy in summary.compared:
        assert f"policy {policy.policy} {count(policy.labels)} labels" in text
    held = summary.certified.always_held(summary.risk)
    assert ("It lay inside all" in text) == held
    assert ("It left the interval on the way" in text) == (not held)
    assert summary.figure.name in text


def test_nothing_is_left_but_the_picture(summary: Summary, temporary: Path) -> None:
    assert [path.name for path in summary.figure.parent.iterdir()] == [FIGURE_NAME]
    assert list(temporary.iterdir()) == []


@pytest.mark.nightly
def test_an_interrupt_ends_the_server_and_leaves_nothing(scratch: Path, tmp_path: Path) -> None:
    demo = _started(scratch, tmp_path)
    assert demo.stdout is not None
    for line in demo.stdout:
        if "labels:" in line:
            break
    [folder] = scratch.glob("celeus-demo-*")
    pids = [
        int((folder / name).read_text().split()[0])
        for name in ("serve.lock", "postgres/postmaster.pid")
    ]
    demo.send_signal(signal.SIGINT)
    _, errors = demo.communicate(timeout=240)
    assert demo.returncode != 0
    assert "Traceback" not in errors
    assert list(scratch.iterdir()) == []
    assert not any(_alive(pid) for pid in pids)


@pytest.mark.nightly
def test_a_refusal_is_told_and_leaves_nothing(scratch: Path, tmp_path: Path) -> None:
    demo = _started(scratch, tmp_path, "--precision", "2")
    _, errors = demo.communicate(timeout=240)
    assert demo.returncode == 1
    assert "precision must be above 0" in errors
    assert "Traceback" not in errors
    assert list(scratch.iterdir()) == []


def _started(scratch: Path, here: Path, *options: str) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    environment = os.environ | {"TMPDIR": str(scratch), "PYTHONPATH": str(root)}
    return subprocess.Popen(
        [sys.executable, "-m", "celeus.cli", "demo", *options],
        cwd=here,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
