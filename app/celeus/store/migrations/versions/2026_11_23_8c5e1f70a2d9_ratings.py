"""The ledger keeps what single raters of a panel say.

Revision: 8c5e1f70a2d9
Follows: 4a9d02e6b7f3
Written: 2026-11-23 04:50:12.402117
"""

import sqlalchemy as sa
from alembic import op

from celeus.store.migrations import refuse_to_lose

revision = "8c5e1f70a2d9"
down_revision = "4a9d02e6b7f3"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.execute("SET LOCAL statement_timeout = '5min'")
    _kinds(6)
    op.create_index(
        "events_ratings_idx",
        "events",
        ["session_id", "round"],
        postgresql_where=sa.text("kind = 6"),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    refuse_to_lose("sessions with a panel of raters", "sessions WHERE plan ? 'panel'")
    op.drop_index("events_ratings_idx", "events")
    _kinds(5)


def _kinds(last: int) -> None:
    op.drop_constraint(op.f("events_kind_check"), "events", type_="check")
    op.create_check_constraint(op.f("events_kind_check"), "events", f"kind BETWEEN 1 AND {last}")
