"""Judgements give the losses of several systems.

Revision: 7b20d9e4c615
Follows: 1e7d94ab30c5
Written: 2026-11-22 18:30:41.770215
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

from celeus.store.migrations import refuse_to_lose

revision = "7b20d9e4c615"
down_revision = "1e7d94ab30c5"
branch_labels = None
depends_on = None

ONE = "kind <> 2 OR (round IS NOT NULL AND loss IS NOT NULL)"
ANY = "kind <> 2 OR (round IS NOT NULL AND (loss IS NULL) <> (losses IS NULL))"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.add_column("events", sa.Column("losses", ARRAY(sa.Double)))
    _check(ANY)
    op.execute(
        "UPDATE sessions SET status ="
        """ '{"best": null, "contradictions": [], "effective_items": null}'::jsonb || status"""
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    refuse_to_lose("sessions that seek the best of several", "events WHERE losses IS NOT NULL")
    refuse_to_lose("pools of several systems", "pools WHERE systems ? 'names'")
    _check(ONE)
    op.drop_column("events", "losses")
    op.execute("UPDATE sessions SET status = status - 'best' - 'effective_items'")


def _check(condition: str) -> None:
    name = "events_observation_check"
    op.execute(
        f"ALTER TABLE events DROP CONSTRAINT {name}, ADD CONSTRAINT {name} CHECK ({condition})"
    )
