"""Canonical JSON by RFC 8785 (the JSON canonicalization scheme), over which all digests are taken.

The library ``rfc8785`` has the last word on every spelling; it takes a microsecond or two for
every value, and a certificate has a quarter of a million. Here texts and numbers are spelled by
Python's own functions where those agree with the scheme, and all else is left to the library:

    texts            escapes are the same
    names            sorted by their UTF-16 code units, which for ASCII is Python's own order
    whole numbers    below 2^53 in size all digits, as those of an int
    other numbers    the shortest digits that give the number back; exponents differ

A float and an int of the same value have the same spelling, as they have in JSON.
"""

import hashlib
import math
from json.encoder import encode_basestring
from typing import Any, Final

import rfc8785

EXACT = 2**53
"""Below it every whole number is a float, and is spelled with all its digits; an int that large has
no spelling, since JSON readers would take it for another number."""
ZEROS: Final = {"e-05": "0.0000", "e-06": "0.00000"}
"""Exponents that the scheme writes out: probabilities in large pools have them."""


def canonical_json(value: Any) -> bytes:  # noqa: ANN401 -- JSON
    """Return the bytes that ``rfc8785.dumps`` gives, with the same ValueErrors."""
    try:
        return _spelled(value).encode()
    except (TypeError, UnicodeEncodeError):
        # Lone surrogates, or names that are no texts: it says what is wrong.
        return rfc8785.dumps(value)


def digest_of(value: Any) -> str:  # noqa: ANN401 -- JSON
    """Return the SHA-256 of a value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def _spelled(value: Any) -> str:  # noqa: ANN401 -- JSON
    kind = type(value)
    if kind is float:
        return _number(value)
    if kind is str:
        return encode_basestring(value)
    if kind is int and -EXACT < value < EXACT:
        return str(value)
    if kind is list:
        return f"[{','.join([_spelled(element) for element in value])}]"
    if kind is dict:
        names = sorted(value) if "".join(value).isascii() else sorted(value, key=_utf16)
        inner = [f"{encode_basestring(name)}:{_spelled(value[name])}" for name in names]
        return f"{{{','.join(inner)}}}"
    return rfc8785.dumps(value).decode()


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be")


def _number(value: float) -> str:
    if value.is_integer():
        return str(int(value)) if -EXACT < value < EXACT else rfc8785.dumps(value).decode()
    spelled = repr(value)
    if "e" in spelled:
        zeros = ZEROS.get(spelled[-4:])
        if zeros is None:
            return spelled.replace("e-0", "e-")
        digits = spelled[:-4].replace(".", "")
        return zeros + digits if value > 0.0 else f"-{zeros}{digits[1:]}"
    # Infinities and NaN have no spelling: the library says so.
    return spelled if math.isfinite(value) else rfc8785.dumps(value).decode()
