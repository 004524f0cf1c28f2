"""Where a long computation lets others have the processor.

Folding calls ``pause`` with every round. It does nothing unless the caller has said what it shall:

    PAUSE.set(sleep_now_and_then)

which holds for the caller's own thread or task, and for what these start.
"""

from collections.abc import Callable
from contextvars import ContextVar


def _go_on() -> None:
    pass


PAUSE: ContextVar[Callable[[], None]] = ContextVar("PAUSE", default=_go_on)


def pause() -> None:
    """Do what the caller wants done between two rounds."""
    PAUSE.get()()
