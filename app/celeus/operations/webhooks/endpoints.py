"""Webhooks of a project: make, list, change, rotate, try and delete them, and read their log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self
from uuid import UUID

import orjson
from sqlalchemy import RowMapping, text
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from celeus.errors import DeliveryNotFound, TooManyWebhooks, WebhookDisabled, WebhookNotFound
from celeus.operations.runtime.context import Context
from celeus.operations.sessions.history import check_session
from celeus.operations.webhooks.deliveries import LEASE_SECONDS, DueMessage
from celeus.operations.webhooks.messages import message, new_secret, written

MOST_WEBHOOKS = 50
"""Most webhooks of a project."""
TEST = "webhook.test"
TEST_SENTENCE = "This is a test: nothing has happened."


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """A webhook to make; ``session_id`` None: every session of the project."""

    url: str
    events: Sequence[str]
    format: str = "json"
    session_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook as stored, without its secret; ``secret`` is shown when it is made or rotated."""

    webhook_id: UUID
    session_id: UUID | None
    url: str
    format: str
    events: tuple[str, ...]
    disabled_at: datetime | None
    note: str | None
    failing_since: datetime | None
    former_until: datetime | None
    created_at: datetime
    # Never told by accident, in a log or a traceback
    secret: str | None = field(default=None, repr=False)

    @property
    def active(self) -> bool:
        """Return whether messages are sent."""
        return self.disabled_at is None

    @classmethod
    def of(cls, row: RowMapping, secret: bytes | None = None) -> Self:
        """Return the webhook of a row."""
        fields = {name: row[name] for name in cls.__dataclass_fields__ if name != "secret"}
        shown = None if secret is None else written(secret)
        return cls(**fields | {"events": tuple(row["events"]), "secret": shown})


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message and what came of it so far; ``message`` is what is sent as `json`."""

    delivery_id: UUID
    event: str
    state: str
    attempts: int
    created_at: datetime
    attempted_at: datetime | None
    next_attempt_at: datetime | None
    status: int | None
    answer: str | None
    note: str | None
    message: Mapping[str, Any]

    @classmethod
    def of(cls, row: RowMapping, address: str) -> Self:
        """Return the delivery of a row."""
        fields = {name: row[name] for name in cls.__dataclass_fields__ if name != "message"}
        sent = message(row["event"], row["created_at"], row["data"], address)
        return cls(**fields, message=sent)


async def create_webhook(context: Context, wanted: WebhookSettings) -> Webhook:
    """Make a webhook; its secret is shown now and never again.

    Refuses an address that leads inside or nowhere, and a session of another project.
    """
    await _check_address(context, wanted.url)
    secret = new_secret()
    async with context.transaction() as db:
        await _hold_session(db, context.project_id, wanted.session_id)
        # Several at once count one after the other
        await db.execute(_TURN, {"project": str(context.project_id)})
        count = (await db.execute(_COUNT, {"project_id": context.project_id})).scalar_one()
        if count >= MOST_WEBHOOKS:
            raise TooManyWebhooks(
                f"The project has {MOST_WEBHOOKS} webhooks already.",
                rule=f"at most {MOST_WEBHOOKS} in a project",
            )
        params = {
            "webhook_id": uuid7(),
            "project_id": context.project_id,
            "session_id": wanted.session_id,
            "url": wanted.url,
            "format": wanted.format,
            "events": list(dict.fromkeys(wanted.events)),
            "secret": secret,
        }
        row = (await db.execute(_INSERT, params)).mappings().one()
    return Webhook.of(row, secret)


async def _check_address(context: Context, url: str) -> None:
    """Refuse an address that leads inside or nowhere; a key has one looked up at a time."""
    async with context.gates.webhooks_of_keys.of(context.key_id or ""):
        await context.deliveries.sender.guard.check(url)


async def list_webhooks(context: Context) -> list[Webhook]:
    """The project's webhooks, oldest first."""
    async with context.transaction() as db:
        rows = await db.execute(_LIST, {"project_id": context.project_id})
        return [Webhook.of(row) for row in rows.mappings()]


async def get_webhook(context: Context, webhook_id: UUID) -> Webhook:
    """One of the project's webhooks."""
    async with context.transaction() as db:
        return Webhook.of(await _row(db, context.project_id, webhook_id))


