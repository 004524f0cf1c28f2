"""A status says how many labels are in its interval, so that nobody has to count them.

Revision: 3c7be0a4d915
Follows: b94e07f3a6d8
Written: 2026-11-23 14:34:10.118203
"""

from alembic import op

revision = "3c7be0a4d915"
down_revision = "b94e07f3a6d8"
branch_labels = None
depends_on = None

# A round that nobody could judge has no label: the last of what was said of it counts
COUNT = """
    UPDATE sessions s SET status = jsonb_set(status, '{words,in_interval}', to_jsonb(
        CAST(s.status -> 'rounds' ->> 'in_interval' AS int) - (
            SELECT count(*) FROM (
                SELECT DISTINCT ON (round) coalesce(loss, losses[1]) AS loss FROM events e
                WHERE e.session_id = s.session_id AND round <= CAST(s.status ->> 'round' AS int)
                  AND kind IN (2, 3, 4)
                ORDER BY round, sequence DESC
            ) AS latest WHERE loss IS NULL
        )
    ))
    WHERE status ? 'words' AND (status -> 'best') = 'null' AND (status -> 'table') = 'null'
"""


def upgrade() -> None:
    op.execute(COUNT)


def downgrade() -> None:
    op.execute("UPDATE sessions SET status = status #- '{words,in_interval}'")
