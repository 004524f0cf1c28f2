"""The score of a pool: name, direction and unit of the mean of its losses.

The mathematics keeps to losses, of which less is better. Notation: l a loss or a mean of losses in
[L, U], s the score.

    lower is better     s = l
    higher is better    s = L + U - l

The scale stays and is turned over: of a share in [0, 1] the score is 1 - l, of a difference in
[-U, U] it is -l, the score of A less that of B either way. A float stands for the shortest decimal
that reads back as it, as in JSON: 0.28 gives exactly 0.72. Where the result is no float, the ends
of an interval move outwards.

People may choose among named levels of the scale in place of a number. A level has a grade in the
score's direction: of `0 wrong … 3 perfect`, where higher is better, 3 is the loss 0. Names change
no loss, and no digest has them.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Literal, get_args

from celeus.core.interval import Interval
from celeus.core.plain import Plain
from celeus.core.pools.losses import LossScale
from celeus.core.pools.score_names import ERROR_RATE, MEAN_CROSS_ENTROPY, MEAN_LOSS
from celeus.core.pools.systems import AnySystems, Systems
from celeus.errors import InvalidValue

Better = Literal["higher", "lower"]
Unit = Literal["share", "number"]
LONGEST_NAME = 60
_EXACTLY = Context(prec=1_000)
"""Context with enough digits for every sum of floats, which reach from 1e-324 to 1e308."""
_HALF = Decimal("0.5")
RIGHT_OR_WRONG = ("Correct", "Wrong")
"""Words of a loss of 0 and of 1 that no score names."""
_GENERAL = re.compile(
    "accura|correct|error|match|pass|quality|right|score|success|wrong", re.IGNORECASE
)
"""Scores whose names say no more than that something is right."""
_NOUN = re.compile("(cy|[ae]nce|ion|ity|ment|harm|bias)$", re.IGNORECASE)
"""Nouns: there is "no" toxicity, where what is no noun is "not" faithful."""


@dataclass(frozen=True, slots=True)
class Score(Plain):
    """Name, direction and unit of a score: a ``share`` is shown in percent, a ``number`` as is."""

    name: str
    better: Better
    unit: Unit

    def __post_init__(self) -> None:
        name = self.name
        if not (0 < len(name) <= LONGEST_NAME and name.isprintable() and name == name.strip()):
            raise InvalidValue(
                "The name of a score stands in sentences.",
                field="score.name",
                rule=f"1 to {LONGEST_NAME} printable characters, with no space at the ends",
                value=name,
            )
        if self.better not in get_args(Better):
            raise InvalidValue(
                "A score has a direction.",
                field="score.better",
                rule="higher or lower",
                value=self.better,
            )

    @property
    def words(self) -> tuple[str, str]:
        """The words of a loss of 0 and of 1, where there are no others."""
        if _GENERAL.search(self.name):
            return RIGHT_OR_WRONG
        word = re.sub(r" rate$|ness$", "", self.name.replace("_", " "), flags=re.IGNORECASE)
        negated = f"{'no' if _NOUN.search(word) else 'not'} {word}"
        return (word, negated) if self.better == "higher" else (negated, word)

    def at(self, loss: float, scale: Interval) -> float:
        """Return the float nearest to the score of a loss on ``scale``."""
        return float(self._exact(loss, scale))

    def image(self, losses: Interval, scale: Interval) -> Interval:
        """Return the interval of scores of an interval of losses, rounded outwards."""
        ends = [self._exact(loss, scale) for loss in (losses.lower, losses.upper)]
        return Interval(_outward(min(ends), -math.inf), _outward(max(ends), math.inf))

    def values(self, losses: Interval, estimate: float, scale: Interval) -> dict[str, Any]:
        """Return name, direction and unit with the score's estimate and interval, plain values."""
        image = self.image(losses, scale)
        ends = {"lower": image.lower, "upper": image.upper}
        return {**self.to_dict(), "estimate": self.at(estimate, scale), **ends}

    def _exact(self, loss: float, scale: Interval) -> Decimal:
        exact = _decimal(loss)
        if self.better == "lower":
            return exact
        ends = _EXACTLY.add(_decimal(scale.lower), _decimal(scale.upper))
        return _EXACTLY.subtract(ends, exact)


def ends_of(kind: str, score: Score | None) -> tuple[str, str]:
    """Return the words of the lowest and of the highest value: of the score, else of the loss."""
    ends = ("A is better", "B is better") if kind == "difference" else ("best", "worst")
    return ends[::-1] if score is not None and score.better == "higher" else ends


