"""Browsers that are signed in, and links that sign one in.

Revision: 8a41f6c3d27e
Follows: 5d2c7e81b0a4
Written: 2026-11-21 16:14:02.512690
"""

import sqlalchemy as sa
from alembic import op

from celeus.store.migrations import refuse_to_lose

revision = "8a41f6c3d27e"
down_revision = "5d2c7e81b0a4"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A statement that waits for a table makes everyone behind it wait too: give up early, try again
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.create_table(
        "browser_sessions",
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "last_seen_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["key_id"],
            ["keys.key_id"],
            name=op.f("browser_sessions_key_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("browser_sessions_project_id_fkey")
        ),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("browser_sessions_pkey")),
    )
    op.create_index(
        op.f("browser_sessions_key_id_created_at_idx"),
        "browser_sessions",
        ["key_id", "created_at"],
        unique=False,
    )
    op.create_index(
        op.f("browser_sessions_expires_at_idx"), "browser_sessions", ["expires_at"], unique=False
    )
    op.create_table(
        "invitations",
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["key_id"], ["keys.key_id"], name=op.f("invitations_key_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("invitations_project_id_fkey")
        ),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("invitations_pkey")),
    )
    op.create_index(op.f("invitations_key_id_idx"), "invitations", ["key_id"], unique=False)
    op.create_index(op.f("invitations_expires_at_idx"), "invitations", ["expires_at"], unique=False)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    refuse_to_lose("browsers that are signed in", "browser_sessions")
    refuse_to_lose("links that sign in", "invitations WHERE used_at IS NULL")
    op.drop_table("invitations")
    op.drop_table("browser_sessions")
