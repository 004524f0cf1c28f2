"""Several raters of one item: who they are, what their protocol comes to, how far they agree.

    two_then_third   two judge; where they differ a third decides: the median of the three
    consensus        two judge, and judge again while they differ, three times at most; then the
                     item is one that nobody can judge

Neither knows of the interval: a protocol sees the losses of its item alone, so that its outcome is
a loss like any other (docs/method.md#20-raters).
"""

from collections.abc import Sequence
from statistics import median
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from celeus.core.randomness import uniforms
from celeus.errors import InvalidValue

Floats = NDArray[np.float64]
Protocol = Literal["two_then_third", "consensus"]

STREAM = "rater"
TURNS = 3
"""How often two raters judge an item before they are taken to differ for good."""


class Outcome(NamedTuple):
    """What a protocol comes to: ``decided`` with a loss, None where the raters cannot agree."""

    decided: bool
    loss: float | None = None


UNDECIDED = Outcome(False)


def outcome(protocol: Protocol, losses: Sequence[float]) -> Outcome:
    """The outcome of the judgements of an item so far, in the order of its raters.

    Under ``consensus`` the two take turns. Refuses more judgements than the protocol asks for.
    """
    for count in range(2, len(losses)):
        if _after(protocol, losses[:count]).decided:
            raise InvalidValue(
                "The protocol was decided before the last judgement.",
                field="losses",
                rule=f"at most {count} judgements of this item",
                value=len(losses),
            )
    return _after(protocol, losses)


def _after(protocol: Protocol, losses: Sequence[float]) -> Outcome:
    if len(losses) < 2:
        return UNDECIDED
    if protocol == "two_then_third":
        if len(losses) == 2:
            return Outcome(True, losses[0]) if losses[0] == losses[1] else UNDECIDED
        return Outcome(True, median(losses))
    if len(losses) % 2:
        return UNDECIDED
    if losses[-2] == losses[-1]:
        return Outcome(True, losses[-1])
    return Outcome(True) if len(losses) == 2 * TURNS else UNDECIDED


def order_of(seed: bytes, item: int, raters: int) -> list[int]:
    """The raters of an item, by number, in the order in which a protocol asks them.

    It follows from the seed alone, so that it is fixed at the opening.
    """
    numbers = uniforms(seed, STREAM, raters, item * raters)
    return sorted(range(raters), key=lambda rater: float(numbers[rater]))


def agreement(ratings: Sequence[Sequence[float]]) -> float | None:
    """Krippendorff's alpha of the losses of each item, for numbers; None without a difference.

    1 where raters always agree, 0 where they do as well as chance, less where they do worse. Items
    with fewer than two judgements say nothing. For losses of 0 and 1 it is that for names, too.
    """
    pairable = [np.asarray(one, dtype=np.float64) for one in ratings if len(one) > 1]
    if not pairable:
        return None
    # The mean squared difference of two judgements is twice their variance
    everything = np.concatenate(pairable)
    of_any = float(everything.var(ddof=1))
    of_one = sum(one.size * float(one.var(ddof=1)) for one in pairable) / everything.size
    return 1.0 - of_one / of_any if of_any > 0.0 else None
