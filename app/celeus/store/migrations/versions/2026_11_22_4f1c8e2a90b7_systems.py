"""Pools compare two systems.

Revision: 4f1c8e2a90b7
Follows: 9d3b61f7ae02
Written: 2026-11-22 15:14:09.118273
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from celeus.store.migrations import refuse_to_lose

revision = "4f1c8e2a90b7"
down_revision = "9d3b61f7ae02"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.add_column("pools", sa.Column("systems", JSONB))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    refuse_to_lose("pools of two systems", "pools WHERE systems IS NOT NULL")
    op.drop_column("pools", "systems")
