"""Count the labels that certifying would have cost on a log whose losses are known.

    with_surrogate  sessions of `sharp` with the guesses                            median
    without         the same of `uniform`: no surrogate, and uniform draws          median
    fixed_sample    uniform draws after which a normal interval is as narrow, its size chosen
                    beforehand by one who knew the variance, and looked at once

The sessions are those of `celeus dev simulate`. Of two systems the losses are differences.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from celeus.core.insights.planning import uniform_draws
from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.special import normal_quantile
from celeus.simulation.files import read_truth
from celeus.simulation.sessions import seed_of, simulate

WORTH = 0.05
"""The least share of the labels that a surrogate has to save to be worth anything: medians of ten
sessions scatter by half of it."""


@dataclass(frozen=True, slots=True)
class Backtest:
    """Labels to an interval of the width asked for; ``missed`` of the ``sessions`` lost the risk.

    ``with_surrogate`` is None where there is none.
    """

    items: int
    risk: float
    precision: float
    alpha: float
    with_surrogate: float | None
    without: float
    fixed_sample: int
    sessions: int
    missed: int

    @property
    def saved(self) -> float:
        """The share of the labels that the surrogate saves; below 0 it costs some."""
        return 0.0 if self.with_surrogate is None else 1.0 - self.with_surrogate / self.without

    @property
    def worth(self) -> bool:
        """True if the surrogate saves at least the share `WORTH` of the labels."""
        return self.saved >= WORTH


def backtest(file: Path, claim: Claim, *, guessed: bool, runs: int, seed: int) -> Backtest:
    """Simulate ``runs`` sessions with and without surrogates on a file for `celeus dev simulate`.

    ``guessed`` says that the file's surrogates are any. ``claim`` has a precision.
    """
    truth = read_truth(file)
    labels: dict[str, list[int]] = {"sharp": [], "uniform": []}
    missed = 0
    for policy, counts in labels.items():
        for run in range(runs if guessed or policy == "uniform" else 0):
            done = simulate(truth, policy_named(policy), claim, seed_of(seed, run))[0]
            counts.append(done.labels)
            missed += done.missed
    precision = claim.precision or 0.0
    return Backtest(
        items=truth.loss.size,
        risk=truth.risk,
        precision=precision,
        alpha=claim.alpha,
        with_surrogate=float(np.median(labels["sharp"])) if guessed else None,
        without=float(np.median(labels["uniform"])),
        fixed_sample=paired_width(truth.loss, precision, claim.alpha),
        sessions=sum(map(len, labels.values())),
        missed=missed,
    )


def paired_width(loss: NDArray[np.float64], width: float, alpha: float) -> int:
    """Uniform draws after which a normal interval for the mean of ``loss`` is ``width`` wide."""
    errors = normal_quantile(1.0 - alpha / 2.0) / (width / 2.0)
    return uniform_draws(float(loss.var()), loss.size, errors)
