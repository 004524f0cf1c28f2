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
    from app.study.checks import can_draw, chosen, data_folder
    from app.study.heads import command_line, head, write_page
    from app.study.labels import STUDY, measure, summaries, table

    can_draw()
    names = chosen(cell, cells.CELLS, "cell")
    data_folder(evaldata, [cells.FILES[name] for name in names])
    for name in names:
        cells.cell(name, evaldata)
    # It brings matplotlib, which may not be there.
    from app.study.figure import draw

    kept = out / "labels.jsonl"
    results = measure(evaldata, kept, cells=names, seeds=seeds, processes=processes)
    title = head("Labels to precision", command_line(), seed=STUDY, runs=f"{seeds} seeds")
    write_page(out, "labels", title + table(results))
    draw(summaries(results), 0.05, out / "labels.png")
    typer.echo(f"celeus: wrote labels.md and labels.png in {out}")


study.command()(realcommands.efficiency)
study.command()(realcommands.strategies)
study.command()(realcommands.sensitivity)
study.command()(realcommands.mechanism)
study.command()(realcommands.cost)
study.command("all")(realcommands.every)


@study.command()
def coverage(  # noqa: PLR0913 -- one parameter an option
    *,
    out: Out = OUT,
    seeds: Annotated[int | None, typer.Option(min=1, help="Trials; 1000, quick 50.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the study.")] = 0,
    processes: Processes = None,
    method: Annotated[list[str] | None, typer.Option(help="Only these methods.")] = None,
    target: Annotated[list[str] | None, typer.Option(help="population, pool")] = None,
    items: Annotated[int | None, typer.Option(help="Items of a pool.")] = None,
    groups: Annotated[int | None, typer.Option(help="Latent groups.")] = None,
    noise: Annotated[float | None, typer.Option(help="Noise of the surrogate.")] = None,
    dimensions: Annotated[int | None, typer.Option(help="Of the embeddings.")] = None,
    least_risk: Annotated[float | None, typer.Option(help="Risk of the first group.")] = None,
    largest_risk: Annotated[float | None, typer.Option(help="Risk of the last group.")] = None,
    judges: Annotated[int | None, typer.Option(help="Judges at once.")] = None,
    precision: Annotated[float | None, typer.Option(help="Interval width to stop at.")] = None,
    alpha: Annotated[float | None, typer.Option(help="Probability of ever being wrong.")] = None,
    quick: Annotated[bool, typer.Option(help="Small pools: the nightly self-test.")] = False,
    rare: Annotated[bool, typer.Option(help="Rare losses: files are coverage-rare.*.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, write nothing.")] = False,
) -> None:
    """How often intervals miss the true risk; exit 2 when a policy does too often.

    Writes coverage.md, coverage.png and coverage.jsonl, which holds every trial; resumable.
    """
    from app.study import coveragerun

    asked = coveragerun.Options(
        world={
            "items": items,
            "groups": groups,
            "noise": noise,
            "dimensions": dimensions,
            "least_risk": least_risk,
            "largest_risk": largest_risk,
        },
        precision=precision,
        alpha=alpha,
        judges=judges,
        trials=seeds,
        seed=seed,
        methods=method,
        targets=target,
        quick=quick,
        rare=rare,
    )
    found = coveragerun.run(asked, None if as_json else out, processes)
    if as_json:
        import json

        typer.echo(json.dumps(found.to_dict(), indent=2))
    else:
        typer.echo(f"celeus: wrote {asked.name}.md and {asked.name}.png in {out}")
        typer.echo(f"celeus: {found.verdict}")
    if not found.sound:
        raise typer.Exit(2)
