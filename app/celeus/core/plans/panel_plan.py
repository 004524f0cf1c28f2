"""Sources and protocols of losses when several raters could judge an item.

See docs/evidence/method.md#20-raters. Raters differ, so a mean over all raters is not the mean of
one rater's judgement per item. If the choice of rater is not fixed before the draws it adds noise,
and a pool's interval that ignores this noise is wrong.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, cast

from celeus.errors import InvalidValue, require

RaterSource = Literal["pairs", "assigned"]
Protocol = Literal["two_then_third", "consensus"]

LEAST_RATERS: Mapping[str, int] = MappingProxyType({"two_then_third": 3, "consensus": 2})
"""Least number of raters in a panel, by protocol."""
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
"""Sentence about the subject of the claim, by source."""
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
"""Sentence about the loss of an item, by protocol; ``{}`` is the number of raters."""
PANEL = (
    " In which order the panel is asked about an item was drawn from the seed before the first"
    " draw. Who cannot judge the item is passed over: the loss is that of others then, and not"
    " counted at its worst. What the panel says of an item, also that somebody cannot judge it, is"
    " taken not to depend on what was drawn before or said of other items, and every name to be"
    " another rater."
)
RANDOM = "random"


def rater_source(name: str | None, target: str) -> RaterSource | None:
    """Return the source called ``name``; raises InvalidValue for an unknown one.

    Pairs are refused for target population, since pairs of one question are not independent draws.

    A random rater for every drawn item is refused. The loss of such a rater would stay in the sum
    of losses as if it were the mean over all raters: when the pool is exhausted, the interval
    nearly always misses that mean.
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
    """Return protocol and panel, if the service itself asks several raters about an item.

    Raises InvalidValue for a panel without a protocol, a protocol without a panel, and a panel too
    small for it: without a named panel the outcome of an item is not fixed before it is drawn.
    """
    if protocol is None:
        require("protocol", "named where there is a panel", protocol, holds=not panel)
        return None, ()
    require("protocol", "two_then_third or consensus", protocol, holds=protocol in PROTOCOLS)
    require("raters", "assigned where there is a protocol", source, holds=source == "assigned")
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
    require("panel", rule, list(panel), holds=distinct)
    return cast("Protocol", protocol), tuple(panel)
