"""Clocks that jump when a test says so: the database's, and that of a server's host.

The service reads the time of leases and events from the database by `now()` and
`clock_timestamp()`. PostgreSQL looks those up along `search_path`, where the functions of a schema
of the test come first: the service runs as it is, on a database whose clock is wrong.

The host's clock serves for new ids only. A `sitecustomize` on the server's path shifts what Python
and the maker of ids read; no line of the service knows.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg

_SCHEMA = """
    CREATE SCHEMA fake;
    CREATE TABLE fake.jump (seconds double precision NOT NULL);
    INSERT INTO fake.jump VALUES (0);
    CREATE FUNCTION fake.off() RETURNS interval LANGUAGE sql VOLATILE AS
        'SELECT make_interval(secs => seconds) FROM fake.jump';
    CREATE FUNCTION fake.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
        'SELECT pg_catalog.clock_timestamp() + fake.off()';
    CREATE FUNCTION fake.now() RETURNS timestamptz LANGUAGE sql VOLATILE AS
        'SELECT pg_catalog.now() + fake.off()';
    """

_SITECUSTOMIZE = '''
"""The clock of a host that jumps: seconds to add stand in a file."""

import os
import time
import uuid

import uuid_utils
import uuid_utils.compat

real_ns = time.time_ns


def time_ns():
    with open(os.environ["HOST_CLOCK_FILE"]) as file:
        return real_ns() + int(float(file.read() or "0") * 1e9)


def uuid7():
    made = bytearray((time_ns() // 10**6).to_bytes(6, "big") + os.urandom(10))
    made[6] = made[6] & 0x0F | 0x70
    made[8] = made[8] & 0x3F | 0x80
    return uuid.UUID(bytes=bytes(made))


time.time_ns = time_ns
time.time = lambda: time_ns() / 1e9
uuid_utils.uuid7 = uuid_utils.compat.uuid7 = uuid7
'''


class DatabaseClock:
    """The database's clock, as whoever comes by ``url`` reads it."""

    def __init__(self, url: str) -> None:
        self.url = f"{url}&options=-c%20search_path%3Dfake,pg_catalog,public"
        self._straight = url

    def jump(self, seconds: float) -> None:
        """Be so far off the true time from now on."""
        with psycopg.connect(self._straight) as db:
            db.execute("UPDATE fake.jump SET seconds = %s", [seconds])


@contextmanager
def database_clock(url: str) -> Iterator[DatabaseClock]:
    """A clock that tells the true time until it jumps."""
    with psycopg.connect(url) as db:
        db.execute(_SCHEMA.encode())
    try:
        yield DatabaseClock(url)
    finally:
        with psycopg.connect(url) as db:
            db.execute("DROP SCHEMA fake CASCADE")


class HostClock:
    """The clock of the host of a server that is started in ``environment``."""

    def __init__(self, folder: Path) -> None:
        (folder / "sitecustomize.py").write_text(_SITECUSTOMIZE)
        self._file = folder / "seconds"
        self.jump(0)
        self.environment: Mapping[str, str] = {
            "PYTHONPATH": str(folder),
            "HOST_CLOCK_FILE": str(self._file),
        }

    def jump(self, seconds: float) -> None:
        """Be so far off the true time from now on."""
        self._file.write_text(str(seconds))
