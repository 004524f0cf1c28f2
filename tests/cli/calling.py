"""Call `celeus` in this process, as the console script does."""

import sys
from dataclasses import dataclass

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
    monkeypatch.setattr(sys, "argv", ["celeus", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    status = ended.value.code
    assert isinstance(status, int)
    captured = capsys.readouterr()
    return Answer(status, captured.out, captured.err)
