"""What the pages say of settings, problems and each other is what is there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import errors
from app.api.problems import status_of
from app.errors import Refusal
from app.settings import Settings
from tests.docs.pages import README, ROOT, pages, table_after

LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")


def test_the_readme_lists_every_setting_with_its_default() -> None:
    listed = {row[0].strip("`"): row[1].strip("`") for row in table_after(README, "## Settings")}
    real = {
        f"CELEUS_{name.upper()}": "none" if field.default is None else str(field.default)
        for name, field in Settings.model_fields.items()
    }
    assert listed == real


def test_the_interface_page_lists_every_problem_with_its_status() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    begin = page.index("-->", page.index("<!-- problems:")) + len("-->")
    listed = page[begin : page.index("<!-- end of problems -->")].strip()
    assert listed == problems_table(), f"the table should be:\n\n{problems_table()}\n"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = LINK.findall(page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def problems_table() -> str:
    """Every concrete refusal that can travel, by status and code."""
    rows = sorted(
        (int(status_of(refusal)), refusal.code, refusal.title()) for refusal in _leaves(Refusal)
    )
    told = [f"| {status} | `{code}` | {title} |" for status, code, title in rows]
    return "\n".join(["| status | code | means |", "|---|---|---|", *told])


def _leaves(refusal: type[Refusal]) -> Iterator[type[Refusal]]:
    """The refusals of `app.errors` that nothing grows on."""
    grown = [one for one in refusal.__subclasses__() if one.__module__ == errors.__name__]
    if not grown:
        yield refusal
    for one in grown:
        yield from _leaves(one)
