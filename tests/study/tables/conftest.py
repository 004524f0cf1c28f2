"""The paper's tables are tried at night: nothing that users have rests on them."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the tests of this folder to the night."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("nightly")
