"""The systems of a pool: their names, and the losses that judgements of their answers give.

Of two that are compared the loss of each lies in [L, U]; the pool holds the differences d = loss of
A less loss of B, in [L - U, U - L], below 0 where A is better. A preference has no losses of its
own: it is d itself, from -U (A is better by U grades) to U. Judges may speak of ``a`` and
``b``, or of the ``left`` and the ``right`` answer, where ``left`` says which system stood there.

Of several, among which the best is sought, a judge gives the losses of all.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, get_args

from celeus.core.plain import Plain
from celeus.core.pools.losses import LossScale
from celeus.errors import InvalidValue, LossOutsideScale

Kind = Literal["zero_one", "bounded", "preference"]
Normalisation = Literal["exact", "whitespace", "casefold"]
Side = Literal["a", "b"]

SIDES: tuple[Side, Side] = ("a", "b")
KINDS: tuple[Kind, ...] = get_args(Kind)
NORMALISATIONS: tuple[Normalisation, ...] = get_args(Normalisation)
SAME_ANSWER = "same answer"
"""Reason for which the difference of two equal answers is known."""
MOST_GRADES = 10
FEWEST, MOST = 2, 50
"""Least and largest number of systems among which the best is sought."""
TIES = ("tie", "both_bad")
"""Preferences for neither answer; what both of two bad ones are is kept apart from a tie."""
PLACES: tuple[str, str] = ("left", "right")
RESERVED = (*SIDES, *PLACES)


@dataclass(frozen=True, slots=True)
class OneLoss(Plain):
    """Kind and scale on which one of two systems is judged."""

    kind: Kind
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Systems(Plain):
    """Two systems that are compared: names, the loss of each, and the rule for equal texts.

    Without ``normalisation`` equal texts say nothing: agents that both say "Done." may differ.
    """

    a: str
    b: str
    loss: OneLoss
    normalisation: Normalisation | None = None

    def __post_init__(self) -> None:
        if self.a == self.b:
            raise InvalidValue(
                "The two systems have one name.",
                field="systems.b",
                rule="another name than that of a",
                value=self.b,
            )
        loss = self.loss
        if loss.kind not in KINDS:
            raise InvalidValue(
                "Two systems are not compared by this kind of loss.",
                field="loss.kind",
                rule="one of " + ", ".join(KINDS) + " where there are `systems`",
                value=loss.kind,
            )
        _check_normalisation(self.normalisation)
        if loss.kind == "preference":
            self._check_grades()
        else:
            LossScale(loss.kind, loss.lower, loss.upper)
        # Twice as wide a scale may be too wide.
        self.scale.check(0.0)

    def _check_grades(self) -> None:
        lower, upper = self.loss.lower, self.loss.upper
        if lower != 0.0:
            raise InvalidValue(
                "A preference has no lower limit.",
                field="loss.lower",
                rule="left out",
                value=lower,
            )
        if upper not in range(1, MOST_GRADES + 1):
            raise InvalidValue(
                "The grades of a preference are counted.",
                field="loss.upper",
                rule=f"a whole number from 1 to {MOST_GRADES}: grades by which one may be better",
                value=upper,
            )

    @classmethod
    def of(
        cls,
        names: tuple[str, str],
        loss: tuple[str, float | None, float | None],
        same: str | None = None,
    ) -> Self:
        """Return the systems with defaults for missing parts of ``loss`` (kind, lower, upper)."""
        kind, lower, upper = loss
        if kind in {"zero_one", "bounded"}:
            scale = LossScale.of(kind, lower, upper)  # type: ignore[arg-type]  # just compared
            lower, upper = scale.lower, scale.upper
        ends = 0.0 if lower is None else lower, 1.0 if upper is None else upper
        # Whatever else it is, the check of the kind refuses it by name.
        return cls(*names, OneLoss(kind, *ends), same)  # type: ignore[arg-type]

    @property
    def names(self) -> dict[str, str]:
        """Names of the systems, by side."""
        return {"a": self.a, "b": self.b}

    @property
    def scale(self) -> LossScale:
        """Scale of the difference."""
        return LossScale.of("difference", upper=self.loss.upper - self.loss.lower)

    def task(self, *, takes_labels: bool) -> dict[str, Any]:
        """Return the facts a judge needs about the comparison, without the systems' names."""
        loss = self.loss
        judged_by = "preference" if loss.kind == "preference" else "losses"
        return {
            "judged_by": "label" if takes_labels else judged_by,
            "kind": loss.kind,
            "scale": (loss.lower, loss.upper),
        }

    def same(self, first: str, second: str) -> bool:
        """Return whether the two texts are the same answer; an empty one is none."""
        if self.normalisation is None:
            return False
        first_text, second_text = (normal(text, self.normalisation) for text in (first, second))
        return first_text == second_text and bool(first_text.strip())

    def reason(self, *, classes: bool) -> str:
        """Return the reason for which the difference of equal answers is known."""
        return reason_of(self.normalisation, classes=classes)

    def asked(self, *, classes: bool) -> str:
        """Return the members of a judgement of this pool, in words."""
        if self.loss.kind == "preference":
            upper = self.loss.upper
            grades = "" if upper == 1.0 else f", with `grade` from 1 to {upper:g}"
            return f"`preference` (left, tie, both_bad or right{grades})"
        both = "`losses` of both (left and right)"
        return f"`label`, the true class, or {both}" if classes else both

    def of_losses(self, judgement: Mapping[str, Any], left: Side) -> float:
        """Return the difference from ``loss_a`` and ``loss_b``, or those of left and right."""
        names = SIDES if "loss_a" in judgement else PLACES
        ends = self.loss.lower, self.loss.upper
        whole = self.loss.kind == "zero_one"
        losses = {
            name: loss_of(name, judgement.get(f"loss_{name}"), *ends, whole=whole) for name in names
        }
        if names == PLACES and left == "b":
            names = names[::-1]
        return losses[names[0]] - losses[names[1]]

    def of_preference(self, judgement: Mapping[str, Any], left: Side) -> float:
        """Return the difference that a ``preference`` and its ``grade`` give."""
        preference, grade = judgement.get("preference"), judgement.get("grade", 1)
        number = float(grade) if type(grade) in {int, float} else 0.0
        if not (number.is_integer() and 1.0 <= number <= self.loss.upper):
            raise InvalidValue(
                "The pool has no such grade.",
                field="grade",
                rule=f"a whole number from 1 to {self.loss.upper:g}, or left out",
                value=grade,
            )
        if preference in TIES and "grade" not in judgement:
            return 0.0
        better = preference
        if preference in PLACES:
            better = left if preference == "left" else next(side for side in SIDES if side != left)
        if better in SIDES:
            return -number if better == "a" else number
        raise InvalidValue(
            "This is no preference.",
            field="preference",
            rule="left, tie, both_bad or right (or a or b), and `grade` only where one is better",
            value=preference,
        )


