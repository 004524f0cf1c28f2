"""What was measured, beside what was wanted, as a table."""

import os
import platform
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Self

from rich import box
from rich.console import Console
from rich.table import Table

PACKAGES = ("fastapi", "numpy", "optuna", "psycopg", "sqlalchemy", "uvicorn", "uvloop")


@dataclass(frozen=True, slots=True)
class Goal:
    """What the median of a line should be, in words and as a question."""

    words: str
    reached: Callable[[float], bool]

    @classmethod
    def most(cls, limit: float, unit: str = "") -> Self:
        """At most ``limit``."""
        return cls(f"≤ {_short(limit)} {unit}".strip(), lambda median: median <= limit)

    @classmethod
    def least(cls, limit: float, unit: str = "") -> Self:
        """At least ``limit``."""
        return cls(f"≥ {_short(limit)} {unit}".strip(), lambda median: median >= limit)

    @classmethod
    def within(cls, lower: float, upper: float) -> Self:
        """Neither below ``lower`` nor above ``upper``."""
        words = f"{_short(lower)} to {_short(upper)}"
        return cls(words, lambda median: lower <= median <= upper)


@dataclass(frozen=True, slots=True)
class Line:
    """Repeated measurements of one thing. Without a goal it is there to compare with."""

    what: str
    samples: Sequence[float]
    unit: str
    goal: Goal | None = None

    @property
    def median(self) -> float:
        """Middle of the measurements."""
        return statistics.median(self.samples)

    @property
    def verdict(self) -> str:
        """Whether the median is where it should be."""
        if self.goal is None:
            return ""
        return "yes" if self.goal.reached(self.median) else "NO"

    def cells(self) -> tuple[str, ...]:
        """The line as text."""
        span = f"{_short(min(self.samples))} – {_short(max(self.samples))}"
        goal = "" if self.goal is None else self.goal.words
        found = f"{_short(self.median)} {self.unit}".strip()
        return self.what, found, span if len(self.samples) > 1 else "", goal, self.verdict


def shown(console: Console, title: str, lines: Iterable[Line], *, markdown: bool) -> None:
    """Print a part's lines as a table."""
    table = Table(
        title=None if markdown else title,
        title_justify="left",
        box=box.MARKDOWN if markdown else box.SIMPLE_HEAD,
    )
    table.add_column("measured", overflow="fold")
    for name in ("median", "min – max", "goal", "met"):
        table.add_column(name, justify="right", no_wrap=True)
    for line in lines:
        table.add_row(*line.cells())
    if markdown:
        console.print(f"\n## {title}\n")
    console.print(table)


def machine() -> str:
    """What it was measured on: processor, load and versions."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    loads = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    return (
        f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()};"
        f" load before: {loads}\nPython {platform.python_version()}, {packages}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _short(value: float) -> str:
    """Three digits that matter, whole numbers grouped by thousands."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}"
