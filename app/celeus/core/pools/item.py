"""An item as its judges see it: id, payload, and the answers of the systems."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from celeus.core.pools.systems import SIDES, AnySystems, Lineup


@dataclass(frozen=True, slots=True)
class Item:
    """An item as a judge sees it; ``payload`` is JSON as it is kept, not parsed.

    ``sides`` are answer and payload of each system, by its side or name, where a pool has several;
    there they are taken out of the payload.
    """

    index: int
    id: str
    payload: str | None
    sides: Mapping[str, Any] | None = None

    def split(self, named: AnySystems) -> "Item":
        """Return the item with the systems' answers taken out of its payload, in ``sides``."""
        whole = json.loads(self.payload or "{}")
        shared = whole.get("payload")
        several = isinstance(named, Lineup)
        names = named.names if isinstance(named, Lineup) else SIDES
        answers = whole.get("answers", {}) if several else whole
        return Item(
            index=self.index,
            id=self.id,
            payload=None if shared is None else _spelled(shared),
            sides={
                side: {name: answers.get(side, {}).get(name) for name in ("answer", "payload")}
                for side in names
            },
        )


def _spelled(value: Any) -> str:  # noqa: ANN401 -- JSON
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
