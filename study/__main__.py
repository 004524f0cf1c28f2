"""`python -m study`: the published and our own tables, made again with one command each.

All are resumable: what is kept in the .jsonl of a study is not run again.
"""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from celeus.errors import Refusal
from celeus.shorten import one_line

if TYPE_CHECKING:
    from study.engine.study import Study

Out = Annotated[Path, typer.Option(help="Folder to write to.")]
EvalData = Annotated[Path, typer.Option(help="Folder of the real pools (.npz).")]
Processes = Annotated[
    int | None, typer.Option(min=1, help="Processes at once; default: one per processor.")
]
Seeds = Annotated[int, typer.Option(min=1, help="Sessions of every policy and claim.")]
LineSeeds = Annotated[int, typer.Option(min=1, help="Sessions of every line.")]
Trials = Annotated[int, typer.Option(min=1, help="Made-up pools of every line.")]
Quick = Annotated[
    bool, typer.Option("--quick", help="A small run of a few seconds, as a self-test.")
]
OUT = Path("studies")
"""Default folder of the studies."""
COURSES = {
    "efficiency": "Labels to precision: every pair of models, loss and target, all policies.",
    "strategies": "Strategies A, B and C for both losses of the paper: width by labels.",
    "sensitivity": "What the split of alpha, theta, c and beta cost in labels.",
    "planning": "How near a plan comes: labels planned from surrogates alone, and labels taken.",
}
"""The studies of sessions on the real pools, with the same options."""
MADE_UP = {
    "compare": (
        *(16, 200),
        "What a comparison of two systems costs: labels to a width and to a decision, and misses.",
    ),
    "start": (
        *(30, 1000),
        "What the exact start of 0-1 losses saves for the population of a small pool, and misses.",
    ),
}
"""The studies of real and made-up pools: sessions, made-up pools, and the help of the command."""

study = typer.Typer(help="Measure policies on pools whose losses are known.", no_args_is_help=True)


def _write(one: "Study", out: Path, processes: int | None = None) -> None:
    one.perform(out, processes)
    typer.echo(f"study: wrote {one.name}.md and {one.name}.png in {out}")


@study.command()
def labels(
    evaldata: EvalData,
    out: Out = OUT,
    seeds: Seeds = 24,
    processes: Processes = None,
    cell: Annotated[
        list[str] | None, typer.Option(help="Only these pools; may be repeated.")
    ] = None,
) -> None:
    """Labels to precision: all policies, pools, targets and precisions; resumable."""
    from study.engine.checks import choices
    from study.pools.cells import CELLS
    from study.pools.made_up import WORLDS
    from study.tables import labels as tables

    cells = choices(cell, (*CELLS, *WORLDS), "cell")
    _write(tables.study(evaldata, seeds, cells), out, processes)


def _course(name: str) -> Callable[..., None]:
    """The command of a study in COURSES."""

    def command(
        evaldata: EvalData,
        out: Out = OUT,
        seeds: Seeds = 24,
        processes: Processes = None,
        *,
        quick: Quick = False,
    ) -> None:
        from study import planning
        from study.tables import efficiency, sensitivity, strategies

        recipes = {one.STUDY: one.RECIPE.study for one in (efficiency, strategies, sensitivity)}
        make = recipes.get(name, planning.study)
        _write(make(evaldata, seeds, quick=quick), out, processes)

    return study.command(name, help=COURSES[name])(command)


def _of_made_up(name: str) -> Callable[..., None]:
    """The command of a study in MADE_UP."""
    line_seeds, pools, text = MADE_UP[name]

    def command(  # noqa: PLR0913 -- one parameter an option
        evaldata: EvalData,
        out: Out = OUT,
        seeds: LineSeeds = line_seeds,
        trials: Trials = pools,
        processes: Processes = None,
        *,
        quick: Quick = False,
    ) -> None:
        from study.tables import compare, start

        make = {"compare": compare.study, "start": start.study}[name]
        _write(make(evaldata, seeds, trials, quick=quick), out, processes)

    return study.command(name, help=text)(command)


courses = [_course(name) for name in COURSES]
of_made_up = [_of_made_up(name) for name in MADE_UP]


@study.command()
def mechanism(
    evaldata: EvalData,
    out: Out = OUT,
    sessions: Annotated[int, typer.Option(min=2, help="Sessions of every pool.")] = 400,
    processes: Processes = None,
    *,
    quick: Quick = False,
) -> None:
    """Bias and variance: what weighting removes and what a proposal saves."""
    from study.tables import mechanism as tables

    _write(tables.study(evaldata, sessions, quick=quick), out, processes)


