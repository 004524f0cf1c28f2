"""Webhooks with their deliveries, and links by which somebody reads one session.

Revision: a5d0c38e91f4
Follows: 5b0e7d23c9f1
Written: 2026-11-23 11:52:08.402117
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "a5d0c38e91f4"
down_revision = "5b0e7d23c9f1"
branch_labels = None
depends_on = None


def _created_at() -> sa.Column[object]:
    return sa.Column(
        "created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
    )


def _project(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["project_id"], ["projects.project_id"], name=f"{table}_project_id_fkey"
    )


def _session(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["session_id"],
        ["sessions.session_id"],
        name=f"{table}_session_id_fkey",
        ondelete="CASCADE",
    )


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.create_table(
        "webhooks",
        sa.Column("webhook_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=True),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("events", postgresql.JSONB(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("former_secret", sa.LargeBinary(), nullable=True),
        sa.Column("former_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("disabled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("failing_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("busy_until", sa.DateTime(timezone=True), nullable=True),
        _created_at(),
        _project("webhooks"),
        _session("webhooks"),
        sa.PrimaryKeyConstraint("webhook_id", name="webhooks_pkey"),
    )
    op.create_index("webhooks_project_id_webhook_id_idx", "webhooks", ["project_id", "webhook_id"])
    op.create_index("webhooks_session_id_idx", "webhooks", ["session_id"])
    op.create_table(
        "deliveries",
        sa.Column("delivery_id", sa.Uuid(), nullable=False),
        sa.Column("webhook_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("data", postgresql.JSONB(), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'pending'"), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_attempt_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("status", sa.SmallInteger(), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        _created_at(),
        sa.CheckConstraint("state IN ('pending', 'delivered', 'failed')", name="state"),
        _project("deliveries"),
        sa.ForeignKeyConstraint(
            ["webhook_id"],
            ["webhooks.webhook_id"],
            name="deliveries_webhook_id_fkey",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("delivery_id", name="deliveries_pkey"),
    )
    op.create_index(
        "deliveries_webhook_id_created_at_idx", "deliveries", ["webhook_id", "created_at"]
    )
    op.create_index(
        "deliveries_pending_idx",
        "deliveries",
        ["webhook_id", "next_attempt_at"],
        postgresql_where=sa.text("state = 'pending'"),
    )
    op.create_table(
        "shares",
        sa.Column("share_id", sa.Uuid(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        _created_at(),
        _project("shares"),
        _session("shares"),
        sa.PrimaryKeyConstraint("share_id", name="shares_pkey"),
        sa.UniqueConstraint("token_hash", name="shares_token_hash_key"),
    )
    op.create_index("shares_session_id_created_at_idx", "shares", ["session_id", "created_at"])
    op.add_column("sessions", sa.Column("stall_told", sa.Integer(), nullable=True))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.drop_column("sessions", "stall_told")
    op.drop_table("shares")
    op.drop_table("deliveries")
    op.drop_table("webhooks")
