"""Mappings of columns are remembered, by project.

Revision: c7f1d90b52e6
Follows: b7f3d20a91ce
Written: 2026-11-23 08:35:10.114203
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "c7f1d90b52e6"
down_revision = "b7f3d20a91ce"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "mappings",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("columns_digest", sa.LargeBinary(), nullable=False),
        sa.Column("mapping", postgresql.JSONB(), nullable=False),
        sa.Column(
            "used_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name="mappings_project_id_fkey"
        ),
        sa.PrimaryKeyConstraint("project_id", "columns_digest", name="mappings_pkey"),
    )


def downgrade() -> None:
    op.drop_table("mappings")
