"""The best of k on tiny pools, over every order of drawing: exact means, and who is ever lost."""

import copy
from collections.abc import Iterator

import numpy as np
import pytest

from celeus.core.ledger import Draw
from celeus.core.session.best.best_question import Best, Opponents
from celeus.core.session.best.candidates import Candidates, Floats, Indices
from celeus.core.session.best.contrasts import Forecast
from celeus.core.session.best.partition import Partition
from celeus.core.session.best.race import strongest
from celeus.core.session.session import Session
from celeus.simulation.best import plan_for

EXACT = 1e-12
SEED = b"a seed for the tests"
ALPHAS = (0.3, 0.6)


def pool(*rows: str, graded: bool = False) -> tuple[Candidates, Floats]:
    """Answers to an item in a row, a right one in capitals; a graded loss is that of a letter."""
    letters = np.array([[ord(one.lower()) - ord("a") for one in row] for row in rows])
    wrong = np.array([[float(one.islower()) for one in row] for row in rows])
    losses = wrong * (0.2 + 0.15 * letters) if graded else wrong
    return Candidates(len(rows), len(rows[0]), letters.astype(np.int32)), losses


POOLS = {
    "two, a tie": pool("Ab", "aB", "Ab", "aB"),
    "two, tied but for what is known": pool("Ab", "aB", "AA", "aa"),
    "two, one ahead": pool("Ab", "Ab", "aB", "cb"),
    "two, graded": pool("ab", "bc", "cA", "Ba", graded=True),
    "three, all tied": pool("Abc", "aBc", "abC", "aaa"),
    "three, two tied at the top": pool("AAb", "aBc", "Bac", "abC"),
    "three, one ahead": pool("Abb", "Acb", "bAc", "AAb"),
    "three, graded": pool("abc", "bca", "Abb", "cBa", graded=True),
}


def known_nothing(name: str) -> tuple[Candidates, Floats]:
    candidates, losses = POOLS[name]
    return Candidates(candidates.items, candidates.count), losses


def guessed(name: str) -> tuple[Candidates, Floats]:
    candidates, losses = POOLS[name]
    surrogate = np.random.default_rng(5).random(losses.shape)
    return Candidates(candidates.items, candidates.count, candidates.answer, surrogate), losses


CASES = {
    **POOLS,
    "two, answers not given": known_nothing("two, a tie"),
    "three, answers not given": known_nothing("three, two tied at the top"),
    "three, surrogates": guessed("three, one ahead"),
}


def begun(
    candidates: Candidates, alpha: float = 0.3, opponents: Opponents = strongest
) -> Session[Best]:
    question = Best(plan_for(candidates, alpha), candidates, SEED, opponents=opponents)
    return Session.of(question, SEED)


def coming(session: Session[Best]) -> Iterator[Draw]:
    """Every draw that may come next, each with its probability."""
    if session.can_draw:
        for item in np.flatnonzero(session.question.partition.proposal.drawn_in == 0):
            yield session.chance(int(item))


def copied(session: Session[Best]) -> Session[Best]:
    frozen = (session.question.candidates, session.question.partition.strata)
    return copy.deepcopy(session, {id(part): part for part in frozen})


def after(session: Session[Best], draw: Draw, losses: Floats) -> Session[Best]:
    branch = copied(session)
    branch.apply(draw)
    return branch.observe(draw.round, tuple(losses[draw.item].tolist()))


def histories(session: Session[Best], losses: Floats) -> Iterator[Session[Best]]:
    """The session after every sequence of draws."""
    yield session
    for draw in coming(session):
        yield from histories(after(session, draw, losses), losses)


def signals(
    session: Session[Best], draw: Draw, losses: Floats, made_in: Partition | None = None
) -> tuple[Forecast, Floats]:
    assert draw.strata_q is not None
    contrasts = (made_in or session.question.partition).contrasts
    forecast = contrasts.forecast(session.question.totals, draw.strata_q)
    return forecast, contrasts.signals(forecast, draw.item, losses[draw.item])


@pytest.mark.parametrize("case", CASES)
def test_the_mean_signal_of_every_pair_is_the_mean_difference(case: str) -> None:
    candidates, losses = CASES[case]
    seen = 0
    # A level at which systems leave early, and the pool is cut anew.
    for session in histories(begun(candidates, 0.6 if candidates.count > 2 else 0.3), losses):
        if not session.can_draw:
            continue
        chance, mean = 0.0, np.zeros(session.question.partition.contrasts.pairs.place.size)
        for draw in coming(session):
            forecast, signal = signals(session, draw, losses)
            lower, upper = forecast.ends(np.arange(signal.size), np.ones(signal.size))
            assert (lower <= signal + EXACT).all()
            assert (signal <= upper + EXACT).all()
            chance += draw.q
            mean += draw.q * signal
        assert chance == pytest.approx(1.0, abs=EXACT)
        expected = session.question.partition.contrasts.pairs.half(losses).mean(axis=0)
        assert mean == pytest.approx(expected, abs=EXACT)
        seen += 1
    assert seen >= 2


@pytest.mark.parametrize("case", CASES)
def test_the_stake_against_a_best_system_falls_in_the_mean_whoever_its_opponent_is(
    case: str,
) -> None:
    candidates, losses = CASES[case]
    risk = losses.sum(axis=0)
    # With so small an alpha no stake reaches 1: what is looked at is the stakes themselves.
    for session in histories(begun(candidates, 1e-9), losses):
        draws = list(coming(session))
        before, standing = session.question.race.stake, session.question.race.standing
        for turn in range(1, standing.size if draws else 0):
            opponent = np.roll(standing, turn)
            mean = np.zeros(candidates.count)
            for draw in draws:
                race = copy.deepcopy(session.question.race)
                forecast, signal = signals(session, draw, losses)
                race.settle(race.bets(forecast, opponent), signal)
                mean += draw.q * race.stake
            best = risk <= risk.min() + EXACT
            assert (mean[best] <= before[best] * (1.0 + 1e-9)).all()


