"""`celeus study efficiency` and its neighbours: what the policies do on real pools.

Every command imports what it needs when it runs, so that `celeus --help` answers at once. All are
resumable: what is kept in the .jsonl of a study is not run again.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from app.study.options import OUT, EvalData, Out, Processes, Quick, Seeds

if TYPE_CHECKING:
    from app.study.realpools import Source

QUICK_SEEDS = 2


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
    _write(out, "efficiency", "Labels to precision on real pools", seeds, pages.page(found))
    pages.draw(found, out / "efficiency.png")


def _check(folder: Path, chosen: "Iterable[Source]") -> None:
    """Read every pool before anything is written."""
    from app.study.checks import data_folder
    from app.study.realpools import truth_of

    chosen = list(chosen)
    data_folder(folder, {source.file for source in chosen})
    for source in chosen:
        truth_of(folder, source)


def _write(out: Path, study: str, title: str, seeds: int, text: str) -> None:
    from app.study.heads import command_line, head, write_page

    top = head(title, command_line(), seed=0, runs=f"{seeds} seeds")
    write_page(out, study, f"{top}{text}\n![{title}]({study}.png)\n")
    typer.echo(f"celeus: wrote {study}.md and {study}.png in {out}")
