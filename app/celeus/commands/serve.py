"""`celeus serve`, and what goes with it: migrate and openapi."""

import json
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.common import DataDir, address_of, database, settings_of
from app.errors import InvalidValue

if TYPE_CHECKING:
    # Not even for annotations at run time: these take most of a second.
    from fastapi import FastAPI

    from app.operations.invitations import Invitation
    from app.settings import Settings

LINK_LIFE = timedelta(minutes=15)
"""How long the link works that a start shows."""
DRAIN_SECONDS = 10
"""How long open streams may hold up a stop."""
IDLE_SECONDS = 65
"""How long a connection may lie idle: longer than proxies keep theirs, so that they close first."""


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes that answer.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Serve over HTTP; without CELEUS_DATABASE_URL on a private PostgreSQL in --data-dir.

    SIGTERM ends everything it started. What is left out comes from the environment
    (CELEUS_HOST, CELEUS_PORT, CELEUS_WORKERS).
    """
    import uvicorn

    from app.api.heads import most_connections

    settings = settings_of(host=host, port=port, workers=workers, data_dir=data_dir)
    free = _free_port(settings.host, settings.port)
    with database(settings) as url, _metrics_of(settings.workers):
        # A worker is a process of its own: what it needs to know travels by the environment.
        os.environ["CELEUS_DATABASE_URL"] = url
        address = address_of(settings, free)
        typer.echo(f"celeus {_place(settings)}: {address}", err=True)
        _name_signing_key(settings)
        _tell_keys(settings, url, address)
        uvicorn.run(
            "app.commands.serving:application",
            factory=True,
            host=settings.host,
            port=free,
            workers=settings.workers,
            log_level=settings.log_level,
            timeout_graceful_shutdown=DRAIN_SECONDS,
            http="app.api.heads:BoundedHeads",
            limit_concurrency=most_connections(),
            timeout_keep_alive=IDLE_SECONDS,
        )


def application() -> "FastAPI":
    """The application for the settings of the environment: what a worker starts."""
    from app.main import create_app

    return create_app(settings_of())


def migrate(data_dir: DataDir = None) -> None:
    """Bring the database to the schema of this version."""
    from app.store.migrations import head, upgrade

    settings = settings_of(data_dir=data_dir)
    with database(settings) as url:
        # The private one has been migrated at its start; again is nothing.
        upgrade(url)
    typer.echo(f"celeus: the database is at {head()}")


def openapi(
    out: Annotated[Path | None, typer.Option(help="File to write instead of stdout.")] = None,
) -> None:
    """Print the contract on the wire."""
    document = json.dumps(application().openapi(), indent=2, ensure_ascii=False) + "\n"
    if out is None:
        sys.stdout.write(document)
    else:
        out.write_text(document, encoding="utf-8")


def _name_signing_key(settings: "Settings") -> None:
    """Have every worker sign with one key: the file that was named, or the data folder's own."""
    from app.operations.signers import key_of_folder, read_key

    path = settings.signing_key_file
    if path is None:
        if settings.database_url is not None:
            return
        path = key_of_folder(settings.data_dir)
    read_key(path)
    os.environ["CELEUS_SIGNING_KEY_FILE"] = str(path)


def _tell_keys(settings: "Settings", url: str, address: str) -> None:
    """Show how to come in: on a private database a link, and this once its first key.

    Of a database that was named only the lack of a key is told: what is printed there is kept in
    log files, where no key and no link belongs.
    """
    import asyncio

    told = asyncio.run(_ways_in(settings, url))
    if told.invitation is not None:
        minutes = f"{LINK_LIFE.total_seconds() / 60:g}"
        typer.echo(
            f"celeus: open this link to sign in (once, within {minutes} minutes):\n"
            f"  {told.invitation.link(address)}",
            err=True,
        )
    if told.first is not None:
        typer.echo(f"celeus key: {told.first}", err=True)
        typer.echo(
            "  It is for programs, may do everything, and is shown only now. Keep it, and try it:\n"
            "  export CELEUS_KEY=<the key above>\n"
            f'  curl -H "Authorization: Bearer $CELEUS_KEY" {address}/v1/pools',
            err=True,
        )
    folder = "" if settings.database_url else f" --data-dir {settings.data_dir}"
    how = f"celeus keys create{folder} --name … --scope …"
    typer.echo(f"celeus: {'other keys' if told.some else 'no keys yet'}: {how}", err=True)
    if told.some:
        typer.echo(f"celeus: other links: celeus keys invite{folder} --name …", err=True)


@dataclass(frozen=True)
class _WaysIn:
    """A link and a first key to be shown; whether there are keys at all."""

    invitation: "Invitation | None" = None
    first: str | None = field(default=None, repr=False)
    some: bool = True


async def _ways_in(settings: "Settings", url: str) -> _WaysIn:
    """What may be shown: a link and a first key only where the database is private."""
    from app.errors import Refusal
    from app.main import open_rooms
    from app.operations.invitations import invite_operator
    from app.operations.keys import any_key, first_key

    alone = settings.model_copy(update={"database_url": url, "redis_url": None})
    async with open_rooms(alone) as rooms:
        if settings.database_url is None:
            made = await first_key(rooms)
            invitation = await invite_operator(rooms, LINK_LIFE)
            return _WaysIn(invitation, None if made is None else made.token)
        try:
            return _WaysIn(some=not await rooms.database.at_head() or await any_key(rooms))
        except Refusal:
            # It starts without its database too; readiness tells
            return _WaysIn()


def _free_port(host: str, port: int) -> int:
    """The port, or a free one for 0; refused when taken, before anything is started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        # As the server will: a port whose last connections linger is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise InvalidValue(
                f"cannot listen on {host}:{port}: {error.strerror}", field="port", value=port
            ) from error
        number: int = probe.getsockname()[1]
        return number


def _place(settings: "Settings") -> str:
    if settings.database_url is None:
        return f"with its own PostgreSQL in {settings.data_dir}"
    return "on the database of CELEUS_DATABASE_URL"


@contextmanager
def _metrics_of(workers: int) -> Iterator[None]:
    """A folder in which several processes add up their metrics, unless one is named."""
    if workers == 1 or "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="celeus-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        yield
