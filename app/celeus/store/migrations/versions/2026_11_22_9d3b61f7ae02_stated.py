"""Pools say which losses are known, and why.

Revision: 9d3b61f7ae02
Follows: 2e90c1a4d7b6
Written: 2026-11-22 12:02:31.480516
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "9d3b61f7ae02"
down_revision = "2e90c1a4d7b6"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.add_column(
        "pools",
        sa.Column("stated", JSONB, nullable=False, server_default=sa.text("'{}'::jsonb")),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.drop_column("pools", "stated")
