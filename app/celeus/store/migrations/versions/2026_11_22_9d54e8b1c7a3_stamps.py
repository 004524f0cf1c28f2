"""Sessions keep the time stamp of their opening.

Revision: 9d54e8b1c7a3
Follows: 9a3f51c7e6d2
Written: 2026-11-22 11:58:31.402117
"""

import sqlalchemy as sa
from alembic import op

from celeus.store.migrations import refuse_to_lose

revision = "9d54e8b1c7a3"
down_revision = "9a3f51c7e6d2"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.add_column("sessions", sa.Column("stamp", sa.LargeBinary()))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    refuse_to_lose("time stamps", "sessions WHERE stamp IS NOT NULL")
    op.drop_column("sessions", "stamp")
