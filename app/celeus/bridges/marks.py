"""Marks as ids of 32 hexadecimal digits, for tools that name things so: traces, runs, records."""

import hashlib

_SESSION_DIGITS, _ROUND_DIGITS = 22, 9


def id_of(mark: str) -> str:
    """The id of a mark: the same whenever it is asked for, and another one for every mark."""
    session, _, number = mark.partition("/")
    blind = number.startswith("b")
    round_ = int(number.removeprefix("b"))
    return f"{_prefix(session)}{int(blind)}{round_:0{_ROUND_DIGITS}x}"


def mark_of(session: str, id_: str) -> str | None:
    """Return the mark that has this id, None for an id of another session or of no bridge."""
    digits = id_.replace("-", "").lower()
    number = digits.removeprefix(_prefix(session))
    if number == digits or len(number) != _ROUND_DIGITS + 1:
        return None
    return f"{session}/{'b' if number[0] == '1' else ''}{int(number[1:], 16)}"


def _prefix(session: str) -> str:
    return hashlib.sha256(session.encode()).hexdigest()[:_SESSION_DIGITS]
