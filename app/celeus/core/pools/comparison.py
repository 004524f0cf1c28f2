"""Several systems on one pool: surrogates of their losses, and losses from judgements.

Notation: loss in [L, U], s_A, s_B surrogates of the two losses on the unit scale.

    d       loss of A less loss of B, in [L - U, U - L]; below 0 A is better
    x       s_A - s_B                                            surrogate of d
    e       chance that d is not 0
            (1 - s_A) + (1 - s_B)          where at most one of two different answers can be right
            s_A (1 - s_B) + s_B (1 - s_A)  else

Items with the same answer from both have d = 0 for certain. That is a known loss, and most of the
labels that a comparison saves.
"""

from collections.abc import Mapping, Sequence
from itertools import chain as flatten
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celeus.core.interval import Interval
from celeus.core.pools.losses import LossScale, zero_one_loss
from celeus.core.pools.pool import Pool
from celeus.core.pools.systems import Lineup, Side, loss_of
from celeus.errors import InvalidValue

Floats = NDArray[np.float64]

SAYINGS = (("label",), ("loss_a", "loss_b"), ("loss_left", "loss_right"), ("preference", "grade"))
"""Members of a judgement of two systems, by their names in the ledger: one group of these."""
WORDS = tuple(flatten.from_iterable(SAYINGS))


def difference_scale(scale: LossScale) -> LossScale:
    """Return the scale of the difference of two losses on ``scale``."""
    return LossScale.of("difference", upper=scale.upper - scale.lower)


def surrogate_columns(
    a: Floats, b: Floats, scale: Interval, *, exclusive: bool
) -> dict[str, Floats]:
    """Return the pool columns of surrogate and chance of a difference, from the losses' surrogates.

    ``exclusive``: of two different answers at most one is right.
    """
    unit_a, unit_b = ((column - scale.lower) / scale.width for column in (a, b))
    change = unit_a * (1.0 - unit_b) + unit_b * (1.0 - unit_a)
    if exclusive:
        change = np.clip(2.0 - unit_a - unit_b, 0.0, 1.0)
    return {"surrogate.0": a - b, "change": change}


def stated_loss(pool: Pool, item: int, judgement: Mapping[str, Any], left: Side | None) -> float:
    """Return the loss of an item from the members of a judgement; ``left`` as in ``Systems``.

    Raises InvalidValue for members that the pool does not ask for, and LossOutsideScale for a loss
    outside its scale.
    """
    systems = pool.systems
    words = [names[0] for names in (*SAYINGS, ("loss",)) if not judgement.keys().isdisjoint(names)]
    if len(words) > 1:
        raise InvalidValue(
            "A judgement says one thing.",
            field=words[-1],
            rule=f"left out beside `{words[0]}`",
            value=judgement.get(words[-1]),
        )
    word = words[0] if words else "loss"
    both = word.startswith("loss_")
    if systems is None or left is None:
        if word == "label":
            return pool.loss_of_label(item, judgement["label"])
        if word == "loss":
            return pool.scale.check(judgement["loss"])
    elif both and systems.loss.kind != "preference":
        return systems.of_losses(judgement, left)
    elif word in {"preference", "grade"} and systems.loss.kind == "preference":
        return systems.of_preference(judgement, left)
    elif word == "label" and pool.paired_classes:
        return pool.loss_of_label(item, judgement["label"])
    field = "losses" if both else word
    asked = "`loss`, or `label` where it follows from one: the pool names no `systems`"
    if systems is not None:
        asked = systems.asked(classes=pool.paired_classes)
    raise InvalidValue(
        f"A judgement of this pool is no `{field}`.",
        field=field,
        rule=f"left out; a judgement of this pool is {asked}",
        value=judgement.get(word),
    )


def stated_losses(
    pool: Pool,
    lineup: Lineup,
    item: int,
    judgement: Mapping[str, Any],
    shown: Sequence[Sequence[int]] | None,
) -> tuple[float, ...]:
    """Return the losses of several systems from a judgement: its ``label`` or ``losses``.

    Losses are given by the systems' names, or one for each answer ``shown``, a list of the systems
    that gave it. Raises InvalidValue for members that the pool does not ask for, and
    LossOutsideScale for losses outside the scale.
    """
    label, losses = judgement.get("label"), judgement.get("losses")
    predictions = pool.columns.get("predictions")
    if label is not None and predictions is not None:
        return tuple(
            zero_one_loss(label, int(prediction), None) for prediction in predictions[item]
        )
    if isinstance(losses, Mapping):
        return lineup.losses(losses)
    if losses is not None and shown is not None:
        if len(losses) != len(shown):
            raise InvalidValue(
                "A judgement gives a loss for every answer that was shown.",
                field="losses",
                rule=f"{len(shown)} losses, in the order of the answers",
                value=len(losses),
            )
        # By place: a refusal by name would disclose which system gave an answer.
        scale, whole = lineup.loss, lineup.loss.kind == "zero_one"
        losses = [
            loss_of(str(place), loss, scale.lower, scale.upper, whole=whole)
            for place, loss in enumerate(losses)
        ]
        groups = zip(shown, losses, strict=True)
        return lineup.losses(
            {lineup.names[system]: loss for group, loss in groups for system in group}
        )
    word = next(iter(judgement), "loss")
    asked = "`losses` of all systems, by name"
    asked += ", or of the answers in the order shown" if shown is not None else ""
    if predictions is not None:
        asked = f"`label`, the true class, or {asked}"
    if word == "losses":
        raise InvalidValue(
            "No answers are shown in this round, so that there is no order to speak of them in.",
            field=word,
            rule=asked,
            value=losses,
        )
    raise InvalidValue(
        f"A judgement of this pool is no `{word}`.",
        field=word,
        rule=f"left out; a judgement of this pool is {asked}",
        value=judgement.get(word),
    )
