"""Named levels of a scale: what people choose among in place of a number.

A level has a grade in the score's direction: of `0 wrong … 3 perfect`, where higher is better, 3 is
the loss 0. Names change no loss, and no digest has them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from celeus.core.plain import Plain
from celeus.core.pools.losses import LossScale
from celeus.core.pools.score import Score
from celeus.errors import InvalidValue

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
