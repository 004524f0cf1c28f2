"""The command line as a fixture."""

from collections.abc import Callable
from functools import partial

import pytest

from tests.cli.calling import Answer, celeus


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Answer]:
    """`run("simulate", path, "--json")` and the like."""
    for name in ("CELEUS_DATABASE_URL", "CELEUS_PORT", "CELEUS_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    return partial(celeus, monkeypatch, capsys)
