"""Pools are found by their digest, and plans of the second version stay with code that knows it.

Revision: 2e90c1a4d7b6
Follows: f60b2c9d4187
Written: 2026-11-22 10:14:09.117620
"""

from alembic import op

from celeus.store.migrations import refuse_to_lose

revision = "2e90c1a4d7b6"
down_revision = "f60b2c9d4187"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.create_index("pools_project_id_digest_idx", "pools", ["project_id", "digest"])


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    refuse_to_lose(
        "the rule by which sessions of celeus-2 bet",
        "sessions WHERE plan ->> 'method_version' <> 'celeus-1'",
    )
    op.drop_index("pools_project_id_digest_idx", "pools")
