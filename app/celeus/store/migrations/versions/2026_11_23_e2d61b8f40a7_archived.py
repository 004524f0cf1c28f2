"""Sessions and pools can be archived.

Revision: e2d61b8f40a7
Follows: d52e8a1f4c90
Written: 2026-11-23 11:31:08.274915
"""

import sqlalchemy as sa
from alembic import op

from celeus.store.migrations import refuse_to_lose

revision = "e2d61b8f40a7"
down_revision = "d52e8a1f4c90"
branch_labels = None
depends_on = None

TABLES = ("pools", "sessions")


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    for table in TABLES:
        op.add_column(table, sa.Column("archived_at", sa.DateTime(timezone=True)))
    op.execute("""UPDATE sessions SET status = status || '{"archived": false}'""")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    for table in TABLES:
        refuse_to_lose(f"which {table} are archived", f"{table} WHERE archived_at IS NOT NULL")
        op.drop_column(table, "archived_at")
    op.execute("UPDATE sessions SET status = status - 'archived'")
