"""`celeus push`: make a session on a service of the file that a run in process lies in."""

from pathlib import Path
from typing import Annotated

import typer

from celeus.commands.options import HERE, ManageKeyFile, Url, read_key


def push(
    file: Annotated[Path, typer.Argument(help="The file of the run; by default in `.celeus`.")],
    *,
    close: Annotated[
        bool, typer.Option("--close", help="Close the run for good before: else it has to be.")
    ] = False,
    url: Url = HERE,
    api_key_file: ManageKeyFile = None,
) -> None:
    """Make a session on a service of a run in process, with its pool, to look at and to certify.

    The service computes all of it again, and keeps it closed. That the run was no other than it
    says stays your word: page, report and certificate say so. Pushed again it is the same session.
    """
    from celeus.client.blocking import Client

    if close:
        from celeus.runs.run import Run

        with Run.resume(file) as run:
            run.close()
    with Client(url, read_key(api_key_file)) as client:
        status = client.push(file).status()
    typer.echo(str(status))
    typer.echo(f"{url.rstrip('/')}/sessions/{status.id}")
    for warning in status.warnings:
        typer.echo(f"celeus: {warning}", err=True)
