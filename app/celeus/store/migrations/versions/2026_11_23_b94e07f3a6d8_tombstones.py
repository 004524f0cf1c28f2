"""Sessions can be deleted: a tombstone stays, and their long tables are emptied later.

Events, trajectory and comments may outlive the row of their session for a moment, the digests of
certificates for good.

Revision: b94e07f3a6d8
Follows: f1a94c27d5be
Written: 2026-11-23 14:31:09.220418
"""

import sqlalchemy as sa
from alembic import op

from celeus.store.migrations import refuse_to_lose

revision = "b94e07f3a6d8"
down_revision = "f1a94c27d5be"
branch_labels = None
depends_on = None

FREE = {"events": None, "trajectory": None, "comments": "CASCADE", "certificates": None}
"""Tables that name sessions without a foreign key from now on, and what one did before."""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.create_table(
        "tombstones",
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("pool_id", sa.Uuid(), nullable=False),
        sa.Column("pool_digest", sa.LargeBinary(), nullable=False),
        sa.Column("plan_digest", sa.LargeBinary(), nullable=False),
        sa.Column("commitment", sa.LargeBinary(), nullable=False),
        sa.Column("ledger_head", sa.LargeBinary(), nullable=True),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("lifecycle", sa.Text(), nullable=False),
        sa.Column("pushed", sa.Boolean(), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "deleted_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("deleted_by", sa.Text(), nullable=True),
        sa.Column("remains", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name="tombstones_project_id_fkey"
        ),
        sa.PrimaryKeyConstraint("session_id", name="tombstones_pkey"),
    )
    op.create_index(
        "tombstones_project_id_session_id_idx", "tombstones", ["project_id", "session_id"]
    )
    op.create_index(
        "tombstones_project_id_pool_digest_idx", "tombstones", ["project_id", "pool_digest"]
    )
    op.create_index(
        "tombstones_remains_idx",
        "tombstones",
        ["deleted_at"],
        postgresql_where=sa.text("remains"),
    )
    for table in FREE:
        op.drop_constraint(f"{table}_session_id_fkey", table, type_="foreignkey")


def downgrade() -> None:
    refuse_to_lose("what is known of deleted sessions", "tombstones")
    op.execute("SET LOCAL lock_timeout = '4s'")
    for table, on_delete in FREE.items():
        op.create_foreign_key(
            f"{table}_session_id_fkey",
            table,
            "sessions",
            ["session_id"],
            ["session_id"],
            ondelete=on_delete,
        )
    op.drop_table("tombstones")
