"""Pools and sessions deleted by the client."""

import pytest

import celeus
from celeus import Problem
from tests.client.pools import Exam


def test_a_session_is_deleted_once_and_told_of_as_often_as_asked(
    session: celeus.Session, known: Exam
) -> None:
    client = session.client
    session.judge(known, concurrency=1, worker="ada")
    final = session.close()
    with pytest.raises(Problem, match="not archived") as refused:
        session.delete()
    assert refused.value.code == "session_not_archived"
    session.change(archived=True)
    stone = session.delete(purge=session.id)
    assert (stone.id, stone.state, stone.sequence) == (session.id, "closed", final.sequence)
    assert session.delete() == stone
    assert list(client.tombstones(final.pool_id)) == [stone]
    with pytest.raises(Problem) as gone:
        session.status()
    assert gone.value.code == "session_not_found"
    client.request("PATCH", f"/v1/pools/{final.pool_id}", {"archived": True})
    client.delete_pool(final.pool_id)
    assert final.pool_id not in [pool.id for pool in client.pools()]
    assert list(client.tombstones()) == [stone]
