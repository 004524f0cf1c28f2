"""The interval of a session in figures: on its page, in lists, and in its report."""

from collections.abc import Mapping
from typing import Any, Self

from celeus.core.insights.figures import Figures
from celeus.core.insights.remarks import Measure
from celeus.core.insights.sentences import is_wide
from celeus.core.interval import Interval
from celeus.core.pools.losses import LossKind, LossScale
from celeus.core.pools.score import Score
from celeus.web.report.grid import places


class IntervalFigures:
    """Figures of the interval and the estimate in a session's status."""

    def __init__(self, status: Mapping[str, Any], measure: Measure) -> None:
        self.status, self._measure = status, measure
        self.compared = measure.compared
        self.score, self.shift, self.sign = measure.shown_score, measure.shift, measure.sign
        self.figures = Figures(measure.scale, status["upper"] - status["lower"], measure.shift)
        self._now = self.image(status["lower"], status["upper"])

    @classmethod
    def of(cls, status: Mapping[str, Any]) -> Self:
        """Return the figures of a status by itself, whose two systems are not named."""
        score = Score(**{name: status["score"][name] for name in ("name", "better", "unit")})
        kind: LossKind = "difference" if status["systems"] else "bounded"
        scale = LossScale(kind, **status["scale"])
        weighted = bool(status["effective_items"])
        return cls(status, Measure(scale, None, score, weighted, status["success"]))

    def image(self, lower: float, upper: float) -> Interval:
        """Return the interval of the score where losses have these ends."""
        return self.score.image(Interval(lower, upper), self._measure.scale.interval)

    def at(self, loss: float) -> float:
        """Return the score of a loss."""
        return self.score.at(loss, self._measure.scale.interval)

    @property
    def quantity(self) -> str:
        """The name of the measured quantity."""
        return self._measure.quantity

    @property
    def estimate(self) -> str:
        """The best estimate."""
        if not self.status["rounds"]["in_interval"]:
            return "none yet"
        return self.figures.nearest(self.at(self.status["estimate"])) + self.sign

    def width(self, width: float, *, given: bool = False) -> str:
        """Return a width as text, of a share in points; if ``given``, with the user's digits."""
        figure = self.figures.given(width) if given else self.figures.nearest(width)
        return f"{figure} points" if self.shift else figure

    def asked(self, precision: float | None) -> str:
        """Return the chosen precision as text."""
        return "none" if precision is None else self.width(precision, given=True)

    @property
    def ends(self) -> str:
        """The interval as a figure."""
        low, high = self._now.lower, self._now.upper
        between = " to " if low < 0.0 else " – "
        return f"{self.figures.below(low)}{between}{self.figures.above(high)}{self.sign}"

    def threshold(self, asked: Mapping[str, Any]) -> str:
        """Return a question's threshold on the score as text, such as "at most 10 %"."""
        return self._measure.threshold(asked)

    @property
    def wide(self) -> bool:
        """True if the interval is so wide that its estimate says little."""
        return is_wide(self._now.lower, self._now.upper, self._measure.scale.interval)

    @property
    def bar(self) -> tuple[float, float, float]:
        """Start and width of the interval and place of the estimate, in percent of the scale."""
        return places(self._now, self.at(self.status["estimate"]), self._measure.scale.interval)

    @property
    def spoken(self) -> str:
        """The interval on its scale, for whoever does not see it."""
        scale, figures = self._measure.scale, self.figures
        low, high = figures.below(self._now.lower), figures.above(self._now.upper)
        least, most = (figures.given(end) + self.sign for end in (scale.lower, scale.upper))
        return f"Interval from {low} to {high}{self.sign}, on a scale from {least} to {most}"
