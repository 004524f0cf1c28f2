"""What bounds or pauses work of a process."""

import gc

from celeus.operations.runtime.concurrency import paused_collections


def test_collections_go_on_when_the_last_of_those_who_paused_them_has_left() -> None:
    assert gc.isenabled()
    with paused_collections:
        with paused_collections:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
