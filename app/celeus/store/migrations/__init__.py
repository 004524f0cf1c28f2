"""Bring a database to the schema of this code."""

from pathlib import Path

from alembic import command, op
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import text

SCRIPTS = Path(__file__).parent


def configuration(url: str | None = None) -> Config:
    """The alembic configuration; there is no ini file to keep in step with the settings."""
    config = Config()
    # The option's parser reads a percent sign as the start of a name
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["url"] = url
    return config


def head() -> str:
    """The revision this code was written for."""
    revision = ScriptDirectory.from_config(configuration()).get_current_head()
    if revision is None:
        raise FileNotFoundError(f"there are no migrations in {SCRIPTS}")
    return revision


def revisions() -> frozenset[str]:
    """All revisions that this code can migrate from."""
    scripts = ScriptDirectory.from_config(configuration())
    return frozenset(one.revision for one in scripts.walk_revisions())


def upgrade(url: str) -> None:
    """Bring the database to head; two callers at once do it one after the other.

    Blocking: call it from a thread where a loop runs.
    """
    command.upgrade(configuration(url), "head")


def refuse_to_lose(what: str, rows: str) -> None:
    """In a way back: refuse it where there are such ``rows`` (a table and its condition)."""
    found = text(f"SELECT EXISTS (SELECT FROM {rows})")  # noqa: S608 -- written in a migration
    if op.get_bind().execute(found).scalar_one():
        message = f"this way back would lose {what}; restore the backup of before instead"
        raise CommandError(message)
