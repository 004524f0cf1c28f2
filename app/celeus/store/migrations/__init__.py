"""Bring a database to the schema of this code.

The scripts lie in `alembic/` beside the package in a checkout, and inside it in a wheel.
"""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory


def scripts() -> Path:
    """The folder of the migration scripts."""
    package = Path(__file__).parents[1]
    for folder in (package / "_alembic", package.parent / "alembic"):
        if (folder / "env.py").is_file():
            return folder
    raise FileNotFoundError(f"the migration scripts are missing beside {package}")


def configuration(url: str | None = None) -> Config:
    """The alembic configuration; there is no ini file to keep in step with the settings."""
    config = Config()
    # The option's parser reads a percent sign as the start of a name
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    config.attributes["url"] = url
    return config


def head() -> str:
    """The revision this code was written for."""
    revision = ScriptDirectory.from_config(configuration()).get_current_head()
    if revision is None:
        raise FileNotFoundError(f"there are no migrations in {scripts()}")
    return revision


def upgrade(url: str) -> None:
    """Bring the database to head; two callers at once do it one after the other.

    Blocking: call it from a thread where a loop runs.
    """
    command.upgrade(configuration(url), "head")
