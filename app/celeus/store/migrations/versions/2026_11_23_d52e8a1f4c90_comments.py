"""Judgements may have comments.

Revision: d52e8a1f4c90
Follows: e61c2f7d90b4
Written: 2026-11-23 11:32:10.402117
"""

import sqlalchemy as sa
from alembic import op

from celeus.store.migrations import refuse_to_lose

revision = "d52e8a1f4c90"
down_revision = "e61c2f7d90b4"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.create_table(
        "comments",
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("round", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("rater", sa.Text(), nullable=False),
        sa.Column(
            "project_id",
            sa.Uuid(),
            server_default=sa.text("'00000000-0000-7000-8000-000000000001'::uuid"),
            nullable=False,
        ),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.session_id"],
            name="comments_session_id_fkey",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("session_id", "round", "key_id", "rater", name="comments_pkey"),
    )


def downgrade() -> None:
    refuse_to_lose("the comments of labellers", "comments")
    op.drop_table("comments")
