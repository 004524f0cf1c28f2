"""Statuses of sessions say how often their settings were changed.

Revision: 7c1be05d2f94
Follows: e4a17c03d95b
Written: 2026-11-22 08:44:31.402117
"""

from alembic import op

from celeus.store.migrations import refuse_to_lose

revision = "7c1be05d2f94"
down_revision = "e4a17c03d95b"
branch_labels = None
depends_on = None

_COUNT = """
    WITH rules AS (
        SELECT session_id, sequence, detail -> 'precision' AS precision,
            detail -> 'budget' AS budget, detail -> 'stop_when_decided' AS stop
        FROM events WHERE kind = 5
        UNION ALL
        SELECT session_id, 0, plan -> 'precision', plan -> 'budget', plan -> 'stop_when_decided'
        FROM sessions
    ), steps AS (
        SELECT session_id, sequence, (precision, budget, stop) IS DISTINCT FROM
            lag((precision, budget, stop)) OVER (PARTITION BY session_id ORDER BY sequence)
            AS changed
        FROM rules
    ), counts AS (
        SELECT session_id, count(*) FILTER (WHERE changed AND sequence > 0) AS changes
        FROM steps GROUP BY session_id
    )
    UPDATE sessions
    SET status = status || jsonb_build_object('fixed', false, 'changes', counts.changes)
    FROM counts WHERE counts.session_id = sessions.session_id
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.execute(_COUNT)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    # The code of before knows no other: it would go on with them by another rule than their plan's.
    refuse_to_lose("the method of sessions", "sessions WHERE plan->>'method_version' <> 'celeus-1'")
    op.execute("UPDATE sessions SET status = status - 'fixed' - 'changes'")
