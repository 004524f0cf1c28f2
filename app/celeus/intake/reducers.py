"""One score of the several runs of an item, by the name that evaluation tools give the rule.

`mean`, `median`, `mode` and `max` are these of the scores. With c of n runs right, that is scored 1
or more:

    at_least_k    1 if c >= k, else 0
    pass_at_k     1 - C(n - c, k) / C(n, k)    that one of k runs is right (Chen et al. 2021)
    pass_k_k      C(c, k) / C(n, k)            that all k runs are right (Yao et al. 2024)
"""

import math
import re
import statistics
from collections.abc import Callable, Sequence

from celeus.intake.rows import refused

Scores = Sequence[float]
_PLAIN: dict[str, Callable[[Scores], float]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "mode": statistics.mode,
    "max": max,
}
_COUNTED = re.compile(r"(at_least|pass_at|pass_k)_([1-9]\d{0,3})")
EACH = "each"
"""Reducer that leaves every run as it is, where each output is an item."""
NAMES = (*_PLAIN, "at_least_K", "pass_at_K", "pass_k_K")


def reducer_of(name: str) -> Callable[[Scores], float | None]:
    """The rule of this name; it gives None where an item has fewer than K runs with a score.

    Refuses a name that is none.
    """
    if name in _PLAIN:
        return _PLAIN[name]
    found = _COUNTED.fullmatch(name)
    if found is None:
        raise refused(f"there is no reducer {name!r}, only {', '.join(NAMES)}", "repeats")
    rule, least = found[1], int(found[2])

    def counted(scores: Scores) -> float | None:
        runs, right = len(scores), sum(score >= 1 for score in scores)
        if rule == "at_least":
            return float(right >= least)
        if runs < least:
            return None
        if rule == "pass_at":
            return 1 - math.comb(runs - right, least) / math.comb(runs, least)
        return math.comb(right, least) / math.comb(runs, least)

    return counted
