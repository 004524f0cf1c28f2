"""The status document of a session as its row keeps it and the cache has a copy."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID
from zlib import crc32

import orjson

from celeus.core.insights import status
from celeus.core.pools.pool import Pool
from celeus.core.session.session import AnySession
from celeus.operations.sessions.ledger import moment
from celeus.store.cache import Cache

_HEAD = re.compile(rb"([0-9a-f]{32}/[0-9a-f]{32}) ([0-9a-z.-]+) ([0-9a-f]{8})\n")
"""Owner, version and checksum of a cached status, before its body."""


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """Fields of the session's row that its state does not contain; `ledger.RECORD` reads them."""

    project_id: UUID
    session_id: UUID
    pool_id: UUID
    lifecycle: str
    revision: int
    lease_seconds: int
    created_at: datetime
    ledger_head: bytes
    name: str | None = None
    contradictions: Sequence[Mapping[str, Any]] = ()
    origin: Mapping[str, str] | None = None
    owner: str | None = None
    tags: Sequence[str] = ()
    active_at: datetime | None = None
    archived: bool = False
    planned_labels: Mapping[str, int] | None = None
    seconds_per_label: float | None = None

    @classmethod
    def of(cls, row: Mapping[Any, Any]) -> "SessionRecord":
        """The status in a row."""
        values = {name: row[name] for name in cls.__dataclass_fields__}
        return cls(**values | {"ledger_head": bytes(row["ledger_head"])})


def status_document(session: SessionRecord, state: AnySession, pool: Pool) -> dict[str, Any]:
    """The status document as plain JSON values; never contains the seed."""
    header = status.Header(
        session=f"ses_{session.session_id.hex}",
        pool=f"pool_{session.pool_id.hex}",
        lifecycle=session.lifecycle,
        revision=session.revision,
        lease_seconds=session.lease_seconds,
        created_at=moment(session.created_at),
        ledger_head=session.ledger_head.hex(),
        name=session.name,
        contradictions=session.contradictions,
        origin=session.origin,
        owner=session.owner,
        tags=session.tags,
        active_at=None if session.active_at is None else moment(session.active_at),
        archived=session.archived,
        planned_labels=session.planned_labels,
        seconds_per_label=session.seconds_per_label,
    )
    return status.status_document(header, state, pool)


def version_of(document: dict[str, Any]) -> str:
    """The document's ETag; changes whenever the document does."""
    version = str(document["sequence"])
    if document["contradictions"]:
        version += f".{len(document['contradictions'])}"
    # What people change without an event
    if document["archived"]:
        version += ".archived"
    filed = document["tags"]
    return f"{version}-{crc32(orjson.dumps(filed)):08x}" if filed else version


async def announce(
    cache: Cache, project_id: UUID, session_id: UUID, document: dict[str, Any]
) -> None:
    """Publish the status document to the cache and the streams; either may be unavailable."""
    version = version_of(document)
    body = orjson.dumps(document)
    head = f"{_owner(project_id, session_id)} {version} {crc32(body):08x}\n".encode()
    await cache.put_status(session_id.hex, document["sequence"], version, head + body)


async def cached(cache: Cache, project_id: UUID, session_id: UUID) -> tuple[bytes, str] | None:
    """The cached status document as JSON with its version; None for another project's session.

    None also for what `announce` cannot have written: Redis is data from outside.
    """
    value = await cache.get_status(session_id.hex) or b""
    head = _HEAD.match(value)
    if head is None:
        return None
    body = value[head.end() :]
    owner, version, checksum = (part.decode() for part in head.groups())
    if owner != _owner(project_id, session_id) or crc32(body) != int(checksum, 16):
        return None
    return body, version


def _owner(project_id: UUID, session_id: UUID) -> str:
    return f"{project_id.hex}/{session_id.hex}"
