"""Ledgers hold claims that are added to a table later.

Revision: 8e52c1f07ab9
Follows: 8c5e1f70a2d9
Written: 2026-11-23 04:48:12.730915
"""

from alembic import op

from celeus.store.migrations import refuse_to_lose

revision = "8e52c1f07ab9"
down_revision = "8c5e1f70a2d9"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _allow("kind BETWEEN 1 AND 7")
    op.execute(
        "UPDATE sessions SET status = jsonb_set(status, '{table,later}', '0') WHERE plan ? 'table'"
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    refuse_to_lose("claims that were added later", "events WHERE kind = 7")
    _allow("kind BETWEEN 1 AND 6")
    op.execute("UPDATE sessions SET status = status #- '{table,later}' WHERE plan ? 'table'")


def _allow(rule: str) -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.execute("ALTER TABLE events DROP CONSTRAINT events_kind_check")
    op.execute(f"ALTER TABLE events ADD CONSTRAINT events_kind_check CHECK ({rule})")
