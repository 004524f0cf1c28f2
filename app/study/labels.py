"""How many labels each policy needs on real pools: the label benchmark.

    runs = measure(folder, "labels.jsonl", seeds=24)      resumable (``runner``)
    text = table(runs)                                    Markdown

A job is one session of one policy on one cell (``cells``); its runs differ by seed only. Beside
the policies stands ``normal``: the labels after which a fixed-sample normal interval from the
signal of ``sharp`` would be as narrow, if it were looked at once.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from app.core.guesses import CalibratedGuesses
from app.core.plan import Claim, make_plan
from app.core.policies import Policy, policy_named
from app.core.randomness import commitment
from app.core.session import apply, begin, can_draw, observe, propose
from app.core.strata import Strata, strata_of
from app.errors import UnreachablePrecision
from app.study import runner
from app.study.cells import CELLS, cell
from app.study.runner import Series
from app.study.simulation import Truth, seed_of, simulate

Target = Literal["pool", "population"]
Floats = NDArray[np.float64]

ALPHA = 0.05
TARGETS: tuple[Target, ...] = ("pool", "population")
PRECISIONS = (0.05, 0.1)
FINER = {"imagenet-votes": (0.02, 0.05, 0.1)}
NORMAL = "normal"
POLICIES = ("sharp", "uniform", "celeus", "no_surrogate", "evalue", "oracle")
STUDY = 0
LEAST_VARIANCE = 1e-15


@dataclass(frozen=True, slots=True)
class Job:
    """One session to run."""

    cell: str
    target: Target
    precision: float
    policy: str
    run: int


@dataclass(frozen=True, slots=True)
class Result:
    """What it came to; ``stopped`` says why, or that the opening was refused (no labels)."""

    job: Job
    labels: int
    stopped: str
    missed: bool
    seconds: float


def policy_of(name: str) -> Policy:
    """The policy of that name; ``evalue`` in its authors' form, as published."""
    return policy_named(name, recentred=False) if name == "evalue" else policy_named(name)


def jobs(cells: Sequence[str], seeds: int) -> list[Job]:
    """Every session of the benchmark, the first seed of everything first."""
    return [
        Job(name, target, precision, policy, run)
        for run in range(seeds)
        for name in cells
        for precision in FINER.get(name, PRECISIONS)
        for target in TARGETS
        for policy in (*POLICIES, NORMAL)
    ]


def measure(
    folder: Path,
    kept: Path,
    *,
    cells: Sequence[str] = tuple(CELLS),
    seeds: int = 24,
    processes: int | None = None,
) -> list[Result]:
    """Run what ``kept`` does not hold yet, add it there line by line, and give back all of it."""
    return runner.measure(series(folder), jobs(cells, seeds), kept, processes)


def series(folder: Path) -> Series[Job, Result]:
    """The sessions of the benchmark on the pools in ``folder``."""
    return Series("labels", Job, Result, partial(run, folder), STUDY, {"alpha": ALPHA})


def run(folder: Path, job: Job) -> Result:
    """Run one job."""
    truth = _truth(folder, job.cell)
    seed = seed_of(STUDY, job.run)
    if job.policy == NORMAL:
        labels = normal_labels(truth, job.target, job.precision, seed)
        return Result(job, labels, NORMAL, missed=False, seconds=0.0)
    try:
        claim = Claim(job.target, ALPHA, job.precision)
        found, _ = simulate(truth, policy_of(job.policy), claim, seed)
    except UnreachablePrecision:
        return Result(job, 0, "refused", missed=False, seconds=0.0)
    return Result(job, found.labels, found.stopped, found.missed, found.seconds)


def normal_labels(truth: Truth, target: Target, precision: float, seed: bytes) -> int:
    """Labels after which z standard errors of ``sharp``'s signals are half the precision.

    The variance of the pool itself is added for the population.
    """
    z = float(ndtri(1.0 - ALPHA / 2.0))
    width = truth.upper - truth.lower
    room = (precision / (2.0 * z * width)) ** 2
    if target == "population":
        room -= float(np.var(truth.loss)) / (width * width * truth.loss.size)
    if room <= 0.0:
        return truth.loss.size
    claim = Claim("pool", ALPHA, precision)
    plan = make_plan(claim, truth.facts, policy_named("sharp"), commitment(seed))
    state = begin(plan, truth.scores, seed)
    left = Left(truth, strata_of(truth.scores, plan.scale))
    information = 0.0
    while information < 1.0 / room and can_draw(plan, state):
        draw = propose(plan, state)
        guesses = state.fold.guesses
        if not isinstance(guesses, CalibratedGuesses) or draw.strata_q is None:
            raise TypeError(guesses)
        information += 1.0 / max(left.variance(guesses.means, draw.strata_q), LEAST_VARIANCE)
        left.take(draw.item)
        state = apply(plan, state, draw)
        state = observe(plan, state, draw.round, float(truth.loss[draw.item]))
    return state.folded


