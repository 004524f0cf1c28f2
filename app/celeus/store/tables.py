"""The tables, and nothing that reads or writes them.

Every key of what grows starts with `pool_id` or `session_id`, so that the schema can be distributed
or partitioned by it; every table names its project. The ledger (`events`) is only ever inserted
into; `leases` and the row of `sessions` change; `trajectory` is derived and may be replaced.
"""

from uuid import UUID

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR

DEFAULT_PROJECT = UUID("00000000-0000-7000-8000-000000000001")
"""The project everything belongs to unless a key names another."""

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    }
)


def _project() -> Column[UUID]:
    """The project of a row, the default one unless another is named."""
    return Column(
        "project_id",
        Uuid,
        ForeignKey("projects.project_id"),
        nullable=False,
        server_default=text(f"'{DEFAULT_PROJECT}'::uuid"),
    )


def _many_rows_project() -> Column[UUID]:
    """Return the project's column without its foreign key: checks of a million rows cost time."""
    return Column(
        "project_id", Uuid, nullable=False, server_default=text(f"'{DEFAULT_PROJECT}'::uuid")
    )


projects = Table(
    "projects",
    metadata,
    Column("project_id", Uuid, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    # The share of false ones among its sessions shown, at most, in the mean: fixed for good.
    Column("level", Double, nullable=False, server_default=text("0.05")),
    # Sessions opened with a question, those deleted since included.
    Column("asked", Integer, nullable=False, server_default=text("0")),
)

keys = Table(
    "keys",
    metadata,
    Column("key_id", Text, primary_key=True),
    Column("project_id", Uuid, ForeignKey("projects.project_id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("scopes", JSONB, nullable=False),
    # SHA-256 of the secret, which is kept nowhere.
    Column("secret_hash", LargeBinary, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("expires_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
    # To the minute: moving it forward at every request would make every request a write.
    Column("last_used_at", DateTime(timezone=True)),
    # The key made when this one was rotated.
    Column("replaced_by", Text),
    # Made by an invitation, so that nobody knows its secret, or used to sign a browser in.
    Column("person", Boolean, nullable=False, server_default=text("false")),
    Index(None, "project_id", "created_at", "key_id"),
)

browser_sessions = Table(
    "browser_sessions",
    metadata,
    # SHA-256 of the cookie, which is kept nowhere.
    Column("token_hash", LargeBinary, primary_key=True),
    Column("key_id", Text, ForeignKey("keys.key_id", ondelete="CASCADE"), nullable=False),
    Column("project_id", Uuid, ForeignKey("projects.project_id"), nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    # To the minute, as the last use of a key.
    Column("last_seen_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Index(None, "key_id", "created_at"),
    Index(None, "expires_at"),
)

invitations = Table(
    "invitations",
    metadata,
    # SHA-256 of what the link carries, which is kept nowhere.
    Column("token_hash", LargeBinary, primary_key=True),
    Column("key_id", Text, ForeignKey("keys.key_id", ondelete="CASCADE"), nullable=False),
    Column("project_id", Uuid, ForeignKey("projects.project_id"), nullable=False),
    # The page that the link leads to.
    Column("path", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("used_at", DateTime(timezone=True)),
    # What lists call it.
    Column(
        "invitation_id", Uuid, nullable=False, unique=True, server_default=text("gen_random_uuid()")
    ),
    Column("revoked_at", DateTime(timezone=True)),
    # Made together with its key, which ends with a link that nobody has used.
    Column("made_key", Boolean, nullable=False, server_default=text("false")),
    # Printed by a start of the service: of these one works at a time.
    Column("at_start", Boolean, nullable=False, server_default=text("false")),
    Index(None, "key_id"),
    Index(None, "expires_at"),
    Index(None, "project_id", "invitation_id"),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("project_id", Uuid, ForeignKey("projects.project_id"), primary_key=True),
    Column("key", Text, primary_key=True),
    # SHA-256 of the request: the same key with another request is refused.
    Column("fingerprint", LargeBinary, nullable=False),
    # What was answered; null only inside the transaction that is making the answer.
    Column("status", SmallInteger),
    Column("answer", LargeBinary),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Index(None, "created_at"),
)

pools = Table(
    "pools",
    metadata,
    Column("pool_id", Uuid, primary_key=True),
    _project(),
    Column("name", Text, nullable=False),
    Column("loss_kind", Text, nullable=False),
    Column("loss_lower", Double, nullable=False),
    Column("loss_upper", Double, nullable=False),
    Column("sealed", Boolean, nullable=False, server_default=text("false")),
    Column("items", Integer, nullable=False, server_default=text("0")),
    Column("classes", Integer),
    # The names of the numeric columns, in their order of arrival.
    Column("columns", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    # The names of the groups, in the order of their codes.
    Column("groups", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    # How many losses are known, by reason, and how many have bounds of their own.
    Column("stated", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    # The systems: two that are compared, or several among which the best is sought.
    Column("systems", JSONB(none_as_null=True)),
    # The judged session of an earlier version, of whose losses some are known here.
    Column("based_on", JSONB(none_as_null=True)),
    # What the mean of its losses is called, where somebody named it.
    Column("score", JSONB(none_as_null=True)),
    # The losses of a judgement that gives several: name, scale, score.
    Column("metrics", JSONB(none_as_null=True)),
    # The named levels of the scale: name, grade, help.
    Column("levels", JSONB(none_as_null=True)),
    # The group columns, each with its values in the order of their codes.
    Column("group_columns", JSONB(none_as_null=True)),
    # How the file that it was made of was read: what was certain, given and guessed.
    Column("intake", JSONB(none_as_null=True)),
    # A hash chain over the items so far; `digest` is the sealed pool's.
    Column("items_digest", LargeBinary, nullable=False, server_default=text("''::bytea")),
    Column("digest", LargeBinary),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("sealed_at", DateTime(timezone=True)),
    # Lists leave out what is archived.
    Column("archived_at", DateTime(timezone=True)),
    CheckConstraint("loss_lower < loss_upper", name="loss_scale"),
    CheckConstraint("sealed = (digest IS NOT NULL)", name="sealed_has_digest"),
    Index(None, "project_id", "pool_id"),
    Index(None, "project_id", "digest"),
)

items = Table(
    "items",
    metadata,
    # No foreign key, for the same reason as the project's: rows come by COPY under the pool's lock.
    # No statistics (by the migration): they miss a new pool, which then passes for a single item,
    # so that the index on ids seems as good as the key, and one item is sought among all of them.
    Column("pool_id", Uuid, primary_key=True),
    Column("index", Integer, primary_key=True, autoincrement=False),
    _many_rows_project(),
    Column("id", Text, nullable=False),
    Column("payload", JSONB(none_as_null=True)),
    UniqueConstraint("pool_id", "id"),
)

chunks = Table(
    "chunks",
    metadata,
    Column("pool_id", Uuid, ForeignKey("pools.pool_id"), primary_key=True),
    Column("column", Text, primary_key=True),
    Column("start", Integer, primary_key=True, autoincrement=False),
    _project(),
    Column("count", Integer, nullable=False),
    Column("dtype", Text, nullable=False),
    # Stored out of line and uncompressed (by the migration): scores hardly shrink, reads are whole.
    Column("data", LargeBinary, nullable=False),
)

mappings = Table(
    "mappings",
    metadata,
    Column("project_id", Uuid, ForeignKey("projects.project_id"), primary_key=True),
    # SHA-256 of the canonical JSON of the names, sorted.
    Column("columns_digest", LargeBinary, primary_key=True),
    # Roles by the columns of a file.
    Column("mapping", JSONB, nullable=False),
    Column("used_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)

sessions = Table(
    "sessions",
    metadata,
    Column("session_id", Uuid, primary_key=True),
    _project(),
    Column("pool_id", Uuid, ForeignKey("pools.pool_id"), nullable=False),
    # What people call it; neither plan nor certificate knows it.
    Column("name", Text),
    Column("plan", JSONB, nullable=False),
    Column("plan_digest", LargeBinary, nullable=False),
    Column("seed", LargeBinary, nullable=False),
    Column("commitment", LargeBinary, nullable=False),
    Column("lease_seconds", Integer, nullable=False),
    Column("lifecycle", Text, nullable=False, server_default=text("'active'")),
    Column("state", Text, nullable=False),
    Column("precision", Double),
    Column("budget", Integer, nullable=False),
    # The last event's number, one more than there were corrections, the rounds drawn.
    Column("sequence", Integer, nullable=False, server_default=text("0")),
    Column("revision", Integer, nullable=False, server_default=text("0")),
    Column("drawn", Integer, nullable=False, server_default=text("0")),
    # The document that GET answers, written by whoever wrote the last event.
    Column("status", JSONB, nullable=False),
    # The head of the hash chain over the ledger.
    Column("ledger_head", LargeBinary, nullable=False),
    # A timestamping service's answer (RFC 3161) over the chain's start, where there is one.
    Column("stamp", LargeBinary),
    # How many labels a plan made beforehand said it would take; neither plan nor certificate knows.
    Column("planned_labels", JSONB(none_as_null=True)),
    Column("seconds_per_label", Double),
    # Judgements refused since they contradict bounds that the pool states.
    Column("contradictions", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    # Of a session that was pushed when it came; null of one that ran here.
    Column("origin", JSONB(none_as_null=True)),
    # The name of the key that opened it.
    Column("owner", Text),
    # What people file it under, in their order.
    Column("tags", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    # The words it is found by: of its name and owner, and its tags, each whole after a `#`.
    Column("words", TSVECTOR, nullable=False, server_default=text("''::tsvector")),
    # Its number among those the project opened with a question, from 1 on; null without one.
    Column("place", Integer),
    # The time of the last event, to the minute: an index moves with it once a minute at most.
    Column("active_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # Lists leave out what is archived; it takes no draws and no labels.
    Column("archived_at", DateTime(timezone=True)),
    # The last event, draws left out, when somebody was told that the session waits for labels.
    Column("stall_told", Integer),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    CheckConstraint("lifecycle IN ('active', 'paused', 'closed')", name="lifecycle"),
    Index(None, "project_id", "session_id"),
    Index(None, "pool_id", "session_id"),
    # One for every order and filter of a list: none holds what an event changes.
    Index("sessions_by_name_idx", "project_id", text("lower(coalesce(name, ''))"), "session_id"),
    Index("sessions_by_owner_idx", "project_id", text("lower(coalesce(owner, ''))"), "session_id"),
    Index("sessions_by_activity_idx", "project_id", "active_at", "session_id"),
    Index("sessions_by_state_idx", "project_id", "state", "session_id"),
    Index("sessions_words_idx", "words", postgresql_using="gin"),
    # Every event rewrites its session's row: room in the page keeps that update off the indexes.
    postgresql_with={"fillfactor": 50},
)

instructions = Table(
    "instructions",
    metadata,
    # In the order of time, as all made here.
    Column("instructions_id", Uuid, primary_key=True),
    Column("project_id", Uuid, ForeignKey("projects.project_id"), nullable=False),
    Column("pool_id", Uuid, ForeignKey("pools.pool_id", ondelete="CASCADE"), nullable=False),
    # Null of those of the pool, which are for all its sessions without some of their own.
    Column("session_id", Uuid, ForeignKey("sessions.session_id", ondelete="CASCADE")),
    # Null where they were taken away.
    Column("text", Text),
    Column("key_id", Text),
    # When it was written: a transaction may have waited since it began.
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Index(None, "pool_id", "session_id"),
)

# What is kept of a deleted session, for good: it goes on counting among those of its pool.
tombstones = Table(
    "tombstones",
    metadata,
    Column("session_id", Uuid, primary_key=True),
    Column("project_id", Uuid, ForeignKey("projects.project_id"), nullable=False),
    # No foreign key: the pool may be deleted, too, and uploaded again.
    Column("pool_id", Uuid, nullable=False),
    Column("pool_digest", LargeBinary, nullable=False),
    Column("plan_digest", LargeBinary, nullable=False),
    Column("commitment", LargeBinary, nullable=False),
    # Where its ledger, its revision and its life ended.
    Column("ledger_head", LargeBinary, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("lifecycle", Text, nullable=False),
    Column("pushed", Boolean, nullable=False),
    Column("opened_at", DateTime(timezone=True), nullable=False),
    Column("deleted_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # The key it was deleted with.
    Column("deleted_by", Text),
    # Whether rows of it may be left in the tables that name sessions without a foreign key.
    Column("remains", Boolean, nullable=False, server_default=text("true")),
    Index(None, "project_id", "session_id"),
    Index(None, "project_id", "pool_digest"),
    Index("tombstones_remains_idx", "deleted_at", postgresql_where=text("remains")),
)

events = Table(
    "events",
    metadata,
    # No foreign key, here and below: a session that is deleted leaves its long tables for later.
    Column("session_id", Uuid, primary_key=True),
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    _many_rows_project(),
    # Draw 1, observation 2, unjudgeable 3, amendment 4, change 5, rating 6, addition of a claim 7.
    Column("kind", SmallInteger, nullable=False),
    Column("round", Integer),
    Column("item", Integer),
    Column("q", Double),
    # The probability in each stratum, packed doubles, where the policy has strata.
    Column("strata_q", LargeBinary),
    # The last event folded when q was computed.
    Column("seen", Integer),
    Column("loss", Double),
    # Of several systems the loss of each.
    Column("losses", ARRAY(Double)),
    # Label, worker, reason, author, rater and turn, or the fields of a change or of a claim.
    Column("detail", JSONB(none_as_null=True)),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    CheckConstraint("kind BETWEEN 1 AND 7", name="kind"),
    CheckConstraint(
        "kind <> 1 OR (round IS NOT NULL AND item IS NOT NULL"
        " AND q IS NOT NULL AND seen IS NOT NULL)",
        name="draw",
    ),
    CheckConstraint(
        "kind <> 2 OR (round IS NOT NULL AND (loss IS NULL) <> (losses IS NULL))",
        name="observation",
    ),
    Index(
        "events_one_draw_a_round_idx",
        "session_id",
        "round",
        unique=True,
        postgresql_where=text("kind = 1"),
    ),
    Index(
        "events_one_observation_a_round_idx",
        "session_id",
        "round",
        unique=True,
        postgresql_where=text("kind IN (2, 3)"),
    ),
    Index("events_amendments_idx", "session_id", "round", postgresql_where=text("kind = 4")),
    Index("events_ratings_idx", "session_id", "round", postgresql_where=text("kind = 6")),
)

leases = Table(
    "leases",
    metadata,
    Column("session_id", Uuid, ForeignKey("sessions.session_id"), primary_key=True),
    Column("round", Integer, primary_key=True, autoincrement=False),
    _many_rows_project(),
    Column("worker", Text, nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    # When the draw was handed to somebody who did not have it; renewing keeps it.
    Column("since", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # Every key that the draw was handed to, who holds it last.
    Column("keys", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    # Who passed it on to somebody else: key and worker.
    Column("passed", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    # Who was handed it before `worker` and may still judge it: key, worker, and the lease's end.
    Column("beside", JSONB(none_as_null=True)),
    # How many runs of a draw of several were made, none of which settles it.
    Column("runs", SmallInteger, nullable=False, server_default=text("0")),
)

labellers = Table(
    "labellers",
    metadata,
    Column("session_id", Uuid, ForeignKey("sessions.session_id"), primary_key=True),
    Column("key_id", Text, primary_key=True),
    _many_rows_project(),
    # Corrections are not counted: they give no label more.
    Column("labels", Integer, nullable=False),
    # The round judged last, which is the one that the key may take back.
    Column("last_round", Integer, nullable=False),
    Index(None, "key_id", "session_id"),
)

# Beside the ledger and not in it: they may hold personal data, and the ledger never forgets.
comments = Table(
    "comments",
    metadata,
    Column("session_id", Uuid, primary_key=True),
    Column("round", Integer, primary_key=True, autoincrement=False),
    # "" of a caller without a key.
    Column("key_id", Text, primary_key=True),
    # Of a panel the rater; "" elsewhere.
    Column("rater", Text, primary_key=True),
    _many_rows_project(),
    Column("worker", Text, nullable=False),
    Column("comment", Text, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)

trajectory = Table(
    "trajectory",
    metadata,
    Column("session_id", Uuid, primary_key=True),
    Column("round", Integer, primary_key=True, autoincrement=False),
    _many_rows_project(),
    # The event that gave the row its values.
    Column("sequence", Integer, nullable=False),
    Column("estimate", Double, nullable=False),
    Column("lower", Double, nullable=False),
    Column("upper", Double, nullable=False),
)

certificates = Table(
    "certificates",
    metadata,
    # No foreign key: the digests stay when the session is deleted.
    Column("session_id", Uuid, primary_key=True),
    Column("digest", LargeBinary, primary_key=True),
    Column("project_id", Uuid, ForeignKey("projects.project_id"), nullable=False),
    # Where the ledger and its revision stood when it was issued.
    Column("sequence", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("final", Boolean, nullable=False),
    Column("issued_at", DateTime(timezone=True), nullable=False),
    # The document itself, of the final one only: interim ones can be made again. Null once the
    # session is deleted.
    Column("body", LargeBinary),
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("webhook_id", Uuid, primary_key=True),
    Column("project_id", Uuid, ForeignKey("projects.project_id"), nullable=False),
    # Null: every session of the project.
    Column("session_id", Uuid, ForeignKey("sessions.session_id", ondelete="CASCADE")),
    Column("url", Text, nullable=False),
    Column("format", Text, nullable=False),
    Column("events", JSONB, nullable=False),
    # Messages are signed with it: a hash would not do.
    Column("secret", LargeBinary, nullable=False),
    # The one before a rotation, which signs too until its time is over.
    Column("former_secret", LargeBinary),
    Column("former_until", DateTime(timezone=True)),
    Column("disabled_at", DateTime(timezone=True)),
    Column("note", Text),
    # Since when nothing was delivered; null after a success.
    Column("failing_since", DateTime(timezone=True)),
    # Until when a worker that sends to it is believed to be alive.
    Column("busy_until", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Index(None, "project_id", "webhook_id"),
    Index(None, "session_id"),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("delivery_id", Uuid, primary_key=True),
    Column(
        "webhook_id", Uuid, ForeignKey("webhooks.webhook_id", ondelete="CASCADE"), nullable=False
    ),
    Column("project_id", Uuid, ForeignKey("projects.project_id"), nullable=False),
    Column("event", Text, nullable=False),
    # What the message says, but for its links.
    Column("data", JSONB, nullable=False),
    Column("state", Text, nullable=False, server_default=text("'pending'")),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("next_attempt_at", DateTime(timezone=True)),
    Column("attempted_at", DateTime(timezone=True)),
    # Of the last attempt: the HTTP status, the beginning of the answer, what else is to be said.
    Column("status", SmallInteger),
    Column("answer", Text),
    Column("note", Text),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    CheckConstraint("state IN ('pending', 'delivered', 'failed')", name="state"),
    Index(None, "webhook_id", "created_at"),
    Index(
        "deliveries_pending_idx",
        "webhook_id",
        "next_attempt_at",
        postgresql_where=text("state = 'pending'"),
    ),
)

shares = Table(
    "shares",
    metadata,
    Column("share_id", Uuid, primary_key=True),
    # SHA-256 of what the link carries, which is kept nowhere.
    Column("token_hash", LargeBinary, nullable=False, unique=True),
    Column("project_id", Uuid, ForeignKey("projects.project_id"), nullable=False),
    Column(
        "session_id", Uuid, ForeignKey("sessions.session_id", ondelete="CASCADE"), nullable=False
    ),
    Column("expires_at", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Index(None, "session_id", "created_at"),
)
