"""The status document of a session from its row, its state and its pool."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from celeus.core.insights import status
from celeus.core.pools.pool import Pool
from celeus.core.session.session import AnySession
from celeus.operations.sessions.event_rows import moment


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
    shared = {name: getattr(session, name) for name in _SHARED}
    active_at = None if session.active_at is None else moment(session.active_at)
    header = status.Header(
        **shared
        | {
            "session": f"ses_{session.session_id.hex}",
            "pool": f"pool_{session.pool_id.hex}",
            "created_at": moment(session.created_at),
            "ledger_head": session.ledger_head.hex(),
            "active_at": active_at,
        }
    )
    return status.status_document(header, state, pool)


_SHARED = status.Header.__dataclass_fields__.keys() & SessionRecord.__dataclass_fields__.keys()
