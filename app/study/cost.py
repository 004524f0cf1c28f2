"""Seconds a round costs, by policy, target and size of the pool.

A session is opened on a made-up pool and run to its stop or for ROUNDS rounds. The opening
(strata, draw orders, the sum of all scores) is timed apart: it is paid once. Seconds are those of
the processor, so that a busy machine counts little. Jobs run one at a time all the same.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from app.core.plan import Claim, Target, make_plan
from app.core.randomness import commitment
from app.core.session import apply, begin, can_draw, observe, propose
from app.study.courses import ALPHA, PRECISION, policy_of, seed_for
from app.study.efficiency import POLICIES, TARGETS
from app.study.figure import COLOURS
from app.study.markdown import table
from app.study.runner import Series
from app.study.simulation import Truth, oracle_scores
from app.study.synthetic import World

STUDY = "cost"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
ROUNDS = 1_000
QUICK_SIZES = (500, 2_000)
QUICK_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class Job:
    """One session to time."""

    items: int
    target: Target
    policy: str
    run: int


@dataclass(frozen=True, slots=True)
class Result:
    """Seconds of the opening, and of all rounds together."""

    job: Job
    rounds: int
    opening: float
    seconds: float


def jobs(sizes: Sequence[int], runs: int) -> list[Job]:
    """Every session of the study, pools of one size together."""
    return [
        Job(items, target, policy, run)
        for items in sizes
        for run in range(runs)
        for target in TARGETS
        for policy in POLICIES
    ]


def series(rounds: int = ROUNDS) -> Series[Job, Result]:
    """The timed sessions."""
    parameters = {"alpha": ALPHA, "precision": PRECISION, "rounds": rounds}
    return Series(STUDY, Job, Result, partial(run, rounds), parameters=parameters)


def run(rounds: int, job: Job) -> Result:
    """Run one job."""
    truth = _pool(job.items)
    seed = seed_for(f"{STUDY}/{job.items}", job.run)
    policy = policy_of(job.policy)
    known = oracle_scores(truth) if policy.name == "oracle" else truth.scores
    # A small pool cannot give the precision for the population; the cells are as fine without.
    claim = Claim(job.target, ALPHA, max(PRECISION, 6.0 / job.items**0.5), min(rounds, job.items))
    plan = make_plan(claim, truth.facts, policy, commitment(seed))
    began = time.process_time()
    state = begin(plan, known, seed)
    opened = time.process_time()
    while state.stop_reason is None and can_draw(plan, state):
        draw = propose(plan, state)
        state = apply(plan, state, draw)
        state = observe(plan, state, draw.round, float(truth.loss[draw.item]))
    ended = time.process_time()
    return Result(job, state.folded, opened - began, ended - opened)


@cache
def _pool(items: int) -> Truth:
    return World(items=items).pool(seed_for(f"{STUDY}/{items}", 0))


def page(results: Iterable[Result]) -> str:
    """A row for every policy and target, a column for every size."""
    grouped: dict[tuple[str, str], dict[int, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for one in results:
        grouped[one.job.policy, one.job.target][one.job.items].append(one)
    sizes = list(next(iter(grouped.values())))
    rows = [
        [policy, target, *(_cell(by_size[items]) for items in sizes)]
        for (policy, target), by_size in grouped.items()
    ]
    heads = ["policy", "target", *(f"N = {items:,}".replace(",", " ") for items in sizes)]
    longest = max(one.rounds for runs in grouped.values() for of in runs.values() for one in of)
    explained = (
        "Milliseconds of the processor a round (draw, fold and interval), and in brackets seconds"
        f" of the opening; medians over runs of up to {longest} rounds. The published seconds could"
        " not be found in a public copy of the paper, so that no column of it stands here.\n"
    )
    return f"{explained}\n{table(heads, rows, words=2)}"


def _cell(runs: Sequence[Result]) -> str:
    each = np.median([one.seconds / one.rounds for one in runs])
    opening = np.median([one.opening for one in runs])
    return f"{1e3 * each:.3f} ({opening:.3f})"


def draw(results: Iterable[Result], path: Path) -> None:
    """Write the picture as PNG: milliseconds a round by size, a panel for every target."""
    found = list(results)
    figure = Figure(figsize=(9.0, 4.0), layout="constrained")
    panels = figure.subplots(1, len(TARGETS), sharey=True)
    for panel, target in zip(panels, TARGETS, strict=True):
        for policy in POLICIES:
            mine = [one for one in found if (one.job.policy, one.job.target) == (policy, target)]
            sizes = sorted({one.job.items for one in mine})
            each = [
                1e3
                * np.median([one.seconds / one.rounds for one in mine if one.job.items == items])
                for items in sizes
            ]
            panel.plot(sizes, each, ".-", color=COLOURS.get(policy, "#5b5b5b"), label=policy)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xlabel("items of the pool")
        panel.set_title(f"target {target}")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("milliseconds a round")
    panels[-1].legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=120, format="png")
