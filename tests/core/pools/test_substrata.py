"""Substrata: what several surrogate columns say beside their mean, cut without a label."""

import numpy as np

from celeus.core.interval import Interval
from celeus.core.pools.strata import MOST_SUBSTRATA, NOWHERE, strata_of, substrata_of
from celeus.core.pools.surrogates import Scores

UNIT = Interval(0.0, 1.0)


def scored(columns: np.ndarray, known: np.ndarray | None = None) -> Scores:
    mean = columns.mean(axis=1)
    lower, upper = np.zeros(mean.size), np.ones(mean.size)
    if known is not None:
        upper[known] = 0.0
    return Scores(mean, np.zeros(mean.size), columns=columns, lower=lower, upper=upper)


def test_substrata_of_verdicts_are_their_patterns() -> None:
    verdicts = np.random.default_rng(1).integers(0, 2, (500, 4)).astype(float)
    made = substrata_of(strata_of(scored(verdicts), UNIT), verdicts, UNIT)
    patterns, code = np.unique(verdicts, axis=0, return_inverse=True)
    assert made.strata.count == len(patterns) == 16
    assert len({*zip(made.strata.code.tolist(), code.tolist(), strict=True)}) == 16
    assert made.strata.size.sum() == 500


def test_graded_columns_make_no_more_than_the_limit_and_none_without_items() -> None:
    columns = np.random.default_rng(2).random((4000, 3))
    strata = strata_of(scored(columns), UNIT)
    made = substrata_of(strata, columns, UNIT)
    assert MOST_SUBSTRATA / 2 < made.strata.count <= MOST_SUBSTRATA
    assert np.array_equal(np.bincount(made.strata.code), made.strata.size)
    assert np.array_equal(made.stratum[made.strata.code], strata.code)
    # Deviations are centred in their strata
    means = np.array(
        [
            made.strata.size[made.stratum == k] @ made.deviation[made.stratum == k]
            for k in range(strata.count)
        ]
    )
    assert np.abs(means).max() < 1e-9


def test_columns_that_agree_are_cut_no_further() -> None:
    columns = np.repeat(np.random.default_rng(3).random((200, 1)), 3, axis=1)
    strata = strata_of(scored(columns), UNIT)
    assert substrata_of(strata, columns, UNIT).strata.count == strata.count


def test_items_whose_losses_are_known_are_in_no_substratum() -> None:
    columns = np.random.default_rng(4).random((60, 2))
    known = np.arange(60) % 5 == 0
    strata = strata_of(scored(columns, known), UNIT)
    made = substrata_of(strata, columns, UNIT)
    assert np.array_equal(made.strata.code == NOWHERE, known)
