"""Cells of pairs where losses are counted lower than they are, as those of open rounds are."""

import numpy as np
import pytest

from celeus.core.betting.bets import RowGoals
from celeus.core.betting.pair_cells import PairCells, PairRound
from tests.nightly import by_day

STEPS = 12
ROUNDS = 40


def cells_of(kappa: float, start: float) -> PairCells:
    """One row of cells a third of a signal's deviation wide."""
    edge = np.arange(STEPS + 1) / STEPS
    below, above = start + kappa * edge[:-1], start + kappa * edge[1:]
    in_play = np.flatnonzero(below < 0.0)
    row = np.zeros(in_play.size, dtype=np.intp)
    stakes = below[in_play], above[in_play]
    return PairCells(row, in_play, stakes, edge, np.array([kappa]))


def left(cells: PairCells) -> set[int]:
    return set(cells.cell[cells.below < np.inf].tolist())


@pytest.mark.parametrize("first", by_day(2, range(0, 1_500, 250)))
def test_a_cell_out_with_losses_counted_lower_is_out_with_the_true_ones(first: int) -> None:
    out = 0
    for seed in range(first, first + 250):
        chance = np.random.default_rng(seed)
        kappa, start = chance.uniform(0.5, 6.0), chance.uniform(-4.0, -1.0)
        true, lower = cells_of(kappa, start), cells_of(kappa, start)
        everything = left(true)
        goals = RowGoals.of(np.array([chance.uniform(20.0, 200.0)]))
        mean, accrued = chance.uniform(0.3, 0.9), 0.0
        for _ in range(ROUNDS):
            variance = chance.uniform(0.05, 0.2)
            signal = float(np.clip(mean + chance.normal() * variance**0.5, -0.5, 2.0))
            counted = signal
            if chance.random() >= 0.7:
                counted = max(signal - chance.uniform(0.0, 0.4), -0.5)
            for cells, value in ((true, signal), (lower, counted)):
                cells.update(PairRound(-0.5, -0.5, variance, accrued, value, 0.1), goals)
            accrued += 1.0 / variance
            assert left(true) <= left(lower), seed
        out += len(everything - left(lower))
    assert out > 500


@pytest.mark.parametrize("by_bound", [False, True])
def test_where_a_round_has_no_loss_the_lower_edge_must_not_decide(*, by_bound: bool) -> None:
    """It may be higher than with the loss: the bets since were larger, and it gains more by them.

    A cell as narrow as those of a session, and one loss counted lower than it is.
    """
    half, kappa, top = 0.05, np.array([90.0]), 240
    edge = np.arange(801) / 800
    row, cell = np.zeros(1, dtype=np.intp), np.array([top - 1])

    def begun() -> PairCells:
        stakes = -1.0 - kappa * (edge[top] - edge[cell]), np.array([-1.0])
        return PairCells(row, cell, stakes, edge, kappa)

    true, lower = begun(), begun()
    lower.by_bound = by_bound
    goals = RowGoals.of(np.array([(1.96 / half) ** 2]))
    deviation = 20.0 * half / 1.96
    least, variance = float(edge[top]) - 3.0 * deviation, deviation**2
    signals = edge[top] + 0.05 + deviation * np.random.default_rng(3106).normal(size=405)
    for number, signal in enumerate([*signals, edge[top] + 1.0179909787]):
        for cells, value in ((true, signal), (lower, signal - 0.3 * (number == 0))):
            told = max(float(value), least)
            cells.update(PairRound(least, least, variance, number / variance, told, half), goals)
    assert left(true) == set(cell.tolist())
    assert (left(lower) == left(true)) == by_bound
