"""Statuses of sessions as they are written now.

Counts of rounds have names that say which they are, and a session that has stopped has no forecast.

Revision: e4a17c03d95b
Follows: b31d7fa05c86
Written: 2026-11-22 04:55:10.118302
"""

from alembic import op

revision = "e4a17c03d95b"
down_revision = "b31d7fa05c86"
branch_labels = None
depends_on = None

_RENAME = """
    UPDATE sessions
    SET status = jsonb_set(
        status,
        '{{rounds}}',
        (status -> 'rounds') - '{judged}' - '{folded}' || jsonb_build_object(
            '{new_judged}', status #> '{{rounds,{judged}}}',
            '{new_folded}', status #> '{{rounds,{folded}}}'
        )
    )
    WHERE status -> 'rounds' ? '{judged}'
"""

_NO_FORECAST = """
    UPDATE sessions
    SET forecast = NULL, status = jsonb_set(status, '{forecast}', 'null')
    WHERE (status -> 'stopped') = 'true' AND (status -> 'forecast') <> 'null'
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    _rename("observed", "folded", "judged", "in_interval")
    op.execute(_NO_FORECAST)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    _rename("judged", "in_interval", "observed", "folded")


def _rename(judged: str, folded: str, new_judged: str, new_folded: str) -> None:
    names = {"judged": judged, "folded": folded}
    op.execute(_RENAME.format(**names, new_judged=new_judged, new_folded=new_folded))
