"""Count the labels each policy needs on real pools and made-up worlds: the label benchmark.

A job is one session of one policy on one cell (``cells``); its runs differ by seed only. Beside
the policies stands ``normal``: the labels after which a fixed-sample normal interval from the
signal of ``sharp`` would be as narrow, if it were looked at once.
"""

from collections.abc import Collection
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from celeus.core.plans.plan import Claim, Target
from celeus.core.plans.policies import policy_named
from celeus.core.pools.strata import Strata, strata_of
from celeus.core.session.session import judge_rounds
from celeus.errors import UnreachablePrecision
from celeus.simulation.sessions import Truth, opened, seed_of, simulate, strata_means
from study.engine.checks import data_folder
from study.engine.figure import COLOURS, panels
from study.engine.markdown import Columns, table
from study.engine.rows import Rows, Values, grid
from study.engine.runner import Series
from study.engine.study import Study, counted
from study.pools.cells import CELLS, cell
from study.tables.courses import ALPHA, REFUSED, policy_of

Floats = NDArray[np.float64]

TARGETS: tuple[Target, ...] = ("pool", "population")
PRECISIONS = (0.05, 0.1)
FINER = {"imagenet-votes": (0.02, 0.05, 0.1)}
SHOWN = 0.05
"""The precision of the picture."""
NORMAL = "normal"
POLICIES = ("sharp", "uniform", "celeus", "no_surrogate", "evalue", "oracle")
RATIOS = (("celeus", "sharp"), ("oracle", "sharp"), ("sharp", NORMAL), ("sharp", "uniform"))
STUDY = 0
FIELDS = ("labels", "stopped", "missed", "seconds")
LEAST_VARIANCE = 1e-15


def study(folder: Path, seeds: int, cells: Collection[str]) -> Study:
    """The benchmark on these cells of ``folder``."""
    check = partial(_check, folder, cells)
    title, runs = "Labels to precision", counted(seeds, "seed")
    return Study(series(folder), title, jobs(cells, seeds), runs, page, draw, check)


def _check(folder: Path, cells: Collection[str]) -> None:
    data_folder(folder, [CELLS[name].file for name in cells if name in CELLS])
    for name in cells:
        _truth(folder, name)


def jobs(cells: Collection[str], seeds: int) -> list[Values]:
    """Every session of the benchmark, the first seed of everything first."""
    sizes = [(name, precision) for name in cells for precision in FINER.get(name, PRECISIONS)]
    policies = (*POLICIES, NORMAL)
    axes = {"run": range(seeds), "cell, precision": sizes, "target": TARGETS, "policy": policies}
    return grid(axes)


def series(folder: Path) -> Series:
    """The sessions of the benchmark on the pools in ``folder``."""
    return Series("labels", partial(run, folder), FIELDS, STUDY, {"alpha": ALPHA})


def run(folder: Path, job: Values) -> Values:
    """Run one job; ``stopped`` says why, or that the opening was refused (no labels)."""
    truth, seed = _truth(folder, job["cell"]), seed_of(STUDY, job["run"])
    target, precision, policy = job["target"], job["precision"], job["policy"]
    if policy == NORMAL:
        labels = normal_labels(truth, target, precision, seed)
        return dict(zip(FIELDS, (labels, NORMAL, False, 0.0), strict=True))
    try:
        result, _ = simulate(truth, policy_of(policy), Claim(target, ALPHA, precision), seed)
    except UnreachablePrecision:
        return dict(zip(FIELDS, (0, REFUSED, False, 0.0), strict=True))
    return {name: getattr(result, name) for name in FIELDS}


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
    state = opened(truth, policy_named("sharp"), Claim("pool", ALPHA, precision), seed)
    plan = state.question.plan
    losses = RemainingLosses(truth, strata_of(truth.scores, plan.scale))
    # The surrogates of a draw are those before its loss is folded.
    information, means = 0.0, strata_means(state)
    for draw in judge_rounds(state, truth.loss_of, past_stop=True):
        information += 1.0 / max(losses.variance(means, draw.q_by_stratum), LEAST_VARIANCE)
        if information >= 1.0 / room:
            break
        losses.take(draw.item)
        means = strata_means(state)
    return state.folded


