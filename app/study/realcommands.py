"""`celeus study efficiency` and its neighbours: what the policies do on real pools.

Every command imports what it needs when it runs, so that `celeus --help` answers at once. All are
resumable: what is kept in the .jsonl of a study is not run again.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.study.options import OUT, EvalData, Out, Processes, Quick, Seeds

if TYPE_CHECKING:
    from app.study.realpools import Source

QUICK_SEEDS = 2
QUICK_SESSIONS = 8


def efficiency(
    evaldata: EvalData,
    out: Out = OUT,
    seeds: Seeds = 24,
    processes: Processes = None,
    *,
    quick: Quick = False,
) -> None:
    """Labels to precision: every pair of models, loss and target, against all policies.

    Writes efficiency.md, efficiency.png and efficiency.jsonl, which holds every session.
    """
    from app.study import efficiency as study
    from app.study import efficiencypage as pages
    from app.study.courses import PRECISION, QUICK_PRECISION
    from app.study.runner import measure

    chosen = study.quick_sources() if quick else study.sources()
    seeds = min(seeds, QUICK_SEEDS) if quick else seeds
    _check(evaldata, chosen)
    series = study.series(evaldata, QUICK_PRECISION if quick else PRECISION)
    jobs = study.jobs(chosen, seeds)
    found = study.claims(measure(series, jobs, out / "efficiency.jsonl", processes), chosen)
    title = "Labels to precision on real pools"
    _write(out, "efficiency", title, _seeds(seeds), pages.page(found))
    pages.draw(found, out / "efficiency.png")


def strategies(
    evaldata: EvalData,
    out: Out = OUT,
    seeds: Seeds = 24,
    processes: Processes = None,
    *,
    quick: Quick = False,
) -> None:
    """Strategies A, B and C for both losses of the paper: width by labels.

    Writes strategies.md, strategies.png and strategies.jsonl.
    """
    from app.study import strategies as study
    from app.study.courses import PRECISION, QUICK_PRECISION
    from app.study.runner import measure

    seeds = min(seeds, QUICK_SEEDS) if quick else seeds
    jobs = study.jobs(seeds, study.PAIRS[:1] if quick else study.PAIRS)
    _check(evaldata, {job.source for job in jobs})
    series = study.series(evaldata, QUICK_PRECISION if quick else PRECISION)
    found = measure(series, jobs, out / "strategies.jsonl", processes)
    _write(out, "strategies", "Strategies A, B and C", _seeds(seeds), study.page(found))
    study.draw(found, out / "strategies.png")


def sensitivity(
    evaldata: EvalData,
    out: Out = OUT,
    seeds: Seeds = 24,
    processes: Processes = None,
    *,
    quick: Quick = False,
) -> None:
    """What the split of alpha, theta, c and beta cost in labels.

    Writes sensitivity.md, sensitivity.png and sensitivity.jsonl.
    """
    from app.study import sensitivity as study
    from app.study.courses import PRECISION, QUICK_PRECISION
    from app.study.runner import measure

    pools = tuple(study.POOLS)[:1] if quick else tuple(study.POOLS)
    seeds = min(seeds, QUICK_SEEDS) if quick else seeds
    _check(evaldata, [study.POOLS[pool] for pool in pools])
    series = study.series(evaldata, QUICK_PRECISION if quick else PRECISION)
    jobs = study.jobs(seeds, pools)
    found = measure(series, jobs, out / "sensitivity.jsonl", processes)
    _write(out, "sensitivity", "Free choices of the policies", _seeds(seeds), study.page(found))
    study.draw(found, out / "sensitivity.png")


def mechanism(
    evaldata: EvalData,
    out: Out = OUT,
    sessions: Annotated[int, typer.Option(min=2, help="Sessions of every pool.")] = 400,
    processes: Processes = None,
    *,
    quick: Quick = False,
) -> None:
    """Bias and variance: what weighting removes and what a proposal saves.

    Writes mechanism.md, mechanism.png and mechanism.jsonl.
    """
    from app.study import mechanism as study
    from app.study import mechanismpage as pages
    from app.study.runner import measure
    from app.study.sensitivity import POOLS

    pools = tuple(POOLS)[:1] if quick else tuple(POOLS)
    sessions = min(sessions, QUICK_SESSIONS) if quick else sessions
    _check(evaldata, [POOLS[pool] for pool in pools])
    series = study.series(evaldata, study.AFTER[:2] if quick else study.AFTER)
    jobs = study.jobs(sessions, pools)
    found = measure(series, jobs, out / "mechanism.jsonl", processes)
    _write(out, "mechanism", "Bias and variance", f"{sessions} sessions", pages.page(found))
    pages.draw(found, out / "mechanism.png")


def cost(
    out: Out = OUT,
    runs: Annotated[int, typer.Option(min=1, help="Sessions of every row and size.")] = 3,
    *,
    quick: Quick = False,
) -> None:
    """Seconds a round costs, by policy, target and size of the pool; one process.

    Writes cost.md, cost.png and cost.jsonl.
    """
    from app.study import cost as study
    from app.study.checks import can_draw
    from app.study.runner import measure

    can_draw()
    runs = 1 if quick else runs
    sizes, rounds = (
        (study.QUICK_SIZES, study.QUICK_ROUNDS) if quick else (study.SIZES, study.ROUNDS)
    )
    jobs = study.jobs(sizes, runs)
    found = measure(study.series(rounds), jobs, out / "cost.jsonl", processes=1)
    _write(out, "cost", "Seconds a round costs", f"{runs} runs", study.page(found))
    study.draw(found, out / "cost.png")


def every(
    evaldata: EvalData,
    out: Out = OUT,
    seeds: Seeds = 24,
    processes: Processes = None,
    *,
    quick: Quick = False,
) -> None:
    """All of the studies but `labels`, one after the other into one folder; resumable."""
    from app.study.commands import coverage

    efficiency(evaldata, out, seeds, processes, quick=quick)
    strategies(evaldata, out, seeds, processes, quick=quick)
    sensitivity(evaldata, out, seeds, processes, quick=quick)
    mechanism(evaldata, out, processes=processes, quick=quick)
    cost(out, quick=quick)
    # At the end, since they end with status 2 when a policy misses too often.
    coverage(out=out, processes=processes, quick=quick)
    if not quick:
        coverage(out=out, processes=processes, rare=True)


def _seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"


def _check(folder: Path, chosen: "Iterable[Source]") -> None:
    """Read every pool before anything is written."""
    from app.study.checks import can_draw, data_folder
    from app.study.realpools import truth_of

    can_draw()
    chosen = list(chosen)
    data_folder(folder, {source.file for source in chosen})
    for source in chosen:
        truth_of(folder, source)


def _write(out: Path, study: str, title: str, runs: str, text: str) -> None:
    from app.study.heads import command_line, head, write_page

    top = head(title, command_line(), seed=0, runs=runs)
    write_page(out, study, f"{top}{text}\n![{title}]({study}.png)\n")
    typer.echo(f"celeus: wrote {study}.md and {study}.png in {out}")
