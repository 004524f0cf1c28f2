"""What the pages say of settings, problems and each other is what is there."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from celeus import errors
from celeus.api.wire.problems import STATUS, status_of
from celeus.cli import cli
from celeus.errors import Refusal
from celeus.settings import Settings
from tests.docs.pages import README, ROOT, pages, table_after

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$|^    ([^\n]*)$", re.MULTILINE | re.DOTALL)
_USE = re.compile(r"\$([A-Z_]+)\b")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")


def test_the_settings_page_lists_every_setting_with_its_default() -> None:
    rows = table_after(ROOT / "docs" / "settings.md", "<!-- settings:")
    listed = {row[0].strip("`"): row[1].strip("`") for row in rows}
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


def test_the_map_of_contributing_names_what_is_there() -> None:
    rows = table_after(ROOT / "CONTRIBUTING.md", "| where is |")
    places = [place for row in rows for place in re.findall(r"`([\w/.]+)`", row[1])]
    assert len(places) > len(rows)
    assert [place for place in places if not (ROOT / "app" / "celeus" / place).exists()] == []


def words(*files: Path) -> int:
    return sum(len(file.read_text().split()) for file in files)


def test_the_documentation_is_short_enough_to_be_read() -> None:
    guides = sorted((ROOT / "docs").glob("*.md"))
    evidence = sorted((ROOT / "docs" / "evidence").rglob("*.md"))
    assert len(guides) <= 20
    assert words(*guides) <= 30_000
    assert words(*guides, *evidence) <= 46_000
    assert words(README) <= 700
    assert len((ROOT / "CHANGELOG.md").read_text().splitlines()) <= 60


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = LINK.findall(page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_commands_use_no_variable_before_it_is_set(page: Path) -> None:
    assert unset_variables(page.read_text()) == []


def test_a_variable_without_a_value_is_noticed() -> None:
    text = "Type\n\n    curl $API/pools\n\nor\n\n```sh\nAPI=http://a\ncurl $API/a $KEY\n```\n"
    assert unset_variables(text) == ["API", "KEY"]


def unset_variables(text: str) -> list[str]:
    """Names that blocks of commands read, and that nothing has set further up on the page."""
    found = _BLOCK.findall(text)
    commands = "\n".join(fenced or line for kind, fenced, line in found if kind in {"", "sh"})
    return [
        use[1]
        for use in _USE.finditer(commands)
        if not re.search(rf"\b{use[1]}=", commands[: use.start()])
    ]


def problems_table() -> str:
    """The codes of every concrete refusal that can travel, by status."""
    codes: dict[int, list[str]] = {}
    for refusal in _leaves(Refusal):
        codes.setdefault(int(status_of(refusal)), []).append(f"`{refusal.code}`")
    rows = [f"| {status} | {', '.join(sorted(codes[status]))} |" for status in sorted(codes)]
    return "\n".join(["| status | codes |", "|---|---|", *rows])


def _leaves(refusal: type[Refusal]) -> Iterator[type[Refusal]]:
    """The refusals of `celeus.errors` that are raised: all but the branches, each of a status."""
    grown = [one for one in refusal.__subclasses__() if one.__module__ == errors.__name__]
    if not grown or refusal not in {Refusal, *STATUS}:
        yield refusal
    for one in grown:
        yield from _leaves(one)


REFERENCE = re.compile(r"docs/([a-z/-]+\.md)#([a-z0-9-]+)")
ANCHOR_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)")
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
    links = ANCHOR_LINK.findall(page.read_text())
    targets = [(page.parent / name if name else page, anchor) for name, anchor in links]
    assert [
        (path.name, anchor)
        for path, anchor in targets
        if path.suffix == ".md" and anchor not in anchors(path)
    ] == []


OF_OTHERS = {
    *("--batch_size", "--log_samples", "--output_path"),
    *("--no-fail-on-error", "--retry-on-error", "--sample-id"),
    *("--build-arg", "--default-non-nullable", "--help", "--part", "--pdb"),
}
"""Options of lm-eval, of Inspect, and of what developers run."""


def options_of(command: Any, words: str = "celeus") -> Iterator[tuple[str, set[str]]]:  # noqa: ANN401
    """Yield every command, in words, with its options."""
    yield words, {name for given in command.params for name in (*given.opts, *given.secondary_opts)}
    for name, below in getattr(command, "commands", {}).items():
        yield from options_of(below, f"{words} {name}")


def test_an_option_in_a_sentence_is_one_of_a_command() -> None:
    options = dict(options_of(get_command(cli)))
    every = OF_OTHERS.union(*options.values())
    for page in pages():
        for span in re.findall(r"`((?:celeus|--)[^`\n]*)`", FENCE.sub("", page.read_text())):
            called = [words for words in options if f"{span} ".startswith(f"{words} ")]
            known = options[max(called, key=len)] if called else every
            named = set(re.findall(r"(?<!\S)--[a-z][a-z_-]*", span))
            assert named <= known, (page.name, span)
