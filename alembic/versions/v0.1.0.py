"""The schema of release 0.1.0."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "v0.1.0"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A statement that waits for a table makes everyone behind it wait too: give up early, try again
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.execute("SET LOCAL statement_timeout = '5min'")
    op.create_table(
        "comments",
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("round", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("rater", sa.Text(), nullable=False),
        sa.Column(
            "project_id",
            sa.Uuid(),
            server_default=sa.text("'00000000-0000-7000-8000-000000000001'::uuid"),
            nullable=False,
        ),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.PrimaryKeyConstraint(
            "session_id", "round", "key_id", "rater", name=op.f("comments_pkey")
        ),
    )
    op.create_table(
        "events",
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("sequence", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column(
            "project_id",
            sa.Uuid(),
            server_default=sa.text("'00000000-0000-7000-8000-000000000001'::uuid"),
            nullable=False,
        ),
        sa.Column("kind", sa.SmallInteger(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=True),
        sa.Column("item", sa.Integer(), nullable=True),
        sa.Column("q", sa.Double(), nullable=True),
        sa.Column("strata_q", sa.LargeBinary(), nullable=True),
        sa.Column("seen", sa.Integer(), nullable=True),
        sa.Column("loss", sa.Double(), nullable=True),
        sa.Column("losses", postgresql.ARRAY(sa.Double()), nullable=True),
        sa.Column(
            "detail", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.CheckConstraint(
            "kind <> 1 OR"
            " (round IS NOT NULL AND item IS NOT NULL AND q IS NOT NULL AND seen IS NOT NULL)",
            name=op.f("events_draw_check"),
        ),
        sa.CheckConstraint(
            "kind <> 2 OR (round IS NOT NULL AND (loss IS NULL) <> (losses IS NULL))",
            name=op.f("events_observation_check"),
        ),
        sa.CheckConstraint("kind BETWEEN 1 AND 7", name=op.f("events_kind_check")),
        sa.PrimaryKeyConstraint("session_id", "sequence", name=op.f("events_pkey")),
    )
    op.create_index(
        "events_amendments_idx",
        "events",
        ["session_id", "round"],
        unique=False,
        postgresql_where=sa.text("kind = 4"),
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
    op.create_index(
        "events_ratings_idx",
        "events",
        ["session_id", "round"],
        unique=False,
        postgresql_where=sa.text("kind = 6"),
    )
    op.create_table(
        "items",
        sa.Column("pool_id", sa.Uuid(), nullable=False),
        sa.Column("index", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column(
            "project_id",
            sa.Uuid(),
            server_default=sa.text("'00000000-0000-7000-8000-000000000001'::uuid"),
            nullable=False,
        ),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column(
            "payload", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.PrimaryKeyConstraint("pool_id", "index", name=op.f("items_pkey")),
        sa.UniqueConstraint("pool_id", "id", name=op.f("items_pool_id_id_key")),
    )
    op.create_table(
        "projects",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("level", sa.Double(), server_default=sa.text("0.05"), nullable=False),
        sa.Column("asked", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name=op.f("projects_pkey")),
        sa.UniqueConstraint("name", name=op.f("projects_name_key")),
    )
    op.create_table(
        "trajectory",
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("round", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column(
            "project_id",
            sa.Uuid(),
            server_default=sa.text("'00000000-0000-7000-8000-000000000001'::uuid"),
            nullable=False,
        ),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("estimate", sa.Double(), nullable=False),
        sa.Column("lower", sa.Double(), nullable=False),
        sa.Column("upper", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "round", name=op.f("trajectory_pkey")),
    )
    op.create_table(
        "certificates",
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("final", sa.Boolean(), nullable=False),
        sa.Column("issued_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("certificates_project_id_fkey")
        ),
        sa.PrimaryKeyConstraint("session_id", "digest", name=op.f("certificates_pkey")),
    )
    op.create_table(
        "idempotency",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=True),
        sa.Column("answer", sa.LargeBinary(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("idempotency_project_id_fkey")
        ),
        sa.PrimaryKeyConstraint("project_id", "key", name=op.f("idempotency_pkey")),
    )
    op.create_index(op.f("idempotency_created_at_idx"), "idempotency", ["created_at"], unique=False)
    op.create_table(
        "keys",
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("scopes", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("secret_hash", sa.LargeBinary(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("replaced_by", sa.Text(), nullable=True),
        sa.Column("person", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("keys_project_id_fkey")
        ),
        sa.PrimaryKeyConstraint("key_id", name=op.f("keys_pkey")),
    )
    op.create_index(
        op.f("keys_project_id_created_at_key_id_idx"),
        "keys",
        ["project_id", "created_at", "key_id"],
        unique=False,
    )
    op.create_table(
        "mappings",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("columns_digest", sa.LargeBinary(), nullable=False),
        sa.Column("mapping", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "used_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("mappings_project_id_fkey")
        ),
        sa.PrimaryKeyConstraint("project_id", "columns_digest", name=op.f("mappings_pkey")),
    )
    op.create_table(
        "pools",
        sa.Column("pool_id", sa.Uuid(), nullable=False),
        sa.Column(
            "project_id",
            sa.Uuid(),
            server_default=sa.text("'00000000-0000-7000-8000-000000000001'::uuid"),
            nullable=False,
        ),
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
            "stated",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "systems", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column(
            "based_on", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column(
            "score", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column(
            "metrics", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column(
            "levels", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column(
            "group_columns",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            nullable=True,
        ),
        sa.Column(
            "intake", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
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
        sa.Column("archived_at", sa.DateTime(timezone=True), nullable=True),
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
        op.f("pools_project_id_digest_idx"), "pools", ["project_id", "digest"], unique=False
    )
    op.create_index(
        op.f("pools_project_id_pool_id_idx"), "pools", ["project_id", "pool_id"], unique=False
    )
    op.create_table(
        "tombstones",
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("pool_id", sa.Uuid(), nullable=False),
        sa.Column("pool_digest", sa.LargeBinary(), nullable=False),
        sa.Column("plan_digest", sa.LargeBinary(), nullable=False),
        sa.Column("commitment", sa.LargeBinary(), nullable=False),
        sa.Column("ledger_head", sa.LargeBinary(), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("lifecycle", sa.Text(), nullable=False),
        sa.Column("pushed", sa.Boolean(), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "deleted_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("deleted_by", sa.Text(), nullable=True),
        sa.Column("remains", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("tombstones_project_id_fkey")
        ),
        sa.PrimaryKeyConstraint("session_id", name=op.f("tombstones_pkey")),
    )
    op.create_index(
        op.f("tombstones_project_id_pool_digest_idx"),
        "tombstones",
        ["project_id", "pool_digest"],
        unique=False,
    )
    op.create_index(
        op.f("tombstones_project_id_session_id_idx"),
        "tombstones",
        ["project_id", "session_id"],
        unique=False,
    )
    op.create_index(
        "tombstones_remains_idx",
        "tombstones",
        ["deleted_at"],
        unique=False,
        postgresql_where=sa.text("remains"),
    )
    op.create_table(
        "browser_sessions",
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "last_seen_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["key_id"],
            ["keys.key_id"],
            name=op.f("browser_sessions_key_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("browser_sessions_project_id_fkey")
        ),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("browser_sessions_pkey")),
    )
    op.create_index(
        op.f("browser_sessions_expires_at_idx"), "browser_sessions", ["expires_at"], unique=False
    )
    op.create_index(
        op.f("browser_sessions_key_id_created_at_idx"),
        "browser_sessions",
        ["key_id", "created_at"],
        unique=False,
    )
    op.create_table(
        "chunks",
        sa.Column("pool_id", sa.Uuid(), nullable=False),
        sa.Column("column", sa.Text(), nullable=False),
        sa.Column("start", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column(
            "project_id",
            sa.Uuid(),
            server_default=sa.text("'00000000-0000-7000-8000-000000000001'::uuid"),
            nullable=False,
        ),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("dtype", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["pool_id"], ["pools.pool_id"], name=op.f("chunks_pool_id_fkey")),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("chunks_project_id_fkey")
        ),
        sa.PrimaryKeyConstraint("pool_id", "column", "start", name=op.f("chunks_pkey")),
    )
    op.create_table(
        "invitations",
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "invitation_id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False
        ),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("made_key", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("at_start", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.ForeignKeyConstraint(
            ["key_id"], ["keys.key_id"], name=op.f("invitations_key_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("invitations_project_id_fkey")
        ),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("invitations_pkey")),
        sa.UniqueConstraint("invitation_id", name=op.f("invitations_invitation_id_key")),
    )
    op.create_index(op.f("invitations_expires_at_idx"), "invitations", ["expires_at"], unique=False)
    op.create_index(op.f("invitations_key_id_idx"), "invitations", ["key_id"], unique=False)
    op.create_index(
        op.f("invitations_project_id_invitation_id_idx"),
        "invitations",
        ["project_id", "invitation_id"],
        unique=False,
    )
    op.create_table(
        "sessions",
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column(
            "project_id",
            sa.Uuid(),
            server_default=sa.text("'00000000-0000-7000-8000-000000000001'::uuid"),
            nullable=False,
        ),
        sa.Column("pool_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
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
        sa.Column("ledger_head", sa.LargeBinary(), nullable=False),
        sa.Column("stamp", sa.LargeBinary(), nullable=True),
        sa.Column(
            "planned_labels",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            nullable=True,
        ),
        sa.Column("seconds_per_label", sa.Double(), nullable=True),
        sa.Column(
            "contradictions",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "origin", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column(
            "tags",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "words", postgresql.TSVECTOR(), server_default=sa.text("''::tsvector"), nullable=False
        ),
        sa.Column("place", sa.Integer(), nullable=True),
        sa.Column(
            "active_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("archived_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stall_told", sa.Integer(), nullable=True),
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
        "sessions_by_activity_idx",
        "sessions",
        ["project_id", "active_at", "session_id"],
        unique=False,
    )
    op.create_index(
        "sessions_by_name_idx",
        "sessions",
        ["project_id", sa.literal_column("lower(coalesce(name, ''))"), "session_id"],
        unique=False,
    )
    op.create_index(
        "sessions_by_owner_idx",
        "sessions",
        ["project_id", sa.literal_column("lower(coalesce(owner, ''))"), "session_id"],
        unique=False,
    )
    op.create_index(
        "sessions_by_state_idx", "sessions", ["project_id", "state", "session_id"], unique=False
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
    op.create_index(
        "sessions_words_idx", "sessions", ["words"], unique=False, postgresql_using="gin"
    )
    op.create_table(
        "instructions",
        sa.Column("instructions_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("pool_id", sa.Uuid(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("key_id", sa.Text(), nullable=True),
        sa.Column(
            "at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["pool_id"],
            ["pools.pool_id"],
            name=op.f("instructions_pool_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("instructions_project_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.session_id"],
            name=op.f("instructions_session_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("instructions_id", name=op.f("instructions_pkey")),
    )
    op.create_index(
        op.f("instructions_pool_id_session_id_idx"),
        "instructions",
        ["pool_id", "session_id"],
        unique=False,
    )
    op.create_table(
        "labellers",
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column(
            "project_id",
            sa.Uuid(),
            server_default=sa.text("'00000000-0000-7000-8000-000000000001'::uuid"),
            nullable=False,
        ),
        sa.Column("labels", sa.Integer(), nullable=False),
        sa.Column("last_round", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.session_id"], name=op.f("labellers_session_id_fkey")
        ),
        sa.PrimaryKeyConstraint("session_id", "key_id", name=op.f("labellers_pkey")),
    )
    op.create_index(
        op.f("labellers_key_id_session_id_idx"), "labellers", ["key_id", "session_id"], unique=False
    )
    op.create_table(
        "leases",
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("round", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column(
            "project_id",
            sa.Uuid(),
            server_default=sa.text("'00000000-0000-7000-8000-000000000001'::uuid"),
            nullable=False,
        ),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "since",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "keys",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "passed",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column("beside", postgresql.JSONB(none_as_null=True, astext_type=sa.Text())),
        sa.Column("runs", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.session_id"], name=op.f("leases_session_id_fkey")
        ),
        sa.PrimaryKeyConstraint("session_id", "round", name=op.f("leases_pkey")),
    )
    op.create_table(
        "shares",
        sa.Column("share_id", sa.Uuid(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("shares_project_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.session_id"],
            name=op.f("shares_session_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("share_id", name=op.f("shares_pkey")),
        sa.UniqueConstraint("token_hash", name=op.f("shares_token_hash_key")),
    )
    op.create_index(
        op.f("shares_session_id_created_at_idx"),
        "shares",
        ["session_id", "created_at"],
        unique=False,
    )
    op.create_table(
        "webhooks",
        sa.Column("webhook_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=True),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("events", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("former_secret", sa.LargeBinary(), nullable=True),
        sa.Column("former_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("disabled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("failing_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("busy_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("webhooks_project_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.session_id"],
            name=op.f("webhooks_session_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("webhook_id", name=op.f("webhooks_pkey")),
    )
    op.create_index(
        op.f("webhooks_project_id_webhook_id_idx"),
        "webhooks",
        ["project_id", "webhook_id"],
        unique=False,
    )
    op.create_index(op.f("webhooks_session_id_idx"), "webhooks", ["session_id"], unique=False)
    op.create_table(
        "deliveries",
        sa.Column("delivery_id", sa.Uuid(), nullable=False),
        sa.Column("webhook_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("data", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'pending'"), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_attempt_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("status", sa.SmallInteger(), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "state IN ('pending', 'delivered', 'failed')", name=op.f("deliveries_state_check")
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.project_id"], name=op.f("deliveries_project_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["webhook_id"],
            ["webhooks.webhook_id"],
            name=op.f("deliveries_webhook_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("delivery_id", name=op.f("deliveries_pkey")),
    )
    op.create_index(
        "deliveries_pending_idx",
        "deliveries",
        ["webhook_id", "next_attempt_at"],
        unique=False,
        postgresql_where=sa.text("state = 'pending'"),
    )
    op.create_index(
        op.f("deliveries_webhook_id_created_at_idx"),
        "deliveries",
        ["webhook_id", "created_at"],
        unique=False,
    )
    op.execute("ALTER TABLE chunks ALTER COLUMN data SET STORAGE EXTERNAL")
    op.execute("ALTER TABLE items ALTER COLUMN pool_id SET STATISTICS 0")
    op.execute(
        "INSERT INTO projects (project_id, name)"
        " VALUES ('00000000-0000-7000-8000-000000000001', 'default')"
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.drop_index(op.f("deliveries_webhook_id_created_at_idx"), table_name="deliveries")
    op.drop_index(
        "deliveries_pending_idx",
        table_name="deliveries",
        postgresql_where=sa.text("state = 'pending'"),
    )
    op.drop_table("deliveries")
    op.drop_index(op.f("webhooks_session_id_idx"), table_name="webhooks")
    op.drop_index(op.f("webhooks_project_id_webhook_id_idx"), table_name="webhooks")
    op.drop_table("webhooks")
    op.drop_index(op.f("shares_session_id_created_at_idx"), table_name="shares")
    op.drop_table("shares")
    op.drop_table("leases")
    op.drop_index(op.f("labellers_key_id_session_id_idx"), table_name="labellers")
    op.drop_table("labellers")
    op.drop_index(op.f("instructions_pool_id_session_id_idx"), table_name="instructions")
    op.drop_table("instructions")
    op.drop_index("sessions_words_idx", table_name="sessions", postgresql_using="gin")
    op.drop_index(op.f("sessions_project_id_session_id_idx"), table_name="sessions")
    op.drop_index(op.f("sessions_pool_id_session_id_idx"), table_name="sessions")
    op.drop_index("sessions_by_state_idx", table_name="sessions")
    op.drop_index("sessions_by_owner_idx", table_name="sessions")
    op.drop_index("sessions_by_name_idx", table_name="sessions")
    op.drop_index("sessions_by_activity_idx", table_name="sessions")
    op.drop_table("sessions")
    op.drop_index(op.f("invitations_project_id_invitation_id_idx"), table_name="invitations")
    op.drop_index(op.f("invitations_key_id_idx"), table_name="invitations")
    op.drop_index(op.f("invitations_expires_at_idx"), table_name="invitations")
    op.drop_table("invitations")
    op.drop_table("chunks")
    op.drop_index(op.f("browser_sessions_key_id_created_at_idx"), table_name="browser_sessions")
    op.drop_index(op.f("browser_sessions_expires_at_idx"), table_name="browser_sessions")
    op.drop_table("browser_sessions")
    op.drop_index(
        "tombstones_remains_idx", table_name="tombstones", postgresql_where=sa.text("remains")
    )
    op.drop_index(op.f("tombstones_project_id_session_id_idx"), table_name="tombstones")
    op.drop_index(op.f("tombstones_project_id_pool_digest_idx"), table_name="tombstones")
    op.drop_table("tombstones")
    op.drop_index(op.f("pools_project_id_pool_id_idx"), table_name="pools")
    op.drop_index(op.f("pools_project_id_digest_idx"), table_name="pools")
    op.drop_table("pools")
    op.drop_table("mappings")
    op.drop_index(op.f("keys_project_id_created_at_key_id_idx"), table_name="keys")
    op.drop_table("keys")
    op.drop_index(op.f("idempotency_created_at_idx"), table_name="idempotency")
    op.drop_table("idempotency")
    op.drop_table("certificates")
    op.drop_table("trajectory")
    op.drop_table("projects")
    op.drop_table("items")
    op.drop_index("events_ratings_idx", table_name="events", postgresql_where=sa.text("kind = 6"))
    op.drop_index(
        "events_one_observation_a_round_idx",
        table_name="events",
        postgresql_where=sa.text("kind IN (2, 3)"),
    )
    op.drop_index(
        "events_one_draw_a_round_idx", table_name="events", postgresql_where=sa.text("kind = 1")
    )
    op.drop_index(
        "events_amendments_idx", table_name="events", postgresql_where=sa.text("kind = 4")
    )
    op.drop_table("events")
    op.drop_table("comments")
