"""Reading a document nobody vouches for: every value has the type and size its field says.

JSON is read with every number as a float, since canonical JSON writes 1.0 as 1; a field that holds
whole numbers asks for them by ``whole``. The first value that is not as it has to be raises
``Mismatch`` with its place.
"""

import json
import math
import re
from collections.abc import Collection, Mapping
from typing import Any, Final, Never

import numpy as np
from numpy.typing import NDArray

from celeus.core.canonical import canonical_json
from celeus.shorten import shortened

MOST_WHOLE = 2**31 - 1
EXCERPT = 24
BYTES_A_VALUE = 6
"""Fewer than a certificate has of every member and element: names and digits."""
SPARE_VALUES = 1_000

Object = dict[str, Any]

_TEXT: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)

HEX: Final = re.compile(r"(?:[0-9a-f]{2})+")
DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_MOMENT: Final = re.compile(r"(?!0000)(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6})\+00:00", re.ASCII)


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


def parse(data: bytes) -> Object:
    """The object in canonical JSON (RFC 8785); any other spelling of it differs.

    What has more values than a document of its length is not read: they would take fifty times the
    memory of their bytes.
    """
    outside = _TEXT.sub(b"", data)
    values = sum(map(outside.count, (b",", b"{", b"[")))
    if values > SPARE_VALUES + len(data) // BYTES_A_VALUE:
        rule = f"at least {BYTES_A_VALUE} bytes a value"
        raise Mismatch("the document", f"{values} values in {len(data)} bytes", rule)
    try:
        value = json.loads(data.decode(), parse_int=float, parse_constant=_no_number)
        canonical = canonical_json(value)
    except (ValueError, RecursionError) as error:
        place = f"byte {error.pos}" if isinstance(error, json.JSONDecodeError) else "the document"
        raise Mismatch(place, _excerpt(data[:EXCERPT]), f"canonical JSON ({error})") from error
    if canonical != data:
        at = _first_difference(data, canonical)
        excerpt = slice(at, at + EXCERPT)
        raise Mismatch(f"byte {at}", _excerpt(data[excerpt]), _excerpt(canonical[excerpt]))
    return members(value, "the document", value if isinstance(value, dict) else ())


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


def moment(value: object, where: str) -> str:
    """A time in UTC to the microsecond; two of them compare as texts."""
    form = _MOMENT.fullmatch(value) if isinstance(value, str) else None
    try:
        if form is not None:
            # Knows the calendar, as does `datetime`, which could read a clock.
            np.datetime64(form[1])
            return form[0]
    except ValueError:
        pass
    raise Mismatch(where, value, "a time in UTC, such as 2026-11-21T09:30:00.000000+00:00")


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


def numbers(value: object, where: str, length: int | None = None) -> NDArray[np.float64]:
    """A list of finite numbers, as an array."""
    values = listed(value, where, length)
    if not set(map(type, values)) <= {float}:
        raise Mismatch(where, value, "a list of numbers")
    # Numbers too large for a float are no canonical JSON: all of these are finite.
    return np.array(values, dtype=np.float64)


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


def _no_number(name: str) -> Never:
    message = f"{name} is no number"
    raise ValueError(message)


def _first_difference(one: bytes, other: bytes) -> int:
    shorter = min(len(one), len(other))
    a, b = (np.frombuffer(side, dtype=np.uint8, count=shorter) for side in (one, other))
    apart = np.flatnonzero(a != b)[:1]
    return int(apart[0]) if apart.size else shorter


def _excerpt(data: bytes) -> str:
    return data.decode(errors="replace") or "the end"
