"""Analyses of surrogates, remembered: they change only when a round is folded."""

from collections import OrderedDict
from typing import Any
from uuid import UUID

from celeus.errors import Busy
from celeus.operations.runtime.concurrency import Gate

MOST_REMEMBERED = 256
PATIENCE_SECONDS = 10.0


class Worths:
    """The last analysis of each session; ``gate`` lets a new one be made one at a time.

    However many people look at however large pools, at most one processor is busy with it.
    """

    def __init__(self) -> None:
        self.gate = Gate(1, PATIENCE_SECONDS, _busy)
        self._kept: OrderedDict[UUID, tuple[str, dict[str, Any]]] = OrderedDict()

    def known(self, session_id: UUID, version: str) -> dict[str, Any] | None:
        """The analysis of this version of the session, or None."""
        kept = self._kept.get(session_id)
        if kept is None or kept[0] != version:
            return None
        self._kept.move_to_end(session_id)
        return kept[1]

    def keep(self, session_id: UUID, version: str, analysis: dict[str, Any]) -> None:
        """Remember it instead of the one before."""
        self._kept[session_id] = (version, analysis)
        self._kept.move_to_end(session_id)
        if len(self._kept) > MOST_REMEMBERED:
            self._kept.popitem(last=False)


def _busy() -> Busy:
    return Busy("other surrogates are being analysed; try again")
