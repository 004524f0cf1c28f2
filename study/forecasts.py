"""Compare labels forecast during a session with the labels taken in the end.

    made up   pools of ``made_up``, to which the constants of a forecast were fitted, other seeds
    real      the pools of ``labels``, to which nothing was fitted

Sizes, precisions and thresholds differ by seed. A session tells what it foretold at STAGES, and
how many labels it took; 80 % of forecasts should hold those that were left between their ends.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celeus.core.insights.forecast import forecast
from celeus.core.plans.claim import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.plans.stopping import Question
from celeus.core.randomness import uniforms
from celeus.core.session.session import judge_rounds
from celeus.simulation.sessions import Truth, opened, seed_of
from study.engine.checks import data_folder
from study.engine.figure import COLOURS, panels
from study.engine.markdown import Columns, share, table
from study.engine.rows import Rows, Values, grid
from study.engine.runner import Series
from study.engine.study import Study, counted
from study.pools.cells import CELLS, cell
from study.pools.made_up import KINDS, made_up

Floats = NDArray[np.float64]

STUDY = "forecasts"
ALPHA = 0.05
MADE_UP, REAL = "made up", "real"
POLICIES = ("sharp", "uniform")
CLAIMS = ("pool", "population", "answer")
"""The width of the interval for the pool or for the population, or the answer to a question."""
STAGES: dict[str, float] = {
    "first label": 0.0,
    "10 %": 0.1,
    "25 %": 0.25,
    "50 %": 0.5,
    "75 %": 0.75,
}
"""Share of the session's own labels after which a forecast is looked at."""
WIDTHS = (0.04, 0.25)
COARSER = 0.06
"""Least width for the population, which takes more labels."""
LEAST_ROOT = 6.0
"""A pool of N items can tell its population's risk to this over the root of N."""
DISTANCES = (0.02, 0.15)
"""Of a threshold from the risk."""
ENDS = (0.7, 0.9)
"""What shares within the range are meant to be; 80 % is its level."""
FIELDS = ("labels", "told", "microseconds")
"""``told``: round, low, median and high of the forecast at every stage; ``microseconds`` are the
processor's for one forecast, over those after every label."""

TEXT = f"""Sessions at alpha {ALPHA:g}, each to a width from {WIDTHS[0]:g} to {WIDTHS[1]:g} \
(from {COARSER:g} for the population), or to the answer to a question whose threshold is \
{DISTANCES[0]:g} to {DISTANCES[1]:g} from the risk. Forecasts are those after the first label and \
after 10 to 75 % of the labels that the session took in the end. A forecast's range should hold \
the labels left in 80 % of them.
"""
BY_STAGE = """Forecasts whose range holds the labels left, by stage: first of all policies, then \
of all pools. *Off*: by how much the median is wrong, either way, in half of them. *Range*: its \
width, in labels left, median. Both after the first label – at the last stage. *µs*: of the \
processor, for one forecast.
"""
BY_POOL = """The same by pool, all stages together. """


def study(folder: Path, sessions: int, seeds: int, *, quick: bool) -> Study:
    """The study; ``sessions`` of a line on made-up pools, ``seeds`` on those in ``folder``."""
    kinds, names = (KINDS[:2], list(CELLS)[-1:]) if quick else (KINDS, list(CELLS))
    sessions, seeds = (min(sessions, 2), min(seeds, 1)) if quick else (sessions, seeds)
    series = Series(STUDY, partial(run, folder), FIELDS, parameters={"alpha": ALPHA})
    files = {CELLS[name].file for name in names}

    def check() -> None:
        data_folder(folder, files)

    title = "How far a forecast is to be believed"
    runs = f"{counted(sessions, 'session')} a line of made-up pools, {seeds} of real ones"
    wanted = jobs(MADE_UP, kinds, sessions) + jobs(REAL, names, seeds)
    return Study(series, title, wanted, runs, page, draw, check)


def jobs(part: str, pools: Sequence[str], runs: int) -> list[Values]:
    """Every session on these pools, the first run of everything first."""
    lines: dict[str, Iterable[Any]] = {"pool": pools, "policy": POLICIES, "claim": CLAIMS}
    return grid({"part": [part], "run": range(runs)} | lines)


def run(folder: Path, job: Values) -> Values:
    """Run one session to its stop; all forecasts are made, those at the stages are kept."""
    truth, claim, seed = session(folder, job)
    state = opened(truth, policy_named(job["policy"]), claim, seed)
    made, seconds = [], 0.0
    for _ in judge_rounds(state, truth.loss_of):
        began = time.thread_time()
        one = forecast(state)
        if one is not None:
            seconds += time.thread_time() - began
            made.append((one.round, one.low, one.labels_left, one.high))
    told = [made[place] for place in places(len(made))] if made else []
    each = round(1e6 * seconds / max(len(made), 1), 2)
    return {"labels": state.folded, "told": told, "microseconds": each}


def places(count: int) -> list[int]:
    """Which of ``count`` forecasts, one a label, are those at the stages."""
    return [max(math.ceil(part * (count + 1)), 1) - 1 for part in STAGES.values()]


