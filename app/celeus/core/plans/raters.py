"""Whose judgement the loss of an item is, where several raters could judge it.

See docs/method.md#20-raters. Raters differ, so that a mean over raters is another number than the
mean of what one of them says of each item. What is not fixed before the draws has noise of its own:
a pool's interval that does not count it is wrong.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, cast

from celeus.errors import InvalidValue

RaterSource = Literal["pairs", "assigned"]

SOURCES: Mapping[str, str] = MappingProxyType(
    {
        "pairs": (
            "Every item of the pool is a question with one of its raters: the claim is about the"
            " mean over all questions and raters, and each is judged by the rater it names."
        ),
        "assigned": (
            "Who judges an item, and in which order where several do by a protocol, was fixed"
            " before the first draw and without regard to the item: the claim is about what this"
            " assignment comes to, and not about what other raters would have said."
        ),
    }
)
"""What the claim is about, by source."""
RANDOM = "random"


def rater_source(name: str | None, target: str) -> RaterSource | None:
    """The source of this name; refuses one rater by chance for every drawn item, and unknown ones.

    Pairs of one question are no independent draws from a population, and refused for that target.

    The observed loss of such a rater would stay in the sum of losses as if it were the mean over
    all of them: watched until the pool is exhausted, the interval nearly always ends beside it.
    """
    if name == "pairs" and target == "population":
        raise InvalidValue(
            "The pairs of one question with its raters are no independent draws from a population.",
            field="raters",
            rule="assigned where the target is population",
            value=name,
        )
    if name is None or name in SOURCES:
        return cast("RaterSource | None", name)
    if name == RANDOM:
        raise InvalidValue(
            "Whoever comes judges a drawn item: the mean over raters is then not what the interval"
            " of a pool holds, which ends at what these few happened to say. Make every question"
            " with every rater an item of its own (pairs), or fix before the first draw who judges"
            " which item (assigned).",
            field="raters",
            rule="pairs or assigned",
            value=name,
        )
    raise InvalidValue(
        "There is no such way to have several raters.",
        field="raters",
        rule="pairs or assigned",
        value=name,
    )