@dataclass(frozen=True, slots=True)
class Lineup(Plain):
    """Names of the systems among which the best is sought, and the scale of each one's loss.

    ``normalisation`` decides which texts are the same answer; without one none are.
    """

    names: tuple[str, ...]
    loss: LossScale
    normalisation: Normalisation | None = None

    def __post_init__(self) -> None:
        check_count(len(self.names))
        for name in self.names:
            if name in RESERVED or self.names.count(name) > 1:
                raise InvalidValue(
                    "Every system has a name of its own.",
                    field="systems.names",
                    rule="different names, none of them " + ", ".join(RESERVED),
                    value=name,
                )
        _check_best_kind(self.loss.kind)
        _check_normalisation(self.normalisation)

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        loss: tuple[str, float | None, float | None],
        same: str | None = None,
    ) -> Self:
        """Return the systems with defaults for missing parts of ``loss`` (kind, lower, upper)."""
        kind, lower, upper = loss
        _check_best_kind(kind)
        scale = LossScale.of(kind, lower, upper)  # type: ignore[arg-type]  # just checked
        # Whatever else it is, the check refuses it by name.
        return cls(tuple(names), scale, same)  # type: ignore[arg-type]

    def codes(self, texts: Sequence[str]) -> list[int]:
        """Return for every system's text the place of the first system with the same answer."""
        if self.normalisation is None:
            return list(range(len(texts)))
        normals: list[object] = [
            normal(text, self.normalisation) if text.strip() else place
            for place, text in enumerate(texts)
        ]
        first = {text: place for place, text in reversed(list(enumerate(normals)))}
        return [first[text] for text in normals]

    def reason(self, *, classes: bool) -> str:
        """Return the reason for which items with equal answers of all systems are known."""
        return reason_of(self.normalisation, classes=classes)

    def losses(self, by_name: Mapping[str, Any]) -> tuple[float, ...]:
        """Return the losses of all systems, in order, from a judgement that gives them by name."""
        unknown = sorted(by_name.keys() - set(self.names))
        if unknown:
            raise InvalidValue(
                "The pool has no system of this name.",
                field="losses",
                rule="the systems of the pool, all of them, by name",
                value=unknown[0],
            )
        scale = self.loss
        whole = scale.kind == "zero_one"
        return tuple(
            loss_of(name, by_name.get(name), scale.lower, scale.upper, whole=whole)
            for name in self.names
        )


