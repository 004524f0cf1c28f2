"""A timeout for answers that counts only the time this process spends waiting."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

PARTS = 5


@asynccontextmanager
async def patience(seconds: float) -> AsyncIterator[None]:
    """Raise TimeoutError in the block once an answer has had its ``seconds``.

    They are counted in ``PARTS``, each begun once the one before is over and what has arrived is
    read. A process that stood still meanwhile, in a fold or since others had the processor, so
    loses a part at most, and does not take an answer that came in time for one that did not come.
    """
    loop = asyncio.get_running_loop()
    part = seconds / PARTS
    async with asyncio.timeout(None) as limit:

        def count(left: int) -> None:
            if left:
                timers[0] = loop.call_later(part, count, left - 1)
            else:
                limit.reschedule(loop.time())

        timers = [loop.call_later(part, count, PARTS - 1)]
        try:
            yield
        finally:
            timers[0].cancel()
