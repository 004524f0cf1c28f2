"""A hook by which a long computation yields the processor.

Folding calls ``pause`` in every round. It does nothing unless the caller sets a function:

    PAUSE.set(sleep_now_and_then)

which holds for the caller's own thread or task, and for what these start.
"""

from collections.abc import Callable
from contextvars import ContextVar


def _go_on() -> None:
    pass


PAUSE: ContextVar[Callable[[], None]] = ContextVar("PAUSE", default=_go_on)


def pause() -> None:
    """Call the function that the caller has set for the time between two rounds."""
    PAUSE.get()()
