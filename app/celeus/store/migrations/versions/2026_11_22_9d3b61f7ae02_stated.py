"""Pools say which losses are known, and why.

Revision: 9d3b61f7ae02
Follows: 9d54e8b1c7a3
Written: 2026-11-22 12:02:31.480516
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from celeus.store.migrations import refuse_to_lose

revision = "9d3b61f7ae02"
down_revision = "9d54e8b1c7a3"
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
    refuse_to_lose("known losses", "pools WHERE stated <> '{}'")
    op.drop_column("pools", "stated")
