"""Sessions have an owner and tags, and lists of them an order.

Revision: 5e93a7c0d14b
Follows: d3a86e15b40f
Written: 2026-11-23 11:58:02.310477
"""

from alembic import op

from celeus.store.migrations import refuse_to_lose

revision = "5e93a7c0d14b"
down_revision = "d3a86e15b40f"
branch_labels = None
depends_on = None

_NAMES = """
    UPDATE sessions SET status = status || jsonb_build_object(
            'owner', NULL, 'tags', '[]'::jsonb, 'active_at', to_char(
                date_trunc('minute', updated_at) AT TIME ZONE 'UTC',
                'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"')),
        active_at = date_trunc('minute', updated_at), words = array_to_tsvector(
        ARRAY(SELECT DISTINCT word
              FROM regexp_split_to_table(lower(coalesce(name, '')), '[^[:alnum:]]+') AS word
              WHERE word <> '' AND octet_length(word) < 1000))
    """
_INDEXES = {
    "sessions_by_name_idx": "(project_id, lower(coalesce(name, '')), session_id)",
    "sessions_by_owner_idx": "(project_id, lower(coalesce(owner, '')), session_id)",
    "sessions_by_activity_idx": "(project_id, active_at, session_id)",
    "sessions_by_state_idx": "(project_id, state, session_id)",
    "sessions_words_idx": "USING gin (words)",
}
_COLUMNS = {
    "owner": "text",
    "tags": "jsonb NOT NULL DEFAULT '[]'",
    "words": "tsvector NOT NULL DEFAULT ''",
    "active_at": "timestamptz NOT NULL DEFAULT now()",
}


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    for name, kind in _COLUMNS.items():
        op.execute(f"ALTER TABLE sessions ADD COLUMN {name} {kind}")
    op.execute(_NAMES)
    for name, columns in _INDEXES.items():
        op.execute(f"CREATE INDEX {name} ON sessions {columns}")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '4s'")
    refuse_to_lose("tags of sessions", "sessions WHERE tags <> '[]'")
    for name in _INDEXES:
        op.drop_index(name, "sessions")
    for name in _COLUMNS:
        op.drop_column("sessions", name)
    op.execute("""UPDATE sessions SET status = status - 'owner' - 'tags' - 'words'
        - 'active_at'""")
