"""Invitations have names and can be withdrawn; keys of people are told from those of programs.

Revision: d3a86e15b40f
Follows: a5d0c38e91f4
Written: 2026-11-23 11:40:12.310477
"""

import sqlalchemy as sa
from alembic import op

revision = "d3a86e15b40f"
down_revision = "a5d0c38e91f4"
branch_labels = None
depends_on = None

_NO = sa.text("false")


def upgrade() -> None:
    op.add_column("keys", sa.Column("person", sa.Boolean(), server_default=_NO, nullable=False))
    for column in (
        sa.Column(
            "invitation_id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False
        ),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
        sa.Column("made_key", sa.Boolean(), server_default=_NO, nullable=False),
        sa.Column("at_start", sa.Boolean(), server_default=_NO, nullable=False),
    ):
        op.add_column("invitations", column)
    op.create_unique_constraint("invitations_invitation_id_key", "invitations", ["invitation_id"])
    op.create_index(
        "invitations_project_id_invitation_id_idx",
        "invitations",
        [
            "project_id",
            "invitation_id",
        ],
    )
    op.create_index(
        "keys_project_id_created_at_key_id_idx",
        "keys",
        [
            "project_id",
            "created_at",
            "key_id",
        ],
    )
    op.execute(
        "UPDATE keys SET person = true WHERE key_id IN"
        " (SELECT key_id FROM browser_sessions UNION SELECT key_id FROM invitations)"
    )


def downgrade() -> None:
    op.drop_index("keys_project_id_created_at_key_id_idx", "keys")
    op.drop_index("invitations_project_id_invitation_id_idx", "invitations")
    op.drop_constraint("invitations_invitation_id_key", "invitations")
    # A withdrawn link would work again
    op.execute("DELETE FROM invitations WHERE revoked_at IS NOT NULL")
    for column in ("at_start", "made_key", "revoked_at", "invitation_id"):
        op.drop_column("invitations", column)
    op.drop_column("keys", "person")