def session(folder: Path, job: Values) -> tuple[Truth, Claim, bytes]:
    """Pool, claim and seed of a job."""
    seed = seed_of(f"{STUDY}/{job['pool']}/{job['policy']}/{job['claim']}", job["run"])
    truth = made_up(job["pool"], seed) if job["part"] == MADE_UP else _cell(folder, job["pool"])
    place, side = (float(one) for one in uniforms(seed, "claim", 2))
    if job["claim"] == "answer":
        away = _between(DISTANCES, place)
        # On the other side where there is no room
        below = away < truth.risk and (side < 0.5 or truth.risk + away >= 1.0)
        threshold = round(truth.risk - away if below else truth.risk + away, 4)
        return truth, Claim(alpha=ALPHA, questions=(Question("at_most", threshold),)), seed
    precision = _between(WIDTHS, place)
    if job["claim"] == "population":
        precision = max(precision, COARSER, LEAST_ROOT / math.sqrt(truth.loss.size))
        return truth, Claim("population", ALPHA, precision), seed
    return truth, Claim("pool", ALPHA, precision), seed


def _between(ends: tuple[float, float], place: float) -> float:
    low, high = ends
    return round(float(low * (high / low) ** place), 4)


def page(rows: Rows) -> str:
    """By stage and by pool, on made-up pools and on real ones."""
    parts = [TEXT]
    for (part,), runs in rows.by("part").items():
        told = foretold(runs)
        stages: Columns = {stage: partial(_share, "stage", stage) for stage in STAGES}
        ends: Columns = {"off": partial(_both, off), "range": partial(_both, width), "µs": cost}
        by_stage: Columns = {**stages, **ends}
        by_pool: Columns = {pool: partial(_share, "pool", pool) for (pool,) in told.by("pool")}
        keys = ("policy", "claim")
        parts += [
            f"## {part.capitalize()} pools",
            BY_STAGE,
            table(told, ("pool",), by_stage),
            table(told, keys, by_stage),
            BY_POOL + _outside(told),
            table(told, keys, by_pool),
        ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def foretold(rows: Rows) -> Rows:
    """A row for every session and stage: what was foretold, and what was left."""
    found = Rows()
    for row in rows:
        for stage, (at, low, median, high) in zip(STAGES, row["told"], strict=False):
            left = row["labels"] - at
            own = {"stage": stage, "left": left, "low": low, "median": median, "high": high}
            found.append(row | own)
    return found


def held(told: Rows) -> float:
    """Share of forecasts whose range holds what was left."""
    return float(np.mean([one["low"] <= one["left"] <= one["high"] for one in told]))


def off(told: Rows) -> float:
    """By how much the median is wrong, either way: 0.2 is a sixth less or a fifth more."""
    left, median = (np.array(told.of(name), dtype=float) for name in ("left", "median"))
    return float(np.expm1(np.median(np.abs(np.log(median / left)))))


def width(told: Rows) -> float:
    """Width of the range, in labels left; median."""
    left, low, high = (np.array(told.of(name), dtype=float) for name in ("left", "low", "high"))
    return float(np.median((high - low) / left))


def cost(told: Rows) -> str:
    """Microseconds of the processor for one forecast; the median of sessions."""
    return f"{np.median(told.of('microseconds')):.0f}"


def _share(name: str, value: str, told: Rows) -> str:
    return share(held(told.where(**{name: value})))


def _both(measure: Callable[[Rows], float], told: Rows) -> str:
    stages = list(STAGES)
    return " – ".join(f"{measure(told.where(stage=one)):.2f}" for one in (stages[0], stages[-1]))


def _outside(told: Rows) -> str:
    groups = told.by("pool", "policy", "claim").values()
    shares = [held(one) for one in groups]
    inside = sum(ENDS[0] <= one <= ENDS[1] for one in shares)
    low, high = (share(one) for one in ENDS)
    return f"{inside} of {len(shares)} lie between {low} and {high}."


def draw(rows: Rows, path: Path) -> None:
    """Write the picture as PNG: shares in the range by stage, a panel for every claim and part."""
    parts = rows.by("part")
    with panels(path, len(parts), len(CLAIMS), size=(11.0, 3.6 * len(parts)), sharey=True) as lines:
        for line, ((part,), runs) in zip(lines, parts.items(), strict=True):
            for panel, claim in zip(line, CLAIMS, strict=True):
                for (policy,), told in foretold(runs.where(claim=claim)).by("policy").items():
                    shares = [held(told.where(stage=stage)) for stage in STAGES]
                    panel.plot(list(STAGES), shares, ".-", color=COLOURS[policy], label=policy)
                panel.axhspan(*ENDS, color="0.92")
                panel.set(ylim=(0.0, 1.0), title=f"{part} pools, {claim}")
        lines[0][0].set_ylabel("share in the range")
        lines[0][0].legend(frameon=False, fontsize="small")


@cache
def _cell(folder: Path, name: str) -> Truth:
    return cell(name, folder)
