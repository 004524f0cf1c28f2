"""Dataclasses as plain values: a field is a member, and its type says what may stand there.

Both writing and reading follow from the class. Texts, flags and numbers are themselves, a tuple is
a list, a mapping an object with any names, None null, and a ``Literal`` one of its choices.
``Annotated`` names the function that reads a member, such as ``whole`` with its bounds.
"""

import math
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from functools import cache, partial
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    Self,
    TypeGuard,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from celeus.errors import Refusal
from celeus.shorten import shortened

Object = dict[str, Any]

MOST_WHOLE = 2**31 - 1
SLACK = 1e-9
"""Relative difference allowed to computed numbers: logarithms differ between processors."""
HEX: Final = re.compile(r"(?:[0-9a-f]{2})+")
DIGEST: Final = re.compile(r"[0-9a-f]{64}")
SESSION: Final = re.compile(r"ses_[0-9a-f]{32}")


class Mismatch(ValueError):
    """A document or a ledger claims at ``where`` something else than what was found."""

    def __init__(self, where: str, claimed: object, found: object) -> None:
        self.where = where
        self.claimed = report_value(claimed)
        self.found = report_value(found)
        super().__init__(f"{where} is {self.claimed!r} and should be {self.found!r}")


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


@contextmanager
def refusals(where: str) -> Iterator[None]:
    """Raise Mismatch for what a class or a plan refuses by the name of one of its fields."""
    try:
        yield
    except Refusal as refusal:
        raise Mismatch(f"{where}.{refusal.field}", refusal.value, refusal.rule) from refusal


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
    # A whole number may be larger than any float
    if not _is_number(value) or not abs(value) <= sys.float_info.max:
        raise Mismatch(where, value, "a number")
    if not lowest <= value <= highest:
        raise Mismatch(where, value, f"a number from {lowest:g} to {highest:g}")
    return float(value)


def whole(value: object, where: str, lowest: int = 0, highest: int = MOST_WHOLE) -> int:
    """A whole number within the limits."""
    if not _is_number(value) or value % 1 or not lowest <= value <= highest:
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
        for place, (element, due) in enumerate(
            zip(listed(claimed, where, len(found)), found, strict=True)
        ):
            same(f"{where}[{place}]", element, due)
    else:
        equal(where, claimed, found)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, float | int) and not isinstance(value, bool)


Reader = Callable[[Any, str], Any]
Digest = Annotated[str, partial(text, form=DIGEST)]
Count = Annotated[int, partial(whole, lowest=1)]
Probability = Annotated[float, partial(number, lowest=0.0, highest=1.0)]
INLINE = "inline"
"""Annotation of a field whose own members stand among those beside it."""


def as_it_is(value: object, where: str) -> object:
    """Return the value itself: it is read where more is known."""
    del where
    return value


def only(value: object, where: str, due: object) -> object:
    """Return the value, which has to be ``due``."""
    equal(where, value, due)
    return value


class Plain:
    """Base of dataclasses with plain values; ``optional`` members are left out at their default."""

    __slots__ = ()
    optional: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; ``from_dict`` reads them back."""
        values: dict[str, Any] = {}
        for member in _members_of(type(self)):  # type: ignore[arg-type]  # a class is hashable
            value = getattr(self, member.name)
            if member.inline:
                values |= value.to_dict()
            elif not member.optional or value != member.default:
                values[member.name] = _plain(value)
        return values

    @classmethod
    def from_dict(cls, values: Any, where: str = "") -> Self:  # noqa: ANN401 -- JSON
        """Return the object whose ``to_dict`` gave ``values``, where numbers may be whole.

        Raises Mismatch at the first member that is not of its type.
        """
        forms = _members_of(cls)  # type: ignore[arg-type]  # as above
        required = [name for form in forms if not form.optional for name in form.names]
        members(values, where, required, cls.optional)
        before = f"{where}." if where else ""
        found = {}
        for form in forms:
            if form.inline:
                inner = {name: values[name] for name in form.inline}
                found[form.name] = form.read(inner, where)
            elif form.name in values:
                found[form.name] = form.read(values[form.name], before + form.name)
        return cls(**found)


@dataclass(frozen=True, slots=True)
class _Member:
    """A field of a class; ``inline`` are the names of the members that stand for it, if any."""

    name: str
    read: Reader
    optional: bool
    default: Any
    inline: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return self.inline or (self.name,)


@cache
def _members_of(kind: Any) -> tuple[_Member, ...]:  # noqa: ANN401 -- a class
    types = get_type_hints(kind, include_extras=True)
    found = []
    for field in fields(kind):
        hint, optional = types[field.name], field.name in kind.optional
        if get_origin(hint) is Annotated and INLINE in get_args(hint):
            inner = get_args(hint)[0]
            names = tuple(name for form in _members_of(inner) for name in form.names)
            found.append(_Member(field.name, inner.from_dict, False, None, names))
            continue
        factory = field.default_factory
        default = field.default if factory is MISSING else factory()
        # A member that may be left out is never null.
        found.append(_Member(field.name, _reader(hint, null=not optional), optional, default))
    return tuple(found)


def _plain(value: Any) -> Any:  # noqa: ANN401 -- JSON
    if isinstance(value, Plain):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(element) for element in value]
    if isinstance(value, Mapping):
        return {name: _plain(member) for name, member in value.items()}
    return value


_SIMPLE: Mapping[Any, Reader] = {Any: as_it_is, str: text, bool: flag, int: whole, float: number}


def _reader(hint: Any, *, null: bool = True) -> Reader:  # noqa: ANN401 -- a type
    """Return the function that reads values of a type; ``null`` allows None where the type does."""
    origin, inner = get_origin(hint), get_args(hint)
    read: Reader
    if origin in {Union, UnionType}:
        read = _reader(next(kind for kind in inner if kind is not NoneType))
        return partial(_perhaps, read=read) if null else read
    if origin is Annotated:
        read = inner[1]
    elif origin is Literal:
        read = partial(_choice, choices=inner)
    elif origin is tuple:
        read = partial(_list, read=_reader(inner[0]))
    elif origin is Mapping:
        read = partial(_by_name, read=_reader(inner[1]))
    else:
        read = _SIMPLE.get(hint) or hint.from_dict
    return read


def _choice(value: object, where: str, choices: tuple[str, ...]) -> str:
    if text(value, where) not in choices:
        raise Mismatch(where, value, "one of " + ", ".join(choices))
    return str(value)


def _perhaps(value: object, where: str, read: Reader) -> Any:  # noqa: ANN401 -- as it is read
    return None if value is None else read(value, where)


def _list(value: object, where: str, read: Reader) -> tuple[Any, ...]:
    return tuple(read(each, f"{where}[{place}]") for place, each in enumerate(listed(value, where)))


def _by_name(value: object, where: str, read: Reader) -> dict[str, Any]:
    inner = members(value, where, value if isinstance(value, dict) else ())
    return {name: read(member, f"{where}.{name}") for name, member in inner.items()}
