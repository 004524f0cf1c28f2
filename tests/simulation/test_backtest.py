"""What certifying would have cost on losses that are known."""

from pathlib import Path

import numpy as np
import pytest

from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.simulation.backtest import Backtest, backtest
from celeus.simulation.files import read_truth
from celeus.simulation.sessions import seed_of, simulate

CLAIM = Claim(precision=0.15)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    chance = np.random.default_rng(0)
    surrogate = chance.beta(0.3, 0.6, 500)
    path = tmp_path / "pool.npz"
    np.savez(path, surrogate=surrogate, loss=(chance.random(500) < surrogate) * 1.0)
    return path


def test_the_labels_are_those_of_the_sessions_that_simulate_runs(file: Path) -> None:
    done = backtest(file, CLAIM, guessed=True, runs=3, seed=7)
    truth = read_truth(file)
    for policy, labels in (("sharp", done.with_surrogate), ("uniform", done.without)):
        runs = [
            simulate(truth, policy_named(policy), CLAIM, seed_of(7, run))[0] for run in range(3)
        ]
        assert labels == np.median([run.labels for run in runs])
    assert (done.items, done.sessions, done.risk) == (500, 6, truth.risk)
    assert done.worth


def test_the_fixed_sample_is_as_wide_when_it_ends(file: Path) -> None:
    labels = backtest(file, CLAIM, guessed=False, runs=1, seed=0).fixed_sample
    variance = read_truth(file).loss.var()
    widths = [2 * 1.959964 * np.sqrt(variance / n * (1 - n / 500)) for n in (labels, labels - 1)]
    assert widths[0] <= 0.15 < widths[1]


@pytest.mark.parametrize(
    ("labels", "worth"), [(None, False), (1100.0, False), (970.0, False), (900.0, True)]
)
def test_a_surrogate_is_worth_something_where_it_saves_more_than_medians_scatter(
    labels: float | None,
    worth: bool,  # noqa: FBT001 -- a column of the table above
) -> None:
    assert Backtest(2000, 0.3, 0.05, 0.05, labels, 1000.0, 900, 20, 1).worth == worth
