"""Strategies A, B and C of the paper, for both of its losses: width by labels (CELEUS, Rems. 1-2).

Every target of ``mmlu`` with one smaller model. Beside the strategies stands the same engine
without a surrogate ("none"): ``no_surrogate`` for ``celeus`` and ``uniform`` for ``sharp``.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from app.core.plan import Claim
from app.core.surrogates import Strategy
from app.study.courses import (
    ALPHA,
    BUDGETS,
    PRECISION,
    Course,
    course,
    policy_of,
    seed_for,
    width_at,
)
from app.study.markdown import spread, table
from app.study.realpools import LossName, Source, truth_of
from app.study.runner import Series

STUDY = "strategies"
PAIRS = (
    ("Qwen-72B", "Llama-2-7b-hf"),
    ("Llama-2-70b-hf", "Llama-2-7b-hf"),
    ("Yi-34B", "Qwen-7B"),
    ("deepseek-llm-67b-base", "deepseek-llm-7b-base"),
)
LOSSES: tuple[LossName, ...] = ("zero_one", "cross_entropy")
STRATEGIES: tuple[Strategy, ...] = ("A", "B", "C")
WITHOUT = {"celeus": "no_surrogate", "sharp": "uniform"}
"""The same engine when it knows nothing beforehand."""
NONE = "none"
SHOWN = (50, 100, 200, 400, 800, 1600)
COLOURS = {"A": "#0b6e4f", "B": "#c8553d", "C": "#3d5a80", NONE: "#8d8d8d"}


@dataclass(frozen=True, slots=True)
class Job:
    """One session to run; ``strategy`` may be "none"."""

    loss: LossName
    model: str
    helper: str
    strategy: str
    policy: str
    run: int

    @property
    def source(self) -> Source:
        """The pool it runs on."""
        chosen: dict[str, Strategy] = {one: one for one in STRATEGIES}
        return Source("mmlu", self.loss, self.model, self.helper, chosen.get(self.strategy, "A"))


@dataclass(frozen=True, slots=True)
class Result(Course):
    """What it came to."""

    job: Job


def jobs(seeds: int, pairs: Sequence[tuple[str, str]] = PAIRS) -> list[Job]:
    """Every session of the study, the first run of everything first."""
    return [
        Job(loss, model, helper, strategy, policy, run)
        for run in range(seeds)
        for loss in LOSSES
        for model, helper in pairs
        for policy in WITHOUT
        for strategy in (*STRATEGIES, NONE)
    ]


def series(folder: Path, precision: float = PRECISION) -> Series[Job, Result]:
    """The sessions on the pools in ``folder``."""
    parameters = {"alpha": ALPHA, "precision": precision}
    return Series(STUDY, Job, Result, partial(run, folder, precision), parameters=parameters)


def run(folder: Path, precision: float, job: Job) -> Result:
    """Run one job; all strategies and policies of a pair share their seeds."""
    name = WITHOUT[job.policy] if job.strategy == NONE else job.policy
    seed = seed_for(f"{STUDY}/{job.loss}/{job.model}/{job.helper}", job.run)
    claim = Claim("pool", ALPHA, precision)
    found = course(truth_of(folder, job.source), policy_of(name), claim, seed)
    return Result(job=job, **asdict(found))


def page(results: Iterable[Result]) -> str:
    """A row for every loss, policy and strategy: labels to the precision, and widths on the way."""
    rows = [
        [
            loss,
            policy,
            strategy,
            spread([one.labels for one in runs]),
            *(_width(runs, labels) for labels in SHOWN),
            str(sum(one.missed for one in runs)),
        ]
        for (loss, policy, strategy), runs in _grouped(results).items()
    ]
    heads = ["loss", "policy", "strategy", "labels to precision"]
    heads += [f"width at {labels}" for labels in SHOWN] + ["missed"]
    explained = (
        "Labels: median (p10–p90) over models and runs. Widths: medians, as shares of the scale of"
        " the loss; a dash where half of the sessions had stopped before.\n"
    )
    return f"{explained}\n{table(heads, rows, words=3)}"


def _width(runs: Sequence[Result], labels: int) -> str:
    if np.median([one.labels for one in runs]) < labels:
        return "–"
    return f"{np.median([width_at(one, labels) for one in runs]):.3f}"


def _grouped(results: Iterable[Result]) -> dict[tuple[str, str, str], list[Result]]:
    grouped: dict[tuple[str, str, str], list[Result]] = defaultdict(list)
    for one in results:
        grouped[one.job.loss, one.job.policy, one.job.strategy].append(one)
    return grouped


def draw(results: Iterable[Result], path: Path) -> None:
    """Write the picture as PNG: median width by labels, a panel for every loss and policy."""
    grouped = _grouped(results)
    panels_of = list(dict.fromkeys((loss, policy) for loss, policy, _ in grouped))
    figure = Figure(figsize=(4.0 * len(panels_of), 4.0), layout="constrained")
    panels = figure.subplots(1, len(panels_of), sharey=True, squeeze=False)[0]
    for panel, (loss, policy) in zip(panels, panels_of, strict=True):
        for strategy in (*STRATEGIES, NONE):
            runs = grouped[loss, policy, strategy]
            end = float(np.median([one.labels for one in runs]))
            labels = [budget for budget in BUDGETS if budget < end] + [end]
            widths = [np.median([width_at(one, at) for one in runs]) for at in labels]
            panel.plot(labels, widths, color=COLOURS[strategy], label=strategy)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_title(f"{loss.replace('_', ' ')}, {policy}")
        panel.set_xlabel("labels")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("width, share of the scale")
    panels[-1].legend(title="strategy", frameon=False)
    figure.savefig(path, dpi=120, format="png")
