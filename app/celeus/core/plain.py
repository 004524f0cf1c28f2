"""Checks of plain values; the first that is not as it has to be raises ``Mismatch``."""

import math
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from celeus.shorten import shortened

Object = dict[str, Any]

MOST_WHOLE = 2**31 - 1
HEX: Final = re.compile(r"(?:[0-9a-f]{2})+")
DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class Mismatch(Exception):
    """A document claims at ``where`` something else than what was found."""

    def __init__(self, where: str, claimed: object, found: object) -> None:
        super().__init__(where)
        self.where = where
        self.claimed = report_value(claimed)
        self.found = report_value(found)


def report_value(value: object) -> str | float | int | bool | None:
    """A value for a report: numbers and short texts as they are, others by their beginning."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        exact = value.is_integer() and abs(value) < 2.0**53
        return int(value) if exact else value if math.isfinite(value) else repr(value)
    if isinstance(value, str) and len(value) <= 100:
        return value.encode(errors="backslashreplace").decode()
    return shortened(value)


def members(
    value: object, where: str, required: Collection[str], optional: Collection[str] = ()
) -> Object:
    """An object with exactly these members; the optional ones may be missing."""
    if not isinstance(value, dict):
        raise Mismatch(where, value, "an object")
    for name in sorted(set(value) | set(required)):
        place = name if where == "" else f"{where}.{name}"
        if name not in value:
            raise Mismatch(place, None, "a member of this name")
        if name not in required and name not in optional:
            raise Mismatch(place, value[name], "no member of this name")
    return value


def text(value: object, where: str, form: re.Pattern[str] | None = None) -> str:
    """A text of this form."""
    if not isinstance(value, str) or (form is not None and form.fullmatch(value) is None):
        raise Mismatch(where, value, "a text" if form is None else f"a text like {form.pattern}")
    return value


def flag(value: object, where: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise Mismatch(where, value, "true or false")
    return value


def number(
    value: object, where: str, lowest: float = -math.inf, highest: float = math.inf
) -> float:
    """A finite number within the limits."""
    if not isinstance(value, float) or not math.isfinite(value):
        raise Mismatch(where, value, "a number")
    if not lowest <= value <= highest:
        raise Mismatch(where, value, f"a number from {lowest:g} to {highest:g}")
    return value


def whole(value: object, where: str, lowest: int = 0, highest: int = MOST_WHOLE) -> int:
    """A whole number within the limits."""
    if not isinstance(value, float) or not value.is_integer() or not lowest <= value <= highest:
        raise Mismatch(where, value, f"a whole number from {lowest} to {highest}")
    return int(value)


def listed(value: object, where: str, length: int | None = None) -> list[Any]:
    """A list, of this length if one is given."""
    if not isinstance(value, list):
        raise Mismatch(where, value, "a list")
    if length is not None and len(value) != length:
        raise Mismatch(f"the length of {where}", len(value), length)
    return value


def equal(where: str, claimed: object, found: object) -> None:
    """Raise unless the two are the same, numbers to the last digit and whole or not."""
    if isinstance(claimed, bool) is not isinstance(found, bool) or claimed != found:
        raise Mismatch(where, claimed, found)


def same(where: str, claimed: object, found: object) -> None:
    """``equal`` for values with values within; raises at the first place that is not."""
    if isinstance(found, Mapping):
        inner = members(claimed, where, found)
        for name in sorted(found):
            same(f"{where}.{name}", inner[name], found[name])
    elif isinstance(found, list | tuple):
        for at, (one, other) in enumerate(
            zip(listed(claimed, where, len(found)), found, strict=True)
        ):
            same(f"{where}[{at}]", one, other)
    else:
        equal(where, claimed, found)
