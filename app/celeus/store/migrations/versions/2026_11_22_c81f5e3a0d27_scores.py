"""Pools name their score, and every stored state its scale.

Revision: c81f5e3a0d27
Follows: 7b20d9e4c615
Written: 2026-11-22 21:50:12.402913
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from celeus.store.migrations import refuse_to_lose

revision = "c81f5e3a0d27"
down_revision = "7b20d9e4c615"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.add_column("pools", sa.Column("score", JSONB))
    op.execute(
        "UPDATE sessions SET status = status || jsonb_build_object("
        "'scale', jsonb_build_object('lower', plan->'lower', 'upper', plan->'upper'))"
        " WHERE NOT status ? 'scale'"
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    refuse_to_lose("names of scores", "pools WHERE score IS NOT NULL")
    op.drop_column("pools", "score")
    op.execute("UPDATE sessions SET status = status - 'score' - 'sentence'")
