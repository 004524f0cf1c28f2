"""No choice of skips gains anything, whoever makes it and however much he has seen.

A judge holds several draws, sees their items and losses, and only then says which of them nobody
could judge. The best he can do is averaged over every order of drawing: exact, by recursion over
kinds of items, those that are alike in stratum and loss. It is at most what there was at the start.
One recursion follows several stakes, each with the choices that are best for it.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from celeus.core.betting.candidate_grid import LatticeSide
from celeus.core.betting.pool_target import LatticeSequence
from celeus.core.betting.population_target import PairSequence
from celeus.core.betting.published import CellSequence
from celeus.core.ledger import Draw, Event, Observation, Unjudgeable
from celeus.core.plans.plan import Claim, Plan, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.plans.stopping import Question
from celeus.core.pools.surrogates import Scores
from celeus.core.session.fold import Fold
from celeus.core.session.mean import Mean
from celeus.core.session.session import Session, begin_mean
from celeus.simulation.sessions import Truth, oracle_scores
from tests.core.session.test_enumeration import SUPERMARTINGALES
from tests.core.session.test_sharp_enumeration import paired
from tests.core.worlds import CONFIGURATIONS, SEED
from tests.nightly import NIGHTLY

Floats = NDArray[np.float64]

EXACT = 1e-9


def truth_of(losses: list[float], lower: float = 0.0, upper: float = 1.0) -> Truth:
    """Two strata of equal size; the losses of the first come first."""
    unit = np.repeat([0.25, 0.75], len(losses) // 2)
    width = upper - lower
    spread = width * np.sqrt(unit * (1.0 - unit))
    scores = Scores(lower + width * unit, spread, None)
    return Truth(lower + width * np.array(losses), scores, lower, upper)


EVEN = truth_of([0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0])
UNEVEN = truth_of([0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0], -3.0, 5.0)
GRADED = truth_of([0.0, 0.4, 0.4, 0.4, 0.4, 0.4, 1.0, 1.0])
FEW_KINDS = truth_of([0.0, 0.0, 0.0, 0.0, 1.0, 1.0])


@dataclass(frozen=True)
class Game:
    """A session on a pool, and the stakes that a fold of it is worth."""

    truth: Truth
    plan: Plan
    worth: Callable[[Fold], Floats]
    first_told: dict[int, float]
    """What these items are judged to be at first; a correction follows, whatever was drawn."""

    @property
    def scores(self) -> Scores:
        return oracle_scores(self.truth) if self.plan.policy.name == "oracle" else self.truth.scores

    def state(self, events: list[Event]) -> Session[Mean]:
        return begin_mean(self.plan, self.scores, SEED).replay(events)

    def judged(self, draw: Draw) -> Event:
        told = self.first_told.get(draw.item, self.truth.loss_of(draw.item))
        return Observation(draw.round, told)

    def coming(self, state: Session[Mean]) -> Iterator[tuple[float, Draw]]:
        """Every kind of item that may come next, with its probability."""
        kinds: dict[tuple[float | None, ...], list[int]] = {}
        scores = self.scores
        for item in np.flatnonzero(state.question.proposal.drawn_in == 0).tolist():
            columns = (scores.surrogate, scores.weight, self.truth.loss)
            kind = (*(float(one[item]) for one in columns), self.first_told.get(item))
            kinds.setdefault(kind, []).append(item)
        for items in kinds.values():
            fit = state.question.fold.predictor.fit
            item, q, strata_q = state.question.proposal.chance(items[0], fit)
            yield len(items) * q, Draw(state.drawn + 1, item, q, state.sequence, strata_q)

    def end(self, state: Session[Mean], skipped: tuple[bool, ...]) -> Floats:
        """Return the stakes once all draws out are judged or skipped, and corrections made."""
        fold, rounds = state.question.engine.fold(), state.rounds[:]
        done = state.drawn - len(skipped)
        losses = [
            None if place >= done and skipped[place - done] else self.truth.loss_of(item)
            for place, item in enumerate(rounds.item)
        ]
        for place in np.flatnonzero(rounds.judged).tolist():
            rounds.correct(place, losses[place])
        fold.follow(self.plan, rounds)
        for round_, coming in fold.knowledge.open.items():
            fold.fold_round(self.plan, coming, losses[round_ - 1])
        return self.worth(fold)


def largest(values: Iterable[Floats]) -> Floats:
    """Return the largest value of every stake."""
    return np.asarray(np.max(list(values), axis=0))


def total(values: Iterable[Floats]) -> Floats:
    """Return the sum of the values of every stake."""
    return np.asarray(np.sum(list(values), axis=0))


def best_of_held(game: Game, rounds: int, events: list[Event]) -> Floats:
    """The mean of the best skips among ``rounds`` draws, chosen when all of them are seen."""
    state = game.state(events)
    if not rounds:
        return largest(
            game.end(state, skipped)
            for skipped in itertools.product((False, True), repeat=state.pending)
        )
    return total(
        chance * best_of_held(game, rounds - 1, [*events, draw])
        for chance, draw in game.coming(state)
    )


def best_of_play(game: Game, draws: int, events: list[Event], skipped: tuple[bool, ...]) -> Floats:
    """The same for a judge who may answer or skip the oldest draw whenever he likes."""
    state = game.state(events)
    oldest = state.folded
    if oldest == draws:
        return game.end(state, skipped)
    values = []
    if state.drawn < draws:
        values.append(
            total(
                chance * best_of_play(game, draws, [*events, draw], skipped)
                for chance, draw in game.coming(state)
            )
        )
    if state.pending:
        draw = state.rounds[oldest].draw
        answers = (game.judged(draw), Unjudgeable(draw.round))
        values += (
            best_of_play(game, draws, [*events, answer], (*skipped, skip))
            for skip, answer in zip((False, True), answers, strict=True)
        )
    return largest(values)


def best_of_stalls(
    game: Game, draws: int, events: list[Event], skipped: dict[int, bool] | None = None
) -> Floats:
    """The same for one who answers, skips or leaves open any draw, whenever he likes.

    He sees items and losses, and what is judged behind an open draw moves the draws after it.
    """
    skipped = skipped or {}
    state = game.state(events)
    if state.drawn == draws:
        held = [round_ for round_ in range(1, draws + 1) if round_ not in skipped]
        return largest(
            game.end(state, tuple(all_[round_] for round_ in range(1, draws + 1)))
            for choice in itertools.product((False, True), repeat=len(held))
            for all_ in [skipped | dict(zip(held, choice, strict=True))]
        )
    held = [round_ for round_ in range(1, state.drawn + 1) if round_ not in skipped]
    values = []
    for choice in itertools.product((None, False, True), repeat=len(held)):
        answered = {
            round_: skip for round_, skip in zip(held, choice, strict=True) if skip is not None
        }
        answers: list[Event] = [
            Unjudgeable(round_) if skip else game.judged(state.rounds[round_ - 1].draw)
            for round_, skip in answered.items()
        ]
        now = [*events, *answers]
        values.append(
            total(
                chance * best_of_stalls(game, draws, [*now, draw], skipped | answered)
                for chance, draw in game.coming(game.state(now))
            )
        )
    return largest(values)


def opened(truth: Truth, claim: Claim, first_told: dict[int, float] | None = None) -> Game:
    """The stakes of the true candidates of both sides of ``sharp``, over their starts."""
    plan = make_plan(claim, truth.facts, policy_named("sharp"), "")
    risk = (math.fsum(truth.loss) / plan.items - plan.lower) / plan.scale.width

    def stake(lattice_side: LatticeSide, unit: float) -> float:
        at = int(np.searchsorted(lattice_side._grid / lattice_side._steps, unit - 1e-12))
        standing = lattice_side._standing
        if at not in standing:
            # Rejected, not merely needless.
            assert (standing > at).any()
            return 1.0
        return float(np.exp(lattice_side._stake[:, standing == at]).sum())

    def stakes(fold: Fold) -> Floats:
        sequence = fold.confidence_sequence
        assert isinstance(sequence, LatticeSequence)
        below, above = sequence._lattice.sides
        return np.array([stake(below, risk), stake(above, 1.0 - risk)])

    start = stakes(begin_mean(plan, truth.scores, SEED).question.fold)
    return Game(truth, plan, lambda fold: stakes(fold) / start, first_told or {})


CLAIMS = {
    "level 0.05": Claim("pool", 0.05, 0.05),
    "a coarse goal": Claim("pool", 0.2, 0.4),
    "a level that nothing reaches": Claim("pool", 1e-9, 0.5),
}


@pytest.mark.parametrize("rounds", [2, 3])
@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_skips_among_draws_held_gain_nothing(claim: Claim, rounds: int) -> None:
    assert (best_of_held(opened(EVEN, claim), rounds, []) <= 1.0 + EXACT).all()


def test_skips_among_four_draws_held_gain_nothing() -> None:
    best = best_of_held(opened(FEW_KINDS, CLAIMS["level 0.05"]), 4, [])
    assert (best <= 1.0 + EXACT).all()


@pytest.mark.parametrize("first_told", [{}, {0: 1.0, 4: 0.6, 5: 0.0}], ids=["", "corrected"])
def test_they_gain_nothing_after_rounds_folded_before(first_told: dict[int, float]) -> None:
    """Nor where losses were corrected, whatever they were when the draws were made."""
    game = opened(GRADED, CLAIMS["a coarse goal"], first_told)
    events: list[Event] = []
    for _ in range(3):
        _, draw = list(game.coming(game.state(events)))[-1]
        events += [draw, game.judged(draw)]
    before = game.end(game.state(events), ())
    assert (best_of_held(game, 2, events) <= before * (1.0 + EXACT)).all()


@pytest.mark.parametrize(
    ("first_told", "draws"),
    [({}, 3), ({0: 1.0, 4: 0.0}, 3 if NIGHTLY else 2)],
    ids=["", "corrected"],
)
def test_nor_does_the_choice_of_when_to_answer_or_to_skip(
    first_told: dict[int, float], draws: int
) -> None:
    game = opened(FEW_KINDS, CLAIMS["a coarse goal"], first_told)
    assert (best_of_play(game, draws, [], ()) <= 1.0 + EXACT).all()


@pytest.mark.parametrize("first_told", [{}, {0: 1.0, 4: 0.0}], ids=["", "corrected"])
def test_nor_do_answers_and_skips_behind_open_draws(first_told: dict[int, float]) -> None:
    game = opened(FEW_KINDS, CLAIMS["a coarse goal"], first_told)
    assert (best_of_stalls(game, 3, []) <= 1.0 + EXACT).all()


@pytest.mark.parametrize(
    "questions",
    [
        (Question("at_most", 0.5),),
        (Question("at_least", 0.5),),
        (Question("at_most", 0.45), Question("at_least", 0.45)),
    ],
    ids=["at_most", "at_least", "both"],
)
def test_skips_gain_nothing_where_questions_set_the_stakes(
    questions: tuple[Question, ...],
) -> None:
    game = opened(EVEN, Claim("pool", 0.05, questions=questions))
    assert (best_of_held(game, 2, []) <= 1.0 + EXACT).all()


@pytest.mark.parametrize("loss", [(0, 1, 0, 1), (1, 0, 0, 0)], ids=str)
def test_skips_gain_nothing_of_a_pair(loss: tuple[int, ...]) -> None:
    """Whatever pool was drawn, a pair with its pool risk ends below its start in the mean."""
    walk = paired(np.array(loss, dtype=np.float64))
    risk, row = sum(loss) / len(loss), 8

    def stakes(fold: Fold) -> Floats:
        """Return the stakes of an edge at the pool risk, in the cells below it and above it."""
        sequence = fold.confidence_sequence
        assert isinstance(sequence, PairSequence)
        side = sequence._sides[0]
        cells = side.cells
        assert cells is not None
        edge = round(risk * sequence._steps)
        here = cells.row == row
        below = cells.above[here & (cells.cell == edge - 1)][0]
        above = cells.below[here & (cells.cell == edge)][0]
        start = side._start[row] + side._kappa[row] * risk
        return np.asarray(np.exp(np.array([below, above]) - start))

    game = Game(walk.truth, walk.plan, stakes, {})
    for rounds in (1, 2, 3):
        assert (best_of_held(game, rounds, []) <= 1.0 + EXACT).all()
    assert (best_of_stalls(game, 3, []) <= 1.0 + EXACT).all()


@pytest.mark.parametrize(
    "truth",
    [pytest.param(EVEN, id="even", marks=pytest.mark.nightly), pytest.param(UNEVEN, id="uneven")],
)
@pytest.mark.parametrize("name", SUPERMARTINGALES)
def test_skips_gain_nothing_of_a_published_policy(name: str, truth: Truth) -> None:
    """Of wealth in the cell that holds the risk; mixed, and of either side alone."""
    width = truth.upper - truth.lower
    facts, policy = truth.facts, CONFIGURATIONS[name]
    plan = make_plan(Claim(alpha=1e-12, precision=0.2 * width), facts, policy, "")
    risk = math.fsum(truth.loss) / plan.items
    theta = np.array([0.01, 0.5, 0.99])

    def mixed(fold: Fold) -> Floats:
        sequence = fold.confidence_sequence
        assert isinstance(sequence, CellSequence)
        wealth = sequence.wealth
        holding = (wealth._lower <= risk) & (risk <= wealth._upper)
        at = int(np.flatnonzero(holding)[0])
        above, below = np.exp(wealth._above[at]), np.exp(wealth._below[at])
        return np.asarray(theta * above + (1.0 - theta) * below)

    game = Game(truth, plan, mixed, {})
    assert (best_of_stalls(game, 2, []) <= 1.0 + EXACT).all()


@pytest.mark.parametrize("policy", [*CONFIGURATIONS, "sharp", "uniform"])
def test_no_loss_and_no_correction_takes_a_whole_stake_of_draws_made_ahead(policy: str) -> None:
    """A bet's cap holds for the worst there may be: else the fold would raise an error."""
    chosen = CONFIGURATIONS.get(policy) or policy_named(policy)
    plan = make_plan(Claim("pool", 1e-9, 1.0), UNEVEN.facts, chosen, "")
    game = Game(UNEVEN, plan, lambda fold: np.array([fold.interval.width]), {})
    events: list[Event] = []
    for answered in (True, False, False, False, False):
        _, draw = list(game.coming(game.state(events)))[-1]
        events += [draw, game.judged(draw)] if answered else [draw]
    state = game.state(events)
    for losses in itertools.product((plan.lower, plan.upper, None), repeat=5):
        fold, rounds = state.question.engine.fold(), state.rounds[:]
        rounds.correct(0, losses[0])
        fold.follow(plan, rounds)
        for round_, coming in fold.knowledge.open.items():
            fold.fold_round(plan, coming, losses[round_ - 1])
        assert fold.interval.width >= 0.0
