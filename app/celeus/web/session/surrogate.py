"""The quality of a session's surrogate: a verdict, a picture, and the table behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final, Literal, NamedTuple

from celeus.core.insights.figures import Figures
from celeus.core.insights.sentences import Contrast
from celeus.core.interval import Interval
from celeus.web.wording import counted

By = Literal["curve", "strata"]
SIZE: Final = 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 10, 40
_TICKS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
_STRONG, _WEAK = 0.5, 0.2
_FIGURES: Final = Figures(Interval(0.0, 1.0), 0.1)


class Tick(NamedTuple):
    """A value on both axes: its places and its words."""

    x: float
    y: float
    words: str


class Dot(NamedTuple):
    """A part of the pool in the picture; ``used`` is what the labels make of it."""

    x: float
    y: float
    low: float
    high: float
    used: float | None
    radius: float


class Row(NamedTuple):
    """A part of the pool in the table."""

    name: str
    items: int
    labels: int
    surrogate: str
    loss: str
    limits: str
    used: str


@dataclass(frozen=True, slots=True)
class Health:
    """A surrogate on its page; of two systems scores and losses are differences.

    ``found`` are the diagnostics of the interface, ``scale`` is that of the losses.
    """

    found: Mapping[str, Any]
    scale: Interval
    contrast: Contrast | None
    by: By = "curve"

    @property
    def score(self) -> str:
        """The name of scores."""
        return "score" if self.contrast is None else "guessed difference"

    @property
    def axis(self) -> str:
        """The label below the picture."""
        return "surrogate score" if self.contrast is None else self.score

    @property
    def loss(self) -> str:
        """The name of losses."""
        names = self.contrast
        return "loss" if names is None else f"difference ({names.a} less {names.b})"

    @property
    def plain(self) -> str:
        """The loss without names, which an axis has no room for."""
        return "loss" if self.contrast is None else "difference"

    @property
    def losses(self) -> str:
        """Losses in the plural."""
        return "losses" if self.contrast is None else "differences"

    @property
    def verdict(self) -> str:
        """The verdict on the surrogate, in words."""
        found, correlation = self.found, self.found["correlation"]
        if not found["used"]:
            return "This policy draws uniformly and uses no surrogate."
        if not found["labels"]:
            return "Nothing is judged yet."
        if correlation is None:
            return (
                f"All {self.score}s or all {self.losses} so far are alike, so nothing can be said"
                " about how they agree."
            )
        return (
            f"After {counted(found['labels'], 'label')}, {self._agreement(correlation)}"
            f" (correlation {_FIGURES.nearest(correlation)}).{self._shift()} A bad"
            " surrogate costs width, never validity: the interval holds either way."
        )

    def _agreement(self, correlation: float) -> str:
        scores, losses = f"{self.score}s", self.losses
        if correlation >= _STRONG:
            return f"{scores} and {losses} agree well"
        if correlation >= _WEAK:
            return f"{scores} and {losses} agree somewhat"
        if correlation > -_WEAK:
            return f"{scores} say little about {losses}"
        reversed_ = f"{scores} are high where {losses} are low: they are upside down"
        if self._learns:
            return f"{reversed_}, and the session uses them that way"
        return f"{reversed_}, which costs labels: this policy takes them as they are"

    def _shift(self) -> str:
        if self.found["loss"] is None:
            return ""
        over = "of the pool" if self.contrast is None else "over the items that are asked for"
        surrogate, loss = (_FIGURES.nearest(self.found[name]) for name in ("surrogate", "loss"))
        means = f" The mean {self.score} {over} is {surrogate}, the mean {self.loss} about {loss}"
        if not self._learns:
            return f"{means}."
        return f"{means}; a shift like that is learned from the labels and costs little."

    @property
    def _learns(self) -> bool:
        """True if the policy fits surrogates to labels, by strata."""
        return bool(self.found["strata"])

    @property
    def ticks(self) -> list[Tick]:
        """The values of both axes."""
        values = [self.scale.lower + share * self.scale.width for share in _TICKS]
        return [Tick(self._across(value), self._along(value), _short(value)) for value in values]

    @property
    def choice(self) -> bool:
        """True if there are labels, and strata to sort them by."""
        return len(self.found["strata"]) > 1 and bool(self.found["labels"])

    @property
    def _parts(self) -> Sequence[Mapping[str, Any]]:
        parts: Sequence[Mapping[str, Any]] = self.found[self.by] or self.found["curve"]
        return parts

    @property
    def _estimated(self) -> list[Mapping[str, Any]]:
        return [part for part in self._parts if part["loss"] is not None]

    @property
    def spoken(self) -> str:
        """The picture in words."""
        shown = self._estimated
        ends = " to ".join(
            f"{self.score} {_FIGURES.nearest(part['surrogate'])}: {_FIGURES.nearest(part['loss'])}"
            for part in (shown[0], shown[-1])
        )
        return f"Mean {self.loss} by {self.axis}, in {len(shown)} parts; from {ends}"

    @property
    def dots(self) -> list[Dot]:
        """The parts in the picture; of a single one there is none."""
        shown = self._estimated
        if len(shown) < 2:
            return []
        labels, items = (max(part[name] for part in shown) for name in ("labels", "items"))
        return [
            self._dot(part, 2.5 + 3.5 * sqrt(part["labels"] / labels * part["items"] / items))
            for part in shown
        ]

    @property
    def rows(self) -> list[Row]:
        """The parts in the table."""
        return [self._row(place, part) for place, part in enumerate(self._parts, 1)]

    def _dot(self, part: Mapping[str, Any], radius: float) -> Dot:
        return Dot(
            x=self._across(part["surrogate"]),
            y=self._along(part["loss"]),
            low=self._along(part["low"]),
            high=self._along(part["high"]),
            used=self._along(part["used"]) if self.found["used"] else None,
            radius=radius,
        )

    def _row(self, place: int, part: Mapping[str, Any]) -> Row:
        least, largest = _short(part["least"]), _short(part["largest"])
        name = least if least == largest else f"{least} – {largest}"
        limits = "–"
        if part["low"] is not None:
            limits = f"{_FIGURES.nearest(part['low'])} – {_FIGURES.nearest(part['high'])}"
        return Row(
            name=f"{place}: {name}" if self.by == "strata" else name,
            items=part["items"],
            labels=part["labels"],
            surrogate=_FIGURES.nearest(part["surrogate"]),
            loss="–" if part["loss"] is None else _FIGURES.nearest(part["loss"]),
            limits=limits,
            used=_FIGURES.nearest(part["used"]) if self.found["used"] else "–",
        )

    def _across(self, value: float) -> float:
        share = (value - self.scale.lower) / self.scale.width
        return _LEFT + share * (SIZE - _LEFT - _RIGHT)

    def _along(self, value: float) -> float:
        share = (value - self.scale.lower) / self.scale.width
        return SIZE - _BOTTOM - share * (SIZE - _BOTTOM - _TOP)


def _short(value: float) -> str:
    return f"{value:.3g}".replace("-", "\N{MINUS SIGN}")
