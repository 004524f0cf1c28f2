"""`celeus admin database`: PostgreSQL's own tools on the service's database."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from celeus.commands.common import DataDir, joined_database, settings_of
from celeus.errors import InvalidValue

if TYPE_CHECKING:
    from celeus.settings import Settings

# Arguments after the tool's name are passed on to the tool
TERMS = {"context_settings": {"ignore_unknown_options": True, "allow_interspersed_args": False}}


def database_tool(
    tool: Annotated[
        list[str] | None, typer.Argument(help="A PostgreSQL tool and its arguments.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Run a PostgreSQL tool on the database; without one, print its address and the tools' folder.

    The tool gets host, user and database from its environment. The private database is started for
    the tool unless `celeus serve` already runs it.

        celeus admin database pg_dump -Fc -f celeus.dump
    """
    settings = settings_of(data_dir=data_dir)
    with joined_database(settings) as url:
        from celeus.store.database import plain_url

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
                rule="a tool such as pg_dump, pg_restore or psql",
                value=tool[0],
            )
        result = subprocess.run(  # noqa: S603 -- what the operator asks for
            [program, *tool[1:]], env=os.environ | _environment(plain_url(url)), check=False
        )
    raise SystemExit(result.returncode)


def _tools(settings: "Settings") -> Path | None:
    """Folder of the wheel's programs; a named database may do without them."""
    from celeus.errors import DataFolderUnusable
    from celeus.store.embedded.server import programs_folder

    try:
        return programs_folder()
    except DataFolderUnusable:
        if settings.database_url is None:
            raise
        return None


def _places(folder: Path | None) -> list[str]:
    """Return the folders to look in for a tool, the wheel's first: it fits the database."""
    return [str(folder)] * (folder is not None) + [os.environ.get("PATH", os.defpath)]


def _environment(url: str) -> Mapping[str, str]:
    """The variables by which every tool finds the database."""
    from psycopg.pq import Conninfo

    return {
        option.envvar.decode(): option.val.decode()
        for option in Conninfo.parse(url.encode())
        if option.val is not None and option.envvar is not None
    }
