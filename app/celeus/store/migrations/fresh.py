"""The schema of an empty database, made as it is declared: what all migrations lead to."""

from sqlalchemy import create_engine, pool, text

from celeus.store.database import async_url
from celeus.store.migrations import MIGRATION_LOCK, head
from celeus.store.schema import patience
from celeus.store.tables import DEFAULT_PROJECT, metadata, projects


def make(url: str) -> bool:
    """Make every table at once where no migration has ever run; whether that was so.

    Blocking. Tables of other programs stay as they are, and those of the same names are an error.
    """
    engine = create_engine(
        async_url(url),
        poolclass=pool.NullPool,
        use_native_hstore=False,
        connect_args={
            "application_name": "celeus-migrate",
            # A pooler may give the next transaction another connection
            "prepare_threshold": None,
            **patience(url),
        },
    )
    with engine.begin() as db:
        db.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
        if db.scalar(text("SELECT to_regclass('alembic_version')")) is not None:
            return False
        metadata.create_all(db, checkfirst=False)
        db.execute(text("ALTER TABLE chunks ALTER COLUMN data SET STORAGE EXTERNAL"))
        db.execute(projects.insert().values(project_id=DEFAULT_PROJECT, name="default"))
        # As alembic makes it
        db.execute(
            text(
                "CREATE TABLE alembic_version (version_num varchar(32) NOT NULL,"
                " CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
            )
        )
        db.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": head()})
    return True
