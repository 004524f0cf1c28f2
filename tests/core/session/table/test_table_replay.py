"""A ledger of many claims replays to the same state; a forged one does not."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from celeus.core.eprocess.pool_target import LatticeSequence
from celeus.core.ledger import Addition, Draw, JointObservation
from celeus.core.plans.table import TableClaim, TablePlan, TableWish
from celeus.core.pools.table import Table
from celeus.core.session.recorded import LedgerDiffers
from celeus.core.session.table.replay import Event, begin, enter, replay
from celeus.core.session.table.table_question import TableSession
from celeus.errors import InvalidValue
from tests.core.tables import SEED, planned, table_of

Ledger = list[Event]
ITEMS, ROUNDS, AHEAD = 240, 60, 3


def world() -> tuple[TablePlan, Table, np.ndarray]:
    chance = np.random.default_rng(4)
    guess = chance.random((ITEMS, 2))
    losses = (chance.random((ITEMS, 2)) < guess).astype(float)
    group = np.repeat(["u", "v", "w"], ITEMS // 3).tolist()
    table = table_of(losses, group, guesses=guess, known=[(one, 1) for one in range(0, ITEMS, 7)])
    wish = TableWish(
        account="together",
        precision={"a": 0.1, "b": 0.1},
        group_precision={"a": 0.3},
        reserve=0.01,
    )
    return planned(table, wish), table, losses


def run() -> tuple[TablePlan, Table, TableSession, Ledger]:
    """Draws ahead, judged out of order, one loss that nobody can tell."""
    plan, table, losses = world()
    session, ledger = begin(plan, table, SEED), Ledger()

    def write(event: Event) -> None:
        ledger.append(event)
        enter(session, event)

    while len(session.drawn) < ROUNDS:
        if len(session.drawn) == ROUNDS // 2:
            write(Addition("b", 0.01, "x", "v", precision=0.2))
        for _ in range(AHEAD):
            write(session.propose(len(ledger)))
        for round_ in range(len(session.drawn), len(session.drawn) - AHEAD, -1):
            own = losses[session.drawn[round_ - 1]]
            write(JointObservation(round_, (float(own[0]), None if round_ == 5 else float(own[1]))))
    return plan, table, session, ledger


def numbers(session: TableSession) -> list[bytes]:
    """Every number that later rounds rest on."""
    kept = [session._calibration.fits.mean.tobytes(), session._q.tobytes()]
    for claim in session.claims:
        sequence = claim.fold.confidence_sequence
        assert isinstance(sequence, LatticeSequence)
        kept += [side._stake.tobytes() for side in sequence._lattice.sides]
        kept.append(np.array(claim.fold.points[-1].interval.upper).tobytes())
    return kept


def test_a_ledger_replays_to_the_same_state_with_the_seed_and_without() -> None:
    plan, table, session, ledger = run()
    assert numbers(replay(plan, table, ledger, SEED)) == numbers(session)
    again = replay(plan, table, ledger, None)
    assert [one.interval for one in again.claims] == [one.interval for one in session.claims]
    with pytest.raises(LedgerDiffers, match="item"):
        replay(plan, table, ledger, b"another seed")


def other_draw(ledger: Ledger, **values: object) -> Ledger:
    """The ledger with the fifth draw changed."""
    at = [at for at, event in enumerate(ledger) if isinstance(event, Draw)][4]
    return [*ledger[:at], replace(ledger[at], **values), *ledger[at + 1 :]]  # type: ignore[arg-type]


def fifth(ledger: Ledger) -> Draw:
    return [event for event in ledger if isinstance(event, Draw)][4]


def other_cells(ledger: Ledger) -> Ledger:
    q = fifth(ledger).strata_q
    assert q is not None
    return other_draw(ledger, strata_q=np.roll(q, 1))


def twice(ledger: Ledger) -> Ledger:
    first = next(event for event in ledger if isinstance(event, Draw))
    return other_draw(ledger, item=first.item)


FORGED: dict[str, tuple[Callable[[Ledger], Ledger], str]] = {
    "q": (lambda ledger: other_draw(ledger, q=fifth(ledger).q * 1.01), r"\.q"),
    "cells": (other_cells, "strata_q"),
    "no cells": (lambda ledger: other_draw(ledger, strata_q=None), "strata_q"),
    "seen": (lambda ledger: other_draw(ledger, seen=0), "seen"),
    "an item drawn twice": (twice, "item"),
    "an item beyond the table": (lambda ledger: other_draw(ledger, item=10**6), "item"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_ledger_is_noticed(name: str) -> None:
    plan, table, _, ledger = run()
    forge, where = FORGED[name]
    with pytest.raises(LedgerDiffers, match=where):
        replay(plan, table, forge(ledger), None)


def test_a_claim_is_added_between_draws_and_within_the_reserve() -> None:
    plan, table, losses = world()
    session = begin(plan, table, SEED)
    draw = session.propose()
    session.take(draw)
    claim = TableClaim("a", 0, 0.01)
    with pytest.raises(InvalidValue, match="Draws are out"):
        session.add(claim)
    session.judge(draw.round, losses[draw.item].tolist())
    session.add(claim)
    with pytest.raises(InvalidValue, match="that is there"):
        session.add(claim)
    with pytest.raises(InvalidValue, match="left of the reserve"):
        session.add(replace(claim, level=0.001))


def test_a_claim_whose_items_are_all_judged_is_not_called_exact_where_a_loss_is_not_told() -> None:
    plan, table, losses = world()
    session = begin(plan, table, SEED)
    for round_ in range(1, ITEMS + 1):
        draw = session.propose()
        session.take(draw)
        told: list[float | None] = losses[draw.item].tolist()
        session.judge(round_, [None, told[1]] if round_ == 9 else told)
    assert session.claims[0].interval.width > 0.0
    with pytest.raises(InvalidValue, match="nothing is left to bet on"):
        session.add(TableClaim("a", 0, 0.01))


def test_a_plan_of_another_table_is_noticed() -> None:
    plan, table, _ = world()
    with pytest.raises(LedgerDiffers, match="items"):
        begin(replace(plan, items=plan.items + 1), table, SEED)
    claims = (replace(plan.claims[0], known=plan.claims[0].known + 1), *plan.claims[1:])
    with pytest.raises(LedgerDiffers, match="claims"):
        begin(replace(plan, claims=claims), table, SEED)
