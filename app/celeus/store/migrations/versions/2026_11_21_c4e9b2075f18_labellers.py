"""What every key has judged in a session, and what it judged last.

Revision: c4e9b2075f18
Follows: 8a41f6c3d27e
Written: 2026-11-21 16:21:37.604512
"""

import sqlalchemy as sa
from alembic import op

revision = "c4e9b2075f18"
down_revision = "8a41f6c3d27e"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A statement that waits for a table makes everyone behind it wait too: give up early, try again
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.execute("SET LOCAL statement_timeout = '5min'")
    op.create_table(
        "labellers",
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column(
            "project_id",
            sa.Uuid(),
            server_default=sa.text("'00000000-0000-7000-8000-000000000001'::uuid"),
            nullable=False,
        ),
        sa.Column("labels", sa.Integer(), nullable=False),
        sa.Column("last_round", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.session_id"], name=op.f("labellers_session_id_fkey")
        ),
        sa.PrimaryKeyConstraint("session_id", "key_id", "worker", name=op.f("labellers_pkey")),
    )
    op.execute(
        """
        INSERT INTO labellers (session_id, key_id, worker, project_id, labels, last_round)
        SELECT session_id, detail->>'key', detail->>'worker', project_id, count(*),
            (array_agg(round ORDER BY sequence DESC))[1]
        FROM events
        WHERE kind IN (2, 3) AND detail->>'key' IS NOT NULL AND detail->>'worker' IS NOT NULL
        GROUP BY session_id, detail->>'key', detail->>'worker', project_id
        """
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.drop_table("labellers")
