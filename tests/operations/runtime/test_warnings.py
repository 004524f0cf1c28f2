"""What the status of a table warns of."""

from datetime import UTC, datetime
from uuid import UUID

import numpy as np

from celeus.core.ledger import JointObservation
from celeus.core.plans.stopping import Question
from celeus.core.plans.table_plan import TableSettings, plan_table
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.pool import CHAIN_START, Pool
from celeus.core.pools.table_pool import table_of
from celeus.core.randomness import commitment
from celeus.core.session.session import Session, begin_session
from celeus.core.session.table.table_question import Table
from celeus.operations.runtime.session_record import SessionRecord, status_document

ITEMS = 30
SCALE = LossScale.of("zero_one")


def judged_out(seed: int) -> tuple[Session[Table], Pool, float]:
    """A session at alpha 0.95, whose only answer yes would be false, judged to the last item."""
    losses = np.random.default_rng(seed).random(ITEMS) < 0.4
    columns = {"surrogate_wrong": np.full(ITEMS, 0.1)}
    pool = Pool(ITEMS, SCALE, columns, (), CHAIN_START, metrics=(Metric("wrong", SCALE),))
    threshold = float(losses.mean()) - 0.01
    wish = TableSettings(
        account="closed",
        alpha=0.95,
        precision={"wrong": 0.001},
        questions={"wrong": (Question("at_most", threshold),)},
    )
    key = bytes([seed])
    plan = plan_table(wish, table_of(pool), pool.digest, commitment(key))
    state = begin_session(plan, pool, key)
    while state.can_draw:
        state.apply(state.propose())
        state.apply(JointObservation(state.drawn, (float(losses[state.item(state.drawn)]),)))
    return state, pool, threshold


def test_an_answer_yes_that_losses_contradict_stays_with_a_warning() -> None:
    """At alpha 0.95 answers come fast and are sometimes wrong; the last item shows it."""
    # With seeds before this one no answer is wrong
    for seed in range(15, ITEMS * 2):
        state, pool, threshold = judged_out(seed)
        [answer] = state.question.decisions(0)
        if state.question.proven:
            assert (answer.answer, answer.round) == ("yes", state.question.proven[0, 0])
            assert state.question.claims[0].interval.lower > threshold
            record = SessionRecord(
                project_id=UUID(int=1),
                session_id=UUID(int=2),
                pool_id=UUID(int=3),
                lifecycle="active",
                revision=1,
                lease_seconds=60,
                created_at=datetime.now(UTC),
                ledger_head=bytes(32),
            )
            [warning] = status_document(record, state, pool)["warnings"]
            sentence = f"wrong: at_most {threshold:g} was answered yes in round {answer.round}"
            assert warning.startswith(sentence)
            return
    raise AssertionError("no answer was wrong")
