"""A call of a judge that hangs costs a label, in a service and in process, and no more."""

import asyncio
import gc
import json
import logging
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

import celeus
from celeus import Client, Status, Turn, Unreachable
from celeus.client import call_times, tasks, threads
from celeus.client.exchange import Answer, Flow, LostAnswer, Request
from celeus.client.label_loop import NO_TASK, workers_of
from celeus.client.reading import read
from celeus.client.results import Draw
from tests.client.pools import Cut, Exam, exam
from tests.keys import ADMIN
from tests.servers import Service

JUDGES = 8
AHEAD = 3 * JUDGES
"""Judged rounds that may be behind a stalled one: two for each judge wait, and one is under way."""


DRAW = {"round": 7, "item": {"index": 3, "id": "q3", "payload": None}, "expires_at": ""}
LATE = 20
"""The round whose call hangs while the target is met without it."""
PROMPT = 15
"""Seconds within which `judge` has ended, whatever hangs."""


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What may still end is waited for as long as it takes, so that only what hangs is let go."""
    monkeypatch.setattr(call_times, "LAST_SECONDS", 3600.0)


def judged_with_a_hanging_call(
    session: celeus.Session, losses: list[float]
) -> tuple[Status, celeus.JudgeResult, Counter[int]]:
    """Judge, with a call for the fifth draw that does not end before the judging has."""
    calls: Counter[int] = Counter()
    over, late = threading.Event(), []

    def verdict(item: Turn) -> float:
        calls[item.index] += 1
        if item.round == 5 and calls[item.index] == 1:
            over.wait(60)
            late.append(item.index)
            return 1.0 - losses[item.index]
        return losses[item.index]

    done = session.judge(verdict, concurrency=JUDGES)
    assert not late
    over.set()
    return session.status(), done, calls


def check(status: Status, done: celeus.JudgeResult, calls: Counter[int]) -> None:
    assert status.stopped
    assert status.rounds.judged <= status.rounds.in_interval + AHEAD
    assert done.labels == status.rounds.judged
    assert calls.total() == done.labels + done.overtaken
    assert done.overtaken == 1
    assert done.state == status.state


@pytest.mark.usefixtures("unhurried")
def test_a_hanging_call_of_a_service_costs_one_label(client: Client) -> None:
    rows, losses = exam(600)
    session = client.open_session(client.create_pool("exam", rows), precision=0.2)
    check(*judged_with_a_hanging_call(session, losses))


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("target", ["pool", "population"])
def test_a_hanging_call_in_process_costs_one_label(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows, losses = exam(600)
    session = celeus.certify(rows, None, precision=0.2, target=target)
    check(*judged_with_a_hanging_call(session, losses))


def test_each_run_of_a_draw_renews_its_lease_twenty_times() -> None:
    [turns] = workers_of("ses_" + 32 * "0", "ada", 1, None, None)
    turns.task = replace(NO_TASK, tries=3, settling=1.0)
    body = {"state": "active", "draws": [DRAW], "retry_after": None}
    answer = Answer(200, {}, json.dumps(body).encode())

    def sent(flow: Flow[Any]) -> list[Any]:
        """What a flow sends, where each request gets the answer."""
        bodies, outcome = [], None
        with suppress(StopIteration):
            while True:
                request = flow.send(outcome)
                assert isinstance(request, Request)
                bodies.append(json.loads(request.body or b""))
                outcome = answer
        return bodies

    asks = {"worker": "ada-1", "lease_seconds": 30}
    assert sent(turns.step(lambda: True)) == [asks | {"count": 1}]
    for _ in range(3):
        assert [sent(turns.beat()) for _ in range(20)] == [[asks | {"count": 0}]] * 20
        assert sent(turns.beat()) == []
        turns.take(turns.held, 0.0)
    assert turns.held[0].said == {"loss": 0.0, "runs": 3}
    assert sent(turns.beat()) == [], "the draw is settled: what is next is to send it"


def test_a_renewal_that_fails_is_not_repeated_before_the_next() -> None:
    [turns] = workers_of("ses_" + 32 * "0", "ada", 1, None, None)
    turns.held = [Turn(read(Draw, DRAW), lambda: True)]
    beat = turns.beat()
    assert isinstance(next(beat), Request)
    with pytest.raises(Unreachable, match="gone"):
        beat.send(LostAnswer("gone"))


def test_a_judge_that_hangs_keeps_no_program_from_ending(tmp_path: Path) -> None:
    script = """
