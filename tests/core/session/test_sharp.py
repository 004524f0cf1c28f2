"""Sessions with a goal: order of losses, corrections, changes, skipping, and when pairs start."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from celeus.core.betting.bets import goals_for
from celeus.core.betting.candidate_grid import LatticeSide
from celeus.core.betting.moments import Prediction, SideSignal
from celeus.core.betting.pair_cells import PairCells
from celeus.core.betting.pair_rows import PairSide
from celeus.core.betting.population_target import PairSequence
from celeus.core.betting.signals import RangeLeft
from celeus.core.insights.evidence_levels import resumed
from celeus.core.ledger import Amendment, Change, Draw, Event, Observation
from celeus.core.plans.pair_plan import PairPlan
from celeus.core.plans.plan import Claim, Plan, check_precision, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import Scores
from celeus.core.session.correction import Checkpoints, Refold, correct
from celeus.core.session.mean import Mean
from celeus.core.session.rounds import Rounds
from celeus.core.session.session import Session, begin_mean
from celeus.errors import InvalidValue, UnreachablePrecision
from celeus.simulation.sessions import Truth
from tests.core.worlds import SEED, Walk, open_walk, zero_one_truth

SHARP = policy_named("sharp")
CLAIMS = {
    "pool": Claim("pool", precision=0.2),
    "pool without precision": Claim("pool"),
    "population": Claim("population", precision=0.3),
    "population without precision": Claim("population"),
    "population by a margin": Claim(
        "population", precision=0.3, margin=0.02, margin_assumption="mixing"
    ),
}


def opened(claim: Claim, items: int = 300, hidden: tuple[int, ...] = ()) -> Walk:
    return open_walk(zero_one_truth(items), SHARP, claim, hidden=hidden)


def afresh(walk: Walk, events: list[Event]) -> Session[Mean]:
    return begin_mean(walk.plan, walk.truth.scores, SEED).replay(events)


def eventful(claim: Claim) -> Walk:
    """Draws ahead, losses out of order, items nobody can judge, a change and a correction."""
    walk = opened(claim, hidden=(3, 50, 111))
    walk.go(20)
    walk.draw(5)
    walk.judge([25, 22, 23, 21, 24])
    walk.enter(Change(0.15, 290))
    walk.go(60)
    walk.enter(Amendment(7, 1.0 - float(walk.truth.loss[walk.state.rounds[6].draw.item])))
    walk.enter(Amendment(30, None))
    walk.go(60)
    walk.draw(3)
    return walk


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_replay_gives_every_digit_again(claim: Claim) -> None:
    walk = eventful(claim)
    again = afresh(walk, walk.events)
    assert again.question.points == walk.state.question.points
    assert again.question.interval == walk.state.question.interval
    assert again.folded == walk.state.folded == 145


def held_and_skipped(claim: Claim, policy: str) -> Walk:
    """Several draws out most of the time, skips among them, a change and corrections."""
    walk = open_walk(zero_one_truth(300), policy_named(policy), claim, hidden=(3, 50, 111, 200))
    for first in range(1, 60, 6):
        walk.draw(8 if first == 1 else 6)
        walk.judge([first + 2, first, first + 1, first + 5, first + 4, first + 3])
        if first == 31:
            walk.enter(Change(0.2, 290))
    walk.enter(Amendment(40, None))
    walk.enter(Amendment(9, 1.0))
    walk.judge([61, 62])
    walk.go(5)
    walk.draw(4)
    walk.judge([68, 69])
    return walk


HELD = {name: one for name, one in CLAIMS.items() if "margin" not in name}


@pytest.mark.parametrize("policy", ["sharp", "celeus", "evalue"])
@pytest.mark.parametrize("claim", HELD.values(), ids=HELD)
def test_draws_held_are_folded_alike_whoever_folds_them(claim: Claim, policy: str) -> None:
    """One event after the other, all at once, around a correction, and from columns."""
    walk = held_and_skipped(claim, policy)
    kept = walk.state.rounds
    again = afresh(walk, walk.events)
    columns = Rounds.from_columns(kept.columns, kept.strata, kept.rules)
    resumed_state = resumed(walk.plan, walk.truth.scores, columns, walk.state.stopping)
    out = np.cumsum(np.sign(kept.order))
    assert out.max() >= 8
    for other in (again, resumed_state):
        assert other.question.points == walk.state.question.points
        assert (other.rounds, other.question.interval) == (kept, walk.state.question.interval)
    event = Amendment(30, 1.0)
    ready = Refold(walk.state, event, Checkpoints())
    while (part := ready.coming(walk.state, 10)).order:
        ready.follow(part)
    folded = correct(walk.state, event, ready, Checkpoints())
    assert folded.question.points == afresh(walk, [*walk.events, event]).question.points


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_an_amendment_folds_again_with_the_recorded_probabilities(claim: Claim) -> None:
    walk = opened(claim)
    walk.go(80)
    corrected = 1.0 - float(walk.truth.loss[walk.state.rounds[6].draw.item])
    # The same ledger in which the round had the new loss from the start.
    events = [
        Observation(7, corrected) if isinstance(one, Observation) and one.round == 7 else one
        for one in walk.events
    ]
    before = walk.state.question.points
    walk.enter(Amendment(7, corrected))
    assert walk.state.question.points == afresh(walk, events).question.points
    assert walk.state.question.points[:6] == before[:6]
    assert walk.state.question.points[6] != before[6]


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_the_order_in_which_losses_arrive_does_not_matter(claim: Claim) -> None:
    ahead, in_order = opened(claim), opened(claim)
    for one in (ahead, in_order):
        one.go(30)
        one.draw(8)
    ahead.judge([38, 31, 35, 33, 34, 32, 37, 36])
    in_order.judge(range(31, 39))
    assert ahead.state.question.points == in_order.state.question.points


def test_a_draw_ahead_of_losses_has_its_probability_from_the_folded_ones() -> None:
    walk = opened(CLAIMS["pool"])
    walk.go(30)
    spread = walk.state.question.fold.predictor.fit.moment
    first, second = walk.draw(2)
    assert walk.state.question.fold.predictor.fit.moment is spread
    assert first.strata_q is not None
    assert second.strata_q is not None
    assert not np.array_equal(first.strata_q, second.strata_q)


@pytest.mark.parametrize("policy", ["sharp", "uniform"])
@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_the_interval_only_narrows_whatever_the_changes(claim: Claim, policy: str) -> None:
    walk = open_walk(zero_one_truth(300), policy_named(policy), claim)
    lower, upper = walk.state.question.interval.lower, walk.state.question.interval.upper
    for precision in (0.3, 0.1, None, 0.25, 0.07, 0.5, None, 0.2):
        walk.enter(Change(precision, 300))
        for _ in range(30):
            walk.go(1)
            now = walk.state.question.interval
            assert lower <= now.lower <= now.upper <= upper
            lower, upper = now.lower, now.upper


def labels_to_stop(walk: Walk) -> int:
    while walk.state.stop_reason is None:
        walk.go(1)
    return walk.state.folded


@pytest.mark.parametrize(("target", "finer"), [("pool", 0.12), ("population", 0.175)])
def test_a_finer_precision_is_reached_after_the_first(
    target: Literal["pool", "population"], finer: float
) -> None:
    walk = opened(Claim(target, precision=0.2), items=2000)
    at_first = labels_to_stop(walk)
    walk.enter(Change(finer, 2000))
    assert labels_to_stop(walk) == walk.state.folded
    assert at_first < walk.state.folded < 1500
    assert walk.state.question.interval.width <= finer


class TestLatticeSide:
    def test_a_finer_lattice_inherits_from_the_next_candidate_above(self) -> None:
        side = LatticeSide(10, 0.05, goals_for(0.1, 0.1, 0.05))
        side._stake[0] = -np.arange(1.0, 12.0)
        kept = np.array([3, 5, 6, 7, 8])
        for name in ("_standing", "_value"):
            setattr(side, name, getattr(side, name)[kept])
        side._stake = side._stake[:, kept]
        side.refine(25)
        expected = {j: -(-j * 10 // 25) + 1.0 for j in range(26) if -(-j * 10 // 25) in set(kept)}
        assert list(side._standing) == list(expected)
        assert list(side._stake[0]) == [-value for value in expected.values()]

    def test_shared_out_stakes_keep_their_sum(self) -> None:
        side = LatticeSide(10, 0.05, goals_for(0.1, 0.1, 0.05))
        before = np.exp(side._stake).sum(axis=0)
        side.retarget(goals_for(None, 0.0005, 0.05))
        assert np.exp(side._stake).sum(axis=0) == pytest.approx(before)
        side.retarget(goals_for(0.05, 0.0005, 0.05))
        assert np.exp(side._stake).sum(axis=0) == pytest.approx(before)


def bet_on(side: PairSide, lower: float) -> None:
    side.update(Prediction(lower, 0.5, 1e-4), 0.0, SideSignal(0.45, lower), 0.2)


class TestPairs:
    def side(self) -> tuple[PairSide, PairCells]:
        side = PairSide(PairPlan(1000, 0.05, 100), 0.2)
        side.advance(0.3, 0.6, 1.0, betting=True)
        assert side.cells is not None
        return side, side.cells

    def test_a_cell_leaves_when_all_of_it_lies_below_the_range_and_no_sooner(self) -> None:
        side, cells = self.side()
        least = int(cells.cell.min())
        edge = side._edge
        inside = (edge[least] + edge[least + 1]) / 2.0
        bet_on(side, inside)
        assert int(cells.cell.min()) == least
        bet_on(side, edge[least + 1])
        assert int(cells.cell.min()) == least
        bet_on(side, edge[least + 1] + 1e-6)
        assert int(cells.cell.min()) == least + 1

    def test_a_row_waits_for_pool_risks_below_its_cells(self) -> None:
        side, cells = self.side()
        row = int(np.flatnonzero(side._least > 30)[0])
        cells.drop(cells.row <= row)
        side.advance(0.3, 0.6, 1.0, betting=True)
        assert side.first == row
        side.advance(0.31, 0.6, 1.0, betting=True)
        assert side.first > row

    @pytest.mark.parametrize("window", [1, 7])
    def test_rows_that_are_set_up_late_are_rows_that_bet_from_round_1(
        self, monkeypatch: pytest.MonkeyPatch, window: int
    ) -> None:
        claim = Claim("population", precision=0.2)
        late = opened(claim)
        monkeypatch.setattr("celeus.core.betting.pair_rows.WINDOW", window)
        late.go(200)
        monkeypatch.setattr("celeus.core.betting.pair_rows.WINDOW", 10_000)
        assert afresh(late, late.events).question.points == late.state.question.points

    @pytest.mark.parametrize("hidden", [(), (5, 40)])
    def test_pairs_that_start_late_are_pairs_that_bet_from_round_1(
        self, monkeypatch: pytest.MonkeyPatch, hidden: tuple[int, ...]
    ) -> None:
        claim = Claim("population", precision=0.1)
        late = open_walk(zero_one_truth(3000), SHARP, claim, hidden=hidden)
        late.go(20)
        assert not started(late)
        while not started(late):
            late.go(1)
        late.go(100)
        monkeypatch.setattr("celeus.core.betting.population_target.PRECISIONS_TO_START", 1e9)
        early = open_walk(zero_one_truth(3000), SHARP, claim, hidden=hidden)
        state = early.state.replay(late.events[:2])
        assert started(early)
        state = state.replay(late.events[2:])
        assert state.question.interval == late.state.question.interval
        assert state.question.points[-100:] == late.state.question.points[-100:]

    def test_pairs_start_when_the_run_ends(self) -> None:
        walk = opened(Claim("population", precision=0.1, budget=40), items=3000)
        walk.go(39)
        assert not started(walk)
        before = walk.state.question.interval.width
        walk.go(1)
        assert started(walk)
        assert walk.state.question.interval.width < before


def started(walk: Walk) -> bool:
    confidence_sequence = walk.state.question.fold.confidence_sequence
    assert isinstance(confidence_sequence, PairSequence)
    return confidence_sequence._started


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_a_session_on_another_scale_is_the_same_session(claim: Claim) -> None:
    unit = zero_one_truth(300)
    moved = Truth(
        3.0 * unit.loss - 1.0,
        Scores(3.0 * unit.scores.surrogate - 1.0, unit.scores.weight, None),
        -1.0,
        2.0,
    )
    if claim.target == "population" and claim.margin is None:
        # What is no 0-1 loss on another scale has no bound of its own there.
        kind = "kl" if claim.precision is None else "pairs"
        claim = replace(claim, population_bound=kind)
    wide = Claim(
        claim.target,
        precision=None if claim.precision is None else 3.0 * claim.precision,
        population_bound=claim.population_bound,
        margin=None if claim.margin is None else 3.0 * claim.margin,
        margin_assumption=claim.margin_assumption,
    )
    one, other = open_walk(unit, SHARP, claim), open_walk(moved, SHARP, wide)
    for walk in (one, other):
        walk.go(200)
    # Rounding may move the end of a row of pairs by one step of their lattice.
    near = 1e-9 + (1.01 * other.plan.cell if one.plan.bound.paired else 0.0)
    for small, large in zip(one.state.question.points, other.state.question.points, strict=True):
        ends = [3.0 * small.interval.lower - 1.0, 3.0 * small.interval.upper - 1.0]
        assert [large.interval.lower, large.interval.upper] == pytest.approx(ends, abs=near)
        assert large.estimate == pytest.approx(3.0 * small.estimate - 1.0, abs=near)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_skipping_never_narrows(claim: Claim) -> None:
    honest = opened(claim)
    honest.go(300)
    skipping = opened(claim, hidden=(5, 60, 200))
    skipping.go(300)
    assert skipping.state.question.interval.width >= honest.state.question.interval.width


def test_at_exhaustion_the_pool_risk_is_known() -> None:
    walk = opened(CLAIMS["pool"])
    walk.go(300)
    risk = float(walk.truth.loss.mean())
    assert walk.state.question.interval.lower == pytest.approx(risk)
    assert walk.state.question.interval.upper == pytest.approx(risk)


def test_probabilities_that_are_not_those_of_the_strata_are_noticed() -> None:
    walk = opened(CLAIMS["pool"])
    drawn = walk.draw()[0]
    broken = Draw(1, drawn.item, drawn.q / 50.0, 0, drawn.strata_q)
    other = opened(CLAIMS["pool"])
    other.enter(broken)
    with pytest.raises(RangeLeft):
        other.judge()


class TestOpening:
    def test_a_precision_beyond_the_pool_is_refused_with_the_smallest_that_is_not(self) -> None:
        facts = zero_one_truth(300).facts
        with pytest.raises(UnreachablePrecision) as refused:
            make_plan(Claim("population", precision=0.01), facts, SHARP, "")
        assert "target pool" in str(refused.value)
        least = refused.value.more["smallest_reachable"]
        assert isinstance(least, float)
        assert 0.01 < least < 0.03
        make_plan(Claim("population", precision=least * 1.001), facts, SHARP, "")
        with pytest.raises(UnreachablePrecision):
            make_plan(Claim("population", precision=least * 0.99), facts, SHARP, "")
        make_plan(Claim("pool", precision=0.01), facts, SHARP, "")

    def test_a_change_goes_on_with_the_pairs_of_the_opening(self) -> None:
        plan = make_plan(Claim("population", precision=0.2), zero_one_truth(2000).facts, SHARP, "")
        check_precision(plan, 0.1)
        with pytest.raises(UnreachablePrecision):
            check_precision(plan, 0.05)

    def test_a_pool_without_losses_reaches_the_smallest_precision(self) -> None:
        facts = zero_one_truth(400).facts
        with pytest.raises(UnreachablePrecision) as refused:
            make_plan(Claim("population", precision=0.005), facts, SHARP, "")
        least = refused.value.more["smallest_reachable"]
        assert isinstance(least, float)
        nothing = Truth(np.zeros(400), Scores(np.full(400, 0.01), np.zeros(400), None))
        walk = open_walk(nothing, SHARP, Claim("population", precision=1.01 * least))
        walk.go(400)
        assert walk.state.question.interval.width <= 1.01 * least

    @pytest.mark.parametrize("target", ["pool", "population"])
    @pytest.mark.parametrize("precision", [0.0, -0.1, 1.0, 1e-5])
    def test_a_width_that_is_none_is_refused(
        self, target: Literal["pool", "population"], precision: float
    ) -> None:
        with pytest.raises(InvalidValue):
            make_plan(Claim(target, precision=precision), zero_one_truth(300).facts, SHARP, "")

    def test_pairs_are_the_default_with_a_precision_only(self) -> None:
        facts = zero_one_truth(300).facts
        with_precision = make_plan(Claim("population", precision=0.3), facts, SHARP, "")
        assert with_precision.bound.kind == "exact_pairs"
        assert with_precision.bound.alpha2 == pytest.approx(0.0025)
        assert with_precision.cell == pytest.approx(1.0 / 267.0)
        without = make_plan(Claim("population"), facts, SHARP, "")
        assert without.bound.kind == "clopper_pearson"
        assert without.alpha1 == pytest.approx(0.045)
        assert Plan.from_dict(with_precision.to_dict()) == with_precision

    def test_pairs_are_refused_where_there_are_none(self) -> None:
        facts = zero_one_truth(300).facts
        for claim, policy in (
            (Claim("population", population_bound="pairs"), "sharp"),
            (Claim("population", precision=0.3, population_bound="pairs"), "celeus"),
            (Claim("population", precision=0.3, population_bound="pairs", alpha2=0.01), "sharp"),
            (Claim("pool", precision=0.3, population_bound="pairs"), "sharp"),
        ):
            with pytest.raises(InvalidValue):
                make_plan(claim, facts, policy_named(policy), "")
