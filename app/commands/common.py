"""What commands have in common: the settings they run with, and the database they run on."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.errors import InvalidValue

if TYPE_CHECKING:
    # Not even for annotations at run time: it takes most of a second.
    from app.settings import Settings

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
