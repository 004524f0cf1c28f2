"""Levels for claims picked after looking, and tests that are rejected together.

Notation: C claims, K of them shown, e_i an e-value of this moment against claim i; or claims
without an end, opened one after the other, of which i is the i-th.

    selected   every claim shown at level alpha K / C, read off e-values of this moment: the
               expected share of false ones among those shown is at most alpha (e-BY), however they
               were picked and whatever their dependence
    opened     the i-th claim opened shown at level alpha K / (i (i + 1)), alpha at most: the same,
               since the levels of all claims ever opened add up to alpha K at most
    proposed   a test at level alpha / (f (f + 1)), where f - 1 tests before it rejected nothing: at
               most alpha that a true one is ever rejected, since tests that are true spend at most
               alpha before the first such one; those that reject are free
    step up    shows the most claims that all stand at that level (e-BH)
    closed     test i is rejected for good when in every set with i of the tests not rejected
               before the mean e-value is at least 1 / alpha: at most alpha that a true one ever is

Proofs: docs/evidence/method.md#19-the-account-of-alpha.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from celeus.errors import InvalidValue

Floats = NDArray[np.float64]

LARGEST = 700.0
"""Largest logarithm of an e-value that counts; larger ones are cut to it."""


def shown_level(alpha: float, shown: int, claims: int) -> float:
    """Return the level of each of ``shown`` claims out of ``claims``.

    Raises InvalidValue unless ``shown`` is from 1 to ``claims``.
    """
    if not 1 <= shown <= claims:
        raise InvalidValue(
            "There is no such number of claims to show.",
            field="shown",
            rule=f"from 1 to {claims}, each claim once",
            value=shown,
        )
    return alpha * shown / claims


def opened_level(alpha: float, shown: int, place: int) -> float:
    """Return the level of the claim opened at ``place``, from 1 on, where so many are ``shown``."""
    return alpha * min(1.0, shown / (place * (place + 1)))


def proposed_level(alpha: float, failed: int) -> float:
    """Return the level of the next test of an endless series after ``failed`` without rejection."""
    return opened_level(alpha, 1, failed + 1)


def alpha_left(alpha: float, failed: int) -> float:
    """Return the part of alpha that is left for all tests after ``failed`` without rejection."""
    return alpha / (failed + 1)


def least_rank(stands: Callable[[int], bool], claims: int) -> int | None:
    """Return the least K at whose level a claim holds, or None if it holds at no level.

    ``stands(K)`` must stay true once it is true.
    """
    if not stands(claims):
        return None
    low, high = 1, claims
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if stands(middle) else (middle + 1, high)
    return low


def step_up(ranks: Sequence[int | None]) -> list[int]:
    """Return the places of the claims to show: as many as hold when that many are shown.

    ``ranks`` are those of ``least_rank``, one per claim.
    """
    for count in range(len(ranks), 0, -1):
        standing = [place for place, rank in enumerate(ranks) if rank is not None and rank <= count]
        if len(standing) >= count:
            return standing
    return []


class Closure:
    """Closed testing of one-sided tests by their e-processes.

    ``at`` maps the place of a rejected test to the round after which it was rejected.
    """

    __slots__ = ("_alpha", "at")

    def __init__(self, alpha: float) -> None:
        self._alpha = alpha
        self.at: dict[int, int] = {}

    def update(self, log_evidence: Floats, round_: int) -> None:
        """Reject the tests that the current e-values allow; ``log_evidence`` has one per test.

        The worst set with test i holds, beside it, the tests whose e-value is below 1 / alpha:
        only those lower the sum of e - 1 / alpha.
        """
        # alpha e - 1 of every test: a set's sum has the sign of its mean e-value less 1 / alpha
        excess = np.expm1(np.minimum(log_evidence + np.log(self._alpha), LARGEST))
        excess[list(self.at)] = 0.0
        against = excess[excess < 0.0].sum()
        rejected = np.flatnonzero((excess >= 0.0) & (excess + against >= 0.0)).tolist()
        self.at |= {test: round_ for test in rejected if test not in self.at}
