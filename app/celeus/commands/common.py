"""Shared parts of commands: settings, the database, and the address of the service."""

import gc
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celeus.errors import DataFolderBusy, DataFolderUnusable, InvalidValue

if TYPE_CHECKING:
    # Not even for annotations at run time: it takes most of a second.
    from celeus.settings import Settings

JOIN_SECONDS = 30.0
"""Seconds to wait for a database that another process is starting."""

_ADDRESS = "address"
"""File of the data folder that says where the running service is reached."""

DataDir = Annotated[
    Path | None, typer.Option(help="Folder of the private PostgreSQL (CELEUS_DATA_DIR).")
]


@contextmanager
def uncollected() -> Iterator[None]:
    """Import here what is large: nothing looks for garbage meanwhile, nor later among it.

    To look through hundreds of thousands of objects that stay takes a fifth of a start, and then
    0.1 s each time.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def settings_of(**values: Any) -> "Settings":  # noqa: ANN401 -- one type per setting
    """Settings of the environment, overridden by command-line options."""
    from pydantic import ValidationError

    from celeus.settings import Settings

    try:
        return Settings(**{name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InvalidValue(
            f"{field}: {first['msg']}, not {first['input']!r}", field=field, rule=first["msg"]
        ) from error


def alone(settings: "Settings", url: str) -> "Settings":
    """The same for an errand on the database at ``url``, without the service's Redis."""
    return settings.model_copy(update={"database_url": url, "redis_url": None})


def address_of(settings: "Settings", port: int | None = None) -> str:
    """Return the address of a service with these settings, which may listen on another ``port``."""
    return settings.model_copy(update={"port": port or settings.port}).address


@contextmanager
def published_address(settings: "Settings", address: str) -> Iterator[None]:
    """Leave the service's address in the data folder for other commands, until the end.

    On a named database there is no folder that they share; there CELEUS_PUBLIC_URL tells them.
    """
    if settings.database_url is not None:
        yield
        return
    file = settings.data_dir / _ADDRESS
    file.write_text(f"{os.getpid()} {address}\n", encoding="utf-8")
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def service_address(settings: "Settings") -> str:
    """Return the service's address: the public URL, the running service's, or the default."""
    if settings.public_url is None and settings.database_url is None:
        with suppress(OSError, ValueError):
            text = (settings.data_dir / _ADDRESS).read_text(encoding="utf-8")
            process, _, address = text.strip().partition(" ")
            # Left by a service that was killed: another program may listen there now
            os.kill(int(process), 0)
            return address
    return address_of(settings)


@contextmanager
def database(settings: "Settings", *, keep: bool = False) -> Iterator[str]:
    """Address of the database: the one named, else a private one, migrated, until the end.

    With ``keep`` the private one is started again when it ends by itself.
    """
    if settings.database_url is not None:
        yield settings.database_url
        return
    from celeus.store.embedded.server import postgres
    from celeus.store.migrate import migrate

    with postgres(settings.data_dir, keep=keep) as url:
        migrate(url)
        yield url


@contextmanager
def joined_database(settings: "Settings") -> Iterator[str]:
    """Address of a database: the one named, else the private one, started if need be.

    A server that runs it is joined; where none runs, the database is started for the errand. An
    errand makes no database: a folder without one is refused.
    """
    from celeus.store.embedded.server import running

    folder = settings.data_dir
    if settings.database_url is not None:
        yield settings.database_url
        return
    if not (folder / "postgres").exists():
        raise DataFolderUnusable(
            f"there is no database in {folder}; `celeus serve` creates one, --data-dir names"
            " another folder",
            field="data_dir",
        )
    with ExitStack() as stack:
        url = running(folder)
        if url is None:
            try:
                url = stack.enter_context(database(settings))
            except DataFolderBusy:
                # Somebody is only starting it, or came first
                url = _awaited(folder)
        yield url


def _awaited(folder: Path) -> str:
    from celeus.store.embedded.server import running

    deadline = time.monotonic() + JOIN_SECONDS
    while (url := running(folder)) is None:
        if time.monotonic() > deadline:
            raise DataFolderBusy(
                f"another process holds the database in {folder}, which does not answer",
                field="data_dir",
            )
        time.sleep(0.1)
    return url
