"""Times of the parts of a request, and counts of what a process has committed.

They are for operators and never part of an answer: from the time of a fold a blind judge could
infer losses.
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
"""Part of a request, in order: waiting for a background worker, waiting for a database connection,
waiting for a session and its row, folding rounds and proposing draws, a statement, a commit."""

MOST_SPANS = 500
"""Largest number of spans kept of a request; a large one sends thousands of statements."""

DONE: Counter[str] = Counter()
"""Counts of what this process has committed: events by kind, and folded rounds."""
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
    """Parts of one request and the seconds of each; a nested part counts as the outer one."""

    began: float = field(default_factory=perf_counter)
    seconds: dict[str, float] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    inside: int = 0

    def begin(self) -> None:
        """Record here all that is timed from now on in this task and the tasks it starts."""
        _current.set(self)

    def note(self, part: Part, began: float, statement: str | None = None) -> None:
        """Record a part that began at ``began`` and ends now."""
        ended = perf_counter()
        if not self.inside:
            self.seconds[part] = self.seconds.get(part, 0.0) + ended - began
        if len(self.spans) < MOST_SPANS:
            self.spans.append(Span(part, began, ended, statement))

    def take(self, shared: "Timings") -> None:
        """Add the parts that were done for this request together with others."""
        for part, seconds in shared.seconds.items():
            self.seconds[part] = self.seconds.get(part, 0.0) + seconds
        self.spans += shared.spans[: MOST_SPANS - len(self.spans)]


def current() -> Timings | None:
    """Return the timings of the current task, if any."""
    return _current.get()


@contextmanager
def of_all(timings: Sequence[Timings | None]) -> Iterator[None]:
    """Record the times of the block for several requests that it serves together."""
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
    """``with timed("lock"):`` records the time of the block for its request."""

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
