"""Quote values in messages: short, and as valid JSON text."""

import json
import math
from collections.abc import Iterator, Mapping

VALUE_LENGTH = 100
EXACT = 2**53
"""Largest whole number that JSON readers keep exactly."""
MOST_BITS = 14_000


def shortened(value: object) -> str:
    """Return a value as text of at most VALUE_LENGTH characters, valid JSON also for NaN.

    Only the beginning is looked at: the value may be megabytes long or a thousand lists deep.
    """
    text = ""
    for part in _parts(value):
        text += part
        if len(text) >= VALUE_LENGTH:
            break
    return printable(text[:VALUE_LENGTH])


def as_json(value: object) -> object:
    """Return a value for a member of a JSON document: unchanged if it is short and valid there.

    What is longer becomes the beginning of its text, VALUE_LENGTH characters and an ellipsis; NaN
    and infinities become their names. Only the beginning is looked at.
    """
    if not isinstance(value, Mapping | list | tuple):
        return json.loads(_scalar(value))
    text = ""
    for part in _json_parts(value):
        text += part
        if len(text) > VALUE_LENGTH:
            return _cut(text)
    return json.loads(text)


def _cut(text: str) -> str:
    short = text if len(text) <= VALUE_LENGTH else text[:VALUE_LENGTH] + "…"
    return printable(short)


def printable(text: str) -> str:
    """Return the text with lone surrogates, which UTF-8 cannot encode, as escapes."""
    return text.encode(errors="backslashreplace").decode()


def one_line(text: str) -> str:
    """Return text for one line of a terminal, with all but visible letters and spaces as escapes.

    Line breaks, control characters, and characters that turn the direction of writing can make a
    line look like others than it is. The narrow space of our own figures is written as a space.
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in text.replace("\N{NARROW NO-BREAK SPACE}", " ")
    )


def _parts(value: object) -> Iterator[str]:
    if isinstance(value, str | bytes | bytearray):
        yield repr(value[:VALUE_LENGTH])
    elif isinstance(value, Mapping):
        yield "{"
        for count, (key, inner) in enumerate(value.items()):
            yield ", " if count else ""
            yield from _parts(key)
            yield ": "
            yield from _parts(inner)
        yield "}"
    elif isinstance(value, list):
        yield "["
        for count, inner in enumerate(value):
            yield ", " if count else ""
            yield from _parts(inner)
        yield "]"
    else:
        yield repr(value)


def _json_parts(value: object) -> Iterator[str]:
    """Yield the value as JSON in pieces, with long texts cut."""
    if isinstance(value, Mapping):
        yield "{"
        for count, (key, inner) in enumerate(value.items()):
            yield ", " if count else ""
            yield _string(str(key))
            yield ": "
            yield from _json_parts(inner)
        yield "}"
    elif isinstance(value, list | tuple):
        yield "["
        for count, inner in enumerate(value):
            yield ", " if count else ""
            yield from _json_parts(inner)
        yield "]"
    else:
        yield _scalar(value)


def _scalar(value: object) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int) and abs(value) < EXACT:
        return int.__repr__(value)
    if isinstance(value, float):
        # NaN and infinities as their names
        spelled = json.dumps(value)
        return spelled if math.isfinite(value) else _string(spelled)
    return _string(_text(value))


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray):
        return bytes(value[: VALUE_LENGTH + 1]).decode(errors="backslashreplace")
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        # Python writes no more than 4300 digits
        return hex(value)
    return repr(value)


def _string(text: str) -> str:
    return json.dumps(_cut(text), ensure_ascii=False)
