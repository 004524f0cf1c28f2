"""One row a round and one last label a key: a correction writes what it changes.

The trajectory's key held the count of corrections, so that each rewrote every row. A key had a
last label for every name that it gave a worker.

Revision: 9a3f51c7e6d2
Follows: 2e90c1a4d7b6
Written: 2026-11-22 11:58:20.604117
"""

import sqlalchemy as sa
from alembic import op

revision = "9a3f51c7e6d2"
down_revision = "2e90c1a4d7b6"
branch_labels = None
depends_on = None

_ONE_A_KEY = """
    WITH former AS (DELETE FROM labellers RETURNING *)
    INSERT INTO labellers (session_id, key_id, worker, project_id, labels, last_round)
    SELECT former.session_id, key_id, '', former.project_id, sum(labels),
        (array_agg(last_round ORDER BY sequence DESC NULLS LAST))[1]
    FROM former LEFT JOIN events
        ON events.session_id = former.session_id AND round = last_round AND kind IN (2, 3)
    GROUP BY former.session_id, key_id, former.project_id
"""
_ONE_A_WORKER = """
    INSERT INTO labellers (session_id, key_id, worker, project_id, labels, last_round)
    SELECT session_id, detail->>'key', detail->>'worker', project_id, count(*),
        (array_agg(round ORDER BY sequence DESC))[1]
    FROM events
    WHERE kind IN (2, 3) AND detail->>'key' IS NOT NULL AND detail->>'worker' IS NOT NULL
    GROUP BY session_id, detail->>'key', detail->>'worker', project_id
"""
_REVISIONS = """
    UPDATE trajectory SET revision = sessions.revision
    FROM sessions WHERE sessions.session_id = trajectory.session_id
"""


def upgrade() -> None:
    # A statement that waits for a table makes everyone behind it wait too: give up early, try again
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.execute("SET LOCAL statement_timeout = '5min'")
    op.drop_constraint("trajectory_pkey", "trajectory")
    op.drop_column("trajectory", "revision")
    op.create_primary_key("trajectory_pkey", "trajectory", ["session_id", "round"])
    op.drop_constraint("labellers_pkey", "labellers")
    op.execute(_ONE_A_KEY)
    op.drop_column("labellers", "worker")
    op.create_primary_key("labellers_pkey", "labellers", ["session_id", "key_id"])


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.execute("SET LOCAL statement_timeout = '5min'")
    op.drop_constraint("labellers_pkey", "labellers")
    op.execute("DELETE FROM labellers")
    op.add_column("labellers", sa.Column("worker", sa.Text(), nullable=False))
    op.execute(_ONE_A_WORKER)
    op.create_primary_key("labellers_pkey", "labellers", ["session_id", "key_id", "worker"])
    op.drop_constraint("trajectory_pkey", "trajectory")
    revision_ = sa.Column("revision", sa.Integer(), nullable=False, server_default="1")
    op.add_column("trajectory", revision_)
    op.execute(_REVISIONS)
    op.alter_column("trajectory", "revision", server_default=None)
    op.create_primary_key("trajectory_pkey", "trajectory", ["session_id", "revision", "round"])
