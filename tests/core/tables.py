"""Small tables whose losses are known, and how the tests walk through them."""

import copy
import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from celeus.core.ledger import Draw, JointObservation
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


Answers = Callable[[int], Sequence[tuple[float | None, ...]]]
"""What may be said of an item."""


def at_will(
    session: Session[TableQuestion],
    draws: int,
    answers: Answers,
    worth: Callable[[Session[TableQuestion]], Floats],
    held: tuple[Draw, ...] = (),
) -> tuple[Floats, Floats]:
    """Least and largest mean worth, after so many draws, that somebody can bring about.

    Before each draw he answers what he likes of those that are out, and leaves the others open; at
    last he answers them all. He sees their items, and knows the losses.
    """
    last = session.drawn == draws
    options = [[*([] if last else [None]), *answers(draw.item)] for draw in held]
    ends = []
    for said in itertools.product(*options):
        branch, still = branched(session), []
        for draw, losses in zip(held, said, strict=True):
            if losses is None:
                still.append(draw)
            else:
                branch.apply(JointObservation(draw.round, losses))
        if last:
            ends.append((worth(branch),) * 2)
            continue
        mean: list[Floats] = [np.zeros(1), np.zeros(1)]
        for draw in coming(branch):
            child = branched(branch).apply(draw)
            both = at_will(child, draws, answers, worth, (*still, draw))
            mean = [total + draw.q * end for total, end in zip(mean, both, strict=True)]
        ends.append((mean[0], mean[1]))
    return np.min([low for low, _ in ends], axis=0), np.max([high for _, high in ends], axis=0)
