"""Convert events to rows of the ledger and back."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import numpy as np

from celeus.core.certificate import chain
from celeus.core.ledger import (
    Addition,
    Amendment,
    Change,
    Draw,
    Event,
    JointObservation,
    Observation,
    Rating,
    Unjudgeable,
)

KINDS: dict[type, int] = {
    Draw: 1,
    JointObservation: 2,
    Observation: 2,
    Unjudgeable: 3,
    Amendment: 4,
    Change: 5,
    Rating: 6,
    Addition: 7,
}
KIND_NAMES = {number: chain.KINDS[kind] for kind, number in KINDS.items()}
"""Names of the event kinds on the wire."""
KIND_NUMBERS = {name: number for number, name in KIND_NAMES.items()}
_TYPES = {number: kind for kind, number in KINDS.items()}


@dataclass(slots=True)
class Entry:
    """An event with its metadata: who, why, when, and the label behind a loss."""

    sequence: int
    event: Event
    at: datetime
    detail: dict[str, Any] | None = None

    @property
    def record(self) -> dict[str, Any]:
        """The event's record in the hash chain."""
        return chain.record_of(self.sequence, self.event, self.detail, moment(self.at))


@lru_cache(maxsize=8)
def moment(time: datetime) -> str:
    """Format a time as in chain and certificate: UTC, in microseconds."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


def record_from(row: Mapping[Any, Any]) -> dict[str, Any]:
    """The record of a ledger row in the hash chain."""
    return chain.record_of(row["sequence"], event_from(row), row["detail"], moment(row["at"]))


def row_of(entry: Entry) -> dict[str, Any]:
    """Convert an event to a row; absent members are null in the table."""
    event = entry.event
    row: dict[str, Any] = {
        "sequence": entry.sequence,
        "kind": KINDS[type(event)],
        "detail": entry.detail,
        "at": moment(entry.at),
    }
    if not isinstance(event, Change | Addition):
        row["round"] = event.round
    if isinstance(event, Observation | Rating | Amendment):
        row["loss"] = event.loss
    if isinstance(event, JointObservation):
        row["losses"] = list(event.losses)
    if isinstance(event, Draw):
        row |= {"item": event.item, "q": event.q, "seen": event.seen}
        if event.strata_q is not None:
            row["strata_q"] = "\\x" + event.strata_q.tobytes().hex()
    return row


def event_from(row: Mapping[Any, Any]) -> Event:
    """The event a row of the ledger keeps."""
    kind = _TYPES[row["kind"]]
    if kind is Draw:
        packed = row["strata_q"]
        strata_q = None if packed is None else np.frombuffer(packed, dtype="<f8")
        return Draw(row["round"], row["item"], row["q"], row["seen"], strata_q)
    if kind is Observation and row["losses"] is not None:
        in_order = bool((row["detail"] or {}).get("in_order"))
        return JointObservation(row["round"], tuple(row["losses"]), in_order)
    runs = (row["detail"] or {}).get("runs")
    if kind is Observation:
        return Observation(row["round"], row["loss"], runs)
    if kind is Unjudgeable:
        return Unjudgeable(row["round"], runs)
    if kind is Amendment:
        return Amendment(row["round"], row["loss"])
    return _from_detail(row, row["detail"])


def _from_detail(row: Mapping[Any, Any], detail: Mapping[str, Any]) -> Rating | Change | Addition:
    kind = _TYPES[row["kind"]]
    if kind is Rating:
        return Rating(row["round"], detail["rater"], row["loss"], detail.get("turn", 1))
    if kind is Addition:
        return Addition.in_detail(detail)
    return Change(detail["precision"], detail["budget"], detail.get("stop_when_decided"))
