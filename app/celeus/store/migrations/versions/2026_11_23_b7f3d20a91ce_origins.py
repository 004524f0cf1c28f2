"""Sessions that ran elsewhere say so.

Revision: b7f3d20a91ce
Follows: 8e52c1f07ab9
Written: 2026-11-23 08:02:17.553104
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from celeus.store.migrations import refuse_to_lose

revision = "b7f3d20a91ce"
down_revision = "8e52c1f07ab9"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.add_column("sessions", sa.Column("origin", JSONB, nullable=True))
    op.execute("""UPDATE sessions SET status = status || '{"origin": null}'""")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    refuse_to_lose("where sessions were pushed from", "sessions WHERE origin IS NOT NULL")
    op.drop_column("sessions", "origin")
    op.execute("UPDATE sessions SET status = status - 'origin'")
