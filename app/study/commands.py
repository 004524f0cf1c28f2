"""`celeus study`: the published and our own tables, made again with one command.

Every command imports what it needs when it runs, so that `celeus --help` answers at once.
"""

from typing import Annotated

import typer

from app.study import realcommands
from app.study.options import OUT, EvalData, Out, Processes

study = typer.Typer(help="Measure policies on pools whose losses are known.", no_args_is_help=True)


@study.callback()
def _root() -> None:
    """Keep `labels` a word of its own although it is the only one."""


@study.command()
def labels(
    evaldata: EvalData,
    out: Out = OUT,
    seeds: Annotated[int, typer.Option(min=1, help="Sessions of every policy and claim.")] = 24,
    processes: Processes = None,
    cell: Annotated[list[str] | None, typer.Option(help="Only these pools.")] = None,
) -> None:
    """Labels to precision: all policies, pools, targets and precisions; resumable.

    Writes labels.md, labels.png and labels.jsonl, which holds every session that was run.
    """
    from app.study import cells
    from app.study.checks import chosen, data_folder
    from app.study.figure import draw
    from app.study.heads import command_line, head, write_page
    from app.study.labels import STUDY, measure, summaries, table

    names = chosen(cell, cells.CELLS, "cell")
    data_folder(evaldata, [cells.FILES[name] for name in names])
    for name in names:
        cells.cell(name, evaldata)
    kept = out / "labels.jsonl"
    results = measure(evaldata, kept, cells=names, seeds=seeds, processes=processes)
    title = head("Labels to precision", command_line(), seed=STUDY, runs=f"{seeds} seeds")
    write_page(out, "labels", title + table(results))
    draw(summaries(results), 0.05, out / "labels.png")
    typer.echo(f"celeus: wrote labels.md and labels.png in {out}")


study.command()(realcommands.efficiency)
