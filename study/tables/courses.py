"""One session on a known pool, with its width along the way; shared by the studies on real pools.

Widths are kept at fixed budgets, 8 to a doubling; between them the logarithm of the width is
interpolated in the logarithm of the budget. They are shares of the scale's width.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import Policy, policy_named
from celeus.errors import UnreachablePrecision
from celeus.simulation.sessions import Truth, seed_of, simulate
from study.engine.checks import data_folder
from study.engine.markdown import spread
from study.engine.rows import Rows, Values
from study.engine.runner import Series
from study.engine.study import Study, counted
from study.pools.real import Source, resampled, truth_of

ALPHA = 0.05
PRECISION = 0.05
QUICK_PRECISION = 0.2
"""Of the quick profiles: a session then takes some dozens of labels."""
QUICK_SEEDS = 2

BUDGETS = tuple(dict.fromkeys(round(2.0 ** (step / 8.0)) for step in range(3 * 8, 16 * 8 + 1)))
"""Labels at which widths are kept: 8, 9, 10, 11, 12, 13, 15, 16, ..., 65 536."""

REFUSED = "refused"
"""In place of a stop reason: the opening was refused, since no risk could reach the precision."""

RECENTRED = "evalue_recentred"
FIELDS = ("labels", "stopped", "missed", "width", "widths", "seconds")
"""``width`` is that at the stop and ``widths`` those at BUDGETS before it; ``missed`` says that the
interval lost the true risk at some round up to the stop."""

POOLS = {
    "mmlu-qwen": Source("mmlu", "zero_one", "Qwen-72B", "Llama-2-7b-hf"),
    "mmlupro-votes": Source("mmlu_pro", "zero_one", "mmlupro-votes", "votes"),
    "imagenet-votes": Source("imagenet", "zero_one", "imagenet-votes", "votes"),
}
"""The pools of the studies that take one of a kind."""


@dataclass(frozen=True, slots=True)
class Session:
    """A job: jobs of one ``place`` share their seeds, and differ by run."""

    source: Source
    policy: Policy
    claim: Claim
    place: str


def policy_of(name: str) -> Policy:
    """The policy of that name; ``evalue`` in its authors' form, as published.

    ``evalue_recentred`` is the one that minds drawing without replacement.
    """
    if name == RECENTRED:
        return policy_named("evalue")
    return policy_named(name, recentred=False) if name == "evalue" else policy_named(name)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A study of sessions on the real pools.

    ``jobs`` takes what is measured (``whole``, or ``quick``) and how many seeds; ``session`` says
    what a job is.
    """

    name: str
    title: str
    whole: Sequence[Any]
    quick: Sequence[Any]
    jobs: Callable[[Sequence[Any], int], list[Values]]
    session: Callable[[Values], Session]
    page: Callable[[Rows], str]
    draw: Callable[[Rows, Path], None]

    def series(self, folder: Path, precision: float) -> Series:
        """Its sessions on the pools in ``folder``."""
        parameters = {"alpha": ALPHA, "precision": precision}
        one = partial(run, self.session, folder, precision)
        return Series(self.name, one, FIELDS, parameters=parameters)

    def study(self, folder: Path, seeds: int, *, quick: bool) -> Study:
        """The study on the pools in ``folder``."""
        seeds = min(seeds, QUICK_SEEDS) if quick else seeds
        jobs = self.jobs(self.quick if quick else self.whole, seeds)
        return Study(
            self.series(folder, QUICK_PRECISION if quick else PRECISION),
            self.title,
            jobs,
            counted(seeds, "seed"),
            self.page,
            self.draw,
            partial(check, folder, list(dict.fromkeys(self.session(job).source for job in jobs))),
        )


def run(
    session: Callable[[Values], Session], folder: Path, precision: float, job: Values
) -> Values:
    """Run one job of a study."""
    one = session(job)
    claim = replace(one.claim, precision=precision)
    return trajectory(
        truth_of(folder, one.source), one.policy, claim, seed_of(one.place, job["run"])
    )


def check(folder: Path, sources: Sequence[Source]) -> None:
    """Refuse a folder without the pools, or with others."""
    data_folder(folder, {source.file for source in sources})
    for source in sources:
        truth_of(folder, source)


def trajectory(truth: Truth, policy: Policy, claim: Claim, seed: bytes) -> Values:
    """Run one session to its stop; ``claim.precision`` is a share of the scale.

    For the population a pool is drawn anew from the items of ``truth`` (with replacement), so that
    the population risk is known and the claim can fail.
    """
    span = truth.upper - truth.lower
    precision = None if claim.precision is None else claim.precision * span
    scaled = replace(claim, precision=precision)
    risk = float(truth.loss.mean())
    pool = resampled(truth, seed) if claim.target == "population" else truth
    try:
        result, state = simulate(pool, policy, scaled, seed, risk)
    except UnreachablePrecision:
        return dict(zip(FIELDS, (0, REFUSED, False, 1.0, [], 0.0), strict=True))
    widths = [point.interval.width / span for point in state.question.points]
    at_budgets = [round(widths[budget - 1], 7) for budget in BUDGETS if budget <= len(widths)]
    seconds = round(result.seconds, 4)
    values = (result.labels, result.stopped, result.missed, widths[-1], at_budgets, seconds)
    return dict(zip(FIELDS, values, strict=True))


def width_at(row: Values, labels: float) -> float:
    """Width after ``labels`` labels; after the stop that of the stop, which is an upper bound."""
    if labels >= row["labels"] or not row["widths"]:
        return float(row["width"])
    knots = [*BUDGETS[: len(row["widths"])], row["labels"]]
    widths = [*row["widths"], row["width"]]
    return float(np.exp(np.interp(np.log(labels), np.log(knots), np.log(widths))))


def median_width(runs: Rows, labels: float) -> float:
    """Median over the sessions of the width after ``labels`` labels."""
    return float(np.median([width_at(one, labels) for one in runs]))


def accepted(runs: Rows) -> Rows:
    """The sessions that were not refused."""
    return Rows(one for one in runs if one["stopped"] != REFUSED)


def stops(runs: Rows) -> str:
    """Labels at the stop and how many sessions missed, or what happened in their place."""
    sessions = accepted(runs)
    if not sessions:
        return REFUSED if runs else "–"
    if set(sessions.of("stopped")) == {"exhausted"}:
        return "all"
    misses = sum(sessions.of("missed"))
    return spread(sessions.of("labels")) + (f", {misses} missed" if misses else "")
