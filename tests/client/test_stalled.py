"""A call of a judge that hangs costs a label, in a service and in process, and no more."""

import asyncio
import gc
import json
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import celeus
from celeus import Client, Status, Turn
from celeus.client.exchange import Answer, Flow, Request
from celeus.client.label_loop import workers_of
from tests.client.pools import Exam, exam
from tests.keys import ADMIN
from tests.servers import Service

JUDGES = 8
AHEAD = 3 * JUDGES
"""Judged rounds that may be behind a stalled one: two for each judge wait, and one is under way."""


def judged_with_a_hanging_call(
    session: celeus.Session, losses: list[float]
) -> tuple[Status, celeus.JudgeResult, Counter[int]]:
    """Judge, with a call for the fifth draw that does not end before the judging has."""
    calls: Counter[int] = Counter()
    over = threading.Event()

    def verdict(item: Turn) -> float:
        calls[item.index] += 1
        if item.round == 5 and calls[item.index] == 1:
            over.wait(60)
            return 1.0 - losses[item.index]
        return losses[item.index]

    done = session.judge(verdict, concurrency=JUDGES)
    assert not over.is_set()
    over.set()
    return session.status(), done, calls


def check(status: Status, done: celeus.JudgeResult, calls: Counter[int]) -> None:
    assert status.stopped
    assert status.rounds.judged <= status.rounds.in_interval + AHEAD
    assert done.labels == status.rounds.judged
    assert calls.total() == done.labels + done.overtaken
    assert done.overtaken == 1
    assert done.state == status.state


def test_a_hanging_call_of_a_service_costs_one_label(client: Client) -> None:
    rows, losses = exam(600)
    session = client.open_session(client.create_pool("exam", rows), precision=0.2)
    check(*judged_with_a_hanging_call(session, losses))


@pytest.mark.parametrize("target", ["pool", "population"])
def test_a_hanging_call_in_process_costs_one_label(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows, losses = exam(600)
    session = celeus.certify(rows, None, precision=0.2, target=target)
    check(*judged_with_a_hanging_call(session, losses))


def test_a_function_renews_its_lease_twenty_times() -> None:
    [turns] = workers_of("ses_" + 32 * "0", "ada", 1, None, None)
    draw = {"round": 7, "item": {"index": 3, "id": "q3", "payload": None}, "expires_at": ""}
    body = {"state": "active", "draws": [draw], "retry_after": None}
    answer = Answer(200, {}, json.dumps(body).encode())

    def sent(flow: Flow[Any]) -> list[Any]:
        """What a flow sends, where each request gets the answer."""
        bodies, told = [], None
        with suppress(StopIteration):
            while True:
                request = flow.send(told)
                assert isinstance(request, Request)
                bodies.append(json.loads(request.body or b""))
                told = answer
        return bodies

    asks = {"worker": "ada-1", "lease_seconds": 30}
    assert sent(turns.step(lambda: True)) == [asks | {"count": 1}]
    assert [sent(turns.beat()) for _ in range(20)] == [[asks | {"count": 0}]] * 20
    assert sent(turns.beat()) == []


async def test_a_hanging_call_of_a_task_is_cancelled(service: Service) -> None:
    rows, losses = exam(600)
    calls: Counter[int] = Counter()
    cancelled = []

    async def verdict(item: Turn) -> float:
        calls[item.index] += 1
        if item.round == 5 and calls[item.index] == 1:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(item.index)
                raise
        return losses[item.index]

    async with celeus.AsyncClient(service.url, ADMIN) as client:
        session = await client.open_session(await client.create_pool("exam", rows), precision=0.2)
        done = await session.judge(verdict, concurrency=JUDGES)
        check(await session.status(), done, calls)
    assert len(cancelled) == 1


def test_a_program_killed_at_its_60th_call_gets_its_draws_back(client: Client, known: Exam) -> None:
    """Started again it makes the calls that are left, and not one more."""

    class Killed(BaseException):
        pass

    calls: Counter[int] = Counter()

    def dies(item: Turn) -> float:
        if calls.total() >= 60:
            raise Killed
        calls[item.index] += 1
        return known(item)

    def goes_on(item: Turn) -> float:
        calls[item.index] += 1
        return known(item)

    opened = client.open_session(known.pool, precision=0.2, resume="exam")
    with pytest.raises(Killed):
        opened.judge(dies, concurrency=JUDGES)
    held = opened.status().rounds.pending
    assert 0 < held <= JUDGES
    del opened
    # The exception's frames hold it too
    gc.collect()
    session = client.open_session(known.pool, precision=0.2, resume="exam")
    session.judge(goes_on, concurrency=JUDGES)
    status = session.status()
    assert status.stopped
    assert set(calls.values()) == {1}
    assert calls.total() == status.rounds.judged <= status.rounds.in_interval + AHEAD


def test_a_session_is_resumed_by_name_until_it_is_closed(client: Client, known: Exam) -> None:
    rows, _ = exam(200)
    first = client.open_session(known.pool, precision=0.2, resume="exam (v2)")
    same = client.create_pool("exam again", rows)
    assert client.open_session(same, precision=0.2, resume="exam (v2)").id == first.id
    assert client.open_session(known.pool, precision=0.2, resume="exam (v").id != first.id
    with pytest.raises(celeus.Refusal, match="opened with other settings"):
        client.open_session(known.pool, precision=0.1, resume="exam (v2)")
    other = client.create_pool("another", rows[:50])
    with pytest.raises(celeus.Refusal, match="opened with other items"):
        client.open_session(other, precision=0.2, resume="exam (v2)")
    first.close()
    again = client.open_session(other, precision=0.2, resume="exam (v2)")
    assert again.id != first.id
    assert again.status().name == "exam (v2)"
