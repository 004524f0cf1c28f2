"""Where the time of a request goes, and what a process has done: kept for whoever tells it.

Nothing of it may be told to who asks: from the time of a fold a blind judge could learn of losses.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from types import TracebackType
from typing import Literal, NamedTuple

Part = Literal["background", "connection", "lock", "fold", "statement", "commit"]
"""A wait for a place in the background, or at the database; for a session, in the process and for
its row; folding rounds and proposing draws; a statement; the end of a transaction."""

MOST_SPANS = 500
"""Spans kept of a request: a large one sends thousands of statements."""

DONE: Counter[str] = Counter()
"""What this process has committed: events by their kind, and rounds that were folded."""
FOLDED = "folded"

_current: ContextVar["Timings | None"] = ContextVar("timings", default=None)


class Span(NamedTuple):
    """A part of a request, in seconds of `perf_counter`, and the statement that it sent, if any."""

    part: Part
    began: float
    ended: float
    statement: str | None = None


@dataclass(slots=True)
class Timings:
    """The parts of one request, and the seconds of each: of a part within another, the outer's."""

    began: float = field(default_factory=perf_counter)
    seconds: dict[str, float] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    inside: int = 0

    def begin(self) -> None:
        """Have all that is timed from here on, in this task and those that it makes, noted here."""
        _current.set(self)

    def note(self, part: Part, began: float, statement: str | None = None) -> None:
        """Note a part that began then and ends now."""
        ended = perf_counter()
        if not self.inside:
            self.seconds[part] = self.seconds.get(part, 0.0) + ended - began
        if len(self.spans) < MOST_SPANS:
            self.spans.append(Span(part, began, ended, statement))

    def take(self, shared: "Timings") -> None:
        """Note what was done for this request together with others."""
        for part, seconds in shared.seconds.items():
            self.seconds[part] = self.seconds.get(part, 0.0) + seconds
        self.spans += shared.spans[: MOST_SPANS - len(self.spans)]


def current() -> Timings | None:
    """Those that the present task notes, if any."""
    return _current.get()


@contextmanager
def of_all(timings: Sequence[Timings | None]) -> Iterator[None]:
    """Have what is timed in the block noted for several requests that it serves together."""
    shared = timings[0] if len(timings) == 1 else Timings()
    token = _current.set(shared)
    try:
        yield
    finally:
        _current.reset(token)
        for timing in timings:
            if timing is not None and shared is not None and timing is not shared:
                timing.take(shared)


class timed:  # noqa: N801 - reads as a statement
    """``with timed("lock"):`` notes how long the block took, for the request it belongs to."""

    __slots__ = ("_began", "_part", "_statement", "_timings")

    def __init__(self, part: Part, statement: str | None = None) -> None:
        self._part: Part = part
        self._statement = statement

    def __enter__(self) -> None:
        self._timings = timings = _current.get()
        if timings is not None:
            timings.inside += 1
            self._began = perf_counter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        timings = self._timings
        if timings is None:
            return
        timings.inside -= 1
        timings.note(self._part, self._began, self._statement)
