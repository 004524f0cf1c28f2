"""`celeus serve`, and what goes with it: `admin migrate` and `dev openapi`."""

import gc
import json
import os
import shlex
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from celeus.commands.common import (
    DataDir,
    address_of,
    alone,
    database,
    published_address,
    settings_of,
    uncollected,
)
from celeus.errors import InvalidValue
from celeus.subprocesses import end_with_parent
from celeus.temp_dirs import scratch_folder

if TYPE_CHECKING:
    # Not even for annotations at run time: these take most of a second.
    from fastapi import FastAPI

    from celeus.operations.access.invitations import Invitation
    from celeus.settings import Settings

LINK_LIFE = timedelta(minutes=15)
"""Time for which the link shown at the start works."""
SWITCH_SECONDS = 0.001
"""Seconds a thread may compute before another one gets its turn."""
OBJECTS_BETWEEN_COLLECTIONS = 10_000
"""Hardly anything here is garbage in a cycle: Python's own 700 takes 4 % of a label's time."""


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 for a free one.")] = None,
    workers: Annotated[int | None, typer.Option(help="How many worker processes to run.")] = None,
    data_dir: DataDir = None,
    *,
    show_key: Annotated[
        bool,
        typer.Option(
            "--show-key", help="Print sign-in link and first key even if stderr is no terminal."
        ),
    ] = False,
) -> None:
    """Serve over HTTP, on a private PostgreSQL unless CELEUS_DATABASE_URL names a database.

    Options that are left out come from the environment (CELEUS_HOST, CELEUS_PORT, CELEUS_WORKERS,
    CELEUS_DATA_DIR). SIGTERM, SIGHUP and Ctrl-C stop the service and its private PostgreSQL within
    ten seconds. The exit status is 1 when the database cannot be reached or needs
    `celeus admin migrate`.

    A private database's first key, and a link that signs a browser in, are printed to a terminal;
    on a named database a link for the first admin, while it has no key and this machine alone is
    served. Anything else that standard error leads to may be kept, so there --show-key has to ask.
    """
    with uncollected():
        from uvicorn import Config

        from celeus.api.wire.connections import most_connections, server_options
        from celeus.commands.service import processes
        from celeus.commands.service.logs import log_config
        from celeus.store.migrate import require_head

    settings = settings_of(host=host, port=port, workers=workers, data_dir=data_dir)
    free = _free_port(settings.host, settings.port)
    address = address_of(settings, free)
    # Workers look for modules where this process does, and not in the working folder
    os.environ["PYTHONSAFEPATH"] = "1"
    _prepare_traces()
    with (
        _metrics_of(settings.workers),
        processes.preparing(settings.workers) as prepared,
        database(settings, keep=True) as url,
        published_address(settings, address),
    ):
        require_head(url)
        typer.echo(f"celeus {_place(settings)}: {address}", err=True)
        # Where it listens, too: messages hold links
        place = {"CELEUS_HOST": settings.host, "CELEUS_PORT": str(free)}
        variables = {"CELEUS_DATABASE_URL": url} | place | _signing_key(settings)
        prepared()
        _tell_keys(settings, url, address, show=show_key or sys.stderr.isatty())
        processes.run(
            Config(
                partial(application, variables),
                factory=True,
                host=settings.host,
                port=free,
                workers=settings.workers,
                log_level=settings.log_level,
                log_config=log_config(settings.log_level, settings.log_format),
                # Every request has a line of our own
                access_log=False,
                timeout_graceful_shutdown=processes.DRAIN_SECONDS,
                timeout_worker_healthcheck=processes.PING_SECONDS,
                **server_options(settings, most_connections()),
            )
        )


def application(variables: Mapping[str, str] = MappingProxyType({})) -> "FastAPI":
    """The application for the settings of the environment and ``told``: what a worker starts."""
    os.environ.update(variables)
    with uncollected():
        from celeus.commands.service.processes import stop_on_hangup
        from celeus.main import create_app

        end_with_parent()
        stop_on_hangup()
        app = create_app(settings_of())
    # Long folds run in threads; Python's own 5 ms would hold up every step of a request.
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    return app


def migrate(data_dir: DataDir = None) -> None:
    """Bring the database to this version's schema; exit status 1 when that is not possible."""
    from celeus.store import migrate
    from celeus.store.revisions import head

    settings = settings_of(data_dir=data_dir)
    with database(settings) as url:
        # The private one is migrated at its start; once more changes nothing.
        migrate.migrate(url)
    typer.echo(f"celeus: the database has schema {head()}")


