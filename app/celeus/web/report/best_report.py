"""The report of a session that seeks the best of several systems."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from celeus.core.insights.figures import Figures, count
from celeus.core.insights.sentences import best_sentence
from celeus.core.interval import Interval
from celeus.core.pools.score import Score
from celeus.operations.insights.report import ReportedSession
from celeus.operations.pools.record import PoolRecord
from celeus.units import PERCENT, POINTS
from celeus.web.report.wording import Words, sides_words

LEAST: Final = 0.8
"""Smallest width of a bar, in percent of the picture."""


class Rung(NamedTuple):
    """A system: how far it is behind in words, and its bar and point in percent.

    The middle of the picture is no difference from the leader.
    """

    name: str
    state: str
    word: str
    behind: str
    bar: tuple[float, float] | None
    at: float | None


def ladder(status: Mapping[str, Any], score: Score) -> list[Rung]:
    """Return the systems: the leader, then those still in, then those out, the latest first."""

    def rank(system: Mapping[str, Any]) -> tuple[int, float]:
        if system["state"] == "out":
            return 2, -system["round"]
        return int(system["state"] == "in"), system["estimate"] or 0.0

    scale, share = Interval(**status["scale"]), score.unit == "share"
    figures = Figures(scale, 0.0, PERCENT if share else 0)
    unit, won = POINTS if share else "", status["best"]["winner"] is not None
    ranked = sorted(status["best"]["systems"], key=rank)
    return [_rung(system, scale, figures, unit, won=won) for system in ranked]


def _rung(
    system: Mapping[str, Any], scale: Interval, figures: Figures, unit: str, *, won: bool
) -> Rung:
    lower, upper, estimate = system["lower"], system["upper"], system["estimate"]
    words = {"leading": "none is better" if won else "leads so far", "in": "still in"}
    about = "no label has told it from the leader"
    if estimate is not None:
        about = f"by about {figures.nearest(estimate)}{unit}"
    bar = None
    if lower is not None:
        about = f"{figures.below(lower)} to {figures.above(upper)}{unit} for certain, {about}"
        width = 50.0 * (upper - lower) / scale.width
        bar = 50.0 * (1.0 + lower / scale.width), max(width, LEAST)
    leads = system["state"] == "leading"
    return Rung(
        name=system["name"],
        state=system["state"],
        word=words.get(system["state"]) or f"out at label {count(system['round'])}",
        behind="The others are measured against it." if leads else f"Behind: {about}.",
        bar=bar,
        at=None if estimate is None else 50.0 * (1.0 + estimate / scale.width),
    )


class BestWording(Words):
    """The wording of one session's report."""

    def __init__(self, account: ReportedSession, pool: PoolRecord) -> None:
        super().__init__(account)
        self._scale, self._score = pool.scale, pool.score
        self.figures = Figures(pool.scale, 0.0, PERCENT if self._score.unit == "share" else 0)

    @property
    def quantity(self) -> str:
        """The name of the measured quantity."""
        return self._score.name

    @property
    def most(self) -> str:
        """Adjective of the best value: least or highest."""
        return "least" if self._score.better == "lower" else "highest"

    @property
    def behind(self) -> str:
        """Definition of the difference from the leader, in words."""
        if self._score.better == "lower":
            return f"its {self.quantity} less that of the leader"
        return f"the leader's {self.quantity} less its own"

    @property
    def claim(self) -> str:
        """The claim in one sentence."""
        return best_sentence(self._status)

    @property
    def conditions(self) -> list[str]:
        """Sentences beside the claim: the number of labels, and a leader that is not certified."""
        inside, items = count(self.labels_in_interval), self.items
        lines = [f"{inside} of {items} items were judged, by the losses of all systems."]
        if self._status["best"]["winner"] is None:
            lines.append(f"{self.ladder[0].name} does best so far, which is no claim.")
        return lines

    @property
    def standing(self) -> str:
        """Sentence that the certificate is final or interim."""
        if self._account.closed:
            return "Final: the session is closed, and nothing can be added to it."
        return "Interim: the session is open; more labels may tell more systems apart."

    @property
    def scale(self) -> str:
        """The scale of the losses."""
        if self._scale.kind == "zero_one":
            return "0 (right) or 1 (wrong), of every system"
        low, high = self._scale.lower, self._scale.upper
        return f"{low:.10g} to {high:.10g} of every system, lower is better"

    @property
    def sides(self) -> str | None:
        """Sentence on how often each place won; None if no answers were judged in an order."""
        return sides_words(self._status)

    @property
    def ladder(self) -> list[Rung]:
        """The systems from the leader down."""
        return ladder(self._status, self._score)
