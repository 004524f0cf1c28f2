"""Pools are found by their digest.

Revision: 2e90c1a4d7b6
Follows: f60b2c9d4187
Written: 2026-11-22 10:14:09.117620
"""

from alembic import op

revision = "2e90c1a4d7b6"
down_revision = "f60b2c9d4187"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.create_index("pools_project_id_digest_idx", "pools", ["project_id", "digest"])


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.drop_index("pools_project_id_digest_idx", "pools")
