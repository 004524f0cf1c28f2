"""Seeded sessions of many claims, watched until nothing is left to judge."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from celeus.core.plans.table_plan import TableSettings, plan_table
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.surrogates import Scores
from celeus.core.pools.table_pool import Column, Table
from celeus.core.randomness import commitment
from celeus.core.session.session import Session
from celeus.core.session.table.table_question import Table as TableQuestion
from celeus.simulation.sessions import seed_of
from celeus.simulation.tables import ever_lost, judge_table, risks
from tests.claims.sessions import ALPHA
from tests.claims.stalling import LOOKS_APART, kept_open
from tests.core.worlds import provisional

Floats = NDArray[np.float64]
Chance = np.random.Generator
World = tuple[Table, Floats, TableSettings]

UNIT = LossScale.of("bounded", 0.0, 1.0)


def _losses(chance: Chance, items: int, *, rate: float, guess: float) -> tuple[Floats, Floats]:
    """0-1 losses, and surrogates that know ``guess`` of them."""
    loss = (chance.random(items) < rate).astype(np.float64)
    noise = 0.2 * chance.standard_normal(items)
    return loss, np.clip(0.5 + guess * (loss - 0.5) + noise, 0.0, 1.0)


def _table(
    columns: list[tuple[Floats, Floats]], groups: NDArray[np.int64] | None, known: float = 0.0
) -> tuple[Table, Floats]:
    losses, guesses = (np.stack(one, axis=1) for one in zip(*columns, strict=True))
    items = losses.shape[0]
    stated = np.full(losses.shape, np.nan)
    stated[: int(known * items), -1] = losses[: int(known * items), -1]
    metrics = [Metric(f"metric {at}", UNIT) for at in range(losses.shape[1])]
    scores = [Scores(one, np.zeros(items)) for one in guesses.T]
    of = [] if groups is None else [Column.of("group", groups.astype(np.str_))]
    return Table.of(metrics, scores, of, stated), losses


def _metrics(chance: Chance, items: int) -> World:
    """Informative, graded and anti-correlated metrics, one partly known."""
    graded = chance.random(items)
    columns = [
        _losses(chance, items, rate=0.3, guess=0.6),
        (graded, np.clip(graded + 0.2 * chance.standard_normal(items), 0.0, 1.0)),
        _losses(chance, items, rate=0.2, guess=-0.6),
    ]
    table, losses = _table(columns, None, known=0.3)
    names = [metric.name for metric in table.metrics]
    return table, losses, TableSettings(ALPHA, precision=dict.fromkeys(names, 0.1))


def _shares(chance: Chance, items: int, shares: list[float]) -> NDArray[np.int64]:
    edges = np.cumsum(np.array(shares) / sum(shares) * items).astype(int)
    return chance.permutation(np.searchsorted(edges, np.arange(items), side="right"))


def _groups(chance: Chance, items: int, guess: float) -> World:
    """Groups that differ in size and rate."""
    groups = _shares(chance, items, [0.3, 0.7])
    rate = np.array([0.5, 0.2])[groups]
    loss = (chance.random(items) < rate).astype(np.float64)
    surrogate = np.clip(0.5 + guess * (loss - 0.5) + 0.2 * chance.standard_normal(items), 0, 1)
    table, losses = _table([(loss, surrogate)], groups)
    wish = TableSettings(ALPHA, precision={"metric 0": 0.1}, group_precision={"metric 0": 0.2})
    return table, losses, wish


def _both(chance: Chance, items: int) -> World:
    """Groups and metrics, known losses, and a small group judged whole."""
    groups = _shares(chance, items, [0.44, 0.46, 0.1])
    columns = [
        _losses(chance, items, rate=0.4, guess=0.5),
        _losses(chance, items, rate=0.1, guess=0.3),
    ]
    table, losses = _table(columns, groups, known=0.2)
    group_precision = {"metric 0": 0.3}
    return (
        table,
        losses,
        TableSettings(ALPHA, group_precision=group_precision, small_groups="whole"),
    )


WORLDS: dict[str, Callable[[Chance, int], World]] = {
    "three metrics": _metrics,
    "groups, informative": lambda chance, items: _groups(chance, items, 0.6),
    "groups, anti-correlated": lambda chance, items: _groups(chance, items, -0.6),
    "groups and metrics": _both,
}


def lost_at_worst(world: str, items: int, sessions: int) -> NDArray[np.int64]:
    """Sessions in which a claim ever lost its risk, also with open draws at their worst.

    Judged by who sees all losses, and keeps back what would correct the first claim.
    """
    missed = [_lost_at_worst(world, items, number) for number in range(sessions)]
    return np.asarray(np.sum(missed, axis=0, dtype=np.int64))


def _lost_at_worst(world: str, items: int, number: int) -> NDArray[np.bool_]:
    table, losses, wish = WORLDS[world](np.random.default_rng([number, items, 29]), items)
    seed = seed_of(number, 29)
    plan = plan_table(wish, table, "simulated", commitment(seed))
    session, truth = Session.of(TableQuestion(plan, table, seed), seed), risks(plan, table, losses)
    missed = np.zeros(len(truth), dtype=np.bool_)

    def corrects(item: int) -> bool:
        interval = session.question.claims[0].interval
        leans_low = interval.lower + interval.upper < 2.0 * truth[0]
        return bool((losses[item, 0] < truth[0]) != leans_low)

    for _ in kept_open(session, lambda item: tuple(losses[item].tolist()), corrects):
        found = None if session.observed % LOOKS_APART else provisional(session)
        for place, claim in enumerate([] if found is None else found.claims):
            held = claim.interval.lower - 1e-9 <= truth[place] <= claim.interval.upper + 1e-9
            missed[place] |= not held
    own = [
        ever_lost(claim, risk) for claim, risk in zip(session.question.means, truth, strict=True)
    ]
    return np.asarray(missed | np.array(own))


def lost_claims(world: str, items: int, sessions: int) -> NDArray[np.int64]:
    """Sessions, each on a pool of its own, in which every claim ever lost its risk."""
    total = np.zeros(0, dtype=np.int64)
    for number in range(sessions):
        table, losses, wish = WORLDS[world](np.random.default_rng([number, items, 23]), items)
        run = judge_table(table, losses, wish, seed_of(number, 23), past=True, ahead=1 + number % 3)
        missed = np.array([claim.missed for claim in run.claims], dtype=np.int64)
        total = missed if not total.size else total + missed
    return total
