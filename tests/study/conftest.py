"""The studies' command line as a fixture."""

from collections.abc import Callable
from functools import partial

import pytest

from study.__main__ import main
from tests.cli.calling import Answer, called


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Answer]:
    """`run("coverage", "--quick")` and the like."""
    return partial(called, main, monkeypatch, capsys)
