"""The picture of ``docs/method.md``: three policies on one pool; what ``sharp`` draws and learns.

    python -m app.study.pictures docs/method.png

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

from app.core.eprocess import Interval
from app.core.ledger import Draw
from app.core.plan import Claim
from app.core.policies import policy_named
from app.core.randomness import uniforms
from app.core.session import State
from app.core.strata import strata_of
from app.core.surrogates import Scores
from app.study.simulation import Truth, seed_of, simulate

Floats = NDArray[np.float64]

ITEMS = 10_000
PRECISION = 0.05
COLOURS = {"evalue": "#8d8d8d", "celeus": "#c8553d", "sharp": "#0b6e4f"}
_DOTS_PER_INCH = 150


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
    weight = np.sqrt(surrogate * (1.0 - surrogate))
    return Truth(loss.astype(np.float64), Scores(surrogate, weight, None))


def sessions(truth: Truth, precision: float, run: int = 0) -> dict[str, State]:
    """One finished session of every policy in the picture, all with the same seed."""
    claim, seed = Claim(precision=precision), seed_of(0, run)
    return {name: simulate(truth, policy_named(name), claim, seed)[1] for name in COLOURS}


def groups(truth: Truth, state: State) -> Groups:
    """What a finished session of ``sharp`` drew of every stratum, and what it learnt."""
    strata = strata_of(truth.scores, Interval(truth.lower, truth.upper))
    first = [int(np.argmax(strata.code == one)) for one in range(strata.count)]
    guess = [state.fold.guesses.of(Draw(round=1, item=item, q=1.0, seen=0)) for item in first]
    drawn = np.bincount(strata.code[state.proposal.drawn_in > 0], minlength=strata.count)
    total = np.bincount(strata.code, weights=truth.loss)
    order = np.argsort(strata.base)
    return Groups(
        surrogate=strata.base[order],
        true_mean=(total / strata.size)[order],
        recalibrated=np.array(guess)[order],
        drawn=(drawn / strata.size)[order],
    )


def draw(path: Path, items: int = ITEMS, precision: float = PRECISION) -> dict[str, int]:
    """Write the picture as PNG; returns the labels every policy needed."""
    truth = overconfident(items)
    found = sessions(truth, precision)
    seen = groups(truth, found["sharp"])
    figure = Figure(figsize=(11.0, 4.8), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(3, 2))
    _courses(figure.add_subplot(grid[:, 0]), found, float(truth.loss.mean()), precision)
    _shares(figure.add_subplot(grid[0, 1]), seen, found["sharp"].folded / items)
    _guesses(figure.add_subplot(grid[1, 1]), seen)
    figure.savefig(path, dpi=_DOTS_PER_INCH, format="png")
    return {name: state.folded for name, state in found.items()}


def _courses(axes: Axes, found: Mapping[str, State], risk: float, precision: float) -> None:
    """The interval by labels: nothing is known at first, the session ends at its precision."""
    for name, state in found.items():
        labels = np.arange(1, state.folded + 1)
        lower = [100.0 * point.interval.lower for point in state.points]
        upper = [100.0 * point.interval.upper for point in state.points]
        text = f"{name}: {_grouped(state.folded)} labels"
        axes.fill_between(labels, lower, upper, color=COLOURS[name], alpha=0.25, lw=0, label=text)
        axes.plot(labels, lower, color=COLOURS[name], lw=1.2)
        axes.plot(labels, upper, color=COLOURS[name], lw=1.2)
        axes.plot([state.folded] * 2, [lower[-1], upper[-1]], color=COLOURS[name], lw=2.5)
    axes.axhline(100.0 * risk, color="black", ls="--", lw=1, label="true risk")
    axes.set_ylim(0.0, min(100.0, 100.0 * (risk + 5.0 * precision)))
    axes.set_xlim(0, max(state.folded for state in found.values()) * 1.03)
    axes.set_xlabel(f"labels, of {_grouped(next(iter(found.values())).items)} items")
    axes.set_ylabel("risk of the pool (%)")
    axes.set_title(f"The interval, down to a width of {100.0 * precision:g} points")
    _finish(axes)


def _shares(axes: Axes, seen: Groups, overall: float) -> None:
    """How much of every stratum was drawn."""
    axes.bar(
        np.arange(1, seen.drawn.size + 1), 100.0 * seen.drawn, color=COLOURS["sharp"], alpha=0.6
    )
    axes.axhline(100.0 * overall, color="black", ls=":", lw=1, label="whole pool")
    axes.set_ylabel("items drawn (%)")
    axes.set_title("sharp: where it looks")
    _strata_axis(axes, seen.drawn.size)


def _guesses(axes: Axes, seen: Groups) -> None:
    """The surrogate as it came, the surrogate as it is used in the end, and the truth."""
    number = np.arange(1, seen.drawn.size + 1)
    axes.plot(
        number, 100.0 * seen.surrogate, color="#8d8d8d", ls="--", label="surrogate, as it came"
    )
    axes.plot(number, 100.0 * seen.recalibrated, color=COLOURS["sharp"], label="recalibrated")
    axes.plot(number, 100.0 * seen.true_mean, "k.", ms=5, label="true mean loss")
    axes.set_ylabel("loss (%)")
    axes.set_title("sharp: what it learns")
    axes.set_xlabel("stratum, by surrogate")
    _strata_axis(axes, seen.drawn.size)


def _strata_axis(axes: Axes, count: int) -> None:
    axes.set_xlim(0.3, count + 0.7)
    axes.set_xticks(np.arange(1, count + 1, max(1, count // 5)))
    axes.set_ylim(bottom=0.0)
    _finish(axes)


def _finish(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize="small")


def _grouped(count: int) -> str:
    """A count with spaces between its thousands."""
    return f"{count:,}".replace(",", " ")


def main(arguments: Sequence[str]) -> None:
    """Write the picture to the path given."""
    (path,) = arguments
    draw(Path(path))


if __name__ == "__main__":
    main(sys.argv[1:])
