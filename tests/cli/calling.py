"""Call `celeus` in this process, as the console script does."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from celeus import cli


@dataclass(frozen=True)
class Answer:
    """What a command left behind."""

    status: int
    out: str
    err: str


def celeus(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> Answer:
    return called(cli.main, monkeypatch, capsys, *arguments)


def called(
    main: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *arguments: object,
) -> Answer:
    """What a program of this process leaves behind when it is called with these arguments."""
    monkeypatch.setattr(sys, "argv", ["celeus", *map(str, arguments)])
    # What a command sets for its children is not for the tests after it
    with patch.dict(os.environ), pytest.raises(SystemExit) as ended:
        main()
    status = ended.value.code
    assert isinstance(status, int)
    captured = capsys.readouterr()
    return Answer(status, captured.out, captured.err)


Run = Callable[..., Answer]
"""Calls `celeus` with these arguments."""


def saved(
    path: Path, arrays: dict[str, Any], without: tuple[str, ...] = (), **other: object
) -> Path:
    """A file of these arrays for `celeus dev simulate`, some left out and others in their place."""
    kept = {name: array for name, array in arrays.items() if name not in without}
    np.savez(path, **(kept | other))
    return path


def simulated(run: Run, file: Path, *options: object) -> dict[str, Any]:
    """The report of `celeus dev simulate` on a file."""
    answer = run("dev", "simulate", file, *options, "--json")
    assert (answer.status, answer.err) == (0, "")
    report: dict[str, Any] = json.loads(answer.out)
    return report
