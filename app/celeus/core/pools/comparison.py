"""Systems on one pool: what is known of their losses without a label, and what judges say of them.

Notation: loss in [L, U], s_A, s_B surrogates of the two losses on the unit scale.

    d       loss of A less loss of B, in [L - U, U - L]; below 0 A is better
    x       s_A - s_B                                            surrogate of d
    e       chance that d is not 0
            (1 - s_A) + (1 - s_B)          where at most one of two different answers can be right
            s_A (1 - s_B) + s_B (1 - s_A)  else

Items to which both gave the same answer have d = 0 for certain. That is a known loss, and most of
what a comparison saves.
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
"""What a judgement of two systems may say, one of these, by the names it has in the ledger."""
WORDS = tuple(flatten.from_iterable(SAYINGS))


def difference_scale(scale: LossScale) -> LossScale:
    """Where the difference of two losses lies."""
    return LossScale.of("difference", upper=scale.upper - scale.lower)


def surrogate_columns(
    a: Floats, b: Floats, scale: Interval, *, exclusive: bool
) -> dict[str, Floats]:
    """Surrogate of the difference and chance of one, as a pool's columns, from those of the losses.

    ``exclusive`` says that of two different answers at most one is right.
    """
    unit_a, unit_b = ((column - scale.lower) / scale.width for column in (a, b))
    change = unit_a * (1.0 - unit_b) + unit_b * (1.0 - unit_a)
    if exclusive:
        change = np.clip(2.0 - unit_a - unit_b, 0.0, 1.0)
    return {"surrogate.0": a - b, "change": change}


def loss_said(pool: Pool, item: int, judgement: Mapping[str, Any], left: Side | None) -> float:
    """The loss of an item that a judge's words say, by name; ``left`` as in ``Systems``.

    Refuses words that the pool does not ask for, and losses outside its scale.
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
    elif both and systems.kind != "preference":
        return systems.of_losses(judgement, left)
    elif word in {"preference", "grade"} and systems.kind == "preference":
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


def losses_said(
    pool: Pool,
    lineup: Lineup,
    item: int,
    judgement: Mapping[str, Any],
    shown: Sequence[Sequence[int]] | None,
) -> tuple[float, ...]:
    """The losses of several systems that a judge's words say: a ``label`` or ``losses``.

    Losses are given by the systems' names, or one for each answer ``shown``, which says whose it
    is. Refuses words that the pool does not ask for, and losses outside the scale.
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
        # By their places: a refusal by name would tell whose an answer is.
        scale, whole = lineup.scale, lineup.scale.kind == "zero_one"
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