def openapi(
    out: Annotated[Path | None, typer.Option(help="File to write to instead of stdout.")] = None,
) -> None:
    """Print the OpenAPI document of the HTTP API."""
    document = json.dumps(application().openapi(), indent=2, ensure_ascii=False) + "\n"
    if out is None:
        sys.stdout.write(document)
    else:
        out.write_text(document, encoding="utf-8")


def _signing_key(settings: "Settings") -> dict[str, str]:
    """The setting by which all workers sign with one key: the file named, or the data folder's.

    With a named database, a data folder counts if it is named, too: else nothing keeps the key.
    """
    from celeus.operations.certificates.signing_keys import key_of_folder, read_key

    path = settings.signing_key_file
    if path is None:
        if settings.database_url is not None and "data_dir" not in settings.model_fields_set:
            return {}
        path = key_of_folder(settings.data_dir)
    read_key(path)
    return {"CELEUS_SIGNING_KEY_FILE": str(path)}


def _tell_keys(settings: "Settings", url: str, address: str, *, show: bool) -> None:
    """Print how to sign in; on a private database also a link and, once, the first key.

    On a named database that nobody has a key to, a link as well, if only this machine is served.
    """
    import asyncio

    from celeus.store.migrate import any_key

    if show and (settings.database_url is None or _served_to_itself(settings.host)):
        access = asyncio.run(_made_access(settings, url))
    else:
        # Nobody would know what was made
        access = _Access(some=any_key(url))
    if access.invitation is not None:
        minutes = f"{LINK_LIFE.total_seconds() / 60:g}"
        typer.echo(
            f"celeus: open this link to sign in (once, within {minutes} minutes):\n"
            f"  {access.invitation.link(address)}",
            err=True,
        )
    if access.first is not None:
        typer.echo(f"celeus key: {access.first}", err=True)
        typer.echo(
            "  This key is for programs, allows everything, and is not shown again. To try it:\n"
            "  export CELEUS_KEY=<the key above>\n"
            f'  curl -H "Authorization: Bearer $CELEUS_KEY" {address}/v1/pools',
            err=True,
        )
    folder = "" if settings.database_url else f" --data-dir {shlex.quote(str(settings.data_dir))}"
    keys = "make another key" if access.some else "there is no key yet; make one"
    typer.echo(f"celeus: {keys}: celeus admin keys create{folder} --name … --scope …", err=True)
    links = f"celeus admin keys invite{folder} --name … --scope …"
    typer.echo(f"celeus: make a link to sign in: {links}", err=True)


@dataclass(frozen=True)
class _Access:
    """A link and a first key to be shown; whether there are keys at all."""

    invitation: "Invitation | None" = None
    first: str | None = field(default=None, repr=False)
    some: bool = True


async def _made_access(settings: "Settings", url: str) -> _Access:
    """Create what is to be printed: on a named database the link of a first admin alone."""
    with uncollected():
        from celeus.operations.access.invitations import invite_first, invite_operator
        from celeus.operations.access.keys import first_key
        from celeus.operations.runtime.context import open_context
        from celeus.store.migrate import any_key

    async with open_context(alone(settings, url)) as context:
        if settings.database_url is not None:
            return _Access(await invite_first(context, LINK_LIFE), some=any_key(url))
        key = await first_key(context)
        invitation = await invite_operator(context, LINK_LIFE)
        return _Access(invitation, None if key is None else key.token)


def _served_to_itself(host: str) -> bool:
    """Return True if a service on this address answers only this machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        # A name may stand for any address
        return False


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


def _prepare_traces() -> None:
    """Name the service to a collector, if there is one; say so if nothing can be sent to it."""
    if not any(name.startswith("OTEL_EXPORTER_OTLP_") for name in os.environ):
        return
    os.environ.setdefault("OTEL_SERVICE_NAME", "celeus")
    if find_spec("opentelemetry.sdk") is None:
        typer.echo(
            "celeus: no traces are sent: OTEL_… names a collector, and the extra `otel` is not"
            " installed",
            err=True,
        )


@contextmanager
def _metrics_of(workers: int) -> Iterator[None]:
    """A folder in which several processes add up their metrics, unless one is named."""
    if workers == 1 or "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        yield
        return
    with scratch_folder() as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
        yield
