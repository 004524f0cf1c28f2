"""Sessions keep the judgements that contradict what their pool states.

Revision: 1e7d94ab30c5
Follows: 6e0b94d3c1f5
Written: 2026-11-22 19:10:12.204871
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from celeus.store.migrations import refuse_to_lose

revision = "1e7d94ab30c5"
down_revision = "6e0b94d3c1f5"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.add_column(
        "sessions",
        sa.Column("contradictions", JSONB, nullable=False, server_default=sa.text("'[]'::jsonb")),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    refuse_to_lose("contradicted bounds", "sessions WHERE contradictions <> '[]'")
    op.drop_column("sessions", "contradictions")
    op.execute("UPDATE sessions SET status = status - 'contradictions'")
