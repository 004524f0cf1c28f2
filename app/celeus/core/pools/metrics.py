"""A metric: one of several losses that a judgement gives, by its name."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from celeus.core.pools.losses import LossScale
from celeus.core.pools.score import LONGEST_NAME, Score, default_score
from celeus.errors import InvalidValue

NO_METRIC = frozenset({"loss", "label", "reason", "probs", "a", "b", "left", "right"})


@dataclass(frozen=True, slots=True)
class Metric:
    """A loss by its name, its scale, and the score declared for its mean, if any."""

    name: str
    scale: LossScale
    score: Score | None = None

    @property
    def measured(self) -> Score:
        """Score of the mean of its losses: the declared one, else the default of the scale."""
        return self.score or default_score(self.scale, None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        stated = {} if self.score is None else {"score": self.score.to_dict()}
        return {"name": self.name} | asdict(self.scale) | stated

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the metric whose ``to_dict`` gave ``values``; a database makes 1.0 an integer."""
        scale = LossScale(values["kind"], float(values["lower"]), float(values["upper"]))
        score = Score(**values["score"]) if "score" in values else None
        return cls(values["name"], scale, score)


def check_metric_name(name: str) -> None:
    """Raise InvalidValue for names empty or too long, and names of other columns of a file."""
    if not 0 < len(name) <= LONGEST_NAME:
        raise InvalidValue(
            "A metric has a name.",
            field="metrics",
            rule=f"1 to {LONGEST_NAME} characters",
            value=name,
        )
    if name in NO_METRIC:
        raise InvalidValue(
            f"A metric is not called {name}: columns of that name mean something else.",
            field=f"metrics.{name}",
            rule="another name",
            value=name,
        )