@study.command()
def forecasts(  # noqa: PLR0913 -- one parameter an option
    evaldata: EvalData,
    out: Out = OUT,
    sessions: Annotated[int, typer.Option(min=1, help="Sessions of a line and made-up pool.")] = 24,
    seeds: Annotated[int, typer.Option(min=1, help="Sessions of a line and real pool.")] = 8,
    processes: Processes = None,
    *,
    quick: Quick = False,
) -> None:
    """How far a forecast is to be believed: labels foretold on the way, and those taken."""
    from study import forecasts as tables

    _write(tables.study(evaldata, sessions, seeds, quick=quick), out, processes)


@study.command()
def cost(
    out: Out = OUT,
    runs: Annotated[int, typer.Option(min=1, help="Sessions of every row and size.")] = 3,
    *,
    quick: Quick = False,
) -> None:
    """Seconds a round costs, by policy, target and size of the pool; one process."""
    from study.tables import cost as tables

    _write(tables.study(runs, quick=quick), out, processes=1)


@study.command("all")
def every(
    evaldata: EvalData,
    out: Out = OUT,
    seeds: Seeds = 24,
    processes: Processes = None,
    *,
    quick: Quick = False,
) -> None:
    """All of the studies but `labels`, one after the other into one folder; resumable."""
    for course in courses:
        course(evaldata, out, seeds, processes, quick=quick)
    mechanism(evaldata, out, processes=processes, quick=quick)
    for made_up in of_made_up:
        made_up(evaldata, out, processes=processes, quick=quick)
    forecasts(evaldata, out, processes=processes, quick=quick)
    cost(out, quick=quick)
    # At the end, since they end with status 2 when a policy misses too often.
    coverage(out=out, processes=processes, quick=quick)
    if not quick:
        coverage(out=out, processes=processes, rare=True)


@study.command()
def coverage(  # noqa: PLR0913 -- one parameter an option
    *,
    out: Out = OUT,
    seeds: Annotated[int | None, typer.Option(min=1, help="Trials; 1000, quick 50.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the study.")] = 0,
    processes: Processes = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Only these methods; may be repeated.")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="population or pool; may be repeated.")
    ] = None,
    items: Annotated[int | None, typer.Option(help="Items of a pool.")] = None,
    groups: Annotated[int | None, typer.Option(help="Latent groups.")] = None,
    noise: Annotated[float | None, typer.Option(help="Noise of the surrogate.")] = None,
    dimensions: Annotated[int | None, typer.Option(help="Dimensions of the embeddings.")] = None,
    least_risk: Annotated[float | None, typer.Option(help="Risk of the first group.")] = None,
    largest_risk: Annotated[float | None, typer.Option(help="Risk of the last group.")] = None,
    judges: Annotated[int | None, typer.Option(help="How many judges work at once.")] = None,
    precision: Annotated[float | None, typer.Option(help="Interval width to stop at.")] = None,
    alpha: Annotated[float | None, typer.Option(help="Probability of ever being wrong.")] = None,
    quick: Annotated[bool, typer.Option(help="Small pools: the nightly self-test.")] = False,
    rare: Annotated[bool, typer.Option(help="Rare losses: files are coverage-rare.*.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and write no files.")] = False,
) -> None:
    """Count how often intervals miss the true risk; exit status 2 if a policy misses too often."""
    from study.engine.runner import measure
    from study.tables import coverage_page as page
    from study.tables.coverage import Options

    world = {
        "items": items,
        "groups": groups,
        "noise": noise,
        "dimensions": dimensions,
        "least_risk": least_risk,
        "largest_risk": largest_risk,
    }
    options = Options(
        world, precision, alpha, judges, seeds, seed, method, target, quick=quick, rare=rare
    )
    one, threshold = page.study(options), options.setting.alpha
    if as_json:
        with tempfile.TemporaryDirectory(prefix="celeus-coverage-") as folder:
            rows = measure(one.series, one.jobs, Path(folder) / "coverage.jsonl", processes)
        verdict = page.Verdict.of(rows, threshold)
        typer.echo(json.dumps(verdict.to_dict(one.series.head), indent=2))
    else:
        verdict = page.Verdict.of(one.perform(out, processes), threshold)
        typer.echo(f"study: wrote {one.name}.md and {one.name}.png in {out}")
        typer.echo(f"study: {verdict}")
    if verdict.rejected:
        raise typer.Exit(2)


def main() -> None:
    """Run a study; a refusal is one line on stderr and exit status 1."""
    try:
        study(prog_name="python -m study")
    except Refusal as refusal:
        typer.echo(one_line(f"study: {refusal.line}"), err=True)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
