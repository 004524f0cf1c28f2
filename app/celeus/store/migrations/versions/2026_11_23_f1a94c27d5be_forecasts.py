"""Forecasts are told with every status; kept is the pace of the labels alone.

Forecasts in the statuses of before lack a range: they are null until the next label.

Revision: f1a94c27d5be
Follows: f09b6c2d7e41
Written: 2026-11-23 12:03:41.507112
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "f1a94c27d5be"
down_revision = "f09b6c2d7e41"
branch_labels = None
depends_on = None

NO_FORECAST = """
    UPDATE sessions SET status = jsonb_set(status, '{forecast}', 'null')
    WHERE status ? 'forecast' AND (status -> 'forecast') <> 'null'
"""


def upgrade() -> None:
    op.drop_column("sessions", "forecast")
    op.add_column("sessions", sa.Column("seconds_per_label", sa.Double(), nullable=True))
    op.execute(NO_FORECAST)


def downgrade() -> None:
    op.drop_column("sessions", "seconds_per_label")
    op.add_column(
        "sessions", sa.Column("forecast", postgresql.JSONB(none_as_null=True), nullable=True)
    )
    op.execute(NO_FORECAST)
