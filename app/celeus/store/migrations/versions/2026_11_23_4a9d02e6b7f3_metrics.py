"""Pools state metrics and group columns.

Revision: 4a9d02e6b7f3
Follows: c81f5e3a0d27
Written: 2026-11-23 01:50:31.118405
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from celeus.store.migrations import refuse_to_lose

revision = "4a9d02e6b7f3"
down_revision = "c81f5e3a0d27"
branch_labels = None
depends_on = None

STATED = ("metrics", "group_columns")


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    for name in STATED:
        op.add_column("pools", sa.Column(name, JSONB))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    refuse_to_lose(
        "metrics and group columns", "pools WHERE metrics IS NOT NULL OR group_columns IS NOT NULL"
    )
    refuse_to_lose("sessions of many claims", "sessions WHERE plan ? 'table'")
    for name in STATED:
        op.drop_column("pools", name)
