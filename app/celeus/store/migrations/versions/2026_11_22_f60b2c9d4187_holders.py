"""Leases know the keys that their draws were handed to.

A draw that was handed on before is known to have been handed to the key that drew it only.

Revision: f60b2c9d4187
Follows: 7c1be05d2f94
Written: 2026-11-22 08:45:21.553870
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from celeus.store.migrations import refuse_to_lose

revision = "f60b2c9d4187"
down_revision = "7c1be05d2f94"
branch_labels = None
depends_on = None

_FROM_DRAWS = """
    UPDATE leases SET keys = jsonb_build_array(events.detail ->> 'key')
    FROM events
    WHERE events.session_id = leases.session_id AND events.round = leases.round
      AND events.kind = 1 AND events.detail ? 'key'
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    keys = sa.Column(
        "keys", postgresql.JSONB(), nullable=False, server_default=sa.text("'[]'::jsonb")
    )
    op.add_column("leases", keys)
    op.execute(_FROM_DRAWS)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    refuse_to_lose("draws handed on", "leases WHERE jsonb_array_length(keys) > 1")
    op.drop_column("leases", "keys")