def systems_from(values: object, where: str = "systems") -> Systems | Lineup:
    """Return the systems whose ``to_dict`` gave ``values``: two that are compared, or several."""
    several = isinstance(values, Mapping) and "names" in values
    return (Lineup if several else Systems).from_dict(values, where)


AnySystems = Annotated[Systems | Lineup, systems_from]


def check_count(count: int) -> None:
    """Raise InvalidValue unless the number of systems is from FEWEST to MOST."""
    if not FEWEST <= count <= MOST:
        text = "There are too many systems to seek the best of."
        if count < FEWEST:
            text = "The best is sought among several systems; of one, measure the risk."
        raise InvalidValue(text, field="systems", rule=f"{FEWEST} to {MOST} systems", value=count)


def _check_best_kind(kind: str) -> None:
    if kind not in {"zero_one", "bounded"}:
        text = "The best of several systems is sought by the losses of all."
        rule = "zero_one or bounded"
        if kind == "preference":
            rule += "; a preference compares two, `systems` with `a` and `b`"
        raise InvalidValue(text, field="loss.kind", rule=rule, value=kind)


def _check_normalisation(normalisation: str | None) -> None:
    if normalisation is not None and normalisation not in NORMALISATIONS:
        raise InvalidValue(
            "The normalisation of answers is unknown.",
            field="systems.normalisation",
            rule="one of " + ", ".join(NORMALISATIONS) + ", or left out",
            value=normalisation,
        )


def normal(text: str, normalisation: Normalisation) -> str:
    """Return the normalised text; texts that are the same answer have the same one."""
    if normalisation == "exact":
        return text
    text = " ".join(text.split())
    return text.casefold() if normalisation == "casefold" else text


def reason_of(normalisation: Normalisation | None, *, classes: bool) -> str:
    """Return the reason for which equal answers are known; classes need no normalisation."""
    return SAME_ANSWER if classes else f"{SAME_ANSWER} ({normalisation})"


def loss_of(name: str, loss: object, lower: float, upper: float, *, whole: bool) -> float:
    """Return the loss of system or place ``name``; raises LossOutsideScale off the scale."""
    number = float(loss) if type(loss) in {int, float} else math.nan  # type: ignore[arg-type]
    if number in {0.0, 1.0} if whole else lower <= number <= upper:
        return number
    raise LossOutsideScale(
        "The loss of a system is not on its scale.",
        field=f"losses.{name}",
        rule="exactly 0 or 1" if whole else f"a number from {lower:g} to {upper:g}",
        value=loss,
    )
