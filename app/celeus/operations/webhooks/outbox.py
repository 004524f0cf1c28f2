"""Messages to webhooks, written in the transaction of the change they report.

Whoever commits a session's change commits the messages about it too; a worker sends them later
(`deliveries.py`). A message names ids, the state and the session's own sentence: no item, no label,
nobody who judges.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args
from uuid import UUID

import orjson
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.plans.stopping import StopReason
from celeus.core.session.session import AnySession
from celeus.store.database import raw_connection

EventType = Literal[
    "session.stopped",
    "session.decided",
    "session.budget_reached",
    "session.stalled",
    "certificate.issued",
]
EVENTS: tuple[EventType, ...] = get_args(EventType)

Message = tuple[EventType, dict[str, Any]]
"""The type of an event, and its data beyond those of the session."""


@dataclass(frozen=True, slots=True)
class ReportedState:
    """The part of a session's state that messages report: whether it goes on, and its answers."""

    stopped: bool = False
    reason: StopReason | None = None
    answers: Mapping[str, str] | None = None

    @classmethod
    def of(cls, lifecycle: str, state: AnySession) -> "ReportedState":
        """Return the state of a session now."""
        reason = state.stop_reason
        return cls(
            reason is not None or lifecycle == "closed", reason, dict(state.question.answers())
        )

    def since(self, before: "ReportedState") -> list[Message]:
        """Return the messages about what has changed since ``before``."""
        messages: list[Message] = []
        known = before.answers or {}
        given = [
            {"question": question, "answer": answer}
            for question, answer in (self.answers or {}).items()
            if known.get(question) != answer
        ]
        if given:
            messages.append(("session.decided", {"answers": given}))
        if self.stopped and (self.stopped, self.reason) != (before.stopped, before.reason):
            if self.reason is StopReason.BUDGET_SPENT:
                messages.append(("session.budget_reached", {}))
            messages.append(("session.stopped", {}))
        return messages


async def enqueue(
    db: AsyncConnection,
    project_id: UUID,
    session_id: UUID,
    messages: Sequence[Message],
    document: Mapping[str, Any],
) -> None:
    """Put messages about a session into the outbox of every webhook that asks for them.

    ``document`` is the session's status after these events. Without messages nothing is asked.
    """
    if not messages:
        return
    raw = raw_connection(db)
    await raw.execute(
        POST,
        {
            "project_id": project_id,
            "session_id": session_id,
            "messages": posted(messages, document),
        },
    )


def posted(messages: Sequence[Message], document: Mapping[str, Any]) -> str:
    """The messages as ``POST`` takes them, about the session whose status is ``document``."""
    if not messages:
        return "[]"
    subject = _subject(document)
    rows = [
        {"event": event, "data": subject | data, "place": place}
        for place, (event, data) in enumerate(messages)
    ]
    return orjson.dumps(rows).decode()


def _subject(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members about the session that every message has."""
    return {
        "session": document["id"],
        "name": document["name"],
        "pool": document["pool_id"],
        "state": document["state"],
        "stop_reason": document["stop_reason"],
        "round": document["round"],
        "sequence": document["sequence"],
        "revision": document["revision"],
        "sentence": document["sentence"],
        "words": [
            f"{answer['question']} {answer['answer']}."
            for answer in document["words"]["answers"]
            if answer["given"] != "undecided"
        ],
    }


# The lock lets nobody delete a webhook between this and the check of its foreign key
POST = """
    INSERT INTO deliveries
        (delivery_id, webhook_id, project_id, event, data, next_attempt_at, created_at)
    SELECT gen_random_uuid(), w.webhook_id, w.project_id, told.event, told.data, now(),
           clock_timestamp() + told.place * interval '1 microsecond'
    FROM json_to_recordset(%(messages)s::json) AS told(event text, data jsonb, place int)
        JOIN webhooks w ON w.events ? told.event
    WHERE w.project_id = %(project_id)s AND w.disabled_at IS NULL
      AND (w.session_id IS NULL OR w.session_id = %(session_id)s)
      -- A chat is told once that the budget is spent
      AND NOT (w.format <> 'json' AND told.event = 'session.stopped'
          AND told.data ->> 'stop_reason' = 'budget_spent' AND w.events ? 'session.budget_reached')
    FOR KEY SHARE OF w
    """
"""Puts ``messages`` into the outbox, alone or as a part of what appends to the ledger."""
