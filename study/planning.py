"""Compare the labels a plan expects with those that sessions take on real pools.

    plan   runs of the planner on the surrogates alone, each with a truth that it supposes
    drawn  the same at four times the width, drawn out from there, as where there is no more time
    taken  sessions on the true losses, each with a seed of its own

The pools of `labels`, and two with hard guesses, 0 or 1: the losses of one weaker model, as logs of
another model's evaluation have them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from celeus.core.insights.curve import PoolHypothesis, points
from celeus.core.insights.planning import SimulationOutcome, assumption_of
from celeus.core.interval import Interval
from celeus.core.plans.plan import Claim, Plan, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.randomness import commitment
from celeus.simulation.sessions import Truth, seed_of, simulate, with_spread
from study.engine.checks import data_folder
from study.engine.figure import panels
from study.engine.markdown import table
from study.engine.rows import Rows, Values, grid
from study.engine.runner import Series
from study.engine.study import Study, counted
from study.pools.cells import CELLS, cell
from study.pools.real import TARGETS, shuffled, voters

STUDY = "planning"
ALPHA = 0.05
PRECISIONS = (0.1, 0.05)
QUICK_PRECISION = 0.2
POLICIES = ("sharp", "uniform")
HARD = {"mmlupro-hard": ("mmlu_pro", 8), "imagenet-hard": ("imagenet", 4)}
"""File of the pool, and the place of the weaker model among all, from the best at 0."""
RUNS = 20
PLANNED, DRAWN, TAKEN = "plan", "drawn", "taken"
COARSER = (4.0, 2.0, 1.0)
"""Widths of a plan that is drawn out, in those asked for; the first is simulated."""

TEXT = f"""Labels of sessions at alpha {ALPHA:g}, and the plan made of the surrogates alone, \
before: median, and the 10 and 90 % points of {RUNS} runs. *Within*: sessions whose labels are \
between these. *Drawn out*: the same plan where only four times the width was simulated.
"""


def study(folder: Path, seeds: int, *, quick: bool) -> Study:
    """The study on the pools in ``folder``."""
    seeds, runs = (min(seeds, 2), 4) if quick else (seeds, RUNS)
    precisions = (QUICK_PRECISION,) if quick else PRECISIONS
    names = ["imagenet-votes", "imagenet-hard"] if quick else [*CELLS, *HARD]
    lines: dict[str, Iterable[Any]] = {"pool": names, "precision": precisions, "policy": POLICIES}
    jobs = [
        *grid({"part": [PLANNED, DRAWN], "run": range(runs)} | lines),
        *grid({"part": [TAKEN], "run": range(seeds)} | lines),
    ]
    series = Series(STUDY, partial(run, folder), ("labels",), parameters={"alpha": ALPHA})
    files = {CELLS[it].file if it in CELLS else f"{HARD[it][0]}.npz" for it in names}

    def check() -> None:
        data_folder(folder, files)

    title = "How near a plan comes"
    return Study(series, title, jobs, counted(seeds, "seed"), page, draw, check)


def run(folder: Path, job: Values) -> Values:
    """Run one job of the study."""
    truth, claim = _pool(folder, job["pool"]), Claim("pool", ALPHA, job["precision"])
    policy = policy_named(job["policy"])
    if job["part"] == TAKEN:
        seed = seed_of(f"{STUDY}/{job['pool']}/{job['precision']}", job["run"])
        return {"labels": simulate(truth, policy, claim, seed)[0].labels}
    widths = COARSER if job["part"] == DRAWN else COARSER[-1:]
    plans = [
        make_plan(
            replace(claim, precision=one * job["precision"]),
            truth.facts,
            policy,
            commitment(b""),
        )
        for one in widths
    ]
    return {"labels": _planned(truth, plans, job["run"])}


def _planned(truth: Truth, plans: Sequence[Plan], number: int) -> int:
    scale = Interval(truth.lower, truth.upper)
    whole = truth.facts.whole_losses
    assumption = assumption_of(truth.scores, scale, whole=whole, has_surrogate=True, risk=None)
    case = PoolHypothesis.of(assumption, risk_given=False).case(plans[0], truth.scores, number)
    outcomes = [one for one in case.run(number, 0) if isinstance(one, SimulationOutcome)]
    return int(points(plans, 0.0, {(0, 0): outcomes[-1]})[-1].labels.median)


def page(rows: Rows) -> str:
    """The table of all pools."""
    named = rows.plus(lambda row: {"width": f"{row['precision']:g}"})
    columns = {
        "planned": partial(_range, PLANNED),
        "drawn out": partial(_range, DRAWN),
        "taken": partial(_range, TAKEN),
        "within": partial(_within, PLANNED),
        "within drawn out": partial(_within, DRAWN),
    }
    return f"{TEXT}\n{table(named, ('pool', 'width', 'policy'), columns)}"


def _limits(runs: Rows, part: str) -> tuple[float, float, float]:
    labels = np.asarray(runs.where(part=part).of("labels"), dtype=float)
    low, middle, high = np.quantile(labels, (0.1, 0.5, 0.9), method="nearest")
    return float(low), float(middle), float(high)


def _range(part: str, runs: Rows) -> str:
    low, middle, high = _limits(runs, part)
    return f"{middle:,.0f} ({low:,.0f}–{high:,.0f})"


def _within(part: str, runs: Rows) -> str:
    low, _, high = _limits(runs, part)
    taken = np.asarray(runs.where(part=TAKEN).of("labels"), dtype=float)
    inside = int(((low <= taken) & (taken <= high)).sum())
    return f"{inside}/{taken.size}"


def draw(rows: Rows, path: Path) -> None:
    """Write the picture as PNG: what was planned above what was taken."""
    with panels(path, size=(6.0, 5.0)) as ((panel,),):
        for policy, runs in rows.by("policy").items():
            lines = [_both(one) for one in runs.by("pool", "precision").values()]
            taken, planned = (np.array([line[at] for line in lines]) for at in (0, 1))
            reach = np.abs(planned[:, (0, 2)] - planned[:, (1,)]).T
            panel.errorbar(taken, planned[:, 1], reach, fmt="o", label=str(policy[0]))
        ends = panel.get_xlim()
        panel.plot(ends, ends, "k:", linewidth=1)
        panel.set(xscale="log", yscale="log", xlabel="labels taken", ylabel="labels planned")
        panel.legend(frameon=False)


def _both(runs: Rows) -> tuple[float, tuple[float, float, float]]:
    return _limits(runs, TAKEN)[1], _limits(runs, PLANNED)


@cache
def _pool(folder: Path, name: str) -> Truth:
    if name in CELLS:
        return cell(name, folder)
    dataset, place = HARD[name]
    data, ranked, _ = voters(folder / f"{dataset}.npz", dataset)
    wrong = (data.predictions != data.right[:, None]).astype(np.float64)
    own = (data.of(TARGETS[dataset])[:, 0] != data.right).astype(np.float64)
    return shuffled(Truth(own, with_spread(wrong[:, ranked[place]])))
