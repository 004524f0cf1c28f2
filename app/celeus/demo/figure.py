"""The demo's figure: all intervals by labels, the truth, and the requested precision."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from celeus.client.results import Point

_DOTS_PER_INCH = 150


@dataclass(frozen=True, slots=True)
class Course:
    """One session's interval by labels, with its name and colour in the picture."""

    name: str
    colour: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Setting:
    """Shared by all courses: the true risk, the requested precision, the size of the pool."""

    risk: float
    precision: float
    items: int


def draw(path: Path, courses: Sequence[Course], setting: Setting) -> None:
    """Write a PNG. Each course fills its interval and ends in a line down to its labels."""
    risk, precision = setting.risk, setting.precision
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.axhspan(
        100 * (risk - precision / 2),
        100 * (risk + precision / 2),
        color="0.88",
        label=f"precision asked for: {100 * precision:g} points",
    )
    axes.axhline(100 * risk, color="black", linestyle="--", linewidth=1, label="true error rate")
    for course in courses:
        rounds = [point.round for point in course.points]
        lower = [100 * point.lower for point in course.points]
        upper = [100 * point.upper for point in course.points]
        axes.fill_between(
            rounds,
            lower,
            upper,
            facecolor=course.colour,
            alpha=0.25,
            edgecolor=course.colour,
            linewidth=1.2,
            label=f"{course.name}: {rounds[-1]} labels",
        )
        axes.plot(
            rounds, [100 * point.estimate for point in course.points], color=course.colour, lw=1
        )
        axes.axvline(rounds[-1], color=course.colour, linestyle=":", linewidth=1.2)
    axes.set_xlabel(f"labels, of {setting.items} items")
    axes.set_ylabel("error rate of the classifier (%)")
    axes.set_xlim(0, setting.items)
    axes.set_ylim(0, min(100, 100 * (risk + 6 * precision)))
    axes.set_title("What is certified about the error rate, by labels used")
    axes.legend(loc="upper right")
    figure.savefig(path, dpi=_DOTS_PER_INCH, format="png")