import threading
import celeus

first = threading.Lock()

def judge(item):
    if item.round == 5 and first.acquire(blocking=False):
        threading.Event().wait()
    return item.index % 2

if __name__ == "__main__":
    items = [{"id": str(number)} for number in range(40)]
    print(celeus.certify(items, judge, budget=30, concurrency=3).status().state)
"""
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, "script.py"]
    output = subprocess.check_output(command, cwd=tmp_path, text=True, timeout=60)
    assert output == "budget_spent\n"


def in_a_thread(
    session: celeus.Session, verdict: Callable[[Turn], float], concurrency: int = JUDGES
) -> Future[celeus.JudgeResult]:
    """Judge in a thread, which does not keep the tests from ending."""
    done = Future[celeus.JudgeResult]()

    def judge() -> None:
        try:
            done.set_result(session.judge(verdict, concurrency=concurrency))
        except RuntimeError as error:
            done.set_exception(error)

    threading.Thread(target=judge, daemon=True).start()
    return done


def meet(session: celeus.Session) -> None:
    """Ask for no more precision than the rounds before `LATE` give, once they are judged."""
    deadline = time.monotonic() + 60
    while session.status().rounds.in_interval < LATE - 1:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    session.change(precision=0.95)
    assert session.status().state == "target_reached"


@pytest.mark.usefixtures("unhurried")
def test_a_late_call_that_hangs_is_let_go_of_once_the_target_is_met(
    client: Client, known: Exam
) -> None:
    session = client.open_session(known.pool, precision=0.05)
    met, over = threading.Event(), threading.Event()

    def verdict(item: Turn) -> float:
        if item.round >= LATE:
            (over if item.round == LATE else met).wait(60)
        return known(item)

    done = in_a_thread(session, verdict)
    meet(session)
    met.set()
    try:
        found = done.result(PROMPT)
    finally:
        over.set()
    status = session.status()
    assert found.state == status.state == "target_reached"
    assert (found.labels, found.overtaken) == (status.rounds.judged, 1)
    assert status.rounds.pending == 1


@pytest.mark.usefixtures("unhurried")
async def test_a_late_call_that_hangs_in_a_task_is_cancelled(
    service: Service, client: Client, known: Exam
) -> None:
    session = client.open_session(known.pool, precision=0.05)
    met = asyncio.Event()

    async def verdict(item: Turn) -> float:
        if item.round >= LATE:
            await (asyncio.Event() if item.round == LATE else met).wait()
        return known(item)

    async with celeus.AsyncClient(service.url, ADMIN) as other:
        judging = asyncio.create_task(other.session(session.id).judge(verdict, concurrency=JUDGES))
        await asyncio.to_thread(meet, session)
        met.set()
        found = await asyncio.wait_for(judging, PROMPT)
    status = session.status()
    assert found.state == status.state == "target_reached"
    assert (found.labels, found.overtaken) == (status.rounds.judged, 1)


@pytest.mark.usefixtures("unhurried")
def test_an_interrupt_ends_the_judging_while_calls_hang(session: celeus.Session) -> None:
    hanging, over = threading.Barrier(JUDGES), threading.Event()

    def verdict(_: Turn) -> float:
        if hanging.wait() == 0:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        over.wait()
        return 0.0

    too_late = threading.Timer(PROMPT, over.set)
    too_late.start()
    with pytest.raises(KeyboardInterrupt):
        session.judge(verdict, concurrency=JUDGES)
    assert not over.is_set()
    too_late.cancel()
    over.set()


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_failure_ends_the_judging_while_the_service_is_away(
    concurrency: int, client: Client, service: Service, known: Exam
) -> None:
    session = client.open_session(known.pool, lease_seconds=1).id
    line = Cut()
    fails = threading.Lock()

    def verdict(item: Turn) -> float:
        line.cut.set()
        assert line.missed.wait(60), "a renewal"
        if fails.acquire(blocking=False):
            raise RuntimeError("no such model")
        return known(item)

    with httpx2.Client(transport=line) as http, Client(service.url, ADMIN, http=http) as judge:
        done = in_a_thread(judge.session(session), verdict, concurrency)
        with pytest.raises(RuntimeError, match="no such model"):
            done.result(PROMPT)


@pytest.mark.usefixtures("unhurried")
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


def test_a_program_killed_at_its_60th_call_gets_its_draws_back(
    client: Client, known: Exam, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Started again it makes the calls that are left, and not one more."""
    # Its name is free again, and no other test takes it
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

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
    # To the service the one that goes on is another judge
    session = client.open_session(known.pool, precision=0.2, resume="exam", keep=True)
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


