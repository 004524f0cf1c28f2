"""Strategies A, B and C of the paper, for both of its losses: width by labels (CELEUS, Rems. 1-2).

Every target of ``mmlu`` with one smaller model. Beside the strategies stands the same engine
without a surrogate ("none"): ``no_surrogate`` for ``celeus`` and ``uniform`` for ``sharp``.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from celeus.core.plans.plan import Claim
from celeus.core.pools.surrogates import Strategy
from study.engine.figure import panels
from study.engine.markdown import Columns, spread, table
from study.engine.rows import Rows, Values, grid
from study.pools.real import LossName, Source
from study.tables.courses import ALPHA, BUDGETS, Recipe, Session, median_width, policy_of

STUDY = "strategies"
PAIRS = (
    ("Qwen-72B", "Llama-2-7b-hf"),
    ("Llama-2-70b-hf", "Llama-2-7b-hf"),
    ("Yi-34B", "Qwen-7B"),
    ("deepseek-llm-67b-base", "deepseek-llm-7b-base"),
)
LOSSES: tuple[LossName, ...] = ("zero_one", "cross_entropy")
NONE = "none"
STRATEGIES: dict[str, Strategy] = {"A": "A", "B": "B", "C": "C", NONE: "A"}
WITHOUT = {"celeus": "no_surrogate", "sharp": "uniform"}
"""The same engine when it knows nothing beforehand."""
SHOWN = (50, 100, 200, 400, 800, 1600)
EXPLAINED = """Labels: median (p10–p90) over models and runs. Widths: medians, as shares of the \
scale of the loss; a dash where half of the sessions had stopped before.
"""


def jobs(pairs: Sequence[tuple[str, str]], seeds: int) -> list[Values]:
    """Every session of the study, the first run of everything first."""
    axes = {"run": range(seeds), "loss": LOSSES, "model, helper": pairs}
    return grid(axes | {"policy": WITHOUT, "strategy": STRATEGIES})


def session(job: Values) -> Session:
    """All strategies and policies of a pair share their seeds."""
    loss, model, helper = job["loss"], job["model"], job["helper"]
    name = WITHOUT[job["policy"]] if job["strategy"] == NONE else job["policy"]
    source = Source("mmlu", loss, model, helper, STRATEGIES[job["strategy"]])
    place = f"{STUDY}/{loss}/{model}/{helper}"
    return Session(source, policy_of(name), Claim("pool", ALPHA), place)


def page(rows: Rows) -> str:
    """A line for every loss, policy and strategy: labels to the precision, widths on the way."""
    columns: Columns = {
        "labels to precision": lambda runs: spread(runs.of("labels")),
        **{f"width at {labels}": partial(_width, labels) for labels in SHOWN},
        "missed": lambda runs: str(sum(runs.of("missed"))),
    }
    return f"{EXPLAINED}\n{table(rows, ('loss', 'policy', 'strategy'), columns)}"


def _width(labels: int, runs: Rows) -> str:
    if np.median(runs.of("labels")) < labels:
        return "–"
    return f"{median_width(runs, labels):.3f}"


def draw(rows: Rows, path: Path) -> None:
    """Write the picture as PNG: median width by labels, a panel for every loss and policy."""
    groups = rows.by("loss", "policy")
    size = (4.0 * len(groups), 4.0)
    with panels(path, 1, len(groups), size=size, sharey=True) as (row,):
        for panel, ((loss, policy), group) in zip(row, groups.items(), strict=True):
            for (strategy,), runs in group.by("strategy").items():
                end = float(np.median(runs.of("labels")))
                labels = [budget for budget in BUDGETS if budget < end] + [end]
                widths = [median_width(runs, at) for at in labels]
                panel.plot(labels, widths, label=strategy)
            title = f"{loss.replace('_', ' ')}, {policy}"
            panel.set(xscale="log", yscale="log", title=title, xlabel="labels")
        row[0].set_ylabel("width, share of the scale")
        row[-1].legend(title="strategy", frameon=False)


RECIPE = Recipe(STUDY, "Strategies A, B and C", PAIRS, PAIRS[:1], jobs, session, page, draw)
