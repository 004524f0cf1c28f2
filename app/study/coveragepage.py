"""The coverage study as a page: a table beside the paper's figures, a verdict and a picture."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from app.study.coverage import CER_EVAL, RAW, Setting
from app.study.verdict import NAMES, Row, sentence

PAPER = {CER_EVAL: "0.161", RAW: "0.021 – 0.030", "no_surrogate": "0.021 – 0.030"} | {
    "celeus": "0.021 – 0.030"
}
"""Miscoverage at the stop in Table 1 of the CELEUS paper."""
COLOURS = {False: "#8d8d8d", True: "#0b6e4f"}


def page(found: Sequence[Row], setting: Setting) -> str:
    """Setting, table and verdict as Markdown."""
    return f"{_setting(setting)}\n\n{table(found, setting)}\n{sentence(found, setting.alpha)}\n"


def _setting(setting: Setting) -> str:
    world, crowd = setting.world, setting.crowd
    risks = f"{world.least_risk:g} to {world.largest_risk:g}"
    judges = "one judge" if crowd.judges == 1 else f"{crowd.judges} judges at once"
    beyond = f", who go on to {crowd.beyond:g} times its labels" if crowd.beyond > 1.0 else ""
    return (
        f"Every trial draws a pool of {world.items} items from {world.groups} latent groups with"
        f" risks from {risks}; surrogate noise {world.noise:g}, {world.dimensions} dimensions;"
        f" population risk {world.risk:g}. A session stops at the first round with a width of at"
        f" most {setting.precision:g}; {judges}{beyond}; alpha {setting.alpha:g}."
    )


def table(found: Sequence[Row], setting: Setting) -> str:
    """A row for every method and target; the paper's figures stand beside its own setting."""
    paper = PAPER if setting == Setting() else {}
    heads = ["method", "target", "trials", "missed at the stop", "missed at any look", "paper"]
    heads += ["labels, median", "reached it", "seconds"]
    lines = [f"| {' | '.join(heads)} |", "|---|---|--:|---|---|--:|--:|--:|--:|"]
    for row in found:
        broken = f", {row.broken} broken" if row.broken else ""
        lines.append(
            f"| {NAMES[row.method]} | {row.target} | {row.missed.trials} | {row.missed}{broken}"
            f" | {row.ever} | {paper.get(row.method, '')} | {row.labels:.0f}"
            f" | {row.reached:.0%} | {row.seconds:.3f} |"
        )
    return "\n".join(lines) + "\n"


def draw(found: Sequence[Row], alpha: float, path: Path) -> None:
    """Write the picture as PNG: misses at the stop and at any look, with their intervals."""
    figure = Figure(figsize=(9.0, 0.8 + 0.42 * len(found)), layout="constrained")
    panel = figure.add_subplot()
    for place, row in enumerate(found):
        for count, shift, mark in ((row.missed, -0.12, "o"), (row.ever, 0.12, "x")):
            error = [[count.rate - count.lower], [count.upper - count.rate]]
            colour = COLOURS[row.claims]
            panel.errorbar(
                count.rate, place + shift, xerr=error, fmt=mark, ms=5, color=colour, capsize=2
            )
    panel.axvline(alpha, color="black", ls="--", lw=1)
    names = [f"{NAMES[row.method].replace('`', '')}, {row.target}" for row in found]
    panel.set_yticks(range(len(found)), names)
    panel.invert_yaxis()
    panel.set_xlim(left=-0.005)
    panel.set_xlabel(
        f"share of trials that miss: at the stop (o), at any look (x); alpha {alpha:g}"
    )
    panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
