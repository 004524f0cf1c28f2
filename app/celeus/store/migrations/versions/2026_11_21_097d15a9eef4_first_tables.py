"""The first tables, and the project everything belongs to until there are keys.

Revision: 097d15a9eef4
Follows: nothing
Written: 2026-11-21 10:14:38.873521
"""

from uuid import UUID

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from celeus.store.migrations import refuse_to_lose

revision = "097d15a9eef4"
down_revision = None
branch_labels = None
depends_on = None

# Repeated here: a migration must not change when the tables do
DEFAULT_PROJECT = UUID("00000000-0000-7000-8000-000000000001")
OF_DEFAULT_PROJECT = sa.text(f"'{DEFAULT_PROJECT}'::uuid")


def upgrade() -> None:
    # A statement that waits for a table makes everyone behind it wait too: give up early, try again
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.execute("SET LOCAL statement_timeout = '5min'")
    op.create_table(
        "projects",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name=op.f("projects_pkey")),
        sa.UniqueConstraint("name", name=op.f("projects_name_key")),
    )
    projects = sa.table(
        "projects", sa.column("project_id", sa.Uuid()), sa.column("name", sa.Text())
    )
    op.bulk_insert(projects, [{"project_id": DEFAULT_PROJECT, "name": "default"}])
    op.create_table(
        "items",
        sa.Column("pool_id", sa.Uuid(), nullable=False),
        sa.Column("index", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.Uuid(), server_default=OF_DEFAULT_PROJECT, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column(
            "payload", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.PrimaryKeyConstraint("pool_id", "index", name=op.f("items_pkey")),
        sa.UniqueConstraint("pool_id", "id", name=op.f("items_pool_id_id_key")),
    )
    op.create_table(
        "pools",
        sa.Column("pool_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), server_default=OF_DEFAULT_PROJECT, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("loss_kind", sa.Text(), nullable=False),
        sa.Column("loss_lower", sa.Double(), nullable=False),
        sa.Column("loss_upper", sa.Double(), nullable=False),
        sa.Column("sealed", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("items", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("classes", sa.Integer(), nullable=True),
        sa.Column(
            "columns",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "groups",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "items_digest", sa.LargeBinary(), server_default=sa.text("''::bytea"), nullable=False
        ),
        sa.Column("digest", sa.LargeBinary(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("sealed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("loss_lower < loss_upper", name=op.f("pools_loss_scale_check")),
        sa.CheckConstraint(
            "sealed = (digest IS NOT NULL)", name=op.f("pools_sealed_has_digest_check")
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("pools_project_id_fkey")
        ),
        sa.PrimaryKeyConstraint("pool_id", name=op.f("pools_pkey")),
    )
    op.create_index(
        op.f("pools_project_id_pool_id_idx"), "pools", ["project_id", "pool_id"], unique=False
    )
    op.create_table(
        "chunks",
        sa.Column("pool_id", sa.Uuid(), nullable=False),
        sa.Column("column", sa.Text(), nullable=False),
        sa.Column("start", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.Uuid(), server_default=OF_DEFAULT_PROJECT, nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("dtype", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["pool_id"], ["pools.pool_id"], name=op.f("chunks_pool_id_fkey")),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("chunks_project_id_fkey")
        ),
        sa.PrimaryKeyConstraint("pool_id", "column", "start", name=op.f("chunks_pkey")),
    )
    # Scores hardly shrink, and a column's chunks are always read whole
    op.execute("ALTER TABLE chunks ALTER COLUMN data SET STORAGE EXTERNAL")
    op.create_table(
        "sessions",
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), server_default=OF_DEFAULT_PROJECT, nullable=False),
        sa.Column("pool_id", sa.Uuid(), nullable=False),
        sa.Column("plan", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("plan_digest", sa.LargeBinary(), nullable=False),
        sa.Column("seed", sa.LargeBinary(), nullable=False),
        sa.Column("commitment", sa.LargeBinary(), nullable=False),
        sa.Column("lease_seconds", sa.Integer(), nullable=False),
        sa.Column("lifecycle", sa.Text(), server_default=sa.text("'active'"), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("precision", sa.Double(), nullable=True),
        sa.Column("budget", sa.Integer(), nullable=False),
        sa.Column("sequence", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("revision", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("drawn", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("status", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "forecast", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "lifecycle IN ('active', 'paused', 'closed')", name=op.f("sessions_lifecycle_check")
        ),
        sa.ForeignKeyConstraint(["pool_id"], ["pools.pool_id"], name=op.f("sessions_pool_id_fkey")),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("sessions_project_id_fkey")
        ),
        sa.PrimaryKeyConstraint("session_id", name=op.f("sessions_pkey")),
        postgresql_with={"fillfactor": 50},
    )
    op.create_index(
        op.f("sessions_pool_id_session_id_idx"), "sessions", ["pool_id", "session_id"], unique=False
    )
    op.create_index(
        op.f("sessions_project_id_session_id_idx"),
        "sessions",
        ["project_id", "session_id"],
        unique=False,
    )
    op.create_table(
        "events",
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("sequence", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.Uuid(), server_default=OF_DEFAULT_PROJECT, nullable=False),
        sa.Column("kind", sa.SmallInteger(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=True),
        sa.Column("item", sa.Integer(), nullable=True),
        sa.Column("q", sa.Double(), nullable=True),
        sa.Column("strata_q", sa.LargeBinary(), nullable=True),
        sa.Column("seen", sa.Integer(), nullable=True),
        sa.Column("loss", sa.Double(), nullable=True),
        sa.Column(
            "detail", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.CheckConstraint(
            "kind <> 1 OR (round IS NOT NULL AND item IS NOT NULL"
            " AND q IS NOT NULL AND seen IS NOT NULL)",
            name=op.f("events_draw_check"),
        ),
        sa.CheckConstraint(
            "kind <> 2 OR (round IS NOT NULL AND loss IS NOT NULL)",
            name=op.f("events_observation_check"),
        ),
        sa.CheckConstraint("kind BETWEEN 1 AND 5", name=op.f("events_kind_check")),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.session_id"], name=op.f("events_session_id_fkey")
        ),
        sa.PrimaryKeyConstraint("session_id", "sequence", name=op.f("events_pkey")),
    )
    op.create_index(
        "events_one_draw_a_round_idx",
        "events",
        ["session_id", "round"],
        unique=True,
        postgresql_where=sa.text("kind = 1"),
    )
    op.create_index(
        "events_one_observation_a_round_idx",
        "events",
        ["session_id", "round"],
        unique=True,
        postgresql_where=sa.text("kind IN (2, 3)"),
    )
    op.create_table(
        "leases",
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("round", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.Uuid(), server_default=OF_DEFAULT_PROJECT, nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.session_id"], name=op.f("leases_session_id_fkey")
        ),
        sa.PrimaryKeyConstraint("session_id", "round", name=op.f("leases_pkey")),
    )
    op.create_table(
        "trajectory",
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("revision", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("round", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("project_id", sa.Uuid(), server_default=OF_DEFAULT_PROJECT, nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("estimate", sa.Double(), nullable=False),
        sa.Column("lower", sa.Double(), nullable=False),
        sa.Column("upper", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.session_id"], name=op.f("trajectory_session_id_fkey")
        ),
        sa.PrimaryKeyConstraint("session_id", "revision", "round", name=op.f("trajectory_pkey")),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    refuse_to_lose("pools and sessions", "pools")
    op.drop_table("trajectory")
    op.drop_table("leases")
    op.drop_index(
        "events_one_observation_a_round_idx",
        table_name="events",
        postgresql_where=sa.text("kind IN (2, 3)"),
    )
    op.drop_index(
        "events_one_draw_a_round_idx", table_name="events", postgresql_where=sa.text("kind = 1")
    )
    op.drop_table("events")
    op.drop_index(op.f("sessions_project_id_session_id_idx"), table_name="sessions")
    op.drop_index(op.f("sessions_pool_id_session_id_idx"), table_name="sessions")
    op.drop_table("sessions")
    op.drop_table("chunks")
    op.drop_index(op.f("pools_project_id_pool_id_idx"), table_name="pools")
    op.drop_table("pools")
    op.drop_table("projects")
    op.drop_table("items")
