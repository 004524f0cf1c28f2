"""Which tests are fast, told by their folder and kind: nobody marks them by hand.

Fast is what computes in this process and does not repeat itself. Left out are tests that need a
server, properties (Hypothesis tries a hundred examples), enumerations of every draw, and the
folders whose tests simulate sessions and draws by the thousand.
"""

from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test

from tests.nightly import LONGEST_SECONDS

TESTS = Path(__file__).parent
FAST_FOLDERS = frozenset({"core", "golden"})
"""Folders directly below `tests`, whatever lies in them but for:"""
SLOW_PARTS = ("enumeration", "insights", "sampling")
"""Parts of the names of files and folders."""
SERVERS = frozenset({"postgres_url", "shared_redis_url"})
"""Fixtures that start one; whoever needs a server needs these."""


def mark_for_the_night(item: pytest.Item) -> None:
    """Mark a test of a module with counts that are larger at night, and give each longer.

    By a mark and no option, so that it holds however the tests were called.
    """
    if isinstance(item, pytest.Function) and hasattr(item.module, "NIGHTLY"):
        item.add_marker("nightly")
    if item.get_closest_marker("timeout") is None:
        item.add_marker(pytest.mark.timeout(LONGEST_SECONDS))


def is_fast(item: pytest.Item) -> bool:
    """Whether `make check` runs a test."""
    folder, *rest = item.path.relative_to(TESTS).parts
    if folder not in FAST_FOLDERS or any(slow in part for part in rest for slow in SLOW_PARTS):
        return False
    if not isinstance(item, pytest.Function):
        return False
    return SERVERS.isdisjoint(item.fixturenames) and not is_hypothesis_test(item.obj)