class Left:
    """Sums of the true losses left in every stratum: the true variance of the coming signal."""

    def __init__(self, truth: Truth, strata: Strata) -> None:
        self._unit = (truth.loss - truth.lower) / (truth.upper - truth.lower)
        self._code = strata.code
        self._count = strata.size.astype(np.float64)
        self._sum = np.bincount(strata.code, weights=self._unit)
        self._square = np.bincount(strata.code, weights=self._unit**2)

    def variance(self, mean: Floats, q: Floats) -> float:
        """The sum of r^2 / (N^2 q) less the squared mean residual (METHOD 2), unit scale."""
        residual = self._sum - self._count * mean
        square = self._square - 2.0 * mean * self._sum + self._count * mean**2
        items = self._unit.size
        return float((square / q).sum() - residual.sum() ** 2) / (items * items)

    def take(self, item: int) -> None:
        """The item is drawn."""
        stratum, loss = self._code[item], self._unit[item]
        self._count[stratum] -= 1.0
        self._sum[stratum] -= loss
        self._square[stratum] -= loss**2


@dataclass(frozen=True, slots=True)
class Summary:
    """The runs of one policy on one cell for one claim."""

    median: float
    p90: float
    missed: int
    stopped: frozenset[str]

    @property
    def text(self) -> str:
        """Median and 90th percentile, or what happened in their place."""
        if self.stopped == {"refused"}:
            return "refused"
        if self.stopped == {"exhausted"}:
            return "all"
        missed = f" ({self.missed} missed)" if self.missed else ""
        return f"{self.median:.0f} / {self.p90:.0f}{missed}"


Claims = dict[tuple[str, str, float], dict[str, Summary]]


def summaries(results: Iterable[Result]) -> Claims:
    """Summary of every policy for every cell, target and precision."""
    grouped: dict[tuple[str, str, float], dict[str, list[Result]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for one in results:
        job = one.job
        grouped[job.cell, job.target, job.precision][job.policy].append(one)
    return {
        key: {name: _summary(runs) for name, runs in by_policy.items()}
        for key, by_policy in grouped.items()
    }


def _summary(runs: Sequence[Result]) -> Summary:
    labels = [one.labels for one in runs]
    return Summary(
        float(np.median(labels)),
        float(np.percentile(labels, 90)),
        sum(one.missed for one in runs),
        frozenset(one.stopped for one in runs),
    )


def table(results: Iterable[Result]) -> str:
    """The benchmark as Markdown: one row for every cell, target and precision."""
    heads = ["cell", "target", "width", *POLICIES, NORMAL]
    ratios = ["celeus / sharp", "oracle / sharp", "sharp / normal", "sharp / uniform"]
    lines = [
        "| " + " | ".join([*heads, *ratios]) + " |",
        "|---|---|--:|" + "--:|" * (len(heads) + len(ratios) - 3),
    ]
    for (name, target, precision), by_policy in sorted(summaries(results).items()):
        cells = [name, target, f"{precision:g}"]
        cells += [by_policy[one].text if one in by_policy else "" for one in (*POLICIES, NORMAL)]
        for above, below in (("celeus", "sharp"), ("oracle", "sharp"), ("sharp", NORMAL)):
            cells.append(_ratio(by_policy, above, below))
        cells.append(_ratio(by_policy, "sharp", "uniform"))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _ratio(by_policy: dict[str, Summary], above: str, below: str) -> str:
    medians = [by_policy[one].median if one in by_policy else math.nan for one in (above, below)]
    if not (medians[0] > 0.0 and medians[1] > 0.0):
        return ""
    return f"{medians[0] / medians[1]:.2f}"


@cache
def _truth(folder: Path, name: str) -> Truth:
    return cell(name, folder)
