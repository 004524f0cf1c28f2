"""The pictures of docs/concepts.md: `python -m tests.docs.ideas docs/pictures` draws them anew."""

import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.demo.comparison import truth_of
from celeus.demo.digits import digits
from celeus.simulation.sessions import Truth, seed_of, simulate

Floats = NDArray[np.float64]

RISK = 0.15
LABELS = 600
LOOKERS = 2_000
SESSIONS = 60
NORMAL = 1.96
LEAST_LABELS = 30
STAKE = 0.5
CANDIDATES = {0.05: "tab:orange", 0.15: "tab:blue", 0.30: "tab:red"}
SIZE = (7.2, 3.4)
DOTS_PER_INCH = 110


def draw_all(folder: Path) -> None:
    """Write the three pictures."""
    truth = truth_of(digits(0))
    _save(peeking(truth), folder / "peeking.png")
    _save(gamblers(), folder / "gamblers.png")
    _save(surrogates(truth), folder / "surrogates.png")


def peeking(truth: Truth) -> Figure:
    """Draw the share of people, looking after every label, who were misled at some label."""
    labels = np.arange(1, LABELS + 1)
    losses = np.random.default_rng(0).random((LOOKERS, LABELS)) < RISK
    mean = losses.cumsum(axis=1) / labels
    half = NORMAL * np.sqrt(np.maximum(mean * (1.0 - mean), 1e-4) / labels)
    wrong = np.abs(mean - RISK) > half
    wrong[:, :LEAST_LABELS] = False
    textbook = np.logical_or.accumulate(wrong, axis=1).mean(axis=0)
    ours = np.zeros(LABELS)
    for run in range(SESSIONS):
        course = _course(truth, "sharp", run)
        misses = (course[0] > truth.loss.mean()) | (course[1] < truth.loss.mean())
        ours += np.logical_or.accumulate(misses)
    figure, axes = _axes("labels, with a look at each", "misled so far (%)")
    axes.plot(labels, 100 * textbook, color="tab:red", label="textbook interval")
    axes.plot(labels, 100 * ours / SESSIONS, color="tab:blue", label="Celeus")
    axes.axhline(5, color="0.4", linestyle="--", linewidth=1, label="what 95 % sure means")
    axes.set_ylim(0, None)
    axes.legend(loc="upper left", frameon=False)
    return figure


def gamblers() -> Figure:
    """Draw the money of three gamblers who bet against three values; the true one is 0.15."""
    losses = (np.random.default_rng(4).random(300) < RISK).astype(float)
    figure, axes = _axes("labels", "money of the gambler")
    labels = np.arange(losses.size + 1)
    for value, colour in CANDIDATES.items():
        # Half of it on more, half of it on less than the value
        both = [1.0 + side * STAKE * (losses - value) for side in (1.0, -1.0)]
        owned = np.concatenate([[1.0], np.mean([game.cumprod() for game in both], axis=0)])
        axes.plot(labels, owned, color=colour, label=f"against {value:.2f}")
    axes.axhline(20, color="0.4", linestyle="--", linewidth=1)
    axes.text(3, 23, "twentyfold: the value is dropped", fontsize=9, color="0.25")
    axes.set_yscale("log")
    axes.set_ylim(0.05, 300)
    axes.legend(loc="lower right", frameon=False, ncols=3)
    return figure


def surrogates(truth: Truth) -> Figure:
    """Draw the width of the interval by labels, with the demo's surrogate and without."""
    figure, axes = _axes("labels", "width of the interval (points)")
    styles = {"sharp": ("with a surrogate", "tab:blue"), "uniform": ("without", "tab:orange")}
    for policy, (name, colour) in styles.items():
        lower, upper = np.mean([_course(truth, policy, run) for run in range(8)], axis=0)
        axes.plot(np.arange(1, LABELS + 1), 100 * (upper - lower), color=colour, label=name)
    axes.set_ylim(0, 100)
    axes.legend(loc="upper right", frameon=False)
    return figure


def _course(truth: Truth, policy: str, run: int) -> tuple[Floats, Floats]:
    """Return lower and upper ends by labels; after the stop they are constant."""
    claim = Claim(precision=0.03, budget=LABELS)
    _, state = simulate(truth, policy_named(policy), claim, seed_of(0, run))
    ends = np.array(
        [(point.interval.lower, point.interval.upper) for point in state.question.points]
    )
    padded = np.pad(ends, ((0, LABELS - len(ends)), (0, 0)), mode="edge")
    return padded[:, 0], padded[:, 1]


def _axes(across: str, up: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    return figure, axes


def _save(figure: Figure, path: Path) -> None:
    # Without its version matplotlib writes the same bytes tomorrow
    figure.savefig(path, dpi=DOTS_PER_INCH, metadata={"Software": None})


if __name__ == "__main__":
    draw_all(Path(sys.argv[1]))
