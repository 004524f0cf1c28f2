"""The claims that a pool allows on the page of a new session, and their widths."""

from functools import cached_property
from typing import Final, Literal, NamedTuple

from celeus.api.pools.losses import LineupOut, SystemsOut
from celeus.api.pools.pools import PoolOut
from celeus.core.insights.figures import count
from celeus.core.plans.subject import DIGITS
from celeus.core.pools.surrogates import strategies_for
from celeus.web.wording import counted

GUESSES: Final = ("surrogate.", "surrogate_", "dispersion_f", "entropy_f")
"""Beginnings of the names of columns that say something of the losses."""
_GROUP: Final = "group"
_PRESET: Final = 0.05
"""Width to begin with, as a share of the scale."""


class MetricField(NamedTuple):
    """A metric whose widths are asked for; the one loss of a pool without metrics has no name."""

    name: str | None
    score: str
    width: float

    @property
    def preset(self) -> str:
        """Return the width to begin with."""
        return f"{_PRESET * self.width:.3g}"

    def field(self, of: str) -> str:
        """Return the name of the field with a width `of` this metric."""
        return of if self.name is None else f"{of}.{self.name}"


class ClaimForm:
    """The fields that suit a pool; without one, those of a single claim."""

    def __init__(self, pool: PoolOut | None = None) -> None:
        self._pool = pool
        self.id = "" if pool is None else pool.id
        named = None if pool is None else pool.systems
        self.several = named.names if isinstance(named, LineupOut) else None
        self.systems = (named.a, named.b) if isinstance(named, SystemsOut) else ("A", "B")

    @property
    def algorithms(self) -> list[str]:
        """Return the algorithms of digests, the usual one first."""
        return list(DIGITS)

    @property
    def makes(self) -> Literal["best", "metrics", "difference", "mean"]:
        """Return what a session on this pool is about, unless groups are chosen."""
        if self.several is not None:
            return "best"
        if self._pool is None or self._pool.loss is not None:
            compared = self._pool and self._pool.loss and self._pool.loss.kind == "difference"
            return "difference" if compared else "mean"
        return "metrics"

    @property
    def target(self) -> str:
        """Return what the choice of a target is called."""
        if self.makes == "difference":
            a, b = self.systems
            return f"The difference, {a} less {b}, on"
        score = None if self._pool is None else self._pool.score
        return f"The {score.name if score else 'mean loss'} of"

    @cached_property
    def metrics(self) -> list[MetricField]:
        """The metrics of the pool, or its one loss."""
        if self._pool is None or self._pool.loss is not None:
            loss = self._pool and self._pool.loss
            score = self._pool and self._pool.score
            width = loss.upper - loss.lower if loss else 1.0
            return [MetricField(None, score.name if score else "mean loss", width)]
        return [
            MetricField(name, metric.score.name, metric.upper - metric.lower)
            for name, metric in (self._pool.metrics or {}).items()
        ]

    @property
    def groups(self) -> list[tuple[str, str]]:
        """The group columns that claims may be made of, with how many values each has."""
        pool = self._pool
        if pool is None or pool.systems or pool.based_on or "weight" in pool.columns:
            return []
        columns = {name: len(values) for name, values in pool.group_columns.items()}
        if pool.groups:
            columns.setdefault(_GROUP, len(pool.groups))
        return [(name, counted(values, "value")) for name, values in columns.items()]

    @property
    def known(self) -> str:
        """Return how many items are known, and why; empty where none is."""
        if self._pool is None or self._pool.known is None or not self._pool.known.items:
            return ""
        known = self._pool.known
        return (
            f"Of {counted(self._pool.items, 'item')}, {count(known.items)} are known"
            f" ({', '.join(known.reasons)}) and never asked for. An audit asks for them like for"
            " all others."
        )

    @property
    def drawn(self) -> tuple[int, int]:
        """Return how many items a session draws from: without an audit, and with one."""
        if self._pool is None:
            return 0, 0
        known = self._pool.known.items if self._pool.known else 0
        return self._pool.items - known, self._pool.items

    @property
    def strategies(self) -> list[str]:
        """The ways to a surrogate; "" is the one that was uploaded."""
        if self._pool is None or self._pool.loss is None:
            return []
        columns = self._pool.columns
        able = strategies_for(self._pool.loss.kind, columns)
        uploaded = any(column.startswith("surrogate.") for column in columns)
        return [*([""] if uploaded else []), *able] if able else []

    @property
    def risk(self) -> tuple[str, str]:
        """Return what the expected risk is called, and what is assumed where it is left empty."""
        compared = self.makes == "difference"
        columns = () if self._pool is None else self._pool.columns
        assumed = "None" if compared else "The middle of the scale"
        if any(column.startswith(GUESSES) for column in columns):
            assumed = "As the surrogate predicts"
        return f"Expected {'difference' if compared else 'mean loss'}", assumed
