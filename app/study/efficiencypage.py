"""The efficiency study as Markdown and as a picture."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from app.study.courses import RECENTRED, REFUSED
from app.study.efficiency import POLICIES, TARGETS, Claims, seen_by
from app.study.figure import COLOURS
from app.study.markdown import labels, missed, share, table

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


def page(found: Sequence[Claims]) -> str:
    """Both tables: one row for a group of pairs and policy, then one row for a pair."""
    return f"{EXPLAINED}\n## By loss\n\n{summary(found)}\n## By pair\n\n{by_pair(found)}"


def summary(found: Sequence[Claims]) -> str:
    """A row for every dataset, loss, target and policy."""
    rows = [
        [dataset, loss, target, *_row(policy, group)]
        for dataset, loss, target in dict.fromkeys(_key(one) for one in found)
        for group in [[one for one in found if _key(one) == (dataset, loss, target)]]
        for policy in POLICIES
    ]
    heads = ["dataset", "loss", "target", "policy", "pairs", "labels", "saved against evalue"]
    heads += ["saved against no_surrogate", "of oracle", "gap closed", "missed"]
    return table(heads, rows, words=4)


def _key(claims: Claims) -> tuple[str, str, str]:
    return claims.source.dataset, claims.source.loss, claims.target


def _row(policy: str, group: Sequence[Claims]) -> list[str]:
    saved = [
        _over(group, partial(_saved, policy, against), share)
        for against in ("evalue", "no_surrogate")
    ]
    return [
        policy,
        str(len(group)),
        _over(group, lambda one: one.labels(policy), "{:.0f}".format),
        *saved,
        _over(group, lambda one: one.to_oracle(policy), "{:.2f}".format),
        _over(group, lambda one: one.closed(policy), share),
        _missed(policy, group),
    ]


def _saved(policy: str, against: str, claims: Claims) -> float:
    return claims.saved(policy, against)


def _over(
    group: Sequence[Claims], number: Callable[[Claims], float], text: Callable[[float], str]
) -> str:
    """Median and extremes over the pairs."""
    values = [value for value in map(number, group) if not np.isnan(value)]
    if not values:
        return "–"
    middle = text(float(np.median(values)))
    if len(group) == 1:
        return middle
    return f"{middle} ({text(min(values))} to {text(max(values))})"


def _missed(policy: str, group: Iterable[Claims]) -> str:
    """Sessions that serve several pairs count once."""
    once = {seen_by(policy, one.source): one.courses[policy] for one in group}
    courses = [course for runs in once.values() for course in runs]
    ran = [one for one in courses if one.stopped != REFUSED]
    return missed(sum(one.missed for one in ran), len(ran)) if ran else "–"


def by_pair(found: Sequence[Claims]) -> str:
    """A row for every pair and target: median (p10–p90) of the labels of every policy."""
    rows = [
        [
            one.source.loss,
            one.source.model,
            one.source.helper or "itself",
            one.target,
            *(labels(one.courses[policy]) for policy in POLICIES),
        ]
        for one in found
    ]
    return table(["loss", "model", "smaller model", "target", *POLICIES], rows, words=4)


def draw(found: Sequence[Claims], path: Path) -> None:
    """Write the picture as PNG: a dot is a pair, a line the median over the pairs."""
    groups = list(dict.fromkeys((one.source.dataset, one.source.loss) for one in found))
    figure = Figure(figsize=(3.2 * len(groups), 7.0), layout="constrained")
    panels = figure.subplots(len(TARGETS), len(groups), sharey="row", squeeze=False)
    for row, target in zip(panels, TARGETS, strict=True):
        for panel, group in zip(row, groups, strict=True):
            here = [
                one
                for one in found
                if (one.source.dataset, one.source.loss) == group and one.target == target
            ]
            for place, policy in enumerate(POLICIES):
                counts = [one.labels(policy) for one in here]
                colour = COLOURS.get(policy, "#5b5b5b")
                panel.plot([place] * len(counts), counts, ".", color=colour, alpha=0.6)
                panel.plot([place - 0.3, place + 0.3], [np.median(counts)] * 2, color=colour, lw=2)
            panel.set_yscale("log")
            names = [name.replace(RECENTRED, "recentred") for name in POLICIES]
            panel.set_xticks(range(len(POLICIES)), names, rotation=60, ha="right")
            panel.set_title(f"{' '.join(group).replace('_', ' ')}, {target}", fontsize="medium")
            panel.spines[["top", "right"]].set_visible(False)
        row[0].set_ylabel("labels to precision (log scale)")
    figure.savefig(path, dpi=120, format="png")
