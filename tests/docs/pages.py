"""The pages a person reads, and what stands in their fenced blocks."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language and its text."""

    language: str
    text: str


def blocks(page: Path, *languages: str) -> list[Block]:
    """The page's blocks of these languages, in order."""
    found = _FENCE.findall(page.read_text())
    return [Block(language, text) for language, text in found if language in languages]


def pages() -> list[Path]:
    """Every page of the documentation that stands in the repository."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def table_after(page: Path, marker: str) -> list[list[str]]:
    """Cells of the first table behind the marker, without its head."""
    text = page.read_text()
    lines = text[text.index(marker) :].splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[begin:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows[2:]
