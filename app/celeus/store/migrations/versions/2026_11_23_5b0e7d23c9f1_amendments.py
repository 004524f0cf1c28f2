"""The amendments of a round are found without reading its session.

Revision: 5b0e7d23c9f1
Follows: e2d61b8f40a7
Written: 2026-11-23 12:03:41.118206
"""

import sqlalchemy as sa
from alembic import op

revision = "5b0e7d23c9f1"
down_revision = "e2d61b8f40a7"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.create_index(
        "events_amendments_idx",
        "events",
        ["session_id", "round"],
        postgresql_where=sa.text("kind = 4"),
    )


def downgrade() -> None:
    op.drop_index("events_amendments_idx", "events")
