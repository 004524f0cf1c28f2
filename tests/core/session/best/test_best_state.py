"""The best of a sealed pool's systems: exact on tiny pools, and the same from its ledger."""

from typing import Any

import numpy as np
import pytest

from celeus.core.ledger import Change, Draw, Event, JointObservation, Unjudgeable
from celeus.core.plain import Mismatch
from celeus.core.plans.best_plan import BestPlan, make_best
from celeus.core.plans.claim import Claim
from celeus.core.pools.pool import CHAIN_START, Pool
from celeus.core.pools.rows.answers import assemble_lineup
from celeus.core.pools.systems import Lineup
from celeus.core.randomness import commitment
from celeus.core.session.best.best_question import Best
from celeus.core.session.best.candidates import Floats
from celeus.core.session.presentation_order import Order
from celeus.core.session.session import Session, begin_session
from tests.core.session.best.test_best import SEED
from tests.core.session.best.test_best_enumeration import coming, histories, signals

GRADES = {"a": 1.0, "b": 3.0, "c": 5.0}
WORDS = ("aab", "bca", "bbb", "cab", "aAa")


def pool_of(words: tuple[str, ...], *, surrogates: bool = False) -> tuple[Pool, Floats]:
    """A pool of texts as the service seals it; a loss is the grade of its letter, from 1 to 5."""
    names = tuple(f"system {at}" for at in range(len(words[0])))
    lineup = Lineup.of(names, ("bounded", 1.0, 5.0), "casefold")
    chance = np.random.default_rng(3)
    rows = []
    for at, word in enumerate(words):
        guess = chance.uniform(1.0, 5.0, len(word)).tolist() if surrogates else None
        answers: dict[str, Any] = {
            name: {"answer": letter} | ({} if guess is None else {"surrogate": guess[place]})
            for place, (name, letter) in enumerate(zip(names, word, strict=True))
        }
        rows.append({"id": f"i{at}", "answers": answers})
    done = assemble_lineup(list(range(1, len(rows) + 1)), rows, lineup, None)
    assert not done.faults
    losses = np.array([[GRADES[letter.lower()] for letter in word] for word in words])
    return Pool(len(rows), lineup.loss, done.batch.columns, (), CHAIN_START, (), lineup), losses


def begun(pool: Pool, alpha: float = 0.4, **claim: Any) -> tuple[BestPlan, Session[Best]]:  # noqa: ANN401
    plan = make_best(pool, Claim(alpha=alpha, **claim), commitment(SEED))
    return plan, begin_session(plan, pool, SEED)


@pytest.mark.parametrize("surrogates", [False, True])
def test_the_mean_signal_of_a_sealed_pool_is_the_mean_difference(*, surrogates: bool) -> None:
    pool, losses = pool_of(WORDS, surrogates=surrogates)
    plan, state = begun(pool)
    # Two items got the same answer from all, one of them but for its case.
    assert (plan.items, plan.known, state.question.known) == (5, 2, 2)
    unit = (losses - 1.0) / 4.0
    seen = 0
    for session in histories(state, losses):
        if not session.can_draw:
            continue
        chance, mean = 0.0, np.zeros(session.question.partition.contrasts.pairs.place.size)
        for draw in coming(session):
            assert draw.item not in {2, 4}
            chance += draw.q
            mean += draw.q * signals(session, draw, unit).low
        expected = session.question.partition.contrasts.pairs.half(unit).mean(axis=0)
        assert chance == pytest.approx(1.0, abs=1e-12)
        assert mean == pytest.approx(expected, abs=1e-12)
        seen += 1
    assert seen >= 4


def ledger_of(pool: Pool, losses: Floats) -> tuple[BestPlan, list[Event], list[Session[Best]]]:
    """A session judged to its end, with a change of its budget on the way."""
    plan, state = begun(pool, budget=2)
    events: list[Event] = []

    def enter(event: Event) -> None:
        state.apply(event)
        events.append(event)

    while state.can_draw or state.stop_reason == "budget_spent":
        if not state.can_draw:
            enter(Change(None, plan.drawable))
        draw = state.propose()
        enter(draw)
        enter(JointObservation(draw.round, tuple(losses[draw.item].tolist())))
    return plan, events, [state]


def test_a_ledger_gives_the_same_state_again() -> None:
    pool, losses = pool_of(("abc", "bab", "cab", "acb", "bcc", "aac", "cba", "abb"))
    plan, events, (state,) = ledger_of(pool, losses)
    assert any(isinstance(event, Change) for event in events)
    again = begin_session(plan, pool, SEED)
    for event in events:
        if isinstance(event, Draw):
            again.check_draw(event, seeded=True)
        again.apply(event)
    assert again.question.systems == state.question.systems
    assert (again.counts, again.stop_reason) == (state.counts, state.stop_reason)
    assert again.question.race.stake.tolist() == state.question.race.stake.tolist()


def test_limits_hold_the_difference_for_certain() -> None:
    pool, losses = pool_of(("abc", "bab", "cab", "acb", "bcc", "aac", "cba", "abb"))
    _, state = begun(pool, alpha=1e-9)
    names = list(state.question.plan.systems)
    mean = losses.mean(axis=0)
    while state.can_draw:
        for one in state.question.systems:
            if one.limits is not None:
                behind = mean[names.index(one.name)] - mean[state.question.leader]
                assert one.limits.lower - 1e-9 <= behind <= one.limits.upper + 1e-9
        draw = state.propose()
        state.apply(draw)
        state.apply(JointObservation(draw.round, tuple(losses[draw.item].tolist())))
    left = [one for one in state.question.systems if one.limits is not None]
    assert all(one.limits is not None and one.limits.width < 1e-9 for one in left)


@pytest.mark.parametrize("event", [Unjudgeable(1), Draw(3, 0, 0.5, 0, np.ones(1))])
def test_events_that_such_a_session_has_not_are_refused(event: Event) -> None:
    _, state = begun(pool_of(WORDS)[0])
    with pytest.raises((Mismatch, ValueError)):
        state.apply(event)


def test_draws_beyond_the_budget_are_refused() -> None:
    _, state = begun(pool_of(WORDS)[0], budget=1)
    draw = state.propose()
    state.apply(draw)
    with pytest.raises(Mismatch, match="nothing is left"):
        state.check_draw(Draw(2, 1, 0.5, 1, draw.strata_q), seeded=False)


def test_answers_stand_in_an_order_of_their_own_and_each_once() -> None:
    order = Order(SEED, 4)
    codes = [0, 1, 0, 3]
    shown = [order.shown(round_, codes) for round_ in range(1, 400)]
    assert all(sorted(one) == [(0, 2), (1,), (3,)] for one in shown)
    firsts = [one[0] for one in shown]
    assert all(100 < firsts.count(one) < 170 for one in ((0, 2), (1,), (3,)))
    assert shown[17] == Order(SEED, 4).shown(18, codes)
    assert len(order.shown(1, None)) == 4
