"""Protocols, assignments and agreement of several raters."""

import itertools
import math

import numpy as np
import pytest

from celeus.core.sessions.raters import agreement, order_of, outcome
from celeus.errors import InvalidValue

GAP = math.nan
KRIPPENDORFF = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, GAP, GAP, GAP],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, GAP, 3],
        [GAP, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, GAP],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, GAP],
    ]
)
"""His own example: 12 units, 4 observers (Computing Krippendorff's alpha-reliability, 2011)."""


@pytest.mark.parametrize(
    ("losses", "due"),
    [
        ([], (False, None)),
        ([1.0], (False, None)),
        ([1.0, 1.0], (True, 1.0)),
        ([1.0, 0.0], (False, None)),
        ([1.0, 0.0, 0.0], (True, 0.0)),
        ([0.2, 0.8, 0.5], (True, 0.5)),
    ],
)
def test_a_third_decides_where_two_differ(
    losses: list[float], due: tuple[bool, float | None]
) -> None:
    assert outcome("two_then_third", losses) == due


@pytest.mark.parametrize(
    ("losses", "due"),
    [
        ([0.0, 0.0], (True, 0.0)),
        ([1.0, 0.0], (False, None)),
        ([1.0, 0.0, 1.0], (False, None)),
        ([1.0, 0.0, 1.0, 1.0], (True, 1.0)),
        ([1.0, 0.0] * 3, (True, None)),
    ],
)
def test_consensus_is_sought_three_times(
    losses: list[float], due: tuple[bool, float | None]
) -> None:
    assert outcome("consensus", losses) == due


def test_nobody_judges_what_is_decided() -> None:
    """Else who sees the interval could go on until the loss is another."""
    for protocol, losses in (
        ("two_then_third", [0.0, 0.0, 1.0]),
        ("two_then_third", [0.0, 1.0, 1.0, 0.0]),
        ("consensus", [1.0, 1.0, 0.0, 0.0]),
        ("consensus", [1.0, 0.0] * 4),
    ):
        with pytest.raises(InvalidValue) as refused:
            outcome(protocol, losses)  # type: ignore[arg-type]
        assert refused.value.field == "losses"


def test_the_order_of_the_raters_follows_from_the_seed_and_is_even() -> None:
    orders = [tuple(order_of(b"a seed", item, 3)) for item in range(600)]
    assert orders[7] == tuple(order_of(b"a seed", 7, 3))
    assert orders != [tuple(order_of(b"another", item, 3)) for item in range(600)]
    counts = [orders.count(one) for one in itertools.permutations(range(3))]
    assert min(counts) > 70


def test_agreement_is_krippendorffs_alpha() -> None:
    units = [[float(one) for one in unit if not math.isnan(one)] for unit in KRIPPENDORFF.T]
    assert agreement(units) == pytest.approx(0.849, abs=5e-4)


def test_agreement_ends_at_one_and_says_nothing_of_what_never_differs() -> None:
    assert agreement([[0.0, 0.0], [1.0, 1.0]]) == 1.0
    worse = agreement([[0.0, 1.0], [1.0, 0.0]])
    assert worse is not None
    assert worse < 0.0
    assert agreement([[1.0, 1.0], [1.0, 1.0]]) is None
    assert agreement([[1.0], [0.0]]) is None
