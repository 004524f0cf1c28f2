"""The state that the service keeps is the core's session, to the last digit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from celeus.core.ledger import Change, Draw, Event, JointObservation
from celeus.core.plain import Mismatch
from celeus.core.plans.stopping import Question, StopReason
from celeus.core.plans.table_plan import TablePlan, TableSettings, plan_table
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.pool import CHAIN_START, Pool
from celeus.core.pools.score import Score
from celeus.core.pools.table_pool import table_of
from celeus.core.randomness import commitment
from celeus.core.session.session import begin_session, plan_from_values
from celeus.errors import InvalidValue

SEED = b"a seed of the service's state..."
ITEMS = 300
METRICS = (
    Metric("accuracy", LossScale.of("zero_one"), Score("accuracy", "higher", "share")),
    Metric("stars", LossScale.of("bounded", -1.0, 4.0)),
)


def pool_of(chance: np.random.Generator) -> tuple[Pool, np.ndarray]:
    guess = chance.random(ITEMS)
    wrong = (chance.random(ITEMS) < guess).astype(float)
    stars = 5.0 * guess - 1.0
    columns = {
        "surrogate_accuracy": guess,
        "known_stars": np.where(np.arange(ITEMS) % 9 == 0, stars, np.nan),
        "group_part": np.repeat(np.arange(3, dtype=np.int32), ITEMS // 3),
    }
    values = {"part": ("x", "y", "z")}
    pool = Pool(
        ITEMS, METRICS[0].scale, columns, (), CHAIN_START, metrics=METRICS, group_columns=values
    )
    return pool, np.stack((wrong, stars), axis=1)


def planned(pool: Pool, **wish: object) -> TablePlan:
    asked = {"precision": {"accuracy": 0.1}, "group_precision": {"accuracy": 0.3}} | wish
    table = table_of(pool, ["part"])
    return plan_table(TableSettings(**asked), table, pool.digest, commitment(SEED))  # type: ignore[arg-type]


@pytest.mark.parametrize("account", ["each", "together", "selected", "closed"])
def test_the_state_is_the_replay_of_its_ledger_to_the_last_digit(account: str) -> None:
    chance = np.random.default_rng(len(account))
    pool, losses = pool_of(chance)
    plan = planned(pool, account=account, questions={"accuracy": (Question("at_most", 0.9),)})
    assert plan_from_values(plan.to_dict()) == plan
    state, ledger = begin_session(plan, pool, SEED), list[Event]()
    while state.drawn < 90:
        for _ in range(3):
            draw = state.propose()
            ledger.append(draw)
            state.check_draw(draw, seeded=True)
            state.apply(draw)
        for round_ in chance.permutation(np.arange(state.drawn - 2, state.drawn + 1)).tolist():
            own = losses[state.item(round_)].tolist()
            told = JointObservation(round_, (own[0], None if round_ % 7 == 0 else own[1]))
            assert state.rounds_to_fold({round_}) >= 0
            ledger.append(told)
            state.apply(told)
    again = begin_session(plan, pool, SEED).replay(ledger)
    assert [one.fold.points[:] for one in state.question.means if one.fold.points] == [
        one.fold.points[:] for one in again.question.means if one.fold.points
    ]
    assert [one.interval for one in state.question.means] == [
        one.interval for one in again.question.means
    ]
    assert state.question.met_at == again.question.met_at
    assert state.counts == {
        "drawn": 90,
        "judged": 90,
        "in_interval": 90,
        "pending": 0,
        "waiting": 0,
    }
    assert state.answer(7) == (losses[state.item(7), 0], None)
    assert state.answered_at(state.drawn) <= state.sequence == len(ledger)


def test_a_budget_binds_from_the_change_on_and_a_forged_draw_is_refused() -> None:
    pool, losses = pool_of(np.random.default_rng(0))
    plan = planned(pool)
    state = begin_session(plan, pool, SEED)
    state.apply(state.propose())
    state.apply(Change(None, 1))
    assert (state.changes, state.can_draw, state.stop_reason) == (1, False, None)
    with pytest.raises(Mismatch, match="nothing is left"):
        state.check_draw(Draw(2, 5, 0.1, 2), seeded=False)
    state.apply(JointObservation(1, tuple(losses[state.item(1)].tolist())))
    assert state.stop_reason is StopReason.BUDGET_SPENT
    state.apply(Change(None, 2))
    with pytest.raises(Mismatch, match="item left"):
        state.check_draw(Draw(2, state.item(1), 0.1, 4), seeded=False)


def test_an_ordinary_pool_has_one_metric_by_the_name_of_its_score() -> None:
    values = {"part": ("x", "y")}
    code = np.repeat(np.arange(2, dtype=np.int32), 20)
    columns: dict[str, NDArray[Any]] = {
        "surrogate.0": np.linspace(0.0, 1.0, 40),
        "group_part": code,
        "group": code,
    }
    scale = METRICS[0].scale
    pool = Pool(40, scale, columns, ("u", "v"), CHAIN_START, group_columns=values)
    plain = table_of(pool, ["part", "group"])
    assert [one.name for one in plain.metrics] == ["loss"]
    assert [column.values for column in plain.columns] == [("x", "y"), ("u", "v")]
    named = Pool(
        40, scale, columns, ("u", "v"), CHAIN_START, score=Score("win rate", "higher", "share")
    )
    assert [one.name for one in table_of(named).metrics] == ["win rate"]
    with pytest.raises(InvalidValue, match="no group column part"):
        table_of(named, ["part"])
    weighted = replace(pool, columns=columns | {"weight": np.ones(40)})
    with pytest.raises(InvalidValue, match="without weights"):
        table_of(weighted)
