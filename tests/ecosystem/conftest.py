"""Tests against the real tools run where these are installed: `make ecosystem`."""

from importlib.util import find_spec

import pytest

INSTALLED = all(find_spec(name) for name in ("inspect_ai", "lm_eval", "openai"))

collect_ignore_glob = [] if INSTALLED else ["test_*.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which tests are not here."""
    if not INSTALLED:
        terminalreporter.write_line("the tests against the tools themselves: make ecosystem")
