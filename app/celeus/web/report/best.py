"""What a session says that seeks the best of several systems.

The session's page writes the same sentence (static/js/session/ladder.js).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from celeus.core.pools.losses import LossScale
from celeus.operations.insights.report import Account
from celeus.web.report.wording import Scaled, Words, count, sure

MIDDLE: Final = 100.0
"""Where a row has no difference, of a picture twice as wide."""


class Rung(NamedTuple):
    """A system on the ladder: its figures, and where its bar and its point stand."""

    name: str
    state: str
    words: str
    estimate: str
    lower: str
    upper: str
    bar: tuple[float, float] | None
    at: float | None


def best_sentence(status: Mapping[str, Any]) -> str:
    """What a session says of its systems, as its status stands."""
    best = status["best"]
    systems, standing = len(best["systems"]), best["standing"]
    if best["winner"] is not None:
        return f"{best['winner']} is the best of {systems} systems, {_sure(status)}."
    if status["rounds"]["in_interval"] == 0:
        return f"Nothing is judged yet: any of the {systems} systems may be the best."
    if status["stop_reason"] == "exhausted":
        return (
            f"{_listed(standing, 'and')} are the best of {systems} systems, {_sure(status)}, and"
            " equally good: every item that could tell them apart is judged."
        )
    return f"The best of {systems} systems is {_listed(standing, 'or')}, {_sure(status)}."


def _sure(status: Mapping[str, Any]) -> str:
    return f"{sure(status['alpha'])} sure at every moment"


def _listed(names: Sequence[str], word: str) -> str:
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


class BestWording(Words):
    """The wording of one session's report."""

    def __init__(self, account: Account, scale: LossScale) -> None:
        super().__init__(account)
        self._scale = scale
        self.figures = Scaled(scale, 0.0)

    @property
    def quantity(self) -> str:
        """The name of the measured quantity."""
        return "error rate" if self._scale.kind == "zero_one" else "mean loss"

    @property
    def claim(self) -> str:
        """The claim in one sentence."""
        return best_sentence(self._status)

    @property
    def conditions(self) -> list[str]:
        """What else there is to say of the claim."""
        inside, items = count(self.labels_in_interval), self.items
        lines = [f"{inside} of {items} items were judged, by the losses of all systems."]
        if self._status["best"]["winner"] is None:
            leader = next(one for one in self._ranked if one["state"] == "leading")
            lines.append(f"{leader['name']} does best so far, which is no claim.")
        return lines

    @property
    def standing(self) -> str:
        """Whether the certificate is final or interim, in words."""
        if self._told.closed:
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
    def sides(self) -> None:
        """No sides: answers stand in an order drawn for every round, and nobody counts."""
        return

    @property
    def _ranked(self) -> list[dict[str, Any]]:
        """The systems, the leader first, and those out last, the latest of them before."""

        def rank(one: Mapping[str, Any]) -> tuple[int, float]:
            if one["state"] == "out":
                return 2, -one["round"]
            return int(one["state"] == "in"), one["estimate"] or 0.0

        return sorted(self._status["best"]["systems"], key=rank)

    @property
    def ladder(self) -> list[Rung]:
        """A row for every system."""
        return [self._rung(one) for one in self._ranked]

    def _rung(self, one: Mapping[str, Any]) -> Rung:
        figures, width = self.figures, self._scale.width
        lower, upper, estimate = one["lower"], one["upper"], one["estimate"]
        words = {"leading": "leads", "in": "may be the best"}.get(one["state"])
        bar = None
        if lower is not None:
            bar = MIDDLE * (1.0 + lower / width), MIDDLE * (upper - lower) / width
        return Rung(
            name=one["name"],
            state=one["state"],
            words=words or f"out since label {count(one['round'])}",
            estimate="" if estimate is None else figures.nearest(estimate),
            lower="" if lower is None else figures.below(lower),
            upper="" if upper is None else figures.above(upper),
            bar=bar,
            at=None if estimate is None else MIDDLE * (1.0 + estimate / width),
        )
