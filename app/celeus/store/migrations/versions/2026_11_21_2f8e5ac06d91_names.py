"""Names of sessions.

Revision: 2f8e5ac06d91
Follows: c4e9b2075f18
Written: 2026-11-21 16:18:40.208115
"""

import sqlalchemy as sa
from alembic import op

from celeus.store.migrations import refuse_to_lose

revision = "2f8e5ac06d91"
down_revision = "c4e9b2075f18"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A statement that waits for a table makes everyone behind it wait too: give up early, try again
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.add_column("sessions", sa.Column("name", sa.Text(), nullable=True))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    refuse_to_lose("names of sessions", "sessions WHERE name IS NOT NULL")
    op.drop_column("sessions", "name")
