"""Columns of a sheet: what rows hold under one name, nested objects by their path."""

import base64
import json
import math
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Any

from celeus.intake.sources.sheet import MOST_COLUMNS, BadRow, Sheet, SheetRow, refused
from celeus.intake.sources.unfolding import is_chat
from celeus.intake.table.chats import is_tree, message_text, messages_of, reply_of
from celeus.shorten import EXACT, printable

LOOKED_AT = 1_000
"""Rows by which columns are known."""
MOST_LOOKED_AT = 1 << 24
"""Characters after which no further row is looked at."""
_DEEPEST = 4
_WIDEST = 40
"""Members of a nested object that are columns; one with more is a single value."""
EXAMPLES = 3
EXAMPLE_LENGTH = 80
_WORDS = {
    **dict.fromkeys(("true", "yes", "y", "pass", "passed", "correct", "right"), 1.0),
    **dict.fromkeys(("wahr", "ja", "richtig", "vrai", "oui"), 1.0),
    **dict.fromkeys(("false", "no", "n", "fail", "failed", "incorrect", "wrong"), 0.0),
    **dict.fromkeys(("falsch", "nein", "faux", "non"), 0.0),
}
_JUDGING = frozenset(
    ["pass", "passed", "correct", "right", "richtig", "fail", "failed", "incorrect", "wrong"]
)
"""Words that say by themselves which one is better; `yes` may be the worse one."""
_COMMA = re.compile(r"[-+]?\d+,\d+")
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")
_PICTURES = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}
_PICTURE = re.compile(
    r"data:image/|https?://\S+\.(?:png|jpe?g|gif|webp|svg|avif|bmp)(?:[?#]|$)", re.IGNORECASE
)
_BASE64 = {"iVBORw0KGgo": "png", "/9j/": "jpeg", "R0lGOD": "gif", "UklGR": "webp"}
"""Beginnings of a picture in bare base64."""


@dataclass(slots=True)
class Column:
    """A column: its name, what it holds in the rows looked at, and how many of them lack it."""

    name: str
    values: list[Any] = field(default_factory=list)
    missing: int = 0
    comma: bool = False

    def examples(self) -> list[str]:
        """A few values as text, cut to what fits a table."""
        some = dict.fromkeys(shown(value)[:EXAMPLE_LENGTH] for value in self.values[:20])
        return [value for value in some if value][:EXAMPLES]

    def number(self, value: object) -> object:
        """The number a value is, by a decimal comma where the column has such."""
        return number_of(value, comma=self.comma)


def columns_of(sheet: Sheet, whole: Collection[str] = ()) -> list[Column]:
    """The columns of the first rows, in the order in which they come; ``whole`` as in `flat`."""
    found: dict[str, Column] = {}
    looked = size = 0
    for _, row in islice(sheet.rows(), LOOKED_AT):
        if isinstance(row, BadRow):
            continue
        looked += 1
        for name, value in flat(row, whole):
            column = found.get(name) or found.setdefault(name, Column(name))
            if not is_missing(value):
                column.values.append(value)
                size += len(value) if isinstance(value, str | bytes) else 0
        if len(found) > MOST_COLUMNS:
            raise refused("The file has too many columns.", f"at most {MOST_COLUMNS}", len(found))
        if size > MOST_LOOKED_AT:
            break
    for column in found.values():
        column.missing = looked - len(column.values)
        column.comma = sheet.cells and _has_commas(column.values)
    return list(found.values())


