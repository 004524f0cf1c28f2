"""`make bench`: measure what the service promises about time, and print it beside the promise.

Medians with the smallest and the largest measurement. It is no test: a slow machine fails nothing.
"""

from collections.abc import AsyncIterator, Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from rich.console import Console

from tests.bench.attacks import attack_lines
from tests.bench.background import background_lines
from tests.bench.cycles import cycle_lines
from tests.bench.folds import fold_lines
from tests.bench.gaps import gap_lines
from tests.bench.load import load_lines
from tests.bench.polls import poll_lines
from tests.bench.results import Line, machine, shown
from tests.bench.scale.comparison import fleet_lines, scale_lines
from tests.bench.scale.footprint import footprint_lines
from tests.bench.scale.volume import volume_lines
from tests.bench.uploads import upload_lines
from tests.bench.worlds import world


class Part(StrEnum):
    """What can be measured by itself."""

    FOLD = "fold"
    UPLOAD = "upload"
    CYCLE = "cycle"
    LOAD = "load"
    BACKGROUND = "background"
    POLL = "poll"
    ATTACKS = "attacks"
    GAPS = "gaps"
    SIZE = "size"
    SCALE = "scale"
    FLEET = "fleet"
    VOLUME = "volume"


PAGE_WIDTH = 130
SERVED: dict[Part, tuple[str, Callable[..., AsyncIterator[Line]]]] = {
    Part.UPLOAD: ("Pools in, sessions open", upload_lines),
    Part.CYCLE: ("Label cycles", cycle_lines),
    Part.LOAD: ("Label cycles offered at a steady rate", load_lines),
    Part.BACKGROUND: ("Label cycles while long work goes on", background_lines),
    Part.POLL: ("Status polls from Redis", poll_lines),
    Part.ATTACKS: ("Attacks: memory, and answers to others", attack_lines),
    Part.GAPS: ("Answers to others while one session works", gap_lines),
    Part.SIZE: ("Bytes, WAL and processor time of a label, a session, an item", footprint_lines),
    Part.SCALE: ("Label cycles, measured and modelled", scale_lines),
    Part.FLEET: ("10 000 judges, 100 server processes: modelled", fleet_lines),
    Part.VOLUME: ("100 000 sessions, 10 000 000 items", volume_lines),
}


def main(
    part: Annotated[list[Part] | None, typer.Option(help="Only this part; repeatable.")] = None,
    evaldata: Annotated[
        Path | None, typer.Option(help="Folder with mmlu.npz and others: real cells as well.")
    ] = None,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer and shorter runs.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Tables for a page.")] = False,
) -> None:
    """Measure the service on a private PostgreSQL and Redis, which end with the run."""
    wanted = set(part or Part)
    console = Console(width=None if Console().is_terminal else PAGE_WIDTH)
    console.print(machine(), highlight=False)
    if Part.FOLD in wanted:
        folds = fold_lines(evaldata, quick=quick)
        shown(console, "The core alone", folds, markdown=markdown)
    if wanted & SERVED.keys():
        with world() as running:
            console.print(running.versions(), highlight=False)
            for one, (title, measure) in SERVED.items():
                if one in wanted:
                    lines = uvloop.run(_all(measure(running, quick=quick)))
                    shown(console, title, lines, markdown=markdown)


async def _all(lines: AsyncIterator[Line]) -> list[Line]:
    return [line async for line in lines]


if __name__ == "__main__":
    typer.run(main)
