"""Rounds with several losses each, and what only rounds of one loss can be asked."""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from celeus.core.ledger import Draw
from celeus.core.plans.stopping import StoppingRule
from celeus.core.session.rounds import PENDING, Rounds

RULE = StoppingRule(None, 10)


def joint(*losses: tuple[float | None, ...]) -> Rounds:
    rounds = Rounds(width=2)
    for number, said in enumerate(losses, 1):
        rounds.append(Draw(number, 2 * number, 0.5, 0, np.ones(3)), RULE)
        rounds.judge(number - 1, said, number)
    return rounds


def test_losses_of_a_round_are_kept_together_and_read_back() -> None:
    rounds = joint((1.0, None), (None, None), (0.0, 0.5))
    rounds.append(Draw(4, 9, 0.5, 3), RULE)
    assert [rounds.first_judgement(place) for place in range(4)] == [
        (1.0, None),
        (None, None),
        (0.0, 0.5),
        PENDING,
    ]
    assert rounds.judged.tolist() == [True, True, True, False]
    assert rounds.ready == 3
    assert rounds[1:3].losses(1) == (0.0, 0.5)
    assert rounds.strata_q.tolist() == [], "no round of several losses is folded again"


def test_rounds_of_another_width_are_others() -> None:
    assert Rounds() != Rounds(width=2)
    assert joint((1.0, 0.0)) == joint((1.0, 0.0))
    assert joint((1.0, 0.0)) != joint((1.0, None))


@pytest.mark.parametrize(
    "ask",
    [
        lambda rounds: rounds.correct(0, 1.0),
        lambda rounds: rounds.differs(0, 1.0),
        lambda rounds: rounds.unjudgeable(1),
    ],
)
def test_what_rests_on_a_single_loss_is_refused_where_there_are_several(
    ask: Callable[[Rounds], object],
) -> None:
    with pytest.raises(TypeError, match="rounds of 2 losses have no single one"):
        ask(joint((1.0, None)))


def test_a_judgement_with_too_few_losses_is_refused() -> None:
    rounds = joint()
    rounds.append(Draw(1, 0, 0.5, 0), RULE)
    with pytest.raises(ValueError, match="1 losses in round 1, not 2"):
        rounds.judge(0, (1.0,), 1)
    assert not rounds.is_judged(0)


def test_an_excerpt_takes_no_more_than_its_own_draws_and_judgements() -> None:
    rounds = Rounds()
    for number in range(1, 20_001):
        rounds.append(Draw(number, number, 0.5, 0), RULE)
        rounds.judge(number - 1, 1.0, 2 * number)
    tracemalloc.start()
    part = rounds.excerpt(101, slice(200, 220))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert part == rounds[100:110]
    assert len(part.order) == 20
    assert peak < 20_000, "not even a byte a round"
