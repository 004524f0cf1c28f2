"""Labels to precision on the real pools, for every pair of a target and a smaller model.

A job is one session. Policies that do not look at the surrogate run once for a target and serve
all of its pairs. The draws of different pairs, targets and runs have different seeds, so that
misses may be added up; the policies of one pair share their seeds.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from celeus.core.plans.plan import Claim, Target
from study.engine.figure import COLOURS, panels
from study.engine.markdown import Columns, missed, share, table
from study.engine.rows import Rows, Values, grid
from study.pools.real import LOSSES, NOBODY, VOTES, Source, pairs
from study.tables.courses import (
    ALPHA,
    RECENTRED,
    Recipe,
    Session,
    accepted,
    median_width,
    policy_of,
    stops,
)

STUDY = "efficiency"
TARGETS: tuple[Target, ...] = ("pool", "population")
POLICIES = ("sharp", "uniform", "celeus", "no_surrogate", "evalue", RECENTRED, "oracle")
ORACLE, BASELINE = "oracle", "evalue"
LEAST_GAP = 0.1
PAIR = ("dataset", "loss", "model", "helper")
EXPLAINED = """`saved` compares medians of labels: 1 less the labels of the policy over those of the
other. `of oracle` is the labels as a multiple of the oracle's. `gap closed` is the share of the gap
in width between `evalue` and `oracle` that is closed after as many labels as the oracle needs;
policies that had stopped before count with the width of their stop. `missed` counts sessions whose
interval lost the true risk at any round up to the stop, with Wilson's 95 % interval; every pair,
target and run has draws of its own, so they may be added up. `evalue` is in its authors' form,
`evalue_recentred` minds drawing without replacement. For the population every session has a pool
of its own, drawn with replacement from the real one, so that the population risk is known.
Numbers over pairs: median (least–most).
"""


def sources() -> list[Source]:
    """Every pair and loss of ``mmlu``, and the two vote pools.

    For the cross-entropy strategy A asks the target alone: there is one source for a target.
    """
    result = []
    for loss in LOSSES:
        alone = loss == "cross_entropy"
        models = dict.fromkeys((f, NOBODY if alone else g) for f, g in pairs())
        result += [Source("mmlu", loss, f, g) for f, g in models]
    return result + [Source(name, "zero_one", cell, "votes") for name, cell in VOTES.items()]


def quick_sources() -> list[Source]:
    """One pair for a loss, and the larger vote pool."""
    first = {source.loss: source for source in reversed(sources()) if source.dataset == "mmlu"}
    return [*first.values(), sources()[-1]]


def seen_by(policy: str, source: Source) -> Source:
    """The source as the policy sees it: without a smaller model where it does not ask one."""
    return source if policy_of(policy).uses_scores else replace(source, helper=NOBODY)


def jobs(selection: Sequence[Source], seeds: int) -> list[Values]:
    """Every session of the study, the first run of everything first."""
    sessions = [
        (*astuple(seen_by(policy, source))[: len(PAIR)], target, policy)
        for source in selection
        for target in TARGETS
        for policy in POLICIES
    ]
    names = ", ".join((*PAIR, "target", "policy"))
    return grid({"run": range(seeds), names: dict.fromkeys(sessions)})


def session(job: Values) -> Session:
    """The policies of one pair and target share their seeds."""
    source = Source(*(job[name] for name in PAIR))
    place = "/".join((STUDY, *(job[name] for name in PAIR), job["target"]))
    return Session(source, policy_of(job["policy"]), Claim(job["target"], ALPHA), place)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All sessions of all policies on one source for one target."""

    source: Source
    target: Target
    courses: dict[str, Rows]

    @property
    def group(self) -> tuple[str, str, str]:
        """The key by which pairs are summed up."""
        return self.source.dataset, self.source.loss, self.target

    def labels(self, policy: str) -> float:
        """Median of the labels at the stop; NaN for a policy that was not run or was refused."""
        stopped = accepted(self.courses.get(policy, Rows())).of("labels")
        return float(np.median(stopped)) if stopped else float("nan")

    def saved(self, policy: str, against: str) -> float:
        """Share of the labels of another policy that are not needed (medians)."""
        return 1.0 - self.labels(policy) / self.labels(against)

    def to_oracle(self, policy: str) -> float:
        """Labels as a multiple of the oracle's (medians)."""
        return self.labels(policy) / self.labels(ORACLE)

    def closed(self, policy: str) -> float:
        """Share of the gap in width between ``evalue`` and ``oracle`` that the policy closes.

        Median widths at the oracle's median stop; a policy that had stopped before counts with
        the width of its stop, so that its share is a lower bound. NaN where the gap is less than
        a tenth of the oracle's width: a share of nearly nothing says nothing.
        """
        policies = {policy, BASELINE, ORACLE}
        if not all(self.courses.get(name) for name in policies):
            return float("nan")
        budget = self.labels(ORACLE)
        at = {name: median_width(self.courses[name], budget) for name in policies}
        gap = at[BASELINE] - at[ORACLE]
        return (at[BASELINE] - at[policy]) / gap if gap > LEAST_GAP * at[ORACLE] else float("nan")


