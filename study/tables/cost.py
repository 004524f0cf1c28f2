"""Seconds a round costs, by policy, target and size of the pool.

A session is opened on a made-up pool and run to its stop or for ROUNDS rounds. The opening
(strata, draw orders, the sum of all scores) is timed apart: it is paid once. Seconds are those of
the processor, so that a busy machine counts little. Jobs run one at a time all the same.
"""

import time
from functools import cache, partial
from pathlib import Path

import numpy as np

from celeus.core.plans.plan import Claim, make_plan
from celeus.core.randomness import commitment
from celeus.core.session.session import begin_mean, judge_rounds
from celeus.simulation.sessions import Truth, oracle_scores, seed_of
from study.engine.figure import COLOURS, panels
from study.engine.markdown import table
from study.engine.rows import Rows, Values, grid
from study.engine.runner import Series
from study.engine.study import Study, counted
from study.pools.synthetic import World
from study.tables.courses import ALPHA, PRECISION, policy_of
from study.tables.efficiency import POLICIES, TARGETS

STUDY = "cost"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
ROUNDS = 1_000
QUICK_SIZES = (500, 2_000)
QUICK_ROUNDS = 50
EXPLAINED = """Milliseconds of the processor a round (draw, fold and interval), and in brackets \
seconds of the opening; medians over runs of up to {longest} rounds. The published seconds could \
not be found in a public copy of the paper, so that no column of it stands here.
"""


def study(runs: int, *, quick: bool) -> Study:
    """The study; pools are made up."""
    runs, sizes, rounds = (1, QUICK_SIZES, QUICK_ROUNDS) if quick else (runs, SIZES, ROUNDS)
    parameters = {"alpha": ALPHA, "precision": PRECISION, "rounds": rounds}
    fields = ("rounds", "opening", "seconds")
    series = Series(STUDY, partial(run, rounds), fields, parameters=parameters)
    title = "Seconds a round costs"
    return Study(series, title, jobs(sizes, runs), counted(runs, "run"), page, draw)


def jobs(sizes: tuple[int, ...], runs: int) -> list[Values]:
    """Every session of the study, pools of one size together."""
    return grid({"items": sizes, "run": range(runs), "target": TARGETS, "policy": POLICIES})


def run(rounds: int, job: Values) -> Values:
    """Run one job."""
    items, place = job["items"], f"{STUDY}/{job['items']}"
    # A small pool cannot give the precision for the population; the cells are as fine without.
    precision = max(PRECISION, 6.0 / items**0.5)
    claim = Claim(job["target"], ALPHA, precision, min(rounds, items))
    truth, seed, policy = _pool(items), seed_of(place, job["run"]), policy_of(job["policy"])
    item_scores = oracle_scores(truth) if policy.name == "oracle" else truth.scores
    plan = make_plan(claim, truth.facts, policy, commitment(seed))
    began = time.process_time()
    state = begin_mean(plan, item_scores, seed)
    opening = time.process_time()
    for _ in judge_rounds(state, truth.loss_of):
        pass
    seconds = time.process_time() - opening
    return {"rounds": state.folded, "opening": opening - began, "seconds": seconds}


@cache
def _pool(items: int) -> Truth:
    return World(items=items).pool(seed_of(f"{STUDY}/{items}", 0))


def page(rows: Rows) -> str:
    """A line for every policy and target, a column for every size."""
    sizes = [items for (items,) in rows.by("items")]
    columns = {f"N = {items:,}".replace(",", " "): partial(_cell, items) for items in sizes}
    explained = EXPLAINED.format(longest=max(rows.of("rounds")))
    return f"{explained}\n{table(rows, ('policy', 'target'), columns)}"


def _cell(items: int, runs: Rows) -> str:
    here = runs.where(items=items)
    return f"{_milliseconds(here):.3f} ({np.median(here.of('opening')):.3f})"


def _milliseconds(runs: Rows) -> float:
    return float(1e3 * np.median([one["seconds"] / one["rounds"] for one in runs]))


def draw(rows: Rows, path: Path) -> None:
    """Write the picture as PNG: milliseconds a round by size, a panel for every target."""
    with panels(path, 1, len(TARGETS), size=(9.0, 4.0), sharey=True) as (row,):
        for panel, target in zip(row, TARGETS, strict=True):
            for (policy,), runs in rows.where(target=target).by("policy").items():
                by_size = runs.by("items")
                each = [_milliseconds(one) for one in by_size.values()]
                sizes = [items for (items,) in by_size]
                panel.plot(sizes, each, ".-", color=COLOURS[policy], label=policy)
            panel.set(xscale="log", yscale="log", xlabel="items of the pool")
            panel.set_title(f"target {target}")
        row[0].set_ylabel("milliseconds a round")
        row[-1].legend(frameon=False, fontsize="small")
