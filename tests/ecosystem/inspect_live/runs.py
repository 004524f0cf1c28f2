"""Runs of Inspect, as a program and in the tests' own process."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from inspect_ai import Task
from inspect_ai import eval as run_eval
from inspect_ai.log import EvalLog, read_eval_log

from celeus.client.blocking import Session
from tests.ecosystem.inspect_live.exam import exam
from tests.ecosystem.inspect_live.installed import CHECKOUT, installed

HERE = Path(__file__).parent
SECONDS = 120


def started(folder: Path, *options: str, **environment: str) -> "subprocess.Popen[str]":
    """`inspect eval celeus/certified` with these options, at work in a folder."""
    place = folder / "installed" / "site-packages"
    if not place.exists():
        installed(folder / "installed")
        for name in ("exam.py", "errand.py"):
            (folder / name).symlink_to(HERE / name)
    program = Path(sys.executable).with_name("inspect")
    own = {"PYTHONPATH": f"{place}:{CHECKOUT}", "INSPECT_DISPLAY": "plain", "COLUMNS": "300"}
    return subprocess.Popen(
        [str(program), "eval", "celeus/certified", *options],
        cwd=folder,
        env=os.environ | own | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finished(process: "subprocess.Popen[str]") -> str:
    """What a program said, once it has ended."""
    said, _ = process.communicate(timeout=SECONDS)
    return said


def logs(folder: Path) -> list[EvalLog]:
    """The logs in a folder, in their order."""
    return [read_eval_log(str(path)) for path in sorted(folder.glob("logs/*.eval"))]


def ran(task: Task, model: object, folder: Path, **options: Any) -> EvalLog:  # noqa: ANN401
    """The log of a run in this process."""
    (log,) = run_eval(task, model=model, log_dir=str(folder / "logs"), display="none", **options)
    return log


def metrics(log: EvalLog) -> dict[str, float]:
    """The metrics of its only scorer."""
    assert log.results is not None
    (score,) = [one for one in log.results.scores if one.metrics]
    return {name: one.value for name, one in score.metrics.items()}


def interval(session: Session) -> dict[str, float]:
    """The interval of a session, as that of an accuracy."""
    status = session.status()
    assert status.estimate is not None
    assert status.lower is not None
    assert status.upper is not None
    return {
        "estimate": 1 - status.estimate,
        "lower": 1 - status.upper,
        "upper": 1 - status.lower,
        "labels": status.rounds.in_interval,
    }


def losses(session: Session, names: list[str]) -> dict[str, float | None]:
    """What was judged, by item; an item twice is an error."""
    drawn: dict[int, str] = {}
    told: dict[str, float | None] = {}
    for entry in session.ledger():
        if entry.kind == "draw":
            assert entry.item is not None
            assert entry.round is not None
            drawn[entry.round] = names[entry.item]
        elif entry.kind in {"observation", "unjudgeable"}:
            assert entry.round is not None
            assert drawn[entry.round] not in told
            told[drawn[entry.round]] = entry.loss
    return told


__all__ = ["exam", "finished", "interval", "logs", "losses", "metrics", "ran", "started"]
