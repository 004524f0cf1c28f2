"""The picture of ``docs/evidence/method.md``: three policies on one pool; what ``sharp`` learns.

    python -m study.tables.method_picture docs/evidence/method.png

The pool is made up: the surrogate ranks the items well and is far too sure of itself, which is
what surrogates from confident models look like.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import expit, ndtri

from celeus.core.interval import Interval
from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.pools.strata import strata_of
from celeus.core.randomness import uniforms
from celeus.core.session.mean import Mean
from celeus.core.session.session import Session
from celeus.simulation.sessions import Truth, seed_of, simulate, strata_means, with_spread

Floats = NDArray[np.float64]

ITEMS = 10_000
PRECISION = 0.05
COLOURS = {"evalue": "#8d8d8d", "celeus": "#c8553d", "sharp": "#0b6e4f"}


@dataclass(frozen=True, slots=True)
class Groups:
    """The strata of a finished session, in order of their mean surrogate; all shapes [K]."""

    surrogate: Floats
    true_mean: Floats
    recalibrated: Floats
    drawn: Floats
    """Share of the stratum's items that were drawn."""


def overconfident(items: int) -> Truth:
    """A pool of 0-1 losses whose surrogate knows the order of the risks and exaggerates them."""
    feature = ndtri(uniforms(b"picture", "feature", items))
    loss = uniforms(b"picture", "loss", items) < expit(2.0 * feature - 2.3)
    surrogate = expit(4.0 * feature - 3.8)
    return Truth(loss.astype(np.float64), with_spread(surrogate))


def sessions(truth: Truth, precision: float, run: int = 0) -> dict[str, Session[Mean]]:
    """One finished session of every policy in the picture, all with the same seed."""
    claim, seed = Claim(precision=precision), seed_of(0, run)
    return {name: simulate(truth, policy_named(name), claim, seed)[1] for name in COLOURS}


def groups(truth: Truth, state: Session[Mean]) -> Groups:
    """The draws of every stratum in a finished session of ``sharp``, and its surrogates."""
    strata = strata_of(truth.scores, Interval(truth.lower, truth.upper))
    draws = np.bincount(strata.code[state.question.proposal.drawn_in > 0], minlength=strata.count)
    total = np.bincount(strata.code, weights=truth.loss)
    order = np.argsort(strata.base)
    return Groups(
        surrogate=strata.base[order],
        true_mean=(total / strata.size)[order],
        recalibrated=strata_means(state)[order],
        drawn=(draws / strata.size)[order],
    )


def draw(path: Path, items: int = ITEMS, precision: float = PRECISION) -> dict[str, int]:
    """Write the picture as PNG; returns the labels every policy needed."""
    truth = overconfident(items)
    states = sessions(truth, precision)
    strata = groups(truth, states["sharp"])
    figure = Figure(figsize=(11.0, 4.8), layout="constrained")
    axes = figure.subplot_mosaic("AB;AC", width_ratios=(3, 2))
    _intervals(axes["A"], states, float(truth.loss.mean()), precision)
    _strata(axes["B"], axes["C"], strata, states["sharp"].folded / items)
    for one in axes.values():
        one.spines[["top", "right"]].set_visible(False)
        one.legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=150, format="png")
    return {name: state.folded for name, state in states.items()}


def _intervals(
    axes: Axes, states: Mapping[str, Session[Mean]], risk: float, precision: float
) -> None:
    """The interval by labels: nothing is known at first, the session ends at its precision."""
    for name, state in states.items():
        labels = np.arange(1, state.folded + 1)
        lower = [100.0 * point.interval.lower for point in state.question.points]
        upper = [100.0 * point.interval.upper for point in state.question.points]
        text = f"{name}: {_grouped(state.folded)} labels"
        axes.fill_between(labels, lower, upper, color=COLOURS[name], alpha=0.25, lw=0, label=text)
        axes.plot(labels, lower, color=COLOURS[name], lw=1.2)
        axes.plot(labels, upper, color=COLOURS[name], lw=1.2)
        axes.plot([state.folded] * 2, [lower[-1], upper[-1]], color=COLOURS[name], lw=2.5)
    axes.axhline(100.0 * risk, color="black", ls="--", lw=1, label="true risk")
    most = max(state.folded for state in states.values())
    axes.set(
        xlim=(0, most * 1.03),
        ylim=(0.0, min(100.0, 100.0 * (risk + 5.0 * precision))),
        xlabel=f"labels, of {_grouped(next(iter(states.values())).most_draws)} items",
        ylabel="risk of the pool (%)",
        title=f"The interval, down to a width of {100.0 * precision:g} points",
    )


def _strata(draw_axes: Axes, mean_axes: Axes, strata: Groups, overall: float) -> None:
    """Draw of every stratum the share drawn, its surrogate, recalibrated too, and its mean loss."""
    count, colour = strata.drawn.size, COLOURS["sharp"]
    number = np.arange(1, count + 1)
    draw_axes.bar(number, 100.0 * strata.drawn, color=colour, alpha=0.6)
    draw_axes.axhline(100.0 * overall, color="black", ls=":", lw=1, label="whole pool")
    draw_axes.set(ylabel="items drawn (%)", title="sharp: where it looks")
    mean_axes.plot(
        number, 100.0 * strata.surrogate, "--", color="#8d8d8d", label="surrogate, as it came"
    )
    mean_axes.plot(number, 100.0 * strata.recalibrated, color=colour, label="recalibrated")
    mean_axes.plot(number, 100.0 * strata.true_mean, "k.", ms=5, label="true mean loss")
    mean_axes.set(ylabel="loss (%)", title="sharp: what it learns", xlabel="stratum, by surrogate")
    for axes in (draw_axes, mean_axes):
        axes.set(xlim=(0.3, count + 0.7), xticks=number[:: max(1, count // 5)])
        axes.set_ylim(bottom=0.0)


def _grouped(count: int) -> str:
    """A count with spaces between its thousands."""
    return f"{count:,}".replace(",", " ")


def main(arguments: Sequence[str]) -> None:
    """Write the picture to the path given."""
    (path,) = arguments
    draw(Path(path))


if __name__ == "__main__":
    main(sys.argv[1:])
