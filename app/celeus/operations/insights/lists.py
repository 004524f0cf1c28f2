"""What a session is found by in a list: its words."""

import re
from collections.abc import Sequence

MOST_BYTES = 1000
"""Of a word; PostgreSQL takes lexemes of up to 2 046."""


def words_of(name: str | None, owner: str | None, tags: Sequence[str]) -> list[str]:
    """The words of name, owner and tags, each once, with the tags themselves, each after a `#`."""
    found = _words(" ".join([name or "", owner or "", *tags]))
    return sorted({*found, *(f"#{tag}" for tag in tags)})


def _words(text: str) -> list[str]:
    words = re.findall(r"\w+", text.lower().replace("_", " "))
    return [word for word in words if len(word.encode()) < MOST_BYTES]
