"""What a plan simulates is what sessions do when losses are as assumed."""

import math
from dataclasses import replace
from itertools import islice
from typing import Literal

import numpy as np
import pytest

from celeus.core.insights.planning import (
    Assumption,
    Case,
    Losses,
    Scenario,
    SimulationOutcome,
    Spread,
    assumption_of,
    check_risk,
    fixed_sample,
    floor_of,
    summary,
)
from celeus.core.insights.table_planning import (
    TableCase,
    TableOutcome,
    assumed_errors,
    assumptions_of,
    check_assumption,
    claim_summary,
    stream_summary,
    with_targets,
)
from celeus.core.interval import Interval
from celeus.core.plans.judge_check import JudgeCheck
from celeus.core.plans.plan import Claim, Plan, PoolFacts, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.plans.stopping import Question
from celeus.core.plans.table_plan import TableSettings, plan_table
from celeus.core.pools.loss_bounds import KnownLosses
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.score import Score
from celeus.core.pools.surrogates import Scores
from celeus.core.pools.table_pool import Column, Table
from celeus.core.pools.weights import Weights, relative
from celeus.core.session.session import Session
from celeus.core.session.table.table_question import Table as TableQuestion
from celeus.errors import InvalidValue
from celeus.simulation.backtest import paired_width
from celeus.simulation.sessions import Truth, seed_of, simulate
from celeus.simulation.tables import judge_table
from study.baselines.fixed_sample import paired_test
from tests.nightly import by_day

UNIT = Interval(0.0, 1.0)
DIFFERENCES = Interval(-1.0, 1.0)
ITEMS = 1500
ROUNDING = 1e-12


def scores_of(surrogate: np.ndarray) -> Scores:
    return Scores(surrogate, np.sqrt(surrogate * (1.0 - surrogate)), None)


def known(items: int = ITEMS) -> Scores:
    """Guesses as those of a fair classifier: most near 0, some near a half."""
    return scores_of(np.random.default_rng(3).beta(0.5, 2.5, items))


def plan_of(policy: str = "sharp", items: int = ITEMS, **claim: object) -> Plan:
    facts = PoolFacts("f" * 64, items, 0.0, 1.0, whole_losses=True)
    return make_plan(Claim(**claim), facts, policy_named(policy), "0" * 64)  # type: ignore[arg-type]


def assumed_of(scores: Scores, risk: float | None = None, *, whole: bool = True) -> Assumption:
    return assumption_of(scores, UNIT, whole=whole, has_surrogate=True, risk=risk)


def outcomes(
    plan: Plan, scores: Scores, scenario: Scenario = "right", runs: int = 12
) -> list[SimulationOutcome]:
    case = Case(plan, scores, assumed_of(scores), scenario)
    found = [list(case.run(number, 0))[-1] for number in range(runs)]
    return [one for one in found if isinstance(one, SimulationOutcome)]


@pytest.mark.parametrize("policy", by_day(1, ["sharp", "celeus"]))
def test_labels_agree_with_an_independent_simulation(policy: str) -> None:
    scores = known()
    planned = summary(outcomes(plan_of(policy, precision=0.1), scores, runs=12), 0)
    chance = np.random.default_rng(11)
    labels = []
    for run in range(12):
        truth = Truth((chance.random(ITEMS) < scores.surrogate).astype(float), scores)
        claim = Claim("pool", 0.05, 0.1)
        labels.append(simulate(truth, policy_named(policy), claim, seed_of(5, run))[0].labels)
    assert planned.labels is not None
    assert planned.labels.low <= np.median(labels) <= planned.labels.high
    assert abs(planned.labels.median / np.median(labels) - 1.0) < 0.12


def test_a_finer_precision_takes_more_labels() -> None:
    scores = known()
    medians = []
    for precision in (0.2, 0.12, 0.08):
        found = summary(outcomes(plan_of(precision=precision), scores, runs=6), 0)
        assert found.labels is not None
        medians.append(found.labels.median)
    assert medians == sorted(medians)
    assert medians[0] < medians[-1]