def flat(row: SheetRow, whole: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """The values of a row, those of nested objects under their path unless they are ``whole``."""
    if isinstance(row, dict):
        yield from _flat(row, "", _DEEPEST, whole)


def _flat(
    row: dict[str, Any], before: str, depth: int, whole: Collection[str]
) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        path = _path(before, name)
        if isinstance(value, dict) and depth > 1 and path not in whole and _spreads(value):
            yield from _flat(value, f"{path}.", depth - 1, whole)
        else:
            yield path, value


@lru_cache(maxsize=4096)
def _path(before: str, name: str) -> str:
    """The name of a column, as any JSON reader takes it."""
    return clean(f"{before}{name}")


def _spreads(value: dict[str, Any]) -> bool:
    """The members of a nested object are columns of their own."""
    return 0 < len(value) <= _WIDEST and not is_tree(value) and not _is_picture(value)


def is_missing(value: object) -> bool:
    """Nothing stands here: null, an empty text, an empty list, NaN."""
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or value in ("", [], {}) or (isinstance(value, str) and not value.strip())


def number_of(value: object, *, comma: bool = False) -> object:  # noqa: PLR0911 -- a form each
    """The number that a value is, also as text; the value itself where it is none."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        return value
    if isinstance(value, Decimal):
        return float(value)
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    share = text.endswith("%")
    digits = text.removesuffix("%").strip()
    if comma and _COMMA.fullmatch(digits):
        digits = digits.replace(",", ".")
    if "_" in digits:
        return value
    try:
        number = float(digits)
    except ValueError:
        return value
    return number / 100 if share else number


def is_share(value: object) -> bool:
    """Return True for a number on the scale from 0 to 1 by how it is written: %, a word, a bool."""
    if isinstance(value, bool):
        return True
    return isinstance(value, str) and (
        value.strip().endswith("%") or value.strip().lower() in _WORDS
    )


def stands_twice(name: str, names: Iterable[str]) -> bool:
    """Return True if another column had the same name, and has a number behind it."""
    numbered = re.compile(rf"{re.escape(name)} \(\d+\)")
    return any(map(numbered.fullmatch, names))


def judges(values: list[Any]) -> bool:
    """Return True if all values are words of which one is better, such as correct and wrong."""
    return bool(values) and all(
        isinstance(value, str) and value.strip().lower() in _JUDGING for value in values
    )


def _has_commas(values: list[Any]) -> bool:
    """Numbers of the column are written with a decimal comma, and cannot mean anything else."""
    texts = [value.strip().removesuffix("%").strip() for value in values if isinstance(value, str)]
    written = [text for text in texts if _COMMA.fullmatch(text)]
    return any(not _THOUSANDS.fullmatch(text) for text in written) and not any(
        "." in text for text in texts
    )


def shown(value: object) -> str:  # noqa: PLR0911 -- a form each
    """A value as the text a judge is shown."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return str(int(value))
    if isinstance(value, int | float):
        return str(value)
    reply = reply_of(value)
    if reply is not None:
        return clean(reply)
    chat = messages_of(value)
    if chat is not None:
        return "\n\n".join(f"{part['role']}: {message_text(part)}" for part in chat)
    if isinstance(value, list) and all(isinstance(part, str | int | float) for part in value):
        return "\n".join(map(shown, value))
    if isinstance(value, list | dict):
        return clean(json.dumps(kept(value), ensure_ascii=False))
    return clean(str(value))


def kept(value: object) -> Any:  # noqa: ANN401, PLR0911 -- any JSON, a form each
    """A value as JSON that a payload may hold: long whole numbers as text, NaN as null."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return value if abs(value) < EXACT else str(value)
    if isinstance(value, dict):
        return {clean(str(name)): kept(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [kept(part) for part in value]
    if isinstance(value, bytes):
        return picture_of(value)
    return clean(str(value))


def clean(text: str) -> str:
    """Text that any JSON reader and the database take: no lone surrogates, no U+0000."""
    return printable(text.replace("\0", "\\0"))


def picture_of(value: object) -> Any:  # noqa: ANN401 -- any JSON
    """The address of a picture: a text, that of an object, or a `data:` address of its bytes."""
    if isinstance(value, dict):
        held = value.get("bytes")
        if held is None:
            return kept(value.get("src") or value.get("url") or value.get("path") or value)
        value = held
    if isinstance(value, bytes):
        kind = next((name for mark, name in _PICTURES.items() if value.startswith(mark)), None)
        if kind is None:
            return None
        return f"data:image/{kind};base64,{base64.b64encode(value).decode()}"
    if isinstance(value, str) and (kind := _base64_kind(value)) is not None:
        return f"data:image/{kind};base64,{value.strip()}"
    return kept(value)


def is_picture_text(text: str) -> bool:
    """Return True for the address of a picture, or one in bare base64."""
    return _PICTURE.match(text) is not None or _base64_kind(text) is not None


def _base64_kind(text: str) -> str | None:
    kind = next((name for mark, name in _BASE64.items() if text.startswith(mark)), None)
    return kind if kind is not None and re.fullmatch(r"[\w+/]+=*\s*", text) else None


def _is_picture(value: dict[str, Any]) -> bool:
    return value.keys() <= {"bytes", "path"} or (
        bool(value.keys() & {"src", "url"}) and value.keys() <= {"src", "url", "alt", "detail"}
    )


def is_messages(value: object) -> bool:
    """Return True if a value is a chat, in any form."""
    if isinstance(value, str) and not value.lstrip().startswith("["):
        return False
    return is_chat(value) or messages_of(value) is not None
