"""Check that a database is reachable and has this version's schema.

The refusal is one line that names the host and the cause, and never the password.
"""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
from psycopg import errors
from sqlalchemy import exc

from celeus.errors import DatabaseUnavailable, SchemaBehind
from celeus.store.database import async_url, plain_url
from celeus.store.revisions import head, revisions, upgrade

CONNECT_SECONDS = 10
_CAUSE = re.compile(r"(?:failed|bad): (?:FATAL: +)?(?!connection to server)(.+)$", re.MULTILINE)
_ANY_KEY = """
    SELECT EXISTS (
        SELECT FROM keys
        WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
          AND NOT (person AND last_used_at IS NULL)
    )
"""
_FAULTS = (
    psycopg.OperationalError,
    # Tables of the same names belong to another program
    errors.DuplicateTable,
    errors.InsufficientPrivilege,
    errors.ReadOnlySqlTransaction,
    errors.UndefinedTable,
    errors.UndefinedColumn,
)


def place_of(url: str) -> str:
    """Host, port and name of a database for a message, without its password."""
    address = async_url(url)
    host = address.query.get("host") or address.host or "this machine"
    where = host if isinstance(host, str) else ",".join(host)
    port = "" if address.port is None else f":{address.port}"
    return f"{where}{port}, database {address.database or address.username!r}"


def revision(url: str) -> str | None:
    """The revision of the database's schema, None where nothing was migrated yet.

    Blocking. Refuses with `DatabaseUnavailable` when the database cannot be read.
    """
    with (
        _refusals(url),
        closing(psycopg.connect(plain_url(url), **patience(url))) as db,
    ):
        row = db.execute("SELECT to_regclass('alembic_version')").fetchone()
        if row is None or row[0] is None:
            return None
        row = db.execute("SELECT version_num FROM alembic_version").fetchone()
        return None if row is None else str(row[0])


def any_key(url: str) -> bool:
    """Return True if a working key exists that somebody knows or has signed in with.

    Blocking. Refuses with `DatabaseUnavailable` when the database cannot be read.
    """
    with (
        _refusals(url),
        closing(psycopg.connect(plain_url(url), **patience(url))) as db,
    ):
        row = db.execute(_ANY_KEY).fetchone()
        return row is not None and bool(row[0])


def require_head(url: str) -> None:
    """Refuse with `SchemaBehind` unless the database has this version's schema."""
    current = revision(url)
    if _at_head(url, current):
        return
    state = "empty" if current is None else "at an older version"
    raise SchemaBehind(f"{_name_of(url)} is {state}; run `celeus admin migrate` first")


def _at_head(url: str, current: str | None) -> bool:
    """Return True if a revision is this version's; raises `SchemaBehind` for an unknown one."""
    if current is not None and current not in revisions():
        raise SchemaBehind(
            f"{_name_of(url)} has schema {current!r}, which this version does not know: if a newer"
            " Celeus made it, run that one; if another program or a version before 0.1.0 (whose"
            " databases are not migrated) did, name an empty database in CELEUS_DATABASE_URL or a"
            " new folder with --data-dir"
        )
    return current == head()


def migrate(url: str) -> None:
    """Bring the database to this version's schema.

    Blocking. Refuses with `DatabaseUnavailable` when the database cannot be used, and with
    `SchemaBehind` when its schema is not one that this version knows.
    """
    if not _at_head(url, revision(url)):
        with _refusals(url):
            upgrade(url)


@contextmanager
def _refusals(url: str) -> Iterator[None]:
    """Turn errors of the database or the connection into a refusal of one line."""
    try:
        yield
    except exc.DBAPIError as error:
        # The driver's own class, not one below it: an option that it does not know
        if not isinstance(error.orig, _FAULTS) and type(error.orig) is not psycopg.ProgrammingError:
            raise
        raise _unusable(url, error.orig) from error
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise _unusable(url, error) from error


def patience(url: str) -> dict[str, Any]:
    """The connect timeout as arguments of the driver, unless the address sets one."""
    has_timeout = "connect_timeout" in async_url(url).query
    return {} if has_timeout else {"connect_timeout": CONNECT_SECONDS}


def _name_of(url: str) -> str:
    return f"the database at {place_of(url)}"


def _unusable(url: str, error: Exception) -> DatabaseUnavailable:
    causes = dict.fromkeys(_CAUSE.findall(str(error))) or [str(error).strip().splitlines()[0]]
    text = f"{_name_of(url)} cannot be used: {'; '.join(causes)}"
    password = async_url(url).password
    return DatabaseUnavailable(text.replace(str(password), "***") if password else text)
