"""Canonical JSON by RFC 8785 (the JSON canonicalization scheme), fast for long ledgers.

The library ``rfc8785`` has the last word on every spelling; it takes a microsecond or two for
every value, and a certificate has a quarter of a million. Here texts and numbers are spelled by
Python's own functions where those agree with the scheme, and all else is left to the library:

    texts            escapes are the same; keys of ASCII sort by UTF-16 as they sort in Python
    whole numbers    below 2^53 all digits, as those of an int
    other numbers    the shortest digits that give the number back; exponents differ
"""

import math
from json.encoder import encode_basestring
from typing import Any, Final

import rfc8785

EXACT = 2**53
"""Below it every whole number is a float, and is spelled with all its digits."""
ZEROS: Final = {"e-05": "0.0000", "e-06": "0.00000"}
"""Exponents that the scheme writes out: probabilities in large pools have them."""


def canonical_json(value: Any) -> bytes:  # noqa: ANN401 -- JSON
    """The bytes that ``rfc8785.dumps`` gives; the same ValueErrors where it has none."""
    try:
        return _spelled(value).encode()
    except (TypeError, UnicodeEncodeError):
        # Lone surrogates, or names that are no texts: it says what is wrong.
        return rfc8785.dumps(value)


def _spelled(value: Any) -> str:  # noqa: ANN401 -- JSON
    kind = type(value)
    if kind is float:
        return _number(value)
    if kind is str:
        return encode_basestring(value)
    if kind is int and -EXACT < value < EXACT:
        return str(value)
    if kind is list:
        return f"[{','.join([_spelled(one) for one in value])}]"
    if kind is dict and "".join(value).isascii():
        inner = [f"{encode_basestring(name)}:{_spelled(value[name])}" for name in sorted(value)]
        return f"{{{','.join(inner)}}}"
    return rfc8785.dumps(value).decode()


def _number(value: float) -> str:
    if value.is_integer():
        return str(int(value)) if -EXACT < value < EXACT else rfc8785.dumps(value).decode()
    spelled = repr(value)
    zeros = ZEROS.get(spelled[-4:])
    if zeros is not None and value > 0.0:
        return zeros + spelled[:-4].replace(".", "")
    if "e" in spelled or not math.isfinite(value):
        # Exponents are spelled in another way; infinities and NaN have no spelling.
        return rfc8785.dumps(value).decode()
    return spelled
