"""A plan of a table simulates what its sessions do when losses are as assumed."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from celeus.core.insights.planning import Spread
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
from celeus.core.plans.judge_check import JudgeCheck
from celeus.core.plans.stopping import Question
from celeus.core.plans.table_plan import TableSettings, plan_table
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.score import Score
from celeus.core.pools.surrogates import Scores
from celeus.core.pools.table_pool import Column, Table
from celeus.core.session.session import Session
from celeus.core.session.table.table_question import Table as TableQuestion
from celeus.errors import InvalidValue
from celeus.simulation.sessions import seed_of
from celeus.simulation.tables import judge_table

ITEMS = 600
METRICS = (
    Metric("right", LossScale("zero_one", 0.0, 1.0)),
    Metric("stars", LossScale("bounded", 0.0, 4.0)),
)
WISH = TableSettings(precision={"right": 0.15, "stars": 0.6}, group_precision={"right": 0.4})


def table(*, known: bool = False) -> Table:
    chance = np.random.default_rng(5)
    guess = chance.beta(0.5, 2.5, ITEMS)
    none = np.zeros(ITEMS)
    losses = np.full((ITEMS, 2), np.nan)
    if known:
        losses[::4, 1] = 4.0
    own = [Scores(guess, none), Scores(4.0 * guess, none)]
    return Table.of(METRICS, own, [Column.of("half", (np.arange(ITEMS) % 2).astype(str))], losses)


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
            (chance.random(ITEMS) < mean[:, 0]).astype(float),
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
    assert stars.known.sum() == ITEMS // 4
    assert stars.mean[::4] == pytest.approx(1.0)
    assert outcome(case_of(own, right=0.4), 0).reached