def next_in_turn(forecast: Forecast, standing: Indices) -> Indices:
    """The next system in turn, whatever is known of it."""
    del forecast
    return np.roll(standing, 1)


def lost(session: Session[Best], losses: Floats) -> Floats:
    """Probability of every system that it ever leaves, shape [k]."""
    total = (session.question.race.out_at > 0).astype(np.float64)
    for draw in coming(session):
        branch = lost(after(session, draw, losses), losses)
        total += draw.q * np.where(session.question.race.out_at > 0, 0.0, branch)
    return total


@pytest.mark.parametrize(
    ("alpha", "opponents"), [(0.3, strongest), (0.6, strongest), (0.3, next_in_turn)]
)
@pytest.mark.parametrize("case", CASES)
def test_the_best_is_ever_lost_with_probability_alpha_at_most(
    case: str, alpha: float, opponents: Opponents
) -> None:
    candidates, losses = CASES[case]
    risk = losses.sum(axis=0)
    chance = lost(begun(candidates, alpha, opponents), losses)
    assert (chance[risk <= risk.min() + EXACT] <= alpha + EXACT).all()


def test_five_items() -> None:
    candidates, losses = pool("Ab", "aB", "Ab", "aB", "ab")
    assert (lost(begun(candidates, 0.3), losses) <= 0.3 + EXACT).all()


@pytest.mark.parametrize("case", CASES)
def test_when_nothing_is_left_to_tell_only_the_best_stand(case: str) -> None:
    candidates, losses = CASES[case]
    risk = losses.sum(axis=0)
    best = np.flatnonzero(risk <= risk.min() + EXACT)
    for session in histories(begun(candidates, 1e-9), losses):
        if not session.can_draw:
            assert session.question.race.standing.tolist() == best.tolist()
            break
    else:
        pytest.fail("no history came to an end")


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("three")])
def test_a_draw_ahead_of_a_loss_has_the_same_mean(case: str) -> None:
    """Even when that loss makes a system leave, and the pool is cut anew."""
    candidates, losses = CASES[case]
    cut_between = 0
    for session in histories(begun(candidates, 0.6), losses):
        for first in list(coming(session)):
            out = copy.deepcopy(session, {id(candidates): candidates})
            out.apply(first)
            chance, mean = 0.0, np.zeros(out.question.partition.contrasts.pairs.place.size)
            nexts = list(coming(out))
            for second in nexts:
                branch = copy.deepcopy(out, {id(candidates): candidates})
                branch.apply(second)
                made_in = branch.question.partition
                branch.observe(first.round, tuple(losses[first.item].tolist()))
                chance += second.q
                mean += second.q * signals(branch, second, losses, made_in)[1]
                cut_between += branch.question.partition is not made_in
            if nexts:
                assert chance == pytest.approx(1.0, abs=EXACT)
                expected = out.question.partition.contrasts.pairs.half(losses).mean(axis=0)
                assert mean == pytest.approx(expected, abs=EXACT)
    assert cut_between or case == "three, all tied"


def most_lost(
    session: Session[Best], losses: Floats, out: tuple[Draw, ...], most: int, system: int
) -> float:
    """Probability that a system ever leaves, where one who sees up to ``most`` items chooses.

    It is chosen whether one of them is judged next, and which, or another is drawn before.
    """
    if session.question.race.out_at[system] > 0:
        return 1.0
    choices = []
    for place, draw in enumerate(out):
        branch = copied(session)
        branch.observe(draw.round, tuple(losses[draw.item].tolist()))
        left = out[:place] + out[place + 1 :]
        choices.append(most_lost(branch, losses, left, most, system))
    if len(out) < most and session.can_draw:
        chance = 0.0
        for draw in coming(session):
            branch = copied(session)
            branch.apply(draw)
            chance += draw.q * most_lost(branch, losses, (*out, draw), most, system)
        choices.append(chance)
    return max(choices, default=0.0)


@pytest.mark.parametrize("case", ["two, a tie", "three, two tied at the top", "three, one ahead"])
def test_the_choice_of_when_to_judge_what_is_seen_loses_no_best_system_too_often(
    case: str,
) -> None:
    alpha, (candidates, losses) = 0.6, CASES[case]
    risk = losses.sum(axis=0)
    for system in np.flatnonzero(risk <= risk.min() + EXACT).tolist():
        chance = most_lost(begun(candidates, alpha), losses, (), 2, system)
        assert lost(begun(candidates, alpha), losses)[system] - EXACT <= chance <= alpha + EXACT


def test_the_pool_is_cut_anew_for_those_who_stand() -> None:
    """And so the means above are those of new cuts, too."""
    sizes = {
        (session.question.race.standing.size, session.question.partition.contrasts.pairs.place.size)
        for candidates, losses in CASES.values()
        if candidates.count > 2
        for session in histories(begun(candidates, 0.6), losses)
        if session.can_draw
    }
    assert sizes == {(3, 3), (2, 1)}


def test_a_larger_level_loses_the_best_more_often() -> None:
    """And so the test above can fail."""
    candidates, losses = CASES["two, a tie"]
    assert lost(begun(candidates, 0.9), losses)[0] > 0.3
