"""Jobs and results as flat mappings of plain values, and how a study looks at them."""

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any

Values = dict[str, Any]
"""A job, a result, or a row: plain values by name."""


class Rows(list[Values]):
    """The results of a study, each with the fields of its job."""

    def by(self, *names: str) -> "dict[tuple[Any, ...], Rows]":
        """The rows that agree in these fields, in the order they came."""
        groups: dict[tuple[Any, ...], Rows] = {}
        for row in self:
            groups.setdefault(tuple(row[name] for name in names), Rows()).append(row)
        return groups

    def where(self, **values: Any) -> "Rows":  # noqa: ANN401 -- fields hold any plain value
        """The rows with these values."""
        return Rows(row for row in self if all(row[name] == values[name] for name in values))

    def plus(self, values: Callable[[Values], Values]) -> "Rows":
        """The rows with further fields, made from each."""
        return Rows(row | values(row) for row in self)

    def of(self, name: str) -> list[Any]:
        """One field of every row."""
        return [row[name] for row in self]


def grid(axes: Mapping[str, Iterable[Any]]) -> list[Values]:
    """A job for every combination, the last axis fastest.

    An axis of several fields, such as "model, helper", holds tuples.
    """
    jobs = []
    for values in product(*axes.values()):
        job: Values = {}
        for names, value in zip(axes, values, strict=True):
            fields = names.split(", ")
            job |= zip(fields, value if len(fields) > 1 else (value,), strict=True)
        jobs.append(job)
    return jobs