def test_a_useless_surrogate_costs_labels_and_one_that_is_not_used_costs_none() -> None:
    scores = scores_of(np.repeat([0.02, 0.9], ITEMS // 2))
    right, useless = (
        summary(outcomes(plan_of(precision=0.12), scores, scenario, runs=6), 0).labels
        for scenario in ("right", "useless")
    )
    assert right is not None
    assert useless is not None
    assert right.median < 0.7 * useless.median


def test_the_same_seed_gives_the_same_sessions_and_another_one_others() -> None:
    scores = known(400)
    case = Case(plan_of(items=400, precision=0.2), scores, assumed_of(scores), "right")
    first, again, other = (
        [list(case.run(number, seed)) for number in range(3)] for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other
    assert len({tuple(run) for run in map(tuple, first)}) > 1


def test_a_session_can_be_left_at_any_time() -> None:
    scores = known()
    case = Case(plan_of(precision=0.02), scores, assumed_of(scores), "right")
    assert list(islice(case.run(0, 0), 3)) == [100, 200, 300]


def test_a_session_that_ends_with_its_budget_has_not_reached_its_end() -> None:
    found = summary(outcomes(plan_of(precision=0.02, budget=50), known(), runs=3), 0)
    assert (found.reached, found.runs) == (0.0, 3)
    assert found.labels is not None
    assert found.labels.median == 50
    assert found.width is not None
    assert found.width.low > 0.02


def test_without_a_session_brought_to_its_end_only_a_bound_is_told() -> None:
    found = summary([], 300)
    assert (found.runs, found.reached, found.labels, found.more_than) == (0, None, None, 300)


def test_whole_losses_are_the_surrogate_on_average_in_both_scenarios() -> None:
    scores = scores_of(np.array([0.1, 0.9]))
    assumption = assumed_of(scores)
    right = Losses(assumption, UNIT, "right", b"seed")
    useless = Losses(assumption, UNIT, "useless", b"seed")
    told = np.array([[right.of_item(item) for item in (0, 1)] for _ in range(4000)])
    mixed = np.array([useless.of_item(0) for _ in range(4000)])
    assert set(np.unique(told)) == {0.0, 1.0}
    assert np.abs(told.mean(axis=0) - [0.1, 0.9]).max() < 0.03
    assert abs(mixed.mean() - 0.5) < 0.04


def test_graded_losses_have_the_surrogate_as_mean_and_a_third_of_the_greatest_variance() -> None:
    scale = Interval(-1.0, 3.0)
    scores = scores_of(np.array([0.0, 0.5, 1.0]))
    assumption = assumption_of(scores, scale, whole=False, has_surrogate=True, risk=None)
    losses = Losses(assumption, scale, "right", b"seed")
    drawn = np.array([losses.of_item(0) for _ in range(4000)])
    unit = 0.25
    assert np.all((drawn >= -1.0) & (drawn <= 3.0))
    assert abs(drawn.mean() - 0.0) < 0.06
    assert abs(drawn.var() / 16.0 - unit * (1 - unit) / 3.0) < 0.006


def test_an_assumed_risk_moves_the_odds_and_keeps_the_order() -> None:
    scores = known()
    moved = assumed_of(scores, risk=0.4)
    assert moved.risk(UNIT) == pytest.approx(0.4, abs=0.005)
    order = np.argsort(scores.surrogate, kind="stable")
    assert np.all(np.diff(moved.mean[order]) >= 0.0)
    assert assumed_of(scores).risk(UNIT) == pytest.approx(scores.surrogate.mean())


def test_certain_guesses_stay_certain_whatever_the_risk() -> None:
    moved = assumed_of(scores_of(np.array([0.0, 1.0, 0.0, 0.5])), risk=0.5)
    assert moved.mean[:3].tolist() == [0.0, 1.0, 0.0]


def test_without_a_surrogate_the_middle_of_the_scale_is_assumed() -> None:
    nothing = scores_of(np.zeros(10))
    alone = assumption_of(nothing, UNIT, whole=True, has_surrogate=False, risk=None)
    assert (alone.risk(UNIT), alone.informed) == (0.5, False)
    told = assumption_of(nothing, UNIT, whole=True, has_surrogate=False, risk=0.1)
    assert told.risk(UNIT) == pytest.approx(0.1)
    same = assumption_of(
        scores_of(np.full(10, 0.2)), UNIT, whole=True, has_surrogate=True, risk=None
    )
    assert same.risk(UNIT) == pytest.approx(0.2)
    assert not told.informed
    assert not same.informed


@pytest.mark.parametrize("risk", [0.0, 1.0, -3.0, float("nan"), float("inf")])
def test_a_risk_off_the_scale_is_refused(risk: float) -> None:
    with pytest.raises(InvalidValue, match="risk must be inside the scale"):
        check_risk(risk, UNIT)


@pytest.mark.parametrize("policy", ["sharp", "celeus"])
def test_a_pool_has_no_floor_and_a_population_one_that_shrinks_with_the_pool(policy: str) -> None:
    assert floor_of(plan_of(policy, precision=0.1), 0.2).middle == 0.0
    small, large = (
        floor_of(plan_of(policy, items, target="population", precision=0.3), 0.2)
        for items in (500, 5000)
    )
    assert 0.0 < large.assumed <= large.middle + ROUNDING < small.middle
    assert small.assumed <= small.middle + ROUNDING


def test_a_floor_is_where_a_wholly_judged_pool_ends() -> None:
    items = 300
    scores = scores_of(np.full(items, 0.5))
    plan = plan_of("celeus", items, target="population", precision=0.18)
    found = summary(outcomes(plan, scores, runs=2), 0)
    assert found.width is not None
    floor = floor_of(plan, 0.5).middle
    assert found.width.low <= 0.18
    assert floor <= found.width.low


def differences(seed: int = 5) -> tuple[Scores, np.ndarray]:
    """Scores of two systems that agree on most items, and which items those are."""
    chance = np.random.default_rng(seed)
    a, b = chance.beta(0.5, 2.0, (2, ITEMS))
    same = chance.random(ITEMS) < 0.7
    change = np.where(same, 0.0, a * (1.0 - b) + b * (1.0 - a))
    ends = np.where(same, 0.0, -1.0), np.where(same, 0.0, 1.0)
    return Scores(a - b, np.ones(ITEMS), lower=ends[0], upper=ends[1], change=change), same


def comparing(scores: Scores, **claim: object) -> Plan:
    same = KnownLosses.of(scores.bounds, DIFFERENCES, {"same answer": 0})  # type: ignore[arg-type]
    facts = PoolFacts("f" * 64, ITEMS, -1.0, 1.0, whole_losses=False, known=same, difference=True)
    return make_plan(Claim(**claim), facts, policy_named("sharp"), "0" * 64)  # type: ignore[arg-type]


def test_differences_have_their_mean_and_their_chance_and_known_ones_are_nothing() -> None:
    scores, same = differences()
    assumed = assumption_of(scores, DIFFERENCES, whole=True, has_surrogate=True, risk=None)
    for scenario in ("right", "useless"):
        losses = Losses(assumed, DIFFERENCES, scenario, b"seed")
        drawn = np.array([[losses.of_item(item) for item in range(ITEMS)] for _ in range(20)])
        assert set(np.unique(drawn)) == {-1.0, 0.0, 1.0}
        assert not drawn[:, same].any()
        assert abs((drawn != 0.0)[:, ~same].mean() - scores.change[~same].mean()) < 0.02  # type: ignore[index]
        assert abs(drawn.mean() - assumed.risk(DIFFERENCES)) < 0.01
        assert abs(drawn.var() - assumed.variance(DIFFERENCES)) < 0.01
    assert assumed.risk(DIFFERENCES) == pytest.approx(scores.surrogate[~same].sum() / ITEMS)


def test_graded_differences_scatter_around_their_mean() -> None:
    scores, same = differences()
    assumed = assumption_of(scores, DIFFERENCES, whole=False, has_surrogate=True, risk=None)
    losses = Losses(assumed, DIFFERENCES, "right", b"seed")
    drawn = np.array([[losses.of_item(item) for item in range(ITEMS)] for _ in range(10)])
    assert not drawn[:, same].any()
    assert len(np.unique(drawn)) > 100
    assert abs(drawn.mean() - assumed.risk(DIFFERENCES)) < 0.01
    assert abs(drawn.var() - assumed.variance(DIFFERENCES)) < 0.01


@pytest.mark.parametrize("risk", [-0.05, 0.0, 0.08])
def test_an_expected_difference_is_that_of_the_whole_pool(risk: float) -> None:
    scores, same = differences()
    for has_surrogate in (True, False):
        moved = assumption_of(
            scores, DIFFERENCES, whole=True, has_surrogate=has_surrogate, risk=risk
        )
        assert moved.risk(DIFFERENCES) == pytest.approx(risk, abs=0.005)
        assert set(moved.mean[same]) == {0.5}


def test_a_verdict_is_planned_and_takes_fewer_labels_than_a_fixed_sample() -> None:
    scores, _ = differences()
    medians = []
    for risk in (-0.08, 0.0):
        plan = comparing(scores, decide=0.05)
        assumed = assumption_of(scores, DIFFERENCES, whole=True, has_surrogate=True, risk=risk)
        case = Case(plan, scores, assumed, "right")
        told = summary([list(case.run(number, 0))[-1] for number in range(8)], 0)  # type: ignore[misc]
        most = fixed_sample(plan, assumed)
        assert told.labels is not None
        assert most is not None
        assert told.reached == 1.0
        assert told.labels.median < most.informed
        medians.append(told.labels.median)
    assert medians[0] < medians[1]


def test_a_fixed_sample_is_counted_for_width_or_verdict_whichever_is_less() -> None:
    scores, _ = differences()
    assumed = assumption_of(scores, DIFFERENCES, whole=True, has_surrogate=True, risk=0.04)
    counts = []
    for claim in ({"precision": 0.06}, {"decide": 0.0}, {"precision": 0.06, "decide": 0.0}):
        found = fixed_sample(comparing(scores, **claim), assumed)
        assert found is not None
        assert found.safe is None
        counts.append(found.informed)
    wide, decided, both = counts
    truth = np.random.default_rng(2).choice([-1.0, 0.0, 1.0], ITEMS)
    truth *= math.sqrt(assumed.variance(DIFFERENCES) / truth.var())
    assert wide == paired_width(truth, 0.06, 0.05)
    assert decided == pytest.approx(paired_test(truth, 0.04, 0.05, 0.9), rel=0.05)
    assert both == min(wide, decided)


def test_a_fixed_sample_of_one_system_has_the_width_told_or_whatever_losses_do() -> None:
    assumed = assumed_of(known())
    risk = float(known().surrogate.mean())
    pool, population = (
        fixed_sample(plan_of(target=target, precision=0.2), assumed)
        for target in ("pool", "population")
    )
    assert pool is not None
    assert population is not None
    assert population.safe == math.ceil(1.96**2 * 0.25 / 0.1**2)
    assert population.informed == math.ceil(1.959964**2 * risk * (1.0 - risk) / 0.1**2)
    assert pool.safe == math.ceil(1.0 / (1.0 / (1.959964**2 * 25.0) + 1.0 / ITEMS))
    asked = (Question("at_most", 0.3),)
    assert fixed_sample(plan_of(target="pool", alpha=0.05, questions=asked), assumed) is None


def test_a_fixed_sample_promises_nothing_that_weights_or_empty_guesses_cannot_keep() -> None:
    plan = plan_of(target="pool", precision=0.2)
    weight = np.random.default_rng(1).lognormal(0.0, 1.2, ITEMS)
    assumed = replace(assumed_of(known()), item_weight=weight / weight.mean())
    heavy = fixed_sample(plan, assumed)
    assert heavy is not None
    assert heavy.safe is None
    certain = fixed_sample(plan, replace(assumed, mean=np.zeros(ITEMS), item_weight=None))
    assert certain is not None
    assert certain.informed == certain.safe


@pytest.mark.parametrize("scenario", ["right", "useless"])
def test_with_weights_the_assumed_mean_is_the_weighted_one(scenario: Scenario) -> None:
    """Heavy items have the larger losses."""
    guess = np.random.default_rng(4).beta(0.5, 2.0, ITEMS)
    weight = relative(np.exp(3.0 * guess))
    scores = Scores(guess, np.ones(ITEMS), item_weight=weight)
    for risk in (None, 0.3):
        assumed = assumption_of(scores, UNIT, whole=True, has_surrogate=True, risk=risk)
        due = float(np.average(guess, weights=weight)) if risk is None else risk
        assert assumed.risk(UNIT) == pytest.approx(due, abs=1e-3)
        losses = Losses(assumed, UNIT, scenario, b"seed")
        drawn = np.array([[losses.of_item(item) for item in range(ITEMS)] for _ in range(40)])
        means = drawn @ weight / ITEMS
        assert means.mean() == pytest.approx(due, abs=0.01)
        if scenario == "right":
            told = np.mean((weight * (drawn - due)) ** 2)
            assert told == pytest.approx(assumed.variance(UNIT), rel=0.05)


def test_the_margin_is_held_against_the_lightest_item() -> None:
    _, same = differences()
    weight = relative(np.where(same, 1.0, 0.1))
    facts = PoolFacts(
        "f" * 64, ITEMS, -1.0, 1.0, whole_losses=False, difference=True, weights=Weights.of(weight)
    )
    lightest = float(weight.min()) / ITEMS
    make_plan(Claim(decide=lightest), facts, policy_named("sharp"), "0" * 64)
    with pytest.raises(InvalidValue, match="the lightest of"):
        make_plan(Claim(decide=0.9 * lightest), facts, policy_named("sharp"), "0" * 64)
    assert same.any()


TABLE_ITEMS = 600
METRICS = (
    Metric("right", LossScale("zero_one", 0.0, 1.0)),
    Metric("stars", LossScale("bounded", 0.0, 4.0)),
)
WISH = TableSettings(precision={"right": 0.15, "stars": 0.6}, group_precision={"right": 0.4})


def table(*, known: bool = False) -> Table:
    chance = np.random.default_rng(5)
    guess = chance.beta(0.5, 2.5, TABLE_ITEMS)
    none = np.zeros(TABLE_ITEMS)
    losses = np.full((TABLE_ITEMS, 2), np.nan)
    if known:
        losses[::4, 1] = 4.0
    own = [Scores(guess, none), Scores(4.0 * guess, none)]
    return Table.of(
        METRICS, own, [Column.of("half", (np.arange(TABLE_ITEMS) % 2).astype(str))], losses
    )


def outcome(case: TableCase, number: int, seed: int = 0) -> TableOutcome:
    *_, last = case.run(number, seed)
    return last


def case_of(own: Table, wish: TableSettings = WISH, **risks: float) -> TableCase:
    plan = with_targets(plan_table(wish, own, "0" * 64, "0" * 64))
    return TableCase(plan, own, assumptions_of(own, risks), "right")


def test_simulated_sessions_take_the_labels_that_real_ones_take() -> None:
    own = table()
    case = case_of(own)
    planned = [outcome(case, number) for number in range(6)]
    chance = np.random.default_rng(6)
    mean = np.stack([own.surrogate[:, 0], own.surrogate[:, 1]], axis=1)
    losses = np.stack(
        [
            (chance.random(TABLE_ITEMS) < mean[:, 0]).astype(float),
            4.0 * chance.beta(2.0 * mean[:, 1] + 1e-9, 2.0 * (1.0 - mean[:, 1])),
        ],
        axis=1,
    )
    real = [judge_table(own, losses, WISH, seed_of(7, run)).labels for run in range(6)]
    assert stream_summary(planned).labels is not None
    assert np.median([one.labels for one in planned]) == pytest.approx(np.median(real), rel=0.15)


def test_equal_seeds_give_equal_sessions_and_every_claim_its_labels() -> None:
    case = case_of(table())
    first, again, other = outcome(case, 0), outcome(case, 0), outcome(case, 0, seed=1)
    assert first == again != other
    assert first.reached
    wants = [claim.wants for claim in case.plan.claims]
    assert [at is not None for at in first.met] == wants
    assert max(at for at in first.met if at is not None) == first.labels
    told = claim_summary([first, other], 0)
    assert (told.runs, told.reached) == (2, 1.0)


def test_a_session_that_does_not_end_in_time_says_what_it_came_to() -> None:
    fine = replace(WISH, precision={"right": 0.04, "stars": 0.16})
    so_far = next(case_of(table(), fine).run(0, 0))
    assert (so_far.labels, so_far.ended, so_far.reached) == (100, False, False)
    whole = stream_summary([so_far])
    assert (whole.runs, whole.labels, whole.more_than) == (0, None, 100)
    for at, met in enumerate(so_far.met):
        told = claim_summary([so_far], at)
        assert told.more_than == (100 if met is None else None)
        assert told.labels == (None if met is None else Spread(met, met, met))
    assert stream_summary([]).more_than == claim_summary([], 0).more_than == 0


@pytest.mark.parametrize("groups", [{}, {"right": 0.4}], ids=["overall", "groups"])
def test_groups_without_a_target_change_no_draw(groups: dict[str, float]) -> None:
    own = table()
    plan = plan_table(replace(WISH, group_precision=groups), own, "0" * 64, "0" * 64)
    lean = with_targets(plan)
    assert len(lean.claims) == (2 + 2 * 2 if groups else 2)
    sessions = [Session.of(TableQuestion(one, own, b"seed"), b"seed") for one in (lean, plan)]
    chance = np.random.default_rng(8)
    for _ in range(80):
        draws = [one.propose() for one in sessions]
        assert draws[0].item == draws[1].item
        assert draws[0].q == pytest.approx(draws[1].q, rel=1e-12)
        losses = [float(chance.random() < 0.2), 4.0 * float(chance.random())]
        for one, draw in zip(sessions, draws, strict=True):
            one.apply(draw)
            one.observe(draw.round, tuple(losses))


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_people_say_of_verdicts_what_the_rates_of_a_judge_make_them_say(
    better: Literal["higher", "lower"],
) -> None:
    judge = Column.of("judge", np.where(np.arange(ITEMS) % 5 == 0, "yes", "no"))
    metric = Metric("label", LossScale("zero_one", 0.0, 1.0), Score("label", better, "share"))
    known = np.full((ITEMS, 1), np.nan)
    own = Table.of([metric], [Scores(np.zeros(ITEMS), np.zeros(ITEMS))], [judge], known)
    check = JudgeCheck("judge", "yes", ("tpr", "tnr", "ppv", "kappa"))
    assumed = check_assumption(check, own, {"tpr": 0.1, "tnr": 0.15})
    losses = assumed_errors(check, own, assumed)
    # One of five is flagged: t p + (1 - s) (1 - p) = 0.2, so p = 1 / 15
    expected = {"tpr": 0.1, "tnr": 0.15, "ppv": 1.0 - 0.9 / 15.0 / 0.2}
    assert {name: losses[name] for name in expected} == pytest.approx(expected)
    positive = assumed.mean if better == "lower" else 1.0 - assumed.mean
    assert positive.mean() == pytest.approx(1.0 / 15.0)
    sure = assumed_errors(check, own, check_assumption(check, own, {}))
    assert sure["ppv"] == pytest.approx(0.15)
    with pytest.raises(InvalidValue, match="which no judge does"):
        check_assumption(check, own, {"tpr": 0.1, "tnr": 0.25})


def test_a_check_takes_the_labels_that_are_planned_for_it() -> None:
    chance = np.random.default_rng(8)
    people = chance.random(ITEMS) < 0.4
    judge = np.where(chance.random(ITEMS) < 0.95, people, ~people)
    column = Column.of("judge", np.where(judge, "yes", "no"))
    none = np.zeros(ITEMS)
    own = Table.of(
        [Metric("right", LossScale("zero_one", 0.0, 1.0))],
        [Scores(none, none)],
        [column],
        np.full((ITEMS, 1), np.nan),
    )
    check = JudgeCheck("judge", "yes", ("tpr",))
    wish = TableSettings(check=check, questions={"tpr": (Question("at_most", 0.2),)})
    plan = with_targets(plan_table(wish, own, "0" * 64, "0" * 64))
    assumed = check_assumption(check, own, {"tpr": 0.05, "tnr": 0.05})
    case = TableCase(plan, own, [assumed], "right")
    planned = [outcome(case, number).labels for number in range(8)]
    real = []
    for run in range(8):
        session = Session.of(TableQuestion(plan, own, seed_of(7, run)), seed_of(7, run))
        while session.stop_reason is None:
            draw = session.propose()
            session.apply(draw).observe(draw.round, (float(people[draw.item]),))
        real.append(session.folded)
    assert np.median(planned) == pytest.approx(np.median(real), rel=0.25)


def test_a_risk_moves_its_metric_alone_and_known_losses_stay() -> None:
    own = table(known=True)
    right, stars = case_of(own, right=0.4).assumptions
    assert float(right.mean.mean()) == pytest.approx(0.4)
    assert stars.known is not None
    assert stars.known.sum() == TABLE_ITEMS // 4
    assert stars.mean[::4] == pytest.approx(1.0)
    assert outcome(case_of(own, right=0.4), 0).reached
