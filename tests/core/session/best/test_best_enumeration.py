"""The best of k on tiny pools, over every order of drawing: exact means, and who is ever lost."""

import copy
import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from celeus.core.ledger import Draw
from celeus.core.session.best.best_question import Best, Opponents
from celeus.core.session.best.candidates import Candidates, Floats, Indices
from celeus.core.session.best.contrasts import Forecast, Signals
from celeus.core.session.best.race import Race, strongest
from celeus.core.session.session import Session
from celeus.simulation.best import plan_for
from tests.core.worlds import provisional
from tests.nightly import by_day

EXACT = 1e-12
SEED = b"a seed for the tests"


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


def forecast_of(session: Session[Best], draw: Draw) -> Forecast:
    assert draw.strata_q is not None
    question = session.question
    return question.partition.contrasts.forecast(question.totals, draw.item, draw.strata_q)


def signals(session: Session[Best], draw: Draw, losses: Floats) -> Signals:
    return forecast_of(session, draw).signals(session.question.totals, losses[draw.item])


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
            signal, _, lower, upper = signals(session, draw, losses)
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
                bets = race.bets(forecast_of(session, draw), opponent)
                race.settle(bets, signals(session, draw, losses))
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
                forecast, made_in = forecast_of(branch, second), branch.question.partition
                branch.apply(second)
                branch.observe(first.round, tuple(losses[first.item].tolist()))
                chance += second.q
                totals = branch.question.totals
                mean += second.q * forecast.signals(totals, losses[second.item]).low
                cut_between += branch.question.partition is not made_in
            if nexts:
                assert chance == pytest.approx(1.0, abs=EXACT)
                expected = out.question.partition.contrasts.pairs.half(losses).mean(axis=0)
                assert mean == pytest.approx(expected, abs=EXACT)
    assert cut_between or case == "three, all tied"


def most(
    session: Session[Best],
    losses: Floats,
    out: tuple[Draw, ...],
    open_: int,
    found: Callable[[Session[Best]], Floats],
) -> Floats:
    """The means of what is ``found`` at the end, each where one who sees ``open_`` items seeks it.

    He chooses whether one of them is judged next, and which, or another is drawn before.
    """
    choices = []
    for place, draw in enumerate(out):
        branch = copied(session)
        branch.observe(draw.round, tuple(losses[draw.item].tolist()))
        choices.append(most(branch, losses, out[:place] + out[place + 1 :], open_, found))
    if len(out) < open_ and session.can_draw:
        mean = np.zeros(losses.shape[1])
        for draw in coming(session):
            branch = copied(session)
            branch.apply(draw)
            mean += draw.q * most(branch, losses, (*out, draw), open_, found)
        choices.append(mean)
    return np.asarray(np.max(choices, axis=0)) if choices else found(session)


@pytest.mark.parametrize(
    ("case", "open_"),
    by_day(
        2,
        [
            ("two, a tie", 2),
            ("two, graded", 2),
            ("three, surrogates", 2),
            ("three, one ahead", 2),
            ("three, two tied at the top", 2),
            ("two, a tie", 3),
            ("two, graded", 3),
        ],
    ),
)
def test_the_choice_of_when_to_judge_what_is_seen_gains_nothing_against_a_best_system(
    case: str, open_: int
) -> None:
    """Neither its loss, at an alpha where it may be lost, nor a stake, where none can be."""
    candidates, losses = CASES[case]
    risk = losses.sum(axis=0)
    best = risk <= risk.min() + EXACT
    session = begun(candidates, 0.6)
    gone = most(
        session, losses, (), open_, lambda end: (end.question.race.out_at > 0).astype(np.float64)
    )
    assert (gone[best] <= 0.6 + EXACT).all()
    assert (gone >= lost(session, losses) - EXACT).all()
    stake = most(begun(candidates, 1e-9), losses, (), open_, lambda end: end.question.race.stake)
    assert (stake[best] <= 1e-9 * (1.0 + 1e-9)).all()


def possible(candidates: Candidates, item: int) -> Iterator[tuple[float, ...]]:
    """Every vector of losses of 0 and 1 that systems with these answers to an item may have."""
    given = range(candidates.count)
    answers = given if candidates.answer is None else candidates.answer[item].tolist()
    kinds = sorted(set(answers))
    for losses in itertools.product((0.0, 1.0), repeat=len(kinds)):
        yield tuple(losses[kinds.index(answer)] for answer in answers)


def assert_no_less(before: Race, race: Race, losses: Floats) -> None:
    """Who was out by bets in a race before is out by them in this one, or as early.

    Whoever else was out is worse than another.
    """
    risk = losses.mean(axis=0)
    for system in np.flatnonzero(before.out_at > 0):
        if before.stake[system] >= 1.0:
            as_early = 0 < race.out_at[system] <= before.out_at[system]
            assert race.stake[system] >= 1.0 or as_early
        else:
            assert risk[system] > risk.min() + EXACT


def left_open(
    session: Session[Best], losses: Floats, open_: tuple[int, ...] = ()
) -> Iterator[tuple[Session[Best], tuple[int, ...]]]:
    """The session after every sequence of draws, each judged at once or left open, at most two."""
    yield session, open_
    for draw in coming(session):
        branch = copied(session)
        branch.apply(draw)
        if len(open_) < 2:
            yield from left_open(copied(branch), losses, (*open_, draw.round))
        branch.observe(draw.round, tuple(losses[draw.item].tolist()))
        yield from left_open(branch, losses, open_)


@pytest.mark.parametrize(
    "case",
    by_day(
        2,
        [
            "two, one ahead",
            "three, graded",
            "three, answers not given",
            "three, one ahead",
            "three, two tied at the top",
        ],
    ),
)
def test_who_is_out_with_open_draws_at_their_worst_is_out_whatever_they_come_to(case: str) -> None:
    candidates, losses = CASES[case]
    out = 0
    for session, open_ in left_open(begun(candidates, 0.9), losses):
        found = provisional(session)
        if found is None or found.race.standing.size == session.question.race.standing.size:
            continue
        out += 1
        items = [session.item(round_) for round_ in open_]
        for said in itertools.product(*(possible(candidates, item) for item in items)):
            branch, completed = copied(session), losses.copy()
            completed[items] = said
            for round_, vector in zip(open_, said, strict=True):
                branch.observe(round_, vector)
            assert_no_less(found.race, branch.question.race, completed)
    assert out


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
