"""Bring a database to the schema of this code.

Alembic is imported where it is needed: a server whose database is at head starts without it.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from alembic.config import Config

SCRIPTS = Path(__file__).parent
MIGRATION_LOCK = 7_306_513_217
"""Any number that nothing else in a database locks."""
_REVISION = re.compile(r'^revision = "(\w+)"$', re.MULTILINE)
_FOLLOWED = re.compile(r'^down_revision = "(\w+)"$', re.MULTILINE)


def configuration(url: str | None = None) -> "Config":
    """The alembic configuration; there is no ini file to keep in step with the settings."""
    from alembic.config import Config

    config = Config()
    # The option's parser reads a percent sign as the start of a name
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["url"] = url
    return config


def head() -> str:
    """The revision this code was written for."""
    (revision,) = revisions() - set(_FOLLOWED.findall(_scripts()))
    return revision


def revisions() -> frozenset[str]:
    """All revisions that this code can migrate from."""
    return frozenset(_REVISION.findall(_scripts()))


def _scripts() -> str:
    return "\n".join(script.read_text("utf-8") for script in SCRIPTS.glob("versions/*.py"))


def upgrade(url: str) -> None:
    """Bring the database to head; two callers at once do it one after the other.

    An empty one gets its tables at once. Blocking: call it from a thread where a loop runs.
    """
    from celeus.store.migrations import fresh

    if not fresh.make(url):
        migrate(url)


def migrate(url: str) -> None:
    """Run the migrations that the database has not seen, from the first one on if need be."""
    from alembic import command

    command.upgrade(configuration(url), "head")


def refuse_to_lose(what: str, rows: str) -> None:
    """In a way back: refuse it where there are such ``rows`` (a table and its condition)."""
    from alembic import op
    from alembic.util import CommandError

    found = text(f"SELECT EXISTS (SELECT FROM {rows})")  # noqa: S608 -- written in a migration
    if op.get_bind().execute(found).scalar_one():
        message = f"this way back would lose {what}; restore the backup of before instead"
        raise CommandError(message)
