"""Values as they are quoted in an answer: short, and text that any reader takes."""

from collections.abc import Iterator, Mapping

VALUE_LENGTH = 100


def shortened(value: object) -> str:
    """A value as text of at most VALUE_LENGTH characters that any JSON reader takes, NaN included.

    Only the beginning is looked at: the value may be megabytes long or a thousand lists deep.
    """
    text = ""
    for part in _parts(value):
        text += part
        if len(text) >= VALUE_LENGTH:
            break
    return printable(text[:VALUE_LENGTH])


def printable(text: str) -> str:
    """The text with a lone surrogate, which UTF-8 cannot hold, written as its escape."""
    return text.encode(errors="backslashreplace").decode()


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