async def change_webhook(context: Context, webhook_id: UUID, changes: Mapping[str, Any]) -> Webhook:
    """Change `url`, `events`, `format`, `session_id`, or with `active` enable or disable.

    Enabling forgets why it was disabled; what waited meanwhile is sent.
    """
    if "url" in changes:
        await _check_address(context, changes["url"])
    async with context.transaction() as db:
        row = await _row(db, context.project_id, webhook_id, lock=True)
        await _hold_session(db, context.project_id, changes.get("session_id"))
        values = {name: row[name] for name in ("url", "events", "format", "session_id")}
        values |= {name: value for name, value in changes.items() if name in values}
        active = changes.get("active")
        enabling = active is True and row["disabled_at"] is not None
        params = values | {
            "webhook_id": webhook_id,
            "events": list(dict.fromkeys(values["events"])),
            "enabling": enabling,
            "disabling": active is False,
        }
        changed = (await db.execute(_CHANGE, params)).mappings().one()
    return Webhook.of(changed)


async def rotate_webhook(context: Context, webhook_id: UUID, overlap: timedelta) -> Webhook:
    """Give a webhook a new secret; the former one signs too for the time of the overlap."""
    secret = new_secret()
    async with context.transaction() as db:
        await _row(db, context.project_id, webhook_id, lock=True)
        params = {"webhook_id": webhook_id, "secret": secret, "overlap": overlap}
        row = (await db.execute(_ROTATE, params)).mappings().one()
    return Webhook.of(row, secret)


async def delete_webhook(context: Context, webhook_id: UUID) -> None:
    """Delete a webhook with its log; what was not delivered yet is not."""
    params = {"webhook_id": webhook_id, "project_id": context.project_id}
    async with context.transaction() as db:
        if (await db.execute(_DELETE, params)).rowcount == 0:
            raise _not_found(webhook_id)


async def try_webhook(context: Context, webhook_id: UUID) -> Delivery:
    """Send a test message now, once, and tell what came back; also where it is disabled."""
    async with context.gates.webhooks_of_keys.of(context.key_id or ""):
        data = {"webhook": f"hook_{webhook_id.hex}", "sentence": TEST_SENTENCE}
        async with context.transaction() as db:
            await _row(db, context.project_id, webhook_id)
            params = {
                "webhook_id": webhook_id,
                "event": TEST,
                "data": orjson.dumps(data).decode(),
                "lease": LEASE_SECONDS,
            }
            row = (await db.execute(_TEST, params)).mappings().one()
        taken = DueMessage.of(row)
        outcome = await context.deliveries.send(taken)
        await context.deliveries.settle(taken, outcome, again=False)
        return await _delivery(context, webhook_id, taken.delivery_id)


async def list_deliveries(context: Context, webhook_id: UUID, limit: int) -> list[Delivery]:
    """The messages of a webhook, newest first."""
    async with context.transaction() as db:
        await _row(db, context.project_id, webhook_id)
        rows = await db.execute(_LOG, {"webhook_id": webhook_id, "limit": limit})
        return [Delivery.of(row, context.settings.address) for row in rows.mappings()]


async def retry_delivery(context: Context, webhook_id: UUID, delivery_id: UUID) -> Delivery:
    """Send a message again as soon as possible, under the same id, with all its attempts anew."""
    async with context.transaction() as db:
        row = await _row(db, context.project_id, webhook_id)
        if row["disabled_at"] is not None:
            raise WebhookDisabled(
                "The webhook is disabled: enable it, and send the message again then.",
                field="webhook_id",
                rule="a webhook that is enabled",
                value=f"hook_{webhook_id.hex}",
            )
        await db.execute(_RETRY, {"webhook_id": webhook_id, "delivery_id": delivery_id})
    return await _delivery(context, webhook_id, delivery_id)


async def _delivery(context: Context, webhook_id: UUID, delivery_id: UUID) -> Delivery:
    params = {"webhook_id": webhook_id, "delivery_id": delivery_id}
    async with context.transaction() as db:
        row = (await db.execute(_ONE, params)).mappings().one_or_none()
    if row is None:
        raise DeliveryNotFound(
            "There is no such delivery of this webhook.",
            field="delivery_id",
            value=f"msg_{delivery_id.hex}",
        )
    return Delivery.of(row, context.settings.address)


