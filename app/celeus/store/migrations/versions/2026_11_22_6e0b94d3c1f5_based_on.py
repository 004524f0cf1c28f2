"""Pools are based on judged sessions of an earlier version.

Revision: 6e0b94d3c1f5
Follows: 4f1c8e2a90b7
Written: 2026-11-22 18:31:40.502917
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from celeus.store.migrations import refuse_to_lose

revision = "6e0b94d3c1f5"
down_revision = "4f1c8e2a90b7"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.add_column("pools", sa.Column("based_on", JSONB))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    refuse_to_lose("what pools are based on", "pools WHERE based_on IS NOT NULL")
    op.drop_column("pools", "based_on")
