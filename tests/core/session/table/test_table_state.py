"""The state that the service keeps is the core's session, to the last digit."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from celeus.core.ledger import Change, Draw, Event, JointObservation
from celeus.core.plain import Mismatch
from celeus.core.plans.judge_check import JudgeCheck
from celeus.core.plans.stopping import Question, StopReason
from celeus.core.plans.table_plan import TablePlan, TableSettings, plan_table
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.pool import CHAIN_START, Pool
from celeus.core.pools.score import Score
from celeus.core.pools.table_pool import table_of
from celeus.core.randomness import commitment
from celeus.core.session.session import Session, begin_session, plan_from_values
from celeus.core.session.table.ratio_claims import RatioClaim
from celeus.core.session.table.table_claims import MeanClaim
from celeus.core.session.table.table_question import Table
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


def fixed(session: Session[Table]) -> list[bytes]:
    """What was fixed at the draws that are not folded, claim by claim, but for their judgements."""
    records: list[bytes] = []
    for claim in session.question.claims:
        rounds: list[tuple[Any, ...]] = []
        if isinstance(claim, MeanClaim):
            rounds += claim.fold.knowledge.open.values()
        if isinstance(claim, RatioClaim):
            rounds += [drawn._replace(called=None) for drawn in claim._open.values()]
        records += [part for drawn in rounds for part in numbers_of(drawn)]
    return records


def numbers_of(part: object) -> Iterator[bytes]:
    """The numbers of a record and of its parts, in order."""
    if isinstance(part, tuple):
        for inner in part:
            yield from numbers_of(inner)
    else:
        yield part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode()


def stalled(session: Session[Table], losses: np.ndarray) -> list[Event]:
    """Draws 11 and 14 stay open while others behind them are judged, one of them by nobody."""
    ledger: list[Event] = []

    def enter(event: Event) -> None:
        ledger.append(event)
        session.apply(event)

    def draw(count: int) -> None:
        for _ in range(count):
            enter(session.propose())

    def judge(*rounds: int) -> None:
        for round_ in rounds:
            told = losses[session.item(round_)].tolist()
            nobody = (None,) * len(told)
            enter(JointObservation(round_, nobody if round_ == 15 else tuple(told)))

    for round_ in range(1, 11):
        draw(1)
        judge(round_)
    draw(4)
    judge(13, 12)
    draw(2)
    judge(15)
    draw(1)
    judge(17)
    return ledger


CLAIMS = {
    "precision": TableSettings(precision={"accuracy": 0.1}, group_precision={"accuracy": 0.3}),
    "selected": TableSettings(account="selected"),
    "check": TableSettings(check=JudgeCheck("part", "x", ("tpr", "kappa")), precision={"tpr": 0.2}),
}


def begun(name: str) -> tuple[Session[Table], np.ndarray]:
    pool, losses = pool_of(np.random.default_rng(4))
    if name == "check":
        verdict = {"group_part": np.minimum(pool.columns["group_part"], 1)}
        named, score = {"part": ("x", "y")}, METRICS[0].score
        pool = replace(pool, columns=verdict, metrics=(), group_columns=named, score=score)
        losses = losses[:, :1]
    plan = plan_table(CLAIMS[name], table_of(pool, ["part"]), pool.digest, commitment(SEED))
    return begin_session(plan, pool, SEED), losses


@pytest.mark.parametrize("name", CLAIMS)
def test_what_is_fixed_at_a_draw_takes_in_no_loss_of_an_open_round(name: str) -> None:
    """Nor is it moved later: not by its own answer, nor by an earlier one's."""
    session, losses = begun(name)
    ledger = stalled(session, losses)
    made = fixed(session)
    other = losses.copy()
    for round_ in (11, 14, 16):
        other[session.item(round_), 0] = 1.0 - other[session.item(round_), 0]
    twin = begun(name)[0].replay(ledger)
    assert fixed(twin) == made
    for each, own in ((session, losses), (twin, other)):
        each.apply(each.propose())
        each.observe(16, tuple(own[each.item(16)].tolist()))
    assert session.rounds[17].draw.q == twin.rounds[17].draw.q
    both = fixed(session), fixed(twin)
    assert both[0] == both[1]
    assert set(made) <= set(both[0])


@pytest.mark.parametrize("name", CLAIMS)
def test_a_judgement_behind_an_open_draw_moves_the_draws_after_it(name: str) -> None:
    session, losses = begun(name)
    stalled(session, losses)
    before = session.propose()
    session.observe(16, tuple(losses[session.item(16)].tolist()))
    assert session.folded == 10
    after = session.propose()
    assert before.strata_q is not None
    assert after.strata_q is not None
    assert not np.array_equal(before.strata_q, after.strata_q)
