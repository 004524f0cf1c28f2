"""A lock that threads get in the order in which they ask for it."""

import threading
from collections import deque


class FairLock:
    """A lock for `with`, not to be entered twice by one thread.

    Of a lock of `threading` a thread that asks again at once gets it again, while others wait: a
    judge that answers fast would judge a dozen items before another may say what it has judged.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._queue: deque[threading.Event] = deque()

    def __enter__(self) -> None:
        turn = threading.Event()
        with self._mutex:
            self._queue.append(turn)
            if len(self._queue) == 1:
                turn.set()
        try:
            turn.wait()
        except BaseException:
            self._leave(turn)
            raise

    def __exit__(self, *_: object) -> None:
        self._leave(self._queue[0])

    def _leave(self, turn: threading.Event) -> None:
        with self._mutex:
            self._queue.remove(turn)
            if self._queue:
                self._queue[0].set()
