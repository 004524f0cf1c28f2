"""Sessions keep how many labels were planned for them.

Revision: e61c2f7d90b4
Follows: c7f1d90b52e6
Written: 2026-11-23 11:32:40.281775
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from celeus.store.migrations import refuse_to_lose

revision = "e61c2f7d90b4"
down_revision = "c7f1d90b52e6"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.add_column("sessions", sa.Column("planned_labels", JSONB, nullable=True))
    op.execute("""UPDATE sessions SET status = status || '{"planned_labels": null}'""")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    refuse_to_lose("planned labels", "sessions WHERE planned_labels IS NOT NULL")
    op.drop_column("sessions", "planned_labels")
    op.execute("UPDATE sessions SET status = status - 'planned_labels'")
