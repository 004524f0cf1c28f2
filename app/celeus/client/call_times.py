"""The durations of a judge's calls, and the warning of those that hang."""

import math
from bisect import insort
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic

from celeus.client.exchange import Flow, Request, member, sent
from celeus.client.fingerprint import LOG
from celeus.errors import Refusal
from celeus.shorten import shortened

LONGER = 2.0
"""A call that lasts so many times as long as the longest before it is taken for one that hangs."""
LAST_SECONDS = 5.0
"""Seconds that calls under way may still take when a session has stopped or judging failed."""
HANGING_SECONDS = 30.0
"""Seconds after which a call may be one that hangs."""
HANGING_TIMES = 10.0
"""Times the median call that a call lasts at least if it hangs."""


class CallTimes:
    """The durations of a judge's calls, and how long those under way are worth waiting for.

    The key of a call is what it is for, such as its worker.
    """

    def __init__(self) -> None:
        self._began: dict[Hashable, float] = {}
        self._lengths: list[float] = []
        """Durations of the calls that have ended, in ascending order."""
        self._reported: set[Hashable] = set()
        self._until = math.inf

    @contextmanager
    def call(self, key: Hashable) -> Iterator[None]:
        """Time a call."""
        self._began[key] = began = monotonic()
        try:
            yield
        finally:
            insort(self._lengths, monotonic() - began)
            del self._began[key]
            self._reported.discard(key)

    @property
    def median(self) -> float | None:
        """The median duration of the calls that have ended."""
        return self._lengths[len(self._lengths) // 2] if self._lengths else None

    def hanging(self, key: Hashable) -> float | None:
        """Return how long a call has lasted if it hangs, once a call; otherwise None."""
        began, median = self._began.get(key), self.median
        if began is None or key in self._reported:
            return None
        length = monotonic() - began
        longest = HANGING_TIMES * (HANGING_SECONDS if median is None else median)
        if length <= max(HANGING_SECONDS, longest):
            return None
        self._reported.add(key)
        return length

    def stop(self) -> None:
        """Note that nothing more is begun: from now on a call is waited for `LAST_SECONDS`."""
        self._until = monotonic() + LAST_SECONDS

    def patience(self, keys: Iterable[Hashable]) -> float:
        """Return for how many more seconds one of the calls may end; 0 if all of them hang.

        A call that has ended counts as one that may: its judgement is being sent.
        """
        longest = self._lengths[-1] if self._lengths else 0.0
        until = max(self._began.get(key, math.inf) + LONGER * longest for key in keys)
        return max(0.0, min(until, self._until) - monotonic())


def warn_of_hanging(
    path: str, under_way: Iterable[tuple[Hashable, Sequence[str]]], times: CallTimes
) -> Flow[None]:
    """Log each call that hangs, once: its items, and the judgements that wait for it.

    ``path`` is that of the session, ``under_way`` has the items of every call. The status is asked
    for once: leases are not renewed while its answer is waited for.
    """
    for key, items in under_way:
        length = times.hanging(key) if items else None
        if length is None:
            continue
        more = f" and {len(items) - 1} more" if len(items) > 1 else ""
        try:
            status = (yield from sent(Request("GET", path), tries=1)).document()
            waiting = member(member(status, "rounds"), "waiting")
        except Refusal:
            # A key that only labels does not see the status
            behind = "judgements that came later wait for it"
        else:
            behind = f"{waiting} judgements wait for it"
        usual = "" if times.median is None else f", the median call {times.median:.3g} s"
        taken = f"has taken {length:.3g} s{usual}"
        LOG.warning("celeus: the judge of %s%s %s: %s", shortened(items[0]), more, taken, behind)