async def _row(
    db: AsyncConnection, project_id: UUID, webhook_id: UUID, *, lock: bool = False
) -> RowMapping:
    params = {"webhook_id": webhook_id, "project_id": project_id}
    row = (await db.execute(_LOCKED if lock else _WEBHOOK, params)).mappings().one_or_none()
    if row is None:
        raise _not_found(webhook_id)
    return row


async def _hold_session(db: AsyncConnection, project_id: UUID, session_id: UUID | None) -> None:
    """Let nobody delete the session before its webhook is there."""
    if session_id is not None:
        await check_session(db, project_id, session_id, "FOR KEY SHARE")


def _not_found(webhook_id: UUID) -> WebhookNotFound:
    return WebhookNotFound(
        "There is no webhook of this id.", field="webhook_id", value=f"hook_{webhook_id.hex}"
    )


_TURN = text("SELECT pg_advisory_xact_lock(5151, hashtext(:project))")
_COUNT = text("SELECT count(*) FROM webhooks WHERE project_id = :project_id")
_INSERT = text(
    """
    INSERT INTO webhooks (webhook_id, project_id, session_id, url, format, events, secret)
    VALUES (:webhook_id, :project_id, :session_id, :url, :format,
        to_jsonb(CAST(:events AS text[])), :secret)
    RETURNING *
    """
)
_LIST = text("SELECT * FROM webhooks WHERE project_id = :project_id ORDER BY webhook_id")
_WEBHOOK = text(
    "SELECT * FROM webhooks WHERE webhook_id = :webhook_id AND project_id = :project_id"
)
_LOCKED = text(f"{_WEBHOOK.text} FOR NO KEY UPDATE")
_CHANGE = text(
    """
    UPDATE webhooks SET url = :url, events = to_jsonb(CAST(:events AS text[])), format = :format,
        session_id = :session_id,
        disabled_at = CASE WHEN :enabling THEN NULL
            WHEN :disabling THEN coalesce(disabled_at, now()) ELSE disabled_at END,
        note = CASE WHEN :enabling THEN NULL
            WHEN :disabling AND disabled_at IS NULL THEN 'Disabled by hand.' ELSE note END,
        failing_since = CASE WHEN :enabling THEN NULL ELSE failing_since END
    WHERE webhook_id = :webhook_id
    RETURNING *
    """
)
_ROTATE = text(
    """
    UPDATE webhooks SET former_secret = secret, former_until = now() + CAST(:overlap AS interval),
        secret = :secret
    WHERE webhook_id = :webhook_id
    RETURNING *
    """
)
_DELETE = text("DELETE FROM webhooks WHERE webhook_id = :webhook_id AND project_id = :project_id")
# Not due for a while, so that nobody else takes it
_TEST = text(
    """
    WITH made AS (
        INSERT INTO deliveries (delivery_id, webhook_id, project_id, event, data, attempts,
            attempted_at, next_attempt_at)
        SELECT gen_random_uuid(), webhook_id, project_id, :event, CAST(:data AS jsonb), 1, now(),
            now() + CAST(:lease AS float8) * interval '1 second'
        FROM webhooks WHERE webhook_id = :webhook_id
        RETURNING *
    )
    SELECT made.delivery_id, made.event, made.data, made.created_at, made.attempts, w.webhook_id,
        w.url, w.format, w.secret,
        CASE WHEN w.former_until > now() THEN w.former_secret END AS former_secret
    FROM made JOIN webhooks w USING (webhook_id)
    """
)
_LOG = text(
    """
    SELECT * FROM deliveries WHERE webhook_id = :webhook_id
    ORDER BY created_at DESC, delivery_id LIMIT :limit
    """
)
_ONE = text(
    "SELECT * FROM deliveries WHERE webhook_id = :webhook_id AND delivery_id = :delivery_id"
)
_RETRY = text(
    """
    UPDATE deliveries SET state = 'pending', attempts = 0, next_attempt_at = now()
    WHERE webhook_id = :webhook_id AND delivery_id = :delivery_id
    """
)
