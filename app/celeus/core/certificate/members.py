"""The members of a ledger's records and of a certificate's rounds, each with its name and type.

``chain`` and ``document`` write what stands here, ``read_ledger`` and ``read`` read it back.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

from celeus.core.certificate.parsing import moment
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
from celeus.core.plain import HEX, Object, Reader, as_it_is, members, number, text, whole

TYPES: Mapping[str, Reader] = MappingProxyType(
    {
        "sequence": whole,
        "kind": text,
        "at": moment,
        "round": partial(whole, lowest=1),
        "item": whole,
        "q": number,
        "seen": whole,
        "strata_q": partial(text, form=HEX),
        "loss": number,
        "losses": as_it_is,
        "detail": as_it_is,
    }
)
"""The reader of every member of a record; further bounds follow from the events before."""
EVERY = ("sequence", "kind", "at")


@dataclass(frozen=True, slots=True)
class RecordForm:
    """The members that records of one kind of event have beside ``EVERY``."""

    kind: str
    required: tuple[str, ...]
    optional: tuple[str, ...] = ("detail",)

    def read(self, record: Object, where: str) -> Object:
        """The values of a record by name, each of its type; Mismatch at the first that is not."""
        members(record, where, EVERY + self.required, self.optional)
        return {name: TYPES[name](record[name], f"{where}.{name}") for name in record}

    def values(self, event: Event) -> dict[str, Any]:
        """The members that an event has a value for, but for its detail."""
        names = [name for name in self.required + self.optional if name != "detail"]
        found = {name: getattr(event, name) for name in names}
        return {name: value for name, value in found.items() if value is not None}


RECORDS: Mapping[type, RecordForm] = MappingProxyType(
    {
        Draw: RecordForm("draw", ("round", "item", "q", "seen"), ("strata_q", "detail")),
        Observation: RecordForm("observation", ("round", "loss")),
        JointObservation: RecordForm("observation", ("round", "losses")),
        Unjudgeable: RecordForm("unjudgeable", ("round",)),
        Rating: RecordForm("rating", ("round", "detail"), ("loss",)),
        Amendment: RecordForm("amendment", ("round",), ("loss", "detail")),
        Change: RecordForm("change", ("detail",), ()),
        Addition: RecordForm("addition", ("detail",), ()),
    }
)
"""The records of every kind of event."""

Slack = Literal["none", "relative", "loss", "sum"]
"""The tolerance of a number computed again: none, a share of it, or a share of the scale."""
COLUMNS: Mapping[str, Slack] = MappingProxyType(
    {
        "q": "relative",
        "seen": "none",
        "guess": "loss",
        "left": "sum",
        "plug_in": "loss",
        "range_lower": "loss",
        "range_upper": "loss",
        "variance": "relative",
        "estimate": "loss",
        "lower": "loss",
        "upper": "loss",
    }
)
"""The columns of the folded rounds, in the order in which ``rounds_of`` has them."""
OTHER = ("round", "plug_in", "range_lower", "range_upper")
"""The columns of rounds whose second completion has another plug-in part."""
