"""`celeus demo`: the demonstration."""

from pathlib import Path
from typing import Annotated

import typer


def demo(  # noqa: PLR0913 -- one parameter an option
    seed: Annotated[int, typer.Option(help="Seed of the choice of images.")] = 0,
    precision: Annotated[float, typer.Option(help="Interval width to stop at.")] = 0.05,
    workers: Annotated[int, typer.Option(help="How many judges work at once.")] = 8,
    out: Annotated[Path, typer.Option(help="Folder to write the picture to.")] = Path(),
    *,
    keep: Annotated[bool, typer.Option(help="Keep the database.")] = False,
    write_pool: Annotated[
        Path | None,
        typer.Option(help="Only write the pool as JSON Lines to this file, to label it by hand."),
    ] = None,
) -> None:
    """Certify a real classifier's error rate from few labels, on this machine."""
    from celeus.demo.by_hand import write_pool as written
    from celeus.demo.run import Options, run_demo

    if write_pool is not None:
        typer.echo(f"wrote {written(write_pool, seed)} digits to {write_pool}")
        return
    run_demo(Options(seed=seed, precision=precision, workers=workers, out=out, keep=keep))
