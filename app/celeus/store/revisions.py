"""Bring a database to the schema of this code.

Alembic is imported where it is needed: a server whose database is at head starts without it.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alembic.config import Config

_PACKAGE = Path(__file__).parents[1]
_INSTALLED = _PACKAGE / "_alembic"
SCRIPTS = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parents[1] / "alembic"
"""The folder of migrations: inside an installed package, or at the top of a checkout."""
MIGRATION_LOCK = 7_306_513_217
"""Any number that nothing else in a database locks."""
_REVISION = re.compile(r'^revision = "(.+)"$', re.MULTILINE)
_FOLLOWED = re.compile(r'^down_revision = "(.+)"$', re.MULTILINE)


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
    """Run the migrations that the database has not seen; two callers at once, one after the other.

    Blocking: call it from a thread where a loop runs.
    """
    from alembic import command

    command.upgrade(configuration(url), "head")
