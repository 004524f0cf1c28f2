"""The report of a session that seeks the best of several systems."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from celeus.core.insights.figures import Figures, count
from celeus.core.insights.sentences import best_sentence
from celeus.operations.insights.report import Account
from celeus.operations.pools.record import PoolRecord
from celeus.units import PERCENT
from celeus.web.report.wording import Words

MIDDLE: Final = 100.0
"""Place of the difference 0 in a row, whose picture is twice as wide."""


class LadderRow(NamedTuple):
    """A system on the ladder: its figures, and the places of its bar and its point."""

    name: str
    state: str
    words: str
    estimate: str
    lower: str
    upper: str
    bar: tuple[float, float] | None
    at: float | None


class BestWording(Words):
    """The wording of one session's report."""

    def __init__(self, account: Account, pool: PoolRecord) -> None:
        super().__init__(account)
        self._scale, self._score = pool.scale, pool.score
        shift = PERCENT if self._score.unit == "share" else 0
        self.unit = ", points" if shift else ""
        self.figures = Figures(pool.scale, 0.0, shift)

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
            leader = next(system for system in self._ranked if system["state"] == "leading")
            lines.append(f"{leader['name']} does best so far, which is no claim.")
        return lines

    @property
    def standing(self) -> str:
        """Sentence that the certificate is final or interim."""
        if self._account.closed:
            return "Final: the session is closed, and nothing can be added to it."
        return "Interim: the session is open; more labels may tell more systems apart."

    @property
    def low(self) -> str:
        """The left end of a row of the ladder."""
        return self.figures.nearest(self._scale.lower - self._scale.upper)

    @property
    def high(self) -> str:
        """The right end of a row of the ladder."""
        return self.figures.nearest(self._scale.upper - self._scale.lower)

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
        places = self._status["best"]["places"] or {}
        if not any(places.values()):
            return None
        first, last, other = (count(places[name]) for name in ("first", "last", "other"))
        return (
            f"the first answer shown was the best in {first} rounds, the last in {last}, another"
            f" or several in {other}"
        )

    @property
    def _ranked(self) -> list[dict[str, Any]]:
        """Systems by rank: the leader, then those still in, then those out, the latest first."""

        def rank(system: Mapping[str, Any]) -> tuple[int, float]:
            if system["state"] == "out":
                return 2, -system["round"]
            return int(system["state"] == "in"), system["estimate"] or 0.0

        return sorted(self._status["best"]["systems"], key=rank)

    @property
    def ladder(self) -> list[LadderRow]:
        """Rows of the ladder, one per system."""
        return [self._ladder_row(system) for system in self._ranked]

    def _ladder_row(self, system: Mapping[str, Any]) -> LadderRow:
        figures, width = self.figures, self._scale.width
        lower, upper, estimate = system["lower"], system["upper"], system["estimate"]
        words = {"leading": "leads", "in": "still in"}.get(system["state"])
        bar = None
        if lower is not None:
            bar = MIDDLE * (1.0 + lower / width), MIDDLE * (upper - lower) / width
        return LadderRow(
            name=system["name"],
            state=system["state"],
            words=words or f"out since label {count(system['round'])}",
            estimate="" if estimate is None else figures.nearest(estimate),
            lower="" if lower is None else figures.below(lower),
            upper="" if upper is None else figures.above(upper),
            bar=bar,
            at=None if estimate is None else MIDDLE * (1.0 + estimate / width),
        )
