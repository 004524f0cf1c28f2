"""Whose judgement the loss of an item is, where several raters could judge it.

See docs/evidence/method.md#20-raters. Raters differ, so that a mean over raters is another number
than the mean of what one of them says of each item. What is not fixed before the draws has noise
of its own: a pool's interval that does not count it is wrong.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, cast

from celeus.errors import InvalidValue

RaterSource = Literal["pairs", "assigned"]
Protocol = Literal["two_then_third", "consensus"]

LEAST_RATERS: Mapping[str, int] = MappingProxyType({"two_then_third": 3, "consensus": 2})
"""Of a panel, by protocol."""
MOST_RATERS = 50

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
PROTOCOLS: Mapping[str, str] = MappingProxyType(
    {
        "two_then_third": (
            "Two of a panel of {} judge an item; where they differ a third decides, and the loss is"
            " the median of the three."
        ),
        "consensus": (
            "Two of a panel of {} judge an item, and again while they differ, three times at most;"
            " then nobody can judge the item."
        ),
    }
)
"""What the loss of an item is, by protocol."""
PANEL = (
    " In which order the panel is asked about an item was drawn from the seed before the first"
    " draw; who cannot judge the item is passed over. What the panel says of an item is taken not"
    " to depend on what was drawn before or said of other items, and every name to be another"
    " rater."
)
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


def panel_of(
    source: RaterSource | None, protocol: str | None, panel: Sequence[str]
) -> tuple[Protocol | None, tuple[str, ...]]:
    """Protocol and panel, where the service itself asks several raters about an item.

    Refuses a panel without a protocol, a protocol without a panel, and a panel too small for it:
    with whoever comes the outcome of an item is not fixed before it is drawn.
    """
    if protocol is None:
        _require("protocol", "named where there is a panel", protocol, holds=not panel)
        return None, ()
    _require("protocol", "two_then_third or consensus", protocol, holds=protocol in PROTOCOLS)
    _require("raters", "assigned where there is a protocol", source, holds=source == "assigned")
    least = LEAST_RATERS[protocol]
    if len(panel) < least:
        raise InvalidValue(
            "Who comes may depend on the item, and what other raters would have come to is then"
            " not fixed before the draw: name everybody who may be asked.",
            field="panel",
            rule=f"the names of at least {least} raters",
            value=list(panel),
        )
    rule = f"at most {MOST_RATERS} names, each once"
    distinct = len(set(panel)) == len(panel) <= MOST_RATERS
    _require("panel", rule, list(panel), holds=distinct)
    return cast("Protocol", protocol), tuple(panel)


def _require(field: str, rule: str, value: object, *, holds: bool) -> None:
    if not holds:
        raise InvalidValue(f"{field} must be {rule}", field=field, rule=rule, value=value)
