"""A session of many claims beside the ordinary one, its judgements, its stop and its draws."""

import numpy as np
import pytest

from celeus.core.plans.plan import Claim, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.plans.stopping import Question, StopReason
from celeus.core.plans.table_plan import TableSettings
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.surrogates import Scores
from celeus.core.pools.table_pool import Table
from celeus.core.session.outcome import vector
from celeus.core.session.session import Session, begin_mean, judge_rounds
from celeus.core.session.table.table_cells import Cells, TableCalibration
from celeus.core.session.table.table_question import Table as TableQuestion
from celeus.errors import BoundContradicted, InvalidValue, LossOutsideScale
from celeus.simulation.sessions import Truth
from tests.core.tables import SEED, UNIT, planned, table_of
from tests.core.worlds import zero_one_truth

ITEMS = 400


def world(groups: int = 0, known: int = 0) -> tuple[Table, np.ndarray]:
    chance = np.random.default_rng(11)
    guess = chance.random((ITEMS, 2))
    losses = (chance.random((ITEMS, 2)) < guess).astype(float)
    columns = [[f"group {one % groups}" for one in range(ITEMS)]] if groups else []
    return table_of(losses, *columns, guesses=guess, known=[(it, 1) for it in range(known)]), losses


def go(session: Session[TableQuestion], losses: np.ndarray, most: int = ITEMS) -> None:
    while session.stop_reason is None and session.folded < most:
        draw = session.propose()
        session.apply(draw)
        session.observe(draw.round, tuple(losses[draw.item].tolist()))


@pytest.mark.parametrize("scale", [UNIT, LossScale.of("bounded", -4.0, 1.0)])
def test_one_metric_without_groups_is_an_ordinary_session(scale: LossScale) -> None:
    """The same draws with the same probabilities, and the same intervals."""
    unit = zero_one_truth(ITEMS)
    loss, guess = (scale.lower + scale.width * one for one in (unit.loss, unit.scores.surrogate))
    truth = Truth(loss, Scores(guess, np.zeros(ITEMS)), scale.lower, scale.upper)
    asked = Claim(precision=0.1 * scale.width)
    plan = make_plan(asked, truth.facts, policy_named("sharp"), "")
    state = begin_mean(plan, truth.scores, SEED)
    draws = list(judge_rounds(state, truth.loss_of))
    table = Table.of([Metric("a", scale)], [truth.scores])
    own = planned(table, TableSettings(precision={"a": asked.precision}))
    session = Session.of(TableQuestion(own, table, SEED), SEED)
    go(session, loss[:, None])
    assert session.rounds.item.tolist() == [draw.item for draw in draws]
    assert session.question.means[0].interval.lower == pytest.approx(
        state.question.interval.lower, abs=1e-12
    )
    assert session.question.means[0].interval.upper == pytest.approx(
        state.question.interval.upper, abs=1e-12
    )
    assert session.stop_reason == state.stop_reason


def test_surrogates_of_a_metric_are_cut_by_its_own_precision() -> None:
    """As those of the items whose loss of it is not known; where there are groups none are."""
    cells = Cells.of(world(known=100)[0])
    fits = TableCalibration(cells, [None, 0.1]).fits.mean
    uncut = TableCalibration(cells, [None, None]).fits.mean
    assert fits[0].tolist() == uncut[0].tolist()
    open_, size = cells.open[1], cells.strata.size
    for surplus in (uncut[1] - fits[1], fits[1] - uncut[1]):
        above = np.maximum(surplus, 0.0)[open_] @ size[open_]
        assert above == pytest.approx(ITEMS * 0.1 / 6.0)
    grouped = Cells.of(world(groups=2)[0])
    with_precision = TableCalibration(grouped, [0.1, 0.1]).fits.mean
    assert (with_precision == TableCalibration(grouped, [None, None]).fits.mean).all()