def comparisons(rows: Rows) -> list[Comparison]:
    """The sessions by source and target; those without surrogate stand with every pair."""
    groups = rows.by(*PAIR, "target", "policy")
    result = []
    for *pair, target in rows.where(policy=ORACLE).by(*PAIR, "target"):
        source = Source(*pair)
        shared = {policy: astuple(seen_by(policy, source))[: len(PAIR)] for policy in POLICIES}
        courses = {
            policy: groups.get((*shared[policy], target, policy), Rows()) for policy in shared
        }
        result.append(Comparison(source, target, courses))
    return result


def page(rows: Rows) -> str:
    """Both tables: one line for a group of pairs and policy, then one line for a pair."""
    all_pairs = comparisons(rows)
    return f"{EXPLAINED}\n## By loss\n\n{summary(all_pairs)}\n## By pair\n\n{by_pair(all_pairs)}"


def summary(every: Iterable[Comparison]) -> str:
    """A line for every dataset, loss, target and policy."""
    keys = ("dataset", "loss", "target", "policy")
    rows = Rows(
        dict(zip(keys, (*one.group, policy), strict=True)) | {"claims": one}
        for one in every
        for policy in POLICIES
    )
    whole, ratio = "{:.0f}".format, "{:.2f}".format
    columns: Columns = {
        "pairs": lambda lines: str(len(lines)),
        "labels": partial(_over, Comparison.labels, whole),
        "saved against evalue": partial(_over, partial(_saved, "evalue"), share),
        "saved against no_surrogate": partial(_over, partial(_saved, "no_surrogate"), share),
        "of oracle": partial(_over, Comparison.to_oracle, ratio),
        "gap closed": partial(_over, Comparison.closed, share),
        "missed": _missed,
    }
    return table(rows, keys, columns)


def _saved(against: str, comparison: Comparison, policy: str) -> float:
    return comparison.saved(policy, against)


def _over(
    number: Callable[[Comparison, str], float], text: Callable[[float], str], lines: Rows
) -> str:
    """Median and extremes over the pairs."""
    numbers = [number(line["claims"], line["policy"]) for line in lines]
    values = [value for value in numbers if not np.isnan(value)]
    if not values:
        return "–"
    median = text(float(np.median(values)))
    if len(lines) == 1:
        return median
    return f"{median} ({text(min(values))} to {text(max(values))})"


def _missed(lines: Rows) -> str:
    """Sessions that serve several pairs count once."""
    once = {
        seen_by(line["policy"], line["claims"].source): line["claims"].courses[line["policy"]]
        for line in lines
    }
    return missed(accepted(Rows(one for runs in once.values() for one in runs)))


def by_pair(every: Iterable[Comparison]) -> str:
    """A line for every pair and target: median (p10–p90) of the labels of every policy."""
    keys = ("loss", "model", "smaller model", "target")
    rows = Rows(
        {
            "loss": one.source.loss,
            "model": one.source.model,
            "smaller model": one.source.helper or "itself",
            "target": one.target,
            "courses": one.courses,
        }
        for one in every
    )
    return table(rows, keys, {policy: partial(_stops, policy) for policy in POLICIES})


def _stops(policy: str, lines: Rows) -> str:
    return stops(lines[0]["courses"][policy])


def draw(rows: Rows, path: Path) -> None:
    """Write the picture as PNG: a dot is a pair, a line the median over the pairs."""
    groups: dict[tuple[str, str, str], list[Comparison]] = {}
    for one in comparisons(rows):
        groups.setdefault(one.group, []).append(one)
    columns = len(groups) // len(TARGETS)
    names = [name.replace(RECENTRED, "recentred") for name in POLICIES]
    size = (3.2 * columns, 7.0)
    with panels(path, len(TARGETS), columns, size=size, sharey="row") as cells:
        for row, target in zip(cells, TARGETS, strict=True):
            here = [(key, group) for key, group in groups.items() if key[-1] == target]
            for panel, ((dataset, loss, _), group) in zip(row, here, strict=True):
                for place, policy in enumerate(POLICIES):
                    counts, colour = [one.labels(policy) for one in group], COLOURS[policy]
                    panel.plot([place] * len(counts), counts, ".", color=colour, alpha=0.6)
                    median = float(np.median(counts))
                    panel.plot([place - 0.3, place + 0.3], [median] * 2, color=colour, lw=2)
                panel.set_yscale("log")
                panel.set_xticks(range(len(names)), names, rotation=60, ha="right")
                title = f"{dataset} {loss}, {target}".replace("_", " ")
                panel.set_title(title, fontsize="medium")
            row[0].set_ylabel("labels to precision (log scale)")


RECIPE = Recipe(
    STUDY,
    "Labels to precision on real pools",
    sources(),
    quick_sources(),
    jobs,
    session,
    page,
    draw,
)
