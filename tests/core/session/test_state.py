"""The fold: the same plan and ledger give the same answer, however the losses came in."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from celeus.core.betting import candidate_grid
from celeus.core.betting.bets import BetScale, Floats, bet
from celeus.core.betting.published import CellSequence
from celeus.core.ledger import Amendment, Change, Draw, Event, Observation, Unjudgeable
from celeus.core.plans.plan import Claim, Target
from celeus.core.plans.policies import LEAST_BETA, Policy, policy_named
from celeus.core.pools.surrogates import Scores
from celeus.core.sampling.predictors import FixedPredictor
from celeus.core.session.mean import Mean
from celeus.core.session.session import Session, begin_mean, judge_rounds
from celeus.simulation.sessions import Truth
from tests.core.worlds import CONFIGURATIONS, SEED, Walk, open_walk, small_truth, zero_one_truth

CELEUS = policy_named("celeus")
JUDGED_BLIND = [policy for policy in CONFIGURATIONS.values() if policy.name != "oracle"]


STEPS = ["draw", "draw", "draw", "judge", "judge", "judge", "give up", "amend", "change"]


@st.composite
def truths(draw: st.DrawFn) -> Truth:
    """A small pool on any scale, with losses, surrogates and scores of any kind."""
    items = draw(st.integers(1, 12))
    lower = draw(st.sampled_from([0.0, -1.0, 100.0]))
    width = draw(st.sampled_from([1.0, 3.0, 0.01]))
    unit = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.0, 1.0))
    units = st.lists(unit, min_size=items, max_size=items)
    scores = st.lists(
        st.one_of(st.sampled_from([0.0, 1e-17]), st.floats(0.01, 1.0)),
        min_size=items,
        max_size=items,
    )
    # A sum can leave the scale by rounding.
    loss = np.minimum(lower + width * np.array(draw(units)), lower + width)
    surrogate = np.minimum(lower + width * np.array(draw(units)), lower + width)
    return Truth(loss, Scores(surrogate, np.array(draw(scores)), None), lower, lower + width)


def begun(walk: Walk) -> Session[Mean]:
    """The session of this walk before its first event."""
    return begin_mean(walk.plan, walk.truth.scores, SEED)


def folded_from(walk: Walk, events: Sequence[Event]) -> Session[Mean]:
    return begun(walk).replay(events)


def same(one: Session[Mean], other: Session[Mean]) -> bool:
    """Equal to the last digit, in everything a status shows."""
    return (
        one.question.points == other.question.points
        and one.question.interval == other.question.interval
        and one.question.fold.pool_interval == other.question.fold.pool_interval
        and one.question.estimate == other.question.estimate
        and one.rounds == other.rounds
        and one.stopping == other.stopping
        and (one.sequence, one.observed, one.folded, one.pending, one.waiting)
        == (other.sequence, other.observed, other.folded, other.pending, other.waiting)
        and bool((one.question.proposal.drawn_in == other.question.proposal.drawn_in).all())
    )


@st.composite
def wanderings(draw: st.DrawFn) -> Walk:
    """A session led through draws, judgements in any order, amendments and changes."""
    truth = draw(truths())
    policy = draw(st.sampled_from(JUDGED_BLIND))
    width = truth.upper - truth.lower
    walk = open_walk(truth, policy, Claim(precision=draw(st.sampled_from([None, width / 5.0]))))
    for _ in range(draw(st.integers(0, 30))):
        judged = [one.draw.round for one in walk.state.rounds if one.answered_at > 0]
        out = [one.draw.round for one in walk.state.rounds if one.answered_at == 0]
        step = draw(st.sampled_from(STEPS))
        loss = st.sampled_from([truth.lower, truth.upper, float(truth.loss[0])])
        if step == "draw" and walk.left():
            walk.draw()
        elif step == "judge" and out:
            walk.judge([draw(st.sampled_from(out))])
        elif step == "give up" and out:
            walk.enter(Unjudgeable(draw(st.sampled_from(out))))
        elif step == "amend" and judged:
            walk.enter(Amendment(draw(st.sampled_from(judged)), draw(st.none() | loss)))
        elif step == "change":
            precision = draw(st.sampled_from([None, width / 3.0, width / 20.0]))
            walk.enter(Change(precision, truth.loss.size))
    return walk


@given(wanderings())
def test_a_replay_equals_the_session_step_by_step_to_the_last_digit(walk: Walk) -> None:
    assert same(folded_from(walk, walk.events), walk.state)


@given(wanderings(), st.integers(0, 30))
def test_catching_up_from_anywhere_gives_the_same_state(walk: Walk, known: int) -> None:
    state = folded_from(walk, walk.events[:known]).replay(walk.events[known:])
    assert same(state, walk.state)


@given(wanderings())
def test_intervals_only_narrow_and_stay_on_the_scale_until_something_is_corrected(
    walk: Walk,
) -> None:
    before = walk.plan.bound.widen(walk.plan.scale, walk.plan.items, walk.plan.scale)
    if walk.state.question.fold.emptied:
        return
    for point in walk.state.question.points:
        assert before.lower <= point.interval.lower <= point.interval.upper <= before.upper
        assert point.interval.lower <= point.estimate <= point.interval.upper
        before = point.interval


@given(truths(), st.sampled_from(JUDGED_BLIND), st.data())
def test_losses_in_any_order_give_what_losses_in_draw_order_give(
    truth: Truth, policy: Policy, data: st.DataObject
) -> None:
    """Every draw first, then every judgement in a random order, against one after the other."""
    items = truth.loss.size
    in_order, ahead = open_walk(truth, policy), open_walk(truth, policy)
    in_order.go(items)
    ahead.draw(items)
    rounds = data.draw(st.permutations(range(1, items + 1)))
    for number, round_ in enumerate(rounds, start=1):
        ahead.judge([round_])
        arrived = set(rounds[:number])
        prefix = next(t for t in range(1, len(rounds) + 2) if t not in arrived) - 1
        assert ahead.state.folded == prefix
        assert ahead.state.waiting == number - prefix
        assert ahead.state.pending == len(rounds) - number
        assert ahead.state.question.points == in_order.state.question.points[:prefix]
    assert ahead.state.question.fold.emptied == in_order.state.question.fold.emptied


@given(wanderings())
def test_an_amended_session_equals_one_judged_so_from_the_start(walk: Walk) -> None:
    """Folded from scratch with the recorded probabilities and the corrected losses."""
    events: list[Event] = []
    final = {one.draw.round: one.loss for one in walk.state.rounds if one.answered_at > 0}
    for event in walk.events:
        match event:
            case Draw() | Change():
                events.append(event)
            case Observation() | Unjudgeable():
                loss = final[event.round]
                if isinstance(loss, float):
                    events.append(Observation(event.round, loss))
                else:
                    events.append(Unjudgeable(event.round))
            case Amendment():
                pass
    state = folded_from(walk, events)
    assert state.question.points == walk.state.question.points
    assert state.question.interval == walk.state.question.interval


def test_an_amendment_keeps_the_recorded_probability_and_the_first_answer() -> None:
    walk = open_walk(zero_one_truth(30), CELEUS)
    draw = walk.state.propose()
    odd = Draw(1, draw.item, 0.9 * draw.q, 0)
    walk.enter(odd)
    walk.enter(Observation(1, 1.0))
    walk.go(5)
    before = walk.state.question.points
    walk.enter(Amendment(1, 0.0))
    first = walk.state.rounds[0]
    assert first.draw.q == odd.q
    assert (first.answer, first.loss, first.answered_at) == (1.0, 0.0, 2)
    plug_in = walk.state.question.points[0].plus.plug_in
    guess = float(walk.truth.scores.surrogate[draw.item])
    assert walk.state.question.points[0].plus.signal == plug_in - guess / (30 * odd.q)
    assert [point.round for point in walk.state.question.points] == [
        point.round for point in before
    ]
    walk.enter(Amendment(1, 1.0))
    assert walk.state.question.points == before, "corrected back, the answer is what it was"


def test_an_amendment_may_reopen_a_session_that_had_stopped() -> None:
    truth = zero_one_truth(400)
    walk = open_walk(truth, CELEUS, Claim(precision=0.25))
    while walk.state.stop_reason is None:
        walk.go(1)
    for round_ in range(1, walk.state.drawn + 1):
        walk.enter(Amendment(round_, None))
    assert walk.state.stop_reason is None


def test_asking_again_proposes_the_same_draw_and_changes_nothing() -> None:
    walk = open_walk(small_truth(), CELEUS)
    for _ in range(7):
        before = folded_from(walk, walk.events)
        assert walk.state.propose() == walk.state.propose()
        assert same(before, walk.state)
        walk.draw()


def test_a_draw_names_what_was_known_when_it_was_made() -> None:
    walk = open_walk(small_truth(), CELEUS)
    walk.go(2)
    assert [one.draw.seen for one in walk.state.rounds] == [0, 2]
    assert walk.state.propose().seen == 4


def test_two_workers_with_the_same_ledger_propose_the_same() -> None:
    walk = open_walk(zero_one_truth(50), CELEUS)
    walk.go(10)
    other = folded_from(walk, walk.events)
    assert other.propose() == walk.state.propose()


def test_another_seed_draws_other_items() -> None:
    items = []
    for seed in (b"one", b"other"):
        walk = open_walk(zero_one_truth(200), CELEUS, seed=seed)
        items.append([draw.item for draw in walk.draw(10)])
    assert items[0] != items[1]


@pytest.mark.parametrize("policy", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_policies_without_scores_draw_evenly_and_ignore_the_surrogate(policy: Policy) -> None:
    walk = open_walk(small_truth(), policy)
    predictor = walk.state.question.fold.predictor
    assert isinstance(predictor, FixedPredictor)
    guess = [predictor.surrogate(item) for item in range(7)]
    if not policy.uses_scores:
        assert [walk.mixture.probability(item) for item in range(7)] == [1.0 / 7.0] * 7
        assert guess == [0.0] * 7
    else:
        assert guess == list(walk.truth.scores.surrogate)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (Draw(1, 3, 0.1, 0), "draw of round 1 after 3 draws"),
        (Draw(5, 3, 0.1, 0), "draw of round 5 after 3 draws"),
        (Observation(0, 0.0), "round 0 is not waiting"),
        (Observation(1, 0.0), "round 1 is not waiting"),
        (Observation(4, 0.0), "round 4 is not waiting"),
        (Unjudgeable(2), "round 2 is not waiting"),
        (Amendment(0, 0.0), "round 0 has no judgement"),
        (Amendment(3, 0.0), "round 3 has no judgement"),
        (Amendment(4, None), "round 4 has no judgement"),
    ],
)
def test_an_event_that_no_ledger_could_hold_is_an_error(event: Event, message: str) -> None:
    walk = open_walk(small_truth(), CELEUS)
    walk.go(2)
    walk.draw()
    with pytest.raises(ValueError, match=message):
        walk.enter(event)


class TestChangeOfPrecision:
    COARSE, FINE = 0.5, 0.05

    def opened(self) -> Walk:
        return open_walk(zero_one_truth(300), CELEUS, Claim(precision=self.COARSE))

    def cell(self, walk: Walk) -> float:
        confidence_sequence = walk.state.question.fold.confidence_sequence
        assert isinstance(confidence_sequence, CellSequence)
        wealth = confidence_sequence.wealth
        return float((wealth._upper - wealth._lower).max())

    def test_binds_from_the_first_draw_made_after_it(self) -> None:
        walk, unchanged = self.opened(), self.opened()
        for one in (walk, unchanged):
            one.go(10)
            one.draw(5)
        walk.enter(Change(self.FINE, 300))
        for one in (walk, unchanged):
            one.judge()
        assert walk.state.question.points == unchanged.state.question.points
        assert self.cell(walk) == pytest.approx(self.COARSE / 100.0)
        assert [one.rule.precision for one in walk.state.rounds] == [self.COARSE] * 15
        walk.go(1)
        assert self.cell(walk) == pytest.approx(self.FINE / 100.0)
        assert walk.state.rounds[15].rule.precision == self.FINE

    def test_splits_cells_and_never_widens_the_interval(self) -> None:
        walk = self.opened()
        for precision in (self.COARSE, self.FINE, 0.2, 0.01, None, 0.3):
            walk.enter(Change(precision, 300))
            before = walk.state.question.interval
            walk.go(15)
            after = walk.state.question.interval
            assert before.lower <= after.lower <= after.upper <= before.upper
        assert self.cell(walk) == pytest.approx(0.01 / 100.0)

    def test_counts_for_stopping_at_once(self) -> None:
        walk = self.opened()
        walk.go(120)
        assert walk.state.question.interval.width < self.COARSE
        assert walk.state.stop_reason == "target_reached"
        walk.enter(Change(self.FINE, 300))
        assert walk.state.stop_reason is None

    def test_survives_an_amendment_of_an_earlier_round(self) -> None:
        walk = self.opened()
        walk.go(10)
        walk.enter(Change(self.FINE, 300))
        walk.go(10)
        before = walk.state.question.points
        loss = walk.state.rounds[3].loss
        assert isinstance(loss, float)
        walk.enter(Amendment(4, 1.0 - loss))
        assert walk.state.question.points != before
        walk.enter(Amendment(4, loss))
        assert walk.state.question.points == before


def step(state: Session[Mean], truth: Truth) -> Session[Mean]:
    draw = state.propose()
    return state.apply(draw).observe(draw.round, float(truth.loss[draw.item]))


def test_a_scale_far_from_zero_gives_the_same_answer_moved() -> None:
    truth = zero_one_truth(300)
    near = open_walk(truth, CELEUS)
    moved = Truth(
        truth.loss + 1e6,
        Scores(truth.scores.surrogate + 1e6, truth.scores.weight, None),
        1e6,
        1e6 + 1.0,
    )
    far = open_walk(moved, CELEUS)
    near.go(300)
    far.go(300)
    for here, there in zip(near.state.question.points, far.state.question.points, strict=True):
        assert there.interval.lower - 1e6 == pytest.approx(here.interval.lower, abs=1e-8)
        assert there.interval.upper - 1e6 == pytest.approx(here.interval.upper, abs=1e-8)


def test_observing_through_the_short_form_is_the_same_event() -> None:
    truth = zero_one_truth(30)
    walk = open_walk(truth, CELEUS)
    state = begun(walk)
    for _ in range(30):
        walk.go(1)
        state = step(state, truth)
    assert same(state, walk.state)


def test_a_scale_far_from_zero_ends_at_the_true_risk() -> None:
    items, lower = 2000, 1e9
    loss = np.full(items, lower + 0.3)
    truth = Truth(loss, Scores(loss, np.zeros(items), None), lower, lower + 1.0)
    walk = open_walk(truth, policy_named("evalue"), Claim(precision=0.9))
    state = walk.state
    while state.drawn < items:
        draw = state.propose()
        state = state.apply(draw)
        state = state.observe(draw.round, float(loss[draw.item]))
    risk = math.fsum(loss) / items
    assert state.question.interval.lower == state.question.interval.upper == risk


@pytest.mark.parametrize("past_stop", [False, True])
def test_rounds_are_drawn_judged_and_folded_one_by_one(*, past_stop: bool) -> None:
    truth = zero_one_truth(200)
    policy, claim = policy_named("sharp"), Claim(precision=0.4)
    walk, by_hand = (open_walk(truth, policy, claim) for _ in range(2))
    for draw in judge_rounds(walk.state, truth.loss_of, past_stop=past_stop):
        assert by_hand.state.stop_reason is None or past_stop
        by_hand.go(1)
        assert draw.item == by_hand.state.rounds[-1].draw.item
        assert walk.state.folded == draw.round
    assert walk.state.question.points == by_hand.state.question.points
    assert walk.state.stop_reason is not None
    assert (walk.state.folded == truth.loss.size) == past_stop


@pytest.mark.parametrize("target", ["pool", "population"])
@pytest.mark.parametrize("after", [0.01, None])
def test_the_bets_of_a_round_are_known_before_it_is_folded(
    target: Target, after: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are what its time depends on: 400 000 candidates took 42 ms, with six goals 350 ms."""
    sizes: list[int] = []

    def counted(log_stake: Floats, bet_scale: BetScale, caps: Floats | None) -> Floats:
        sizes.append(log_stake.size)
        return bet(log_stake, bet_scale, caps)

    monkeypatch.setattr(candidate_grid, "bet", counted)
    walk = open_walk(zero_one_truth(400), policy_named("sharp"), Claim(target, precision=0.2))
    for change in (0.2, after):
        if target == "population" and change is not None:
            change = max(change, 0.15)  # noqa: PLW2901 -- a population reaches no finer one
        walk.enter(Change(change, 400))
        for _ in range(3):
            known = walk.state.bets_per_round
            walk.go(1)
            # Of a population, pairs bet beside the lattice
            assert sum(sizes) <= known
            assert target == "population" or known <= 4 * max(sum(sizes), 1000)
            sizes.clear()


