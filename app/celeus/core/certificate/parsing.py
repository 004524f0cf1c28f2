"""Reading a document nobody vouches for: every value has the type and size its field says.

JSON is read with every number as a float, since canonical JSON writes 1.0 as 1; a field that holds
whole numbers asks for them by ``whole``. The first value that is not as it has to be raises
``Mismatch`` with its place.
"""

import json
import re
from typing import Final, Never

import numpy as np
from numpy.typing import NDArray

from celeus.core.canonical import canonical_json
from celeus.core.certificate.report import FILE
from celeus.core.plain import Mismatch, Object, listed, members

EXCERPT = 24
BYTES_A_VALUE = 6
"""Fewer than a certificate has of every member and element: names and digits."""
SPARE_VALUES = 1_000

_TEXT: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)

_MOMENT: Final = re.compile(r"(?!0000)(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6})\+00:00", re.ASCII)


def parse(data: bytes, file_format: str | None = None) -> Object:
    """The object in canonical JSON (RFC 8785); any other spelling of it differs.

    Of a file that states another ``file_format``, or none, nothing is compared.

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
        # A file that was cut off, or spoilt on its way
        spoilt = isinstance(error, json.JSONDecodeError | UnicodeDecodeError)
        place = FILE if spoilt else "the document"
        raise Mismatch(place, excerpt(data), f"canonical JSON ({error})") from error
    if file_format is not None:
        check_format(data, value.get("format") if isinstance(value, dict) else None, file_format)
    if canonical != data:
        offset = _first_difference(data, canonical)
        raise Mismatch(f"byte {offset}", excerpt(data, offset), excerpt(canonical, offset))
    return members(value, "the document", value if isinstance(value, dict) else ())


def check_format(data: bytes, stated: object, file_format: str) -> None:
    """Refuse with `Mismatch` a file that is of another format."""
    if stated != file_format:
        shown = excerpt(data) if data else "empty"
        raise Mismatch(FILE, shown, f"a certificate, which has the format {file_format}")


def excerpt(data: bytes, start: int = 0) -> str:
    """Return some letters of what may be no text."""
    return data[start : start + EXCERPT].decode(errors="replace") or "the end"


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


def numbers(value: object, where: str, length: int | None = None) -> NDArray[np.float64]:
    """A list of finite numbers, as an array."""
    values = listed(value, where, length)
    if not set(map(type, values)) <= {float}:
        raise Mismatch(where, value, "a list of numbers")
    # Numbers too large for a float are no canonical JSON: all of these are finite.
    return np.array(values, dtype=np.float64)


def _no_number(name: str) -> Never:
    message = f"{name} is no number"
    raise ValueError(message)


def _first_difference(left: bytes, other: bytes) -> int:
    shorter = min(len(left), len(other))
    a, b = (np.frombuffer(side, dtype=np.uint8, count=shorter) for side in (left, other))
    apart = np.flatnonzero(a != b)[:1]
    return int(apart[0]) if apart.size else shorter