def test_a_session_stops_when_all_claims_have_what_they_want() -> None:
    table, losses = world(groups=2)
    wish = TableSettings(
        precision={"a": 0.2},
        group_precision={"a": 0.3},
        questions={"b": (Question("at_most", 0.8),)},
    )
    session = Session.of(TableQuestion(planned(table, wish), table, SEED), SEED)
    go(session, losses)
    assert session.stop_reason == StopReason.TARGET_REACHED
    wanting = [claim for claim in session.question.means if claim.claim.wants]
    assert len(wanting) == 4
    assert all(claim.met for claim in wanting)
    assert all(claim.interval.width <= (claim.claim.precision or 1.0) for claim in wanting)
    assert session.question.means[1].fold.decisions[0].answer == "yes"
    assert session.folded < ITEMS


def test_a_claim_bets_in_the_rounds_that_fall_into_it_alone() -> None:
    table, losses = world(groups=2, known=100)
    session = Session.of(TableQuestion(planned(table), table, SEED), SEED)
    go(session, losses, 60)
    code = table.columns[0].code
    for claim in session.question.means:
        inside = [
            round_
            for round_, item in enumerate(session.rounds.item, 1)
            if claim.claim.value in {None, f"group {code[item]}"}
            and (claim.claim.metric == "a" or item >= 100)
        ]
        assert list(claim.rounds) == inside


def test_when_all_is_judged_every_interval_is_its_risk() -> None:
    table, losses = world(groups=3, known=50)
    session = Session.of(TableQuestion(planned(table), table, SEED), SEED)
    go(session, losses)
    assert session.stop_reason == StopReason.EXHAUSTED
    for claim in session.question.means:
        mask = np.ones(ITEMS, dtype=bool)
        if claim.claim.value is not None:
            mask = table.columns[0].code == table.columns[0].values.index(claim.claim.value)
        risk = losses[mask, "ab".index(claim.claim.metric)].mean()
        assert claim.interval.width <= 1e-12
        assert claim.interval.lower == pytest.approx(risk, abs=1e-12)


def test_draws_go_where_a_group_needs_them() -> None:
    """A group that has its precision is drawn from no more than its share of the pool, nearly."""
    guess = np.full((ITEMS, 1), 0.5)
    losses = np.zeros((ITEMS, 1))
    losses[1::2] = np.random.default_rng(5).integers(0, 2, (ITEMS // 2, 1))
    table = table_of(losses, [f"group {one % 2}" for one in range(ITEMS)], guesses=guess)
    plan = planned(table, TableSettings(group_precision={"a": 0.25}))
    session = Session.of(TableQuestion(plan, table, SEED), SEED)
    go(session, losses)
    easy, hard = (claim.fold.rounds for claim in session.question.means[1:])
    assert easy < hard


def test_a_budget_ends_a_session() -> None:
    table, losses = world()
    session = Session.of(TableQuestion(planned(table, TableSettings(budget=5)), table, SEED), SEED)
    go(session, losses)
    assert (session.folded, session.can_draw) == (5, False)
    assert session.stop_reason == StopReason.BUDGET_SPENT


REFUSED = {
    "a metric missing": ({"a": 0.0}, "losses.b"),
    "a metric nobody knows": ({"a": 0.0, "b": 1.0, "c": 0.0}, "losses.c"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_judgement_names_every_metric_and_no_other(name: str) -> None:
    losses, field = REFUSED[name]
    metrics = world()[0].metrics
    with pytest.raises(InvalidValue) as refusal:
        vector(metrics, losses)
    assert refusal.value.field == field
    assert vector(metrics, {"b": None, "a": 0.5}) == (0.5, None)


def test_losses_that_cannot_be_are_refused_and_change_nothing() -> None:
    table, losses = world(known=ITEMS // 2)
    session = Session.of(TableQuestion(planned(table), table, SEED), SEED)
    draw = session.chance(3)
    session.apply(draw)
    with pytest.raises(LossOutsideScale):
        session.observe(1, (1.5, None))
    with pytest.raises(LossOutsideScale):
        session.observe(1, (float("nan"), None))
    with pytest.raises(BoundContradicted, match="known"):
        session.observe(1, (0.0, 1.0 - losses[3, 1]))
    with pytest.raises(InvalidValue, match="every metric"):
        session.observe(1, (0.0,))
    assert session.folded == 0
    session.observe(1, (0.0, losses[3, 1]))
    assert session.folded == 1
    with pytest.raises(ValueError, match="not waiting"):
        session.observe(1, (0.0, None))