def test_a_fine_precision_of_a_published_policy_is_known_to_take_long() -> None:
    walk = open_walk(zero_one_truth(300), policy_named("celeus"), Claim(precision=0.5))
    walk.go(1)
    coarse = walk.state.bets_per_round
    walk.enter(Change(0.001, 300))
    assert coarse < 1_000
    assert walk.state.bets_per_round > 100_000


@pytest.mark.parametrize("precision", [0.5, 5e-4])
@pytest.mark.parametrize("kind", ["floor", "exact"])
@pytest.mark.parametrize("wrong", [97, 100])
def test_the_least_share_of_uniform_draws_keeps_the_truth(
    precision: float, kind: str, wrong: int
) -> None:
    """At 1e-13 candidates beside a far range were rounded out of it, after one label."""
    loss = np.repeat([1.0, 0.0], [wrong, 100 - wrong])
    surrogate, weight = np.ones(100), np.tile([0.0, 1.0], 50)
    truth = Truth(loss, Scores(surrogate, weight, None), 0.0, 1.0)
    policy = policy_named("celeus", beta=LEAST_BETA, range=kind)
    walk = open_walk(truth, policy, Claim(alpha=1e-9, precision=precision))
    for _ in range(100 if precision == 0.5 else 10):
        walk.go(1)
        now = walk.state.question.interval
        assert now.lower - 1e-9 <= loss.mean() <= now.upper + 1e-9
