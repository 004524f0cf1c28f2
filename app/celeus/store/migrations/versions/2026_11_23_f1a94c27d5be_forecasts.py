"""Forecasts are told with every status and kept nowhere else.

Those in the statuses of before lack a range: they are null until the next label.

Revision: f1a94c27d5be
Follows: d52e8a1f4c90
Written: 2026-11-23 12:03:41.507112
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "f1a94c27d5be"
down_revision = "d52e8a1f4c90"
branch_labels = None
depends_on = None

NO_FORECAST = """
    UPDATE sessions SET status = jsonb_set(status, '{forecast}', 'null')
    WHERE status ? 'forecast' AND (status -> 'forecast') <> 'null'
"""


def upgrade() -> None:
    op.drop_column("sessions", "forecast")
    op.execute(NO_FORECAST)


def downgrade() -> None:
    op.add_column(
        "sessions", sa.Column("forecast", postgresql.JSONB(none_as_null=True), nullable=True)
    )
    op.execute(NO_FORECAST)
