"""Read answers of the service as `celeus.client.results`, and the methods these types have."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from celeus.client.refusals import Unreachable

T = TypeVar("T")
Raw = dict[str, Any]


def read(kind: type[T], raw: object) -> T:
    """Return an answer as a result type; raises Unreachable where it is none."""
    try:
        known: Any = kind
        made: T = _known_reader(known)(raw)
    except (AttributeError, TypeError) as error:
        raise Unreachable(f"the answer is no {kind.__name__}: this is no Celeus service") from error
    return made


def _reader(kind: Any) -> Callable[[Any], Any]:  # noqa: ANN401 -- any annotation of a field
    """Return the function that reads a member of this type."""
    if is_dataclass(kind):
        readers = {field.name: _reader(field.type) for field in fields(kind) if field.name != "raw"}
        build: Any = kind
        whole = {"raw"} & {field.name for field in fields(kind)}

        def made(raw: Mapping[str, Any]) -> Any:  # noqa: ANN401
            known = {name: reader(raw.get(name)) for name, reader in readers.items()}
            return build(**known, **dict.fromkeys(whole, raw))

        return made
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (UnionType, Union):
        (inner,) = (part for part in parts if part is not type(None))
        return _unless_none(_reader(inner))
    if origin is tuple:
        reader = _reader(parts[0])
        return lambda raw: tuple(map(reader, raw or ()))
    if origin is dict:
        reader = _reader(parts[1])
        return lambda raw: {name: reader(value) for name, value in (raw or {}).items()}
    return lambda raw: raw


_known_reader = cache(_reader)


def _unless_none(reader: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda raw: None if raw is None else reader(raw)


class StatusMethods:
    """A status prints as its sentence."""

    __slots__ = ()
    id: str
    sentence: str
    origin: Any

    def __str__(self) -> str:
        pushed = "" if self.origin is None else " (pushed)"
        return f"{self.id}{pushed}: {self.sentence}"


class PlanMethods:
    """A plan gives the numbers that a session is opened with."""

    __slots__ = ()
    policies: Any

    @property
    def planned_labels(self) -> dict[str, int] | None:
        """The labels expected of the first policy, for `open_session`; None where none are."""
        expected = self.policies[0].expected if self.policies else None
        if expected is None:
            return None
        labels = expected.labels
        values = {"low": labels.low, "median": labels.median, "high": labels.high}
        return {name: round(value) for name, value in values.items()}
