"""Protocols, assignments and agreement of several raters."""

import itertools
import math
from dataclasses import astuple, replace

import numpy as np
import pytest

from celeus.core.ledger import Rating
from celeus.core.plans.panel_plan import Protocol
from celeus.core.session.panel import (
    Agreement,
    RatedLosses,
    Ratings,
    agreement,
    order_of,
    outcome,
    outcome_of,
    turn_of,
)
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


ORDER = ["ann", "ben", "cid", "dan"]
PANEL_OF_THREE = ORDER[:3]


@pytest.mark.parametrize(
    ("protocol", "said", "due"),
    [
        ("two_then_third", {}, (1, ("ann", "ben"))),
        ("two_then_third", {("ben", 1): 1.0}, (1, ("ann",))),
        ("two_then_third", {("ben", 1): 1.0, ("ann", 1): 0.0}, (1, ("cid",))),
        ("two_then_third", {("ben", 1): None}, (1, ("ann", "cid"))),
        ("two_then_third", {("ben", 1): None, ("cid", 1): 0.0}, (1, ("ann",))),
        ("consensus", {("ann", 1): 0.0, ("ben", 1): 1.0}, (2, ("ann", "ben"))),
        ("consensus", {("ann", 1): 0.0, ("ben", 1): 1.0, ("ben", 2): 0.0}, (2, ("ann",))),
        ("consensus", {("ann", 1): None, ("ben", 1): 1.0}, (1, ("cid",))),
    ],
)
def test_whose_turn_it_is(
    protocol: Protocol, said: RatedLosses, due: tuple[int, tuple[str, ...]]
) -> None:
    assert turn_of(protocol, said, ORDER) == due
    assert not outcome_of(protocol, said, len(ORDER)).decided


def test_who_was_not_asked_has_judged() -> None:
    with pytest.raises(InvalidValue, match="Another rater was asked"):
        turn_of("two_then_third", {("cid", 1): 0.0}, ORDER)


@pytest.mark.parametrize(
    ("protocol", "said", "loss"),
    [
        ("two_then_third", {("ann", 1): None, ("ben", 1): None}, None),
        ("two_then_third", {("ann", 1): None, ("ben", 1): 0.0, ("cid", 1): 1.0}, None),
        ("two_then_third", {("ann", 1): None, ("ben", 1): 1.0, ("cid", 1): 1.0}, 1.0),
        ("consensus", {("ann", 1): 0.0, ("ben", 1): 1.0, ("ann", 2): None}, None),
        ("consensus", {("ann", 1): None, ("ben", 1): None}, None),
    ],
)
def test_an_item_of_which_too_few_are_left_can_nobody_judge(
    protocol: Protocol, said: RatedLosses, loss: float | None
) -> None:
    assert outcome_of(protocol, said, 3) == (True, loss)


def rated(seed: bytes | None, *ratings: Rating) -> Ratings:
    """Round 1, of item 7, after these."""
    found = Ratings("two_then_third", ORDER, seed)
    found.draw(1, 7)
    for rating in ratings:
        found.rate(rating)
    return found


def test_a_ledger_that_no_panel_leads_to_is_refused() -> None:
    one, two, third, _ = (ORDER[number] for number in order_of(b"a seed", 7, 4))
    begun = rated(b"a seed", Rating(1, one, 0.0))
    for wrong in (Rating(1, third, 0.0), Rating(1, "eve", 0.0), Rating(2, two, 0.0)):
        with pytest.raises(ValueError):  # noqa: PT011 -- each has words of its own
            begun.rate(wrong)
    with pytest.raises(ValueError, match="come to"):
        begun.settle(1, 0.0)
    begun.rate(Rating(1, two, 0.0))
    with pytest.raises(ValueError, match="not judged"):
        begun.draw(2, 8)
    with pytest.raises(ValueError, match="come to"):
        begun.settle(1, 1.0)
    begun.settle(1, 0.0)
    assert begun.summary["judgements"] == 2
    # Whose turn it is takes the seed; what they come to does not
    unseeded = rated(None, Rating(1, third, 0.0), Rating(1, one, 0.0))
    unseeded.settle(1, 0.0)


def test_agreement_is_over_the_first_two_and_counts_a_correction_once() -> None:
    one, two, third, _ = (ORDER[number] for number in order_of(b"a seed", 7, 4))
    found = rated(b"a seed", Rating(1, one, 0.0), Rating(1, one, 1.0), Rating(1, two, 0.0))
    assert found.awaited == dict.fromkeys(ORDER, 0) | {third: 1}
    found.rate(Rating(1, third, 1.0))
    found.settle(1, 1.0)
    assert found.summary == {
        "protocol": "two_then_third",
        "panel": 4,
        "judgements": 3,
        "items": 1,
        "agreement": agreement([[1.0, 0.0]]),
    }


def test_agreement_costs_the_same_however_many_items_came_before() -> None:
    draws = np.random.default_rng(3).random((400, 2))
    found = Agreement()
    for pair in draws.tolist():
        found.add(pair)
    # A copy is what the status of a session takes: it has sums, and no list of judgements
    assert all(np.ndim(value) == 0 for value in astuple(found))
    assert replace(found).alpha == agreement(draws[::-1].tolist())
    apart, spread = ((draws[:, 0] - draws[:, 1]) ** 2).mean(), draws.var(ddof=1)
    assert found.alpha == pytest.approx(1.0 - apart / 2.0 / spread, abs=1e-12)


def test_a_third_vote_is_asked_for_behind_what_the_rater_holds_and_another_turn_before_it() -> None:
    cases: dict[Protocol, list[int]] = {"two_then_third": [2, 3, 1], "consensus": [1, 2, 3]}
    for protocol, due in cases.items():
        found = Ratings(protocol, PANEL_OF_THREE, b"a seed")
        one, two, third = (PANEL_OF_THREE[number] for number in order_of(b"a seed", 7, 3))
        held = [
            item for item in range(40) if PANEL_OF_THREE[order_of(b"a seed", item, 3)[2]] == one
        ]
        asked = third if protocol == "two_then_third" else two
        for round_, item in enumerate([7, *held[:2]], 1):
            found.draw(round_, item)
        found.rate(Rating(1, one, 0.0))
        found.rate(Rating(1, two, 1.0))
        assert [round_ for round_, _ in found.awaited_from(asked)] == due
