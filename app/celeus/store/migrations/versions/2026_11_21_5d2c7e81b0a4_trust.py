"""Keys, idempotency keys, certificates, and the head of each ledger's hash chain.

Revision: 5d2c7e81b0a4
Follows: 097d15a9eef4
Written: 2026-11-21 13:12:40.117305
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from celeus.store.migrations import refuse_to_lose

revision = "5d2c7e81b0a4"
down_revision = "097d15a9eef4"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A statement that waits for a table makes everyone behind it wait too: give up early, try again
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.execute("SET LOCAL statement_timeout = '5min'")
    op.create_table(
        "keys",
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("scopes", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("secret_hash", sa.LargeBinary(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("replaced_by", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("keys_project_id_fkey")
        ),
        sa.PrimaryKeyConstraint("key_id", name=op.f("keys_pkey")),
    )
    op.create_table(
        "idempotency",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=True),
        sa.Column("answer", sa.LargeBinary(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("idempotency_project_id_fkey")
        ),
        sa.PrimaryKeyConstraint("project_id", "key", name=op.f("idempotency_pkey")),
    )
    op.create_index(op.f("idempotency_created_at_idx"), "idempotency", ["created_at"], unique=False)
    op.create_table(
        "certificates",
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("final", sa.Boolean(), nullable=False),
        sa.Column("issued_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("certificates_project_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.session_id"], name=op.f("certificates_session_id_fkey")
        ),
        sa.PrimaryKeyConstraint("session_id", "digest", name=op.f("certificates_pkey")),
    )
    op.add_column("sessions", sa.Column("ledger_head", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    refuse_to_lose("keys", "keys")
    refuse_to_lose("certificates", "certificates")
    refuse_to_lose("hash chains", "sessions WHERE ledger_head IS NOT NULL")
    op.drop_column("sessions", "ledger_head")
    op.drop_table("certificates")
    op.drop_index(op.f("idempotency_created_at_idx"), table_name="idempotency")
    op.drop_table("idempotency")
    op.drop_table("keys")
