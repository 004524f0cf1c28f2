"""A metric: one of several losses that a judgement gives, by its name."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from celeus.core.plain import INLINE, Plain
from celeus.core.pools.losses import LossScale
from celeus.core.pools.score import LONGEST_NAME, Score, default_score
from celeus.errors import InvalidValue

NO_METRIC = frozenset({"loss", "label", "reason", "probs", "a", "b", "left", "right"})


@dataclass(frozen=True, slots=True)
class Metric(Plain):
    """A loss by its name, its scale, and the score declared for its mean, if any."""

    name: str
    scale: Annotated[LossScale, INLINE]
    score: Score | None = None

    optional: ClassVar = ("score",)

    @property
    def measured(self) -> Score:
        """Score of the mean of its losses: the declared one, else the default of the scale."""
        return self.score or default_score(self.scale, None)

    @property
    def words(self) -> tuple[str, str]:
        """The words of a loss of 0 and of 1; a metric without a score may mean anything."""
        return ("good", "bad") if self.score is None else self.score.words


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
