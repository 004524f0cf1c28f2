"""Tellings of surrogates, remembered: they change only when a round is folded."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from app.errors import Busy

MOST_REMEMBERED = 256
PATIENCE_SECONDS = 10.0


class Worths:
    """The last telling of each session; a new one is made one at a time in this process.

    However many people look at however large pools, at most one processor is busy with it.
    """

    def __init__(self) -> None:
        self._one = asyncio.Lock()
        self._kept: OrderedDict[UUID, tuple[str, dict[str, Any]]] = OrderedDict()

    def known(self, session_id: UUID, version: str) -> dict[str, Any] | None:
        """What was told of this version of the session, or None."""
        found = self._kept.get(session_id)
        if found is None or found[0] != version:
            return None
        self._kept.move_to_end(session_id)
        return found[1]

    def keep(self, session_id: UUID, version: str, told: dict[str, Any]) -> None:
        """Remember it instead of what was told before."""
        self._kept[session_id] = (version, told)
        self._kept.move_to_end(session_id)
        if len(self._kept) > MOST_REMEMBERED:
            self._kept.popitem(last=False)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """The right to make one; refused when others take too long."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._one.acquire()
        except TimeoutError as error:
            raise Busy("other surrogates are being looked at; try again") from error
        try:
            yield
        finally:
            self._one.release()