def win_rate(preference: Interval) -> Interval:
    """Return the share of items that B wins, a tie counted as half: (1 + d) / 2, rounded outwards.

    ``preference`` holds the mean d of -1 where A is preferred, 0 at a tie and 1 where B is.
    """
    ends = (_EXACTLY.add(1, _decimal(end)) for end in (preference.lower, preference.upper))
    lower, upper = (_EXACTLY.multiply(end, _HALF) for end in ends)
    return Interval(_outward(lower, -math.inf), _outward(upper, math.inf))


def _decimal(number: float) -> Decimal:
    """Return the shortest decimal that reads back as the float."""
    return Decimal(repr(float(number)))


def _outward(exact: Decimal, towards: float) -> float:
    """Return the float for ``exact``, or the neighbour ``towards`` an infinity if it is inside."""
    nearest = float(exact)
    inside = _decimal(nearest) > exact if towards < 0.0 else _decimal(nearest) < exact
    return math.nextafter(nearest, towards) if inside else nearest


def declared_score(name: str, better: Better, scale: LossScale, named: AnySystems | None) -> Score:
    """Return the score that a user named for losses on ``scale``.

    Raises InvalidValue for preferences and for differences of systems without names.
    """
    if isinstance(named, Systems) and named.loss.kind == "preference":
        raise InvalidValue(
            "A preference has no score: it says on how many items which system is preferred.",
            field="score",
            rule="left out where the loss is a preference",
            value=name,
        )
    if scale.kind == "difference" and named is None:
        raise InvalidValue(
            "A difference of two systems without names says nothing of the score of each.",
            field="score",
            rule="left out, or beside the names of both, `systems`",
            value=name,
        )
    whole = (-1.0, 1.0) if scale.kind == "difference" else (0.0, 1.0)
    share = (scale.lower, scale.upper) == whole and scale.kind != "cross_entropy"
    return Score(name, better, "share" if share else "number")


def default_score(scale: LossScale, named: AnySystems | None) -> Score:
    """Return the score of losses on ``scale`` if the user named none."""
    if scale.kind == "zero_one":
        return Score(ERROR_RATE, "lower", "share")
    if scale.kind == "bounded":
        return Score(MEAN_LOSS, "lower", "number")
    if scale.kind == "cross_entropy":
        return Score(MEAN_CROSS_ENTROPY, "lower", "number")
    kind = named.loss.kind if isinstance(named, Systems) else "bounded"
    if kind == "preference":
        return Score("mean preference", "lower", "share" if scale.upper == 1.0 else "number")
    if kind == "zero_one":
        return Score("difference of errors", "lower", "share")
    return Score("difference of mean losses", "lower", "number")


FEWEST_LEVELS = 2
MOST_LEVELS = 20
LONGEST_LEVEL = 60
LONGEST_HELP = 300


@dataclass(frozen=True, slots=True)
class Level(Plain):
    """A grade with its name, and ``help``: when it is the right one."""

    name: str
    grade: float
    help: str | None = None

    def loss(self, scale: LossScale, score: Score) -> float:
        """Return the loss of the grade; ``Score.at`` is its own inverse."""
        return score.at(self.grade, scale.interval)


def check_levels(
    levels: Sequence[Level], scale: LossScale, score: Score | None, *, alone: bool
) -> None:
    """Raise InvalidValue for levels off the scale, repeated, or without a score's direction.

    ``alone``: a judgement gives one loss of one system.
    """
    if not levels:
        return
    if not alone or scale.kind not in {"zero_one", "bounded"}:
        raise InvalidValue(
            "Levels are of one loss of one system, zero_one or bounded.",
            field="levels",
            rule="left out beside metrics, systems, and losses of other kinds",
        )
    if score is None:
        raise InvalidValue(
            "Whether a high grade is good has to be said: 0 may be the best or the worst.",
            field="score",
            rule="a name and `better`, beside levels",
        )
    if not FEWEST_LEVELS <= len(levels) <= MOST_LEVELS:
        raise InvalidValue(
            "A scale has several levels.",
            field="levels",
            rule=f"{FEWEST_LEVELS} to {MOST_LEVELS} of them",
            value=len(levels),
        )
    for name in ("name", "grade"):
        seen: set[object] = set()
        for place, level in enumerate(levels):
            value = getattr(level, name)
            if value in seen:
                raise InvalidValue(
                    f"Two levels have the same {name}.",
                    field=f"levels.{place}.{name}",
                    rule=f"another {name}",
                    value=value,
                )
            seen.add(value)
    ends = {scale.lower, scale.upper}
    for place, level in enumerate(levels):
        whole = scale.kind == "bounded" or level.grade in ends
        if not (whole and scale.lower <= level.grade <= scale.upper):
            raise InvalidValue(
                "The grade of a level lies on the scale of the loss.",
                field=f"levels.{place}.grade",
                rule=f"{scale.lower:g} {'or' if scale.kind == 'zero_one' else 'to'}"
                f" {scale.upper:g}",
                value=level.grade,
            )