@pytest.mark.parametrize(
    "outcome",
    [Answer(503, {"retry-after": "60"}, b"{}"), LostAnswer("gone"), Answer(200, {}, b"{}")],
)
def test_of_a_call_that_hangs_is_told_without_delay(
    outcome: Answer | LostAnswer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whatever the status says, the next renewal of the leases does not wait for it."""
    now = 0.0
    monkeypatch.setattr(call_times, "monotonic", lambda: now)
    [turns] = workers_of("ses_" + 32 * "0", "ada", 1, None, None)
    turns.held, times = [Turn(read(Draw, DRAW), lambda: True)], call_times.CallTimes()
    with times.call(turns):
        now = 1e6
        warning = call_times.warn_of_hanging(turns.path, [(turns, turns.in_work)], times)
        assert isinstance(next(warning), Request)
        with pytest.raises(StopIteration):
            warning.send(outcome)
    assert "'q3' has taken 1e+06 s: judgements that came later wait for it" in caplog.text


def test_a_call_hangs_after_thirty_seconds_and_ten_times_the_median(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(call_times, "monotonic", lambda: now)
    times = call_times.CallTimes()
    for length in (2.0, 4.0, 90.0):
        with times.call("ended"):
            now += length
    for _ in range(2):
        with times.call("late"):
            now += 40.0
            assert times.hanging("late") is None
            now += 1.0
            assert times.hanging("late") == 41.0
            assert times.hanging("late") is None
        assert times.hanging("late") is None
        with times.call("ended"):
            now += 4.0


class Warned(logging.Handler):
    """Warnings that a call hangs; ``came`` is set by the first."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []
        self.came = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if " wait for it" in record.getMessage():
            self.lines.append(record.getMessage())
            self.came.set()


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> Iterator[Warned]:
    """The warnings, where every call that lasts longer than others is soon one that hangs."""
    monkeypatch.setattr(call_times, "HANGING_SECONDS", 0.1)
    monkeypatch.setattr(threads, "HEARTBEATS", 600)
    monkeypatch.setattr(tasks, "HEARTBEATS", 600)
    handler, log = Warned(), logging.getLogger("celeus")
    log.addHandler(handler)
    yield handler
    log.removeHandler(handler)


def check_warned(warned: Warned, calls: list[str]) -> None:
    """Check that there is a warning, and at most one for each of the calls for the item."""
    (item,) = set(calls)
    lines = [line for line in warned.lines if f"the judge of '{item}' has taken " in line]
    assert 1 <= len(lines) <= len(calls)
    assert re.search(r" s, the median call .* s: \d+ judgements wait for it$", lines[0])


def test_a_call_that_hangs_is_warned_of_once(
    warned: Warned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows, losses = exam(60)
    hung: list[str] = []

    def verdict(item: Turn) -> float:
        if item.round == 5:
            hung.append(item.id)
            assert warned.came.wait(60)
        return losses[item.index]

    celeus.certify(rows, verdict, budget=40, concurrency=4)
    check_warned(warned, hung)


async def test_a_call_of_a_task_that_hangs_is_warned_of_once(
    service: Service, warned: Warned
) -> None:
    rows, losses = exam(60)
    hung: list[str] = []

    async def verdict(item: Turn) -> float:
        if item.round == 5:
            hung.append(item.id)
            assert await asyncio.to_thread(warned.came.wait, 60)
        return losses[item.index]

    async with celeus.AsyncClient(service.url, ADMIN) as client:
        session = await client.open_session(await client.create_pool("exam", rows), budget=40)
        await session.judge(verdict, concurrency=4)
    check_warned(warned, hung)
