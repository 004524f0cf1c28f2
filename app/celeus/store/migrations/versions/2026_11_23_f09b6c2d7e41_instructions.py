"""Pools and sessions have instructions, scales named levels, and draws are passed on.

Revision: f09b6c2d7e41
Follows: 5e93a7c0d14b
Written: 2026-11-23 11:58:03.117420
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from celeus.store.migrations import refuse_to_lose

revision = "f09b6c2d7e41"
down_revision = "5e93a7c0d14b"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.create_table(
        "instructions",
        sa.Column("instructions_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("pool_id", sa.Uuid(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("key_id", sa.Text(), nullable=True),
        sa.Column(
            "at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name="instructions_project_id_fkey"
        ),
        sa.ForeignKeyConstraint(
            ["pool_id"], ["pools.pool_id"], name="instructions_pool_id_fkey", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.session_id"],
            name="instructions_session_id_fkey",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("instructions_id", name="instructions_pkey"),
    )
    op.create_index(
        "instructions_pool_id_session_id_idx", "instructions", ["pool_id", "session_id"]
    )
    op.add_column("pools", sa.Column("levels", JSONB, nullable=True))
    op.add_column(
        "leases",
        sa.Column("passed", JSONB, server_default=sa.text("'[]'::jsonb"), nullable=False),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    refuse_to_lose("the instructions of labellers", "instructions")
    refuse_to_lose("the levels of scales", "pools WHERE levels IS NOT NULL")
    op.drop_column("leases", "passed")
    op.drop_column("pools", "levels")
    op.drop_index("instructions_pool_id_session_id_idx", "instructions")
    op.drop_table("instructions")
