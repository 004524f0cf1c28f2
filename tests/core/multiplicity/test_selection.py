"""Which claims may be shown, and which tests are rejected, against all that could be said."""

import itertools
import math

import numpy as np
import pytest

from celeus.core.multiplicity.promises import promises
from celeus.core.multiplicity.selection import Closure, least_rank, shown_level, step_up
from celeus.errors import InvalidValue

ALPHA = 0.05


def by_all_sets(evidence: list[float], out: set[int], alpha: float) -> set[int]:
    """Closed testing as it is defined: over every set of tests that are not rejected."""
    left = [at for at in range(len(evidence)) if at not in out]
    rejected = set()
    for one in left:
        others = [at for at in left if at != one]
        sets = itertools.chain.from_iterable(
            itertools.combinations(others, size) for size in range(len(others) + 1)
        )
        if all(
            (evidence[one] + sum(evidence[at] for at in more)) / (1 + len(more)) >= 1.0 / alpha
            for more in sets
        ):
            rejected.add(one)
    return rejected


def test_closed_testing_is_that_over_every_set_of_tests() -> None:
    chance = np.random.default_rng(5)
    counted = 0
    for _ in range(200):
        closure = Closure(ALPHA)
        out: set[int] = set()
        for round_ in range(1, 4):
            evidence = np.exp(chance.normal(2.0, 2.0, 5))
            out |= by_all_sets(evidence.tolist(), out, ALPHA)
            closure.update(np.log(evidence), round_)
            assert set(closure.at) == out
        counted += len(out)
    assert counted > 100


def test_a_test_stays_rejected_and_keeps_its_round() -> None:
    closure = Closure(ALPHA)
    closure.update(np.array([math.inf, -math.inf]), 3)
    closure.update(np.array([-math.inf, math.log(19.0)]), 4)
    closure.update(np.array([-math.inf, math.log(21.0)]), 5)
    assert closure.at == {0: 3, 1: 5}


def test_one_test_with_all_the_evidence_waits_for_those_without() -> None:
    closure = Closure(ALPHA)
    evidence = np.log([39.0, 1e-9])
    closure.update(evidence, 1)
    assert not closure.at
    closure.update(np.log([41.0, 1e-9]), 2)
    assert closure.at == {0: 2}


@pytest.mark.parametrize(
    ("ranks", "shown"),
    [
        ([None, None], []),
        ([1, None, None], [0]),
        ([2, None, None], []),
        ([2, 2, None], [0, 1]),
        ([3, 3, 3, None], [0, 1, 2]),
        ([4, 1, 4, None], [1]),
    ],
)
def test_the_most_that_stand_where_so_many_are_shown(
    ranks: list[int | None], shown: list[int]
) -> None:
    assert step_up(ranks) == shown


@pytest.mark.parametrize("least", [1, 2, 7, 10])
def test_the_least_number_shown_with_which_a_claim_stands(least: int) -> None:
    assert least_rank(lambda shown: shown >= least, 10) == least
    assert least_rank(lambda _: False, 10) is None


@pytest.mark.parametrize("shown", [0, 21])
def test_more_claims_than_there_are_cannot_be_shown(shown: int) -> None:
    assert shown_level(ALPHA, 5, 20) == ALPHA / 4
    with pytest.raises(InvalidValue) as refused:
        shown_level(ALPHA, shown, 20)
    assert (refused.value.field, refused.value.value) == ("shown", shown)


def test_every_account_says_what_holds_in_plain_words() -> None:
    said = {kind: promises(kind, ALPHA, 12) for kind in ("each", "together", "selected", "closed")}
    assert len(set(said.values())) == 4
    assert "K of the 12 claims" in said["selected"].picked
    assert "at most 5 % of those shown are false" in said["selected"].picked
    assert "All 12 intervals hold at once" in said["together"].all
    assert "none of the answers yes is false" in said["closed"].all
    assert "95 %" in said["each"].one
