"""Small tables whose losses are known, and how the tests walk through them."""

import copy
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from celeus.core.ledger import Draw
from celeus.core.plans.table_plan import TablePlan, TableSettings, plan_table
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.surrogates import Scores
from celeus.core.pools.table_pool import Column, Table
from celeus.core.session.session import Session
from celeus.core.session.table.table_question import Table as TableQuestion

Floats = NDArray[np.float64]

SEED = b"a seed for the tests"
UNIT = LossScale.of("bounded", 0.0, 1.0)
WIDE = LossScale.of("bounded", -2.0, 3.0)


def table_of(
    losses: Floats,
    *columns: list[str],
    guesses: Floats | None = None,
    known: list[tuple[int, int]] = (),  # type: ignore[assignment]
    scales: tuple[LossScale, ...] | None = None,
) -> Table:
    """A table of these losses, with ``known`` pairs of item and metric.

    Surrogates that nobody gave are wrong, and the same for some items.
    """
    items, count = losses.shape
    metrics = [Metric("abc"[at], scales[at] if scales else UNIT) for at in range(count)]
    if guesses is None:
        unit = np.where((np.arange(items)[:, None] + np.arange(count)) % 3 == 0, 0.7, 0.2)
        guesses = np.array(
            [one.scale.lower + one.scale.width * unit[:, at] for at, one in enumerate(metrics)]
        ).T
    stated = np.full(losses.shape, np.nan)
    for item, metric in known:
        stated[item, metric] = losses[item, metric]
    scores = [Scores(guesses[:, at], np.zeros(items)) for at in range(count)]
    named = [Column.of("xyz"[at], values) for at, values in enumerate(columns)]
    return Table.of(metrics, scores, named, stated)


def planned(table: Table, wish: TableSettings | None = None) -> TablePlan:
    return plan_table(wish or TableSettings(), table, "pool", "commitment")


def coming(session: Session[TableQuestion]) -> Iterator[Draw]:
    """Every draw that may come next, each with its probability."""
    if not session.can_draw:
        return
    for item in np.flatnonzero(session.question.proposal.drawn_in == 0).tolist():
        yield session.chance(item)


def branched(session: Session[TableQuestion]) -> Session[TableQuestion]:
    """An independent session from the same place."""
    question = session.question
    frozen = (question.table, question.cells, *(claim.plan for claim in question.claims))
    return copy.deepcopy(session, {id(part): part for part in frozen})


def judged(
    session: Session[TableQuestion],
    draw: Draw,
    losses: Floats,
    hidden: frozenset[tuple[int, int]] = frozenset(),
) -> None:
    """Judge a round that is out; what is ``hidden`` can be told by nobody."""
    told = [
        None if (draw.item, metric) in hidden else float(loss)
        for metric, loss in enumerate(losses[draw.item])
    ]
    session.observe(draw.round, tuple(told))
