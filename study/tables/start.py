"""Measure the labels that the exact start of 0-1 losses saves on small pools.

Notation: N items. The evidence of the pool itself is bounded for any losses (``pairs``), or counted
by the binomial (``exact_pairs``), which is the default where losses are 0 or 1.

    labels   until the interval is as narrow as asked, on samples of real pools
    misses   on made-up pools judged to the last: does the interval ever lose the risk?
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from celeus.core.plans.plan import Claim, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.randomness import commitment
from celeus.core.session.session import begin_mean, judge_rounds
from celeus.simulation.sessions import Truth, ever_missed, seed_of, simulate
from study.engine.checks import data_folder
from study.engine.figure import panels
from study.engine.markdown import Columns, missed, share, table
from study.engine.rows import Rows, Values, grid
from study.engine.runner import Series
from study.engine.study import Study, counted
from study.pools.cells import CELLS, cell
from study.pools.real import resampled
from study.pools.synthetic import World
from study.tables.compare import middle

STUDY = "start"
ALPHA = 0.05
STARTS = ("pairs", "exact_pairs")
SAMPLES = (
    ("mmlu-qwen", 1500, 0.06),
    ("mmlu-qwen", 1500, 0.07),
    ("mmlu-qwen", 2000, 0.06),
    ("imagenet-votes", 2000, 0.05),
    ("mmlupro-votes", 2000, 0.08),
)
QUICK_SAMPLES = (("mmlu-qwen", 300, 0.15),)
ITEMS, WIDTH, RARE_WIDTH = 150, 0.18, 0.12
WORLDS: Mapping[str, tuple[World, float]] = {
    "informative surrogate": (World(ITEMS), WIDTH),
    "anti-correlated surrogate": (World(ITEMS), WIDTH),
    "rare losses": (World(ITEMS, least_risk=0.01, largest_risk=0.05), RARE_WIDTH),
}
FIELDS = ("labels", "missed")

LABELS = f"""Labels until the interval for the population is as narrow as asked, at alpha \
{ALPHA:g}: median / 90 %. Every session has a pool of its own, so many items drawn from the real \
one with replacement. *Missed*: sessions whose interval lost that one's risk at any round up to \
the stop.
"""
MISSES = f"""Made-up pools of {ITEMS} items, judged to the last: labels to the stop, and sessions \
whose interval ever lost the risk of their population, with Wilson's 95 % interval. At most \
{share(ALPHA)} may.
"""


def study(folder: Path, seeds: int, trials: int, *, quick: bool) -> Study:
    """The study on the pools in ``folder``; ``trials`` are those of made-up pools."""
    seeds, trials = (min(seeds, 2), min(trials, 2)) if quick else (seeds, trials)
    samples = QUICK_SAMPLES if quick else SAMPLES
    series = Series(STUDY, partial(run, folder), FIELDS, parameters={"alpha": ALPHA})
    runs = f"{counted(seeds, 'seed')}, {counted(trials, 'trial')}"
    title = "What the exact start saves"
    wanted = jobs(samples, seeds, trials)
    names = {name for name, _, _ in samples}
    return Study(series, title, wanted, runs, page, draw, partial(_check, folder, names))


def jobs(samples: tuple[tuple[str, int, float], ...], seeds: int, trials: int) -> list[Values]:
    """Every session of the study; both starts have the same pools and draws."""
    seed, trial = {"run": range(seeds)}, {"run": range(trials)}
    of_samples = grid({"part": ["labels"]} | seed | {"pool, items, precision": samples})
    of_worlds = grid({"part": ["misses"]} | trial | {"world": list(WORLDS)})
    return [job | {"start": start} for job in (*of_samples, *of_worlds) for start in STARTS]


def _check(folder: Path, names: set[str]) -> None:
    """Refuse a folder without the pools, or with others."""
    data_folder(folder, {CELLS[name].file for name in names})
    for name in names:
        _cell(folder, name)


def run(folder: Path, job: Values) -> Values:
    """Run one job of the study."""
    if job["part"] == "misses":
        return _misses(job)
    whole, claim = _cell(folder, job["pool"]), _claim(job["precision"], job["start"])
    seed = seed_of(f"{STUDY}/{job['pool']}/{job['items']}/{job['precision']}", job["run"])
    sample = resampled(whole, seed, job["items"])
    one, _ = simulate(sample, policy_named("sharp"), claim, seed, float(whole.loss.mean()))
    return {"labels": one.labels, "missed": one.missed}


def _misses(job: Values) -> Values:
    world, width = WORLDS[job["world"]]
    seed = seed_of(f"{STUDY}/{job['world']}", job["run"])
    truth = world.pool(seed)
    if job["world"] == "anti-correlated surrogate":
        turned = replace(truth.scores, surrogate=1.0 - truth.scores.surrogate)
        truth = replace(truth, scores=turned)
    policy, claim = policy_named("sharp"), _claim(width, job["start"])
    plan = make_plan(claim, truth.facts, policy, commitment(seed))
    state = begin_mean(plan, truth.scores, seed)
    labels = 0
    for _ in judge_rounds(state, truth.loss_of, past_stop=True):
        labels = labels or (state.folded if state.stop_reason is not None else 0)
    return {"labels": labels, "missed": ever_missed(state, world.risk)}


def _claim(precision: float, start: str) -> Claim:
    return Claim("population", ALPHA, precision, population_bound=start)


def page(rows: Rows) -> str:
    """Both tables."""
    of_labels, of_misses = (rows.where(part=part) for part in ("labels", "misses"))
    labels = {f"`{start}`": partial(_middle, start) for start in STARTS}
    columns: Columns = labels | {f"missed, `{one}`": partial(_missed, one) for one in STARTS}
    lines = of_labels.plus(lambda row: {"width": f"{row['precision']:g}"})
    return (
        f"## Labels\n\n{LABELS}\n{table(lines, ('pool', 'items', 'width'), columns)}\n"
        f"## How often the interval is wrong\n\n{MISSES}\n{table(of_misses, ('world',), columns)}"
    )


def _middle(start: str, runs: Rows) -> str:
    return middle(runs.where(start=start))


def _missed(start: str, runs: Rows) -> str:
    return missed(runs.where(start=start))


def draw(rows: Rows, path: Path) -> None:
    """Write the picture as PNG: labels of every session with one start and with the other."""
    samples = rows.where(part="labels").by("pool", "items", "precision")
    with panels(path, size=(6.0, 5.0)) as ((panel,),):
        for (pool, items, precision), runs in samples.items():
            x, y = (runs.where(start=start).of("labels") for start in STARTS)
            panel.plot(x, y, "o", markersize=4, label=f"{pool}, {items} items, {precision:g}")
        most = float(np.max(rows.where(part="labels").of("labels")))
        panel.plot((0.0, most), (0.0, most), "k:", linewidth=1)
        panel.set(xlabel="labels with `pairs`", ylabel="labels with `exact_pairs`")
        panel.legend(frameon=False, fontsize="small")


@cache
def _cell(folder: Path, name: str) -> Truth:
    return cell(name, folder)
