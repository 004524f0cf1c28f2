"""Every link to a heading of a page in docs/ names a heading that the page has."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, pages

REFERENCE = re.compile(r"docs/([a-z/-]+\.md)#([a-z0-9-]+)")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
SOURCES = sorted(
    path for folder in ("app", "tests", "docs") for path in (ROOT / folder).rglob("*.py")
)


def anchors(page: Path) -> set[str]:
    """The ids of the page's headings, as GitHub and the service make them."""
    text = FENCE.sub("", page.read_text())
    names = (re.sub(r"[^\w\- ]", "", head.strip().lower()) for head in HEADING.findall(text))
    return {name.replace(" ", "-") for name in names}


def test_source_files_cite_headings_that_exist() -> None:
    cited = {
        (name, anchor) for path in SOURCES for name, anchor in REFERENCE.findall(path.read_text())
    }
    known = {name: anchors(ROOT / "docs" / name) for name, _ in cited}
    assert {name for name, _ in cited} >= {"evidence/method.md"}
    assert sorted((name, anchor) for name, anchor in cited if anchor not in known[name]) == []


def test_source_files_cite_no_page_that_a_reader_lacks() -> None:
    citation = re.compile(r"\bMETHOD(?:\.md)? \d|\bMETHOD\.md")
    assert [str(path) for path in SOURCES if citation.search(path.read_text())] == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_to_headings_lead_to_one(page: Path) -> None:
    links = LINK.findall(page.read_text())
    targets = [(page.parent / name if name else page, anchor) for name, anchor in links]
    assert [
        (path.name, anchor)
        for path, anchor in targets
        if path.suffix == ".md" and anchor not in anchors(path)
    ] == []
