"""A study: its sessions, its page and its picture, and how it is run from end to end."""

import os
import platform
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from celeus.core.plans.plan import METHOD_VERSION
from study.engine.checks import can_draw
from study.engine.rows import Rows, Values
from study.engine.runner import Series, measure


def no_check() -> None:
    """A study of made-up pools reads none."""


@dataclass(frozen=True, slots=True)
class Study:
    """The jobs, page and picture of one command of `python -m study`.

    ``runs`` says how much is run: "24 seeds", "1000 trials". ``check`` refuses what cannot be run
    before anything is written.
    """

    series: Series
    title: str
    jobs: Sequence[Values]
    runs: str
    page: Callable[[Rows], str]
    draw: Callable[[Rows, Path], None]
    check: Callable[[], None] = no_check

    @property
    def name(self) -> str:
        """The stem of its files' names."""
        return self.series.study

    def perform(self, out: Path, processes: int | None = None) -> Rows:
        """Run what is missing; write page, picture and lines into the folder ``out``."""
        can_draw()
        self.check()
        rows = measure(self.series, self.jobs, out / f"{self.name}.jsonl", processes)
        text = f"{self._head()}{self.page(rows)}\n![{self.title}]({self.name}.png)\n"
        (out / f"{self.name}.md").write_text(text, encoding="utf-8")
        self.draw(rows, out / f"{self.name}.png")
        return rows

    def _head(self) -> str:
        """Title, command, seed, versions, machine and date: how to make the page again."""
        command = shlex.join(["python", "-m", "study", *sys.argv[1:]])
        versions = ", ".join(f"{name} {version(name)}" for name in ("celeus", "numpy", "scipy"))
        machine = f"{platform.machine()}, {os.cpu_count()} processors"
        details = [
            self.runs,
            f"study seed {self.series.seed}",
            f"{versions}, method {METHOD_VERSION}",
            f"{machine}, Python {platform.python_version()}",
        ]
        date = datetime.now(UTC).date().isoformat()
        return f"# {self.title}\n\n    {command}\n\n{'; '.join(details)}; {date}.\n\n"


def counted(count: int, unit: str) -> str:
    """A count with its unit: "1 seed", "24 seeds"."""
    return f"{count} {unit}" + ("" if count == 1 else "s")
