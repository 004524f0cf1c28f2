"""`celeus database`: PostgreSQL's own tools on the service's database, as for backups."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.common import DataDir, joined_database, settings_of
from app.errors import InvalidValue

if TYPE_CHECKING:
    from app.settings import Settings

PASS_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}
"""What follows the tool's name is the tool's business."""


def database_tool(
    tool: Annotated[
        list[str] | None, typer.Argument(help="A tool of PostgreSQL and its arguments.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Run a tool of PostgreSQL on the database; without one, print address and tools' folder.

    Host, user and database are given to the tool by its environment. The private database is
    joined where `celeus serve` runs it, and started for the tool where nobody does.

        celeus database pg_dump -Fc -f celeus.dump
    """
    settings = settings_of(data_dir=data_dir)
    with joined_database(settings) as url:
        from app.store.database import plain_url

        folder = _tools(settings)
        if not tool:
            typer.echo(f"address {plain_url(url)}")
            typer.echo(f"tools   {folder or 'those of this machine'}")
            return
        program = shutil.which(tool[0], path=os.pathsep.join(_places(folder)))
        if program is None:
            raise InvalidValue(
                f"there is no {tool[0]} in {' or '.join(_places(folder))}",
                field="tool",
                rule="pg_dump, pg_restore, psql and the like",
                value=tool[0],
            )
        done = subprocess.run(  # noqa: S603 -- what the operator asks for
            [program, *tool[1:]], env=os.environ | _environment(plain_url(url)), check=False
        )
    raise SystemExit(done.returncode)


def _tools(settings: "Settings") -> Path | None:
    """Folder of the wheel's programs; a named database may do without them."""
    from app.errors import DataFolderUnusable
    from app.store.embedded import programs_folder

    try:
        return programs_folder()
    except DataFolderUnusable:
        if settings.database_url is None:
            raise
        return None


def _places(folder: Path | None) -> list[str]:
    """Where a tool may be: the wheel's is of the private database's version."""
    return [str(folder)] * (folder is not None) + [os.environ.get("PATH", os.defpath)]


def _environment(url: str) -> Mapping[str, str]:
    """The variables by which every tool finds the database."""
    from psycopg.pq import Conninfo

    return {
        option.envvar.decode(): option.val.decode()
        for option in Conninfo.parse(url.encode())
        if option.val is not None and option.envvar is not None
    }
