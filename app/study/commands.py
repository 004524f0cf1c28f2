"""`celeus study`: the published and our own tables, made again with one command.

Every command imports what it needs when it runs, so that `celeus --help` answers at once.
"""

from pathlib import Path
from typing import Annotated

import typer

from app.errors import InvalidValue

study = typer.Typer(help="Measure policies on pools whose losses are known.", no_args_is_help=True)


@study.callback()
def _root() -> None:
    """Keep `labels` a word of its own although it is the only one."""


@study.command()
def labels(
    evaldata: Annotated[Path, typer.Option(help="Folder of the real pools (.npz).")],
    out: Annotated[Path, typer.Option(help="Folder of what is written.")] = Path("study"),
    seeds: Annotated[int, typer.Option(min=1, help="Sessions of every policy and claim.")] = 24,
    processes: Annotated[int, typer.Option(min=1, help="Processes at once.")] = 2,
    cell: Annotated[list[str] | None, typer.Option(help="Only these pools.")] = None,
) -> None:
    """Labels to precision: all policies, pools, targets and precisions; resumable.

    Writes labels.md, labels.png and labels.jsonl, which holds every session that was run.
    """
    import shlex
    import sys

    from app.study.cells import CELLS, FILES
    from app.study.figure import draw
    from app.study.heads import head
    from app.study.labels import measure, summaries, table

    cells = cell or list(CELLS)
    for name in cells:
        if name not in CELLS:
            rule = "one of " + ", ".join(CELLS)
            raise InvalidValue(f"cell must be {rule}", field="cell", rule=rule, value=name)
        if not (evaldata / FILES[name]).is_file():
            raise InvalidValue(
                f"there is no {FILES[name]} in {evaldata}",
                field="evaldata",
                rule="the folder of the real pools",
                value=str(evaldata),
            )
    results = measure(evaldata, out / "labels.jsonl", cells=cells, seeds=seeds, processes=processes)
    title = head("Labels to precision", shlex.join(["celeus", *sys.argv[1:]]), seeds)
    (out / "labels.md").write_text(title + table(results), encoding="utf-8")
    draw(summaries(results), 0.05, out / "labels.png")
    typer.echo(f"celeus: wrote labels.md and labels.png in {out}")
