"""What a key has labelled is found by the key.

Revision: 7d20e9c1b6fa
Follows: 3c7be0a4d915
Written: 2026-11-23 14:52:33.702911
"""

from alembic import op

revision = "7d20e9c1b6fa"
down_revision = "3c7be0a4d915"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.create_index("labellers_key_id_session_id_idx", "labellers", ["key_id", "session_id"])


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.drop_index("labellers_key_id_session_id_idx", "labellers")
