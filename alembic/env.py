"""Run migrations: alone, in one transaction, and never queueing behind a busy table.

The address comes from whoever calls (`celeus.store.revisions`), or else from the settings.
"""

from alembic import context
from sqlalchemy import create_engine, pool, text

from celeus.settings import Settings
from celeus.store.database import async_url
from celeus.store.migrate import patience
from celeus.store.revisions import MIGRATION_LOCK
from celeus.store.tables import metadata


def _address() -> str:
    address = context.config.attributes.get("url") or Settings().database_url
    if address is None:
        message = "set CELEUS_DATABASE_URL to the database to migrate"
        raise SystemExit(message)
    return str(address)


def _migrate() -> None:
    engine = create_engine(
        async_url(_address()),
        poolclass=pool.NullPool,
        use_native_hstore=False,
        connect_args={
            "application_name": "celeus-migrate",
            # A pooler may give the next transaction another connection
            "prepare_threshold": None,
            **patience(_address()),
        },
    )
    with engine.connect() as db:
        context.configure(
            connection=db,
            target_metadata=metadata,
            compare_server_default=True,
            # All or nothing, and the lock below lasts as long as the migrations
            transaction_per_migration=False,
        )
        with context.begin_transaction():
            # Two that start at once: the second waits, and finds nothing left to do
            db.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
            context.run_migrations()
    engine.dispose()


if context.is_offline_mode():
    MESSAGE = "migrations are run, not printed: they depend on what they find"
    raise SystemExit(MESSAGE)
_migrate()
