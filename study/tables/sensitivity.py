"""Measure the cost of the policies' free choices: the split of alpha, theta, c and beta.

The paper's Appendix varies them for ``celeus``; ``sharp`` has a beta too. One choice is varied at
a time, the others stay at their defaults.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from study.engine.figure import panels
from study.engine.markdown import Columns, missed, table
from study.engine.rows import Rows, Values, grid
from study.tables.courses import ALPHA, POOLS, Recipe, Session, policy_of, stops

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
EXPLAINED = """Labels to the precision, median (p10–p90); defaults are alpha2 0.025, theta 0.5, \
c 0.5, and beta 0.4 (`celeus`) or 0.5 (`sharp`). Values of one choice share their seeds.
"""


def jobs(pools: Sequence[str], seeds: int) -> list[Values]:
    """Every session of the study, the first run of everything first."""
    varied = [(policy, choice, one) for policy, choice, values in CHOICES for one in values]
    return grid({"run": range(seeds), "pool": pools, "policy, choice, value": varied})


def session(job: Values) -> Session:
    """All values of a choice share their seeds."""
    choice, value = job["choice"], job["value"]
    place = f"{STUDY}/{job['pool']}/{job['policy']}/{choice}"
    if choice == SPLIT:
        policy, claim = policy_of(job["policy"]), Claim("population", ALPHA, alpha2=value)
    else:
        policy, claim = policy_named(job["policy"], **{choice: value}), Claim("pool", ALPHA)
    return Session(POOLS[job["pool"]], policy, claim, place)


def page(rows: Rows) -> str:
    """A line for every value of every choice, a column for every pool."""
    columns: Columns = {
        **{pool: partial(_stops, pool) for (pool,) in rows.by("pool")},
        "missed, all pools": missed,
    }
    return f"{EXPLAINED}\n{table(rows.plus(_named), ('policy', 'target', 'choice'), columns)}"


def _stops(pool: str, runs: Rows) -> str:
    return stops(runs.where(pool=pool))


def _named(row: Values) -> Values:
    """The target and the choice that a line is named by."""
    choice, value = row["choice"], row["value"]
    if choice != SPLIT:
        return {"target": "pool", "choice": f"{choice} {value:g}"}
    text = f"alpha1 {ALPHA - value:g}, {SPLIT} {value:g}"
    return {"target": "population", "choice": text}


def draw(rows: Rows, path: Path) -> None:
    """Write the picture as PNG: labels by value, a panel for every choice."""
    groups = rows.by("policy", "choice")
    size = (3.2 * len(groups), 3.4)
    with panels(path, 1, len(groups), size=size, sharey=True) as (row,):
        for panel, ((policy, choice), group) in zip(row, groups.items(), strict=True):
            for (pool,), runs in group.by("pool").items():
                by_value = runs.by("value")
                values = [value for (value,) in by_value]
                labels = [np.percentile(of.of("labels"), (10, 50, 90)) for of in by_value.values()]
                low, median, high = np.transpose(labels)
                (line,) = panel.plot(values, median, ".-", label=pool)
                panel.fill_between(values, low, high, color=line.get_color(), alpha=0.2, lw=0)
            panel.set_yscale("log")
            panel.set_title(f"{policy}: {choice}", fontsize="medium")
        row[0].set_ylabel("labels to precision (log scale)")
        row[-1].legend(frameon=False, fontsize="small")


POOL_NAMES = tuple(POOLS)
RECIPE = Recipe(
    STUDY,
    "Free choices of the policies",
    POOL_NAMES,
    POOL_NAMES[:1],
    jobs,
    session,
    page,
    draw,
)
