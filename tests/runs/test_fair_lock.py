"""Threads get the lock in the order in which they ask for it."""

import threading

from celeus.runs.fair_lock import FairLock


def test_who_asks_again_at_once_waits_for_the_others() -> None:
    lock, order = FairLock(), list[str]()
    waiting = threading.Barrier(2)

    def other() -> None:
        waiting.wait()
        with lock:
            order.append("other")

    thread = threading.Thread(target=other)
    thread.start()
    with lock:
        waiting.wait()
        while len(lock._queue) < 2:
            threading.Event().wait(0.001)
    with lock:
        order.append("again")
    thread.join()
    assert order == ["other", "again"]
    with lock:
        order.append("free")
