"""What commands have in common: the settings they run with, and the database they run on."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.errors import DataFolderBusy, DataFolderUnusable, InvalidValue

if TYPE_CHECKING:
    # Not even for annotations at run time: it takes most of a second.
    from app.settings import Settings

JOIN_SECONDS = 30.0
"""How long to wait for a database that another process is starting."""

DataDir = Annotated[
    Path | None, typer.Option(help="Folder of the private PostgreSQL (CELEUS_DATA_DIR).")
]


def settings_of(**given: Any) -> "Settings":  # noqa: ANN401 -- one type per setting
    """Settings of the environment, with the options that were given in their place."""
    from pydantic import ValidationError

    from app.settings import Settings

    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InvalidValue(
            f"{field}: {first['msg']}, not {first['input']!r}", field=field, rule=first["msg"]
        ) from error


def address_of(settings: "Settings", port: int | None = None) -> str:
    """Where people reach the service: as the settings tell, else on this machine."""
    if settings.public_url is not None:
        return settings.public_url.rstrip("/")
    # Whoever listens on every address of a machine is reached on its own
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104
    return f"http://{f'[{host}]' if ':' in host else host}:{port or settings.port}"


@contextmanager
def database(settings: "Settings") -> Iterator[str]:
    """Address of the database: the one named, else a private one, migrated, until the end."""
    if settings.database_url is not None:
        yield settings.database_url
        return
    from app.store.embedded import postgres
    from app.store.migrations import upgrade

    with postgres(settings.data_dir) as url:
        upgrade(url)
        yield url


@contextmanager
def joined_database(settings: "Settings") -> Iterator[str]:
    """Address of a database for an errand: the one named, else the private one, running or not.

    A server that runs it is joined; where none runs, the database is started for the errand. An
    errand makes no database: a folder without one is refused.
    """
    from app.store.embedded import running

    folder = settings.data_dir
    if settings.database_url is not None:
        yield settings.database_url
        return
    if not (folder / "postgres").exists():
        raise DataFolderUnusable(
            f"there is no database in {folder}; `celeus serve` makes one, --data-dir names another",
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
    from app.store.embedded import running

    deadline = time.monotonic() + JOIN_SECONDS
    while (url := running(folder)) is None:
        if time.monotonic() > deadline:
            raise DataFolderBusy(
                f"the database in {folder} is held by a process and does not answer",
                field="data_dir",
            )
        time.sleep(0.1)
    return url