class RemainingLosses:
    """Sums of the true losses left in every stratum: the true variance of the coming signal."""

    def __init__(self, truth: Truth, strata: Strata) -> None:
        self._unit = (truth.loss - truth.lower) / (truth.upper - truth.lower)
        self._code = strata.code
        self._count = strata.size.astype(np.float64)
        self._sum = np.bincount(strata.code, weights=self._unit)
        self._square = np.bincount(strata.code, weights=self._unit**2)

    def variance(self, mean: Floats, q: Floats) -> float:
        """The sum of r^2 / (N^2 q) less the squared mean residual, on the unit scale.

        See docs/evidence/method.md#2-the-signal.
        """
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


def page(rows: Rows) -> str:
    """The benchmark as Markdown: one line for every cell, target and precision."""
    columns: Columns = {
        **{policy: partial(_labels, policy) for policy in (*POLICIES, NORMAL)},
        **{f"{above} / {below}": partial(_ratio, above, below) for above, below in RATIOS},
    }
    ordered = sorted(rows, key=lambda row: (row["cell"], row["target"], row["precision"]))
    lines = Rows(ordered).plus(lambda row: {"width": f"{row['precision']:g}"})
    return table(lines, ("cell", "target", "width"), columns, words=("cell", "target"))


def _labels(policy: str, runs: Rows) -> str:
    """Median and 90th percentile, or what happened in their place."""
    runs = runs.where(policy=policy)
    if not runs:
        return ""
    stopped, misses = set(runs.of("stopped")), sum(runs.of("missed"))
    if stopped in ({REFUSED}, {"exhausted"}):
        return REFUSED if stopped == {REFUSED} else "all"
    median, p90 = np.percentile(runs.of("labels"), (50, 90))
    return f"{median:.0f} / {p90:.0f}" + (f" ({misses} missed)" if misses else "")


def _ratio(above: str, below: str, runs: Rows) -> str:
    labels = [runs.where(policy=policy).of("labels") for policy in (above, below)]
    medians = [float(np.median(one)) if one else 0.0 for one in labels]
    return f"{medians[0] / medians[1]:.2f}" if min(medians) > 0.0 else ""


def draw(rows: Rows, path: Path) -> None:
    """Write the picture for one precision as PNG; bars are medians, whiskers end at the p90."""
    rows = rows.where(precision=SHOWN)
    cells = sorted({row["cell"] for row in rows})
    with panels(path, 1, len(TARGETS), size=(13.0, 5.0), sharey=True) as (row,):
        for panel, target in zip(row, TARGETS, strict=True):
            for place, policy in enumerate((*POLICIES, NORMAL)):
                runs = rows.where(target=target, policy=policy)
                percentiles = {
                    cells.index(name): np.percentile(of.of("labels"), (50, 90))
                    for (name,), of in runs.by("cell").items()
                    if np.median(of.of("labels")) > 0.0
                }
                at = [number + (place - 3) * 0.12 for number in percentiles]
                medians, ends = np.reshape([*percentiles.values()], (-1, 2)).T
                whiskers = [np.zeros(len(at)), ends - medians]
                panel.bar(at, medians, 0.11, yerr=whiskers, color=COLOURS[policy], label=policy)
            panel.set_yscale("log")
            panel.set_title(f"target {target}")
            panel.set_xticks(range(len(cells)), cells, rotation=20, ha="right")
        row[0].set_ylabel(f"labels to width {SHOWN:g} (log scale)")
        handles = row[0].get_legend_handles_labels()
        row[-1].legend(*handles, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


@cache
def _truth(folder: Path, name: str) -> Truth:
    return cell(name, folder)
