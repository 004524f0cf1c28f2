"""What the free choices of the policies cost: the split of alpha, theta, c and beta.

The paper's Appendix varies them for ``celeus``; ``sharp`` has a beta too. One choice is varied at
a time, the others stay at their defaults.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from app.core.plan import Claim
from app.core.policies import policy_named
from app.study.courses import ALPHA, PRECISION, Course, course, seed_for
from app.study.markdown import labels, missed, table
from app.study.realpools import Source, truth_of
from app.study.runner import Series

STUDY = "sensitivity"
SPLIT = "alpha2"
CHOICES: tuple[tuple[str, str, tuple[float, ...]], ...] = (
    ("celeus", SPLIT, (0.005, 0.025, 0.045)),
    ("celeus", "theta", (0.1, 0.25, 0.5, 0.75, 0.9)),
    ("celeus", "c", (0.1, 0.25, 0.5, 1.0, 2.0)),
    ("celeus", "beta", (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)),
    ("sharp", "beta", (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)),
)
"""Policy, what is varied, and its values. alpha2 is for the step to the population, the rest of
alpha for the pool; everything else is measured for the pool."""

POOLS = {
    "mmlu-qwen": Source("mmlu", "zero_one", "Qwen-72B", "Llama-2-7b-hf"),
    "mmlupro-votes": Source("mmlu_pro", "zero_one", "mmlupro-votes", "votes"),
    "imagenet-votes": Source("imagenet", "zero_one", "imagenet-votes", "votes"),
}
COLOURS = ("#0b6e4f", "#c8553d", "#3d5a80")


@dataclass(frozen=True, slots=True)
class Job:
    """One session to run, with one choice off its default."""

    pool: str
    policy: str
    choice: str
    value: float
    run: int


@dataclass(frozen=True, slots=True)
class Result(Course):
    """What it came to."""

    job: Job


def jobs(seeds: int, pools: Sequence[str] = tuple(POOLS)) -> list[Job]:
    """Every session of the study, the first run of everything first."""
    return [
        Job(pool, policy, choice, value, run)
        for run in range(seeds)
        for pool in pools
        for policy, choice, values in CHOICES
        for value in values
    ]


def series(folder: Path, precision: float = PRECISION) -> Series[Job, Result]:
    """The sessions on the pools in ``folder``."""
    parameters = {"alpha": ALPHA, "precision": precision}
    return Series(STUDY, Job, Result, partial(run, folder, precision), parameters=parameters)


def run(folder: Path, precision: float, job: Job) -> Result:
    """Run one job; all values of a choice share their seeds."""
    seed = seed_for(f"{STUDY}/{job.pool}/{job.policy}/{job.choice}", job.run)
    if job.choice == SPLIT:
        claim = Claim("population", ALPHA, precision, alpha2=job.value)
        policy = policy_named(job.policy)
    else:
        claim = Claim("pool", ALPHA, precision)
        policy = policy_named(job.policy, **{job.choice: job.value})
    found = course(truth_of(folder, POOLS[job.pool]), policy, claim, seed)
    return Result(job=job, **asdict(found))


def page(results: Iterable[Result]) -> str:
    """A row for every value of every choice, a column for every pool."""
    grouped = _grouped(results)
    pools = list(dict.fromkeys(job.pool for job in _firsts(grouped)))
    rows = []
    for policy, choice, values in CHOICES:
        for value in values:
            runs = [grouped[pool, policy, choice, value] for pool in pools]
            every = [one for found in runs for one in found]
            name = f"alpha1 {ALPHA - value:g}, alpha2" if choice == SPLIT else choice
            lost = missed(sum(one.missed for one in every), len(every))
            target = "population" if choice == SPLIT else "pool"
            rows.append(
                [policy, target, f"{name} {value:g}", *(labels(found) for found in runs), lost]
            )
    heads = ["policy", "target", "choice", *pools, "missed, all pools"]
    explained = (
        "Labels to the precision, median (p10–p90); defaults are alpha2 0.025, theta 0.5, c 0.5,"
        " and beta 0.4 (`celeus`) or 0.5 (`sharp`). Values of one choice share their seeds.\n"
    )
    return f"{explained}\n{table(heads, rows, words=3)}"


def _firsts(grouped: dict[tuple[str, str, str, float], list[Result]]) -> list[Job]:
    return [runs[0].job for runs in grouped.values()]


def _grouped(results: Iterable[Result]) -> dict[tuple[str, str, str, float], list[Result]]:
    grouped: dict[tuple[str, str, str, float], list[Result]] = defaultdict(list)
    for one in results:
        job = one.job
        grouped[job.pool, job.policy, job.choice, job.value].append(one)
    return grouped


def draw(results: Iterable[Result], path: Path) -> None:
    """Write the picture as PNG: labels by value, a panel for every choice."""
    grouped = _grouped(results)
    pools = list(dict.fromkeys(job.pool for job in _firsts(grouped)))
    figure = Figure(figsize=(3.2 * len(CHOICES), 3.4), layout="constrained")
    panels = figure.subplots(1, len(CHOICES), sharey=True, squeeze=False)[0]
    for panel, (policy, choice, values) in zip(panels, CHOICES, strict=True):
        for pool, colour in zip(pools, COLOURS, strict=False):
            found = [
                np.percentile(
                    [one.labels for one in grouped[pool, policy, choice, value]], (10, 50, 90)
                )
                for value in values
            ]
            low, middle, high = np.transpose(found)
            panel.fill_between(values, low, high, color=colour, alpha=0.2, lw=0)
            panel.plot(values, middle, ".-", color=colour, label=pool)
        panel.set_yscale("log")
        panel.set_title(f"{policy}: {choice}", fontsize="medium")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("labels to precision (log scale)")
    panels[-1].legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=120, format="png")
