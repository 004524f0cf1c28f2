"""One loop for all tools: what is drawn goes into the queue, what is said comes back, once."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import celeus
from celeus import Client
from celeus.bridges import loop
from celeus.bridges.loop import BridgeResult, Verdict, asked_of, bridge
from celeus.bridges.questions import Judgement, Task
from celeus.client.blocking import Session
from celeus.client.exchange import post
from celeus.errors import InvalidValue
from tests.bridges.desk import Desk, PowerCut
from tests.client.pools import exam
from tests.keys import ADMIN, key_in
from tests.servers import Service

ROWS, LOSSES = exam(200)


def truly(task: Task) -> Judgement:
    return {"loss": LOSSES[task.payload["number"]]}


def opened(client: Client, **opening: Any) -> Session:  # noqa: ANN401
    return client.open_session(client.create_pool("exam", ROWS), **{"precision": 0.3, **opening})


def bridged(
    session: Session, desk: Desk, hold: int = 6, warn: Callable[[str], None] = print
) -> BridgeResult:
    return bridge(session, desk, hold=hold, every=0.01, warn=warn)


def ledger(session: Session, kind: str) -> list[celeus.client.results.Entry]:
    return [entry for entry in session.ledger() if entry.kind == kind]


def observed(session: Session) -> dict[int | None, float | None]:
    """The losses that a session has got, by item."""
    items = {entry.round: entry.item for entry in ledger(session, "draw")}
    return {items[entry.round]: entry.loss for entry in ledger(session, "observation")}


def test_people_judge_until_the_session_stops_and_see_only_what_is_drawn(client: Client) -> None:
    session, desk = opened(client), Desk(truly)
    done = bridged(session, desk)
    assert done.state == "target_reached"
    losses = observed(session)
    assert len(losses) == done.labels < 200
    assert all(item is not None and loss == LOSSES[item] for item, loss in losses.items())
    drawn = {f"q-{entry.item}" for entry in ledger(session, "draw")}
    assert {*desk.put_of} == drawn
    assert len(desk.put_of) == len(drawn)
    # What is put has no place for a guess
    assert {*Task.__slots__} == {"mark", "id", "payload", "sides"}
    assert all({*task.payload} == {"number"} for task in desk.tasks.values())


@pytest.mark.parametrize("cut", range(1, 8))
def test_killed_after_any_call_it_loses_and_repeats_nothing(client: Client, cut: int) -> None:
    session, desk = opened(client), Desk(truly, cuts=[cut] * 3)
    for _ in range(3):
        with pytest.raises(PowerCut):
            bridged(session, desk)
    done = bridged(session, desk)
    assert done.state == "target_reached"
    observations = ledger(session, "observation")
    assert len({entry.round for entry in observations}) == len(observations)
    assert len(observations) == len(desk.verdicts)
    assert all(
        item is not None and loss == LOSSES[item] for item, loss in observed(session).items()
    )
    assert done.overtaken == 0


def test_when_the_session_stops_what_nobody_has_begun_is_taken_back(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "LONGEST_UNASKED", 0.5)
    session = opened(client)
    desk = Desk(truly, pace=1)
    judge = desk.judge

    def begins(task: Task) -> Judgement | None:
        if not desk.begun and len(desk.verdicts) > 20:
            desk.begun.add(task.mark)
            session.close()
            return None
        return judge(task)

    desk.judge = begins
    done = bridged(session, desk)
    assert done.state in {"closed", "target_reached"}
    assert {*desk.tasks} - {*desk.verdicts} == desk.begun
    assert desk.taken


def test_an_item_that_nobody_can_judge_is_unjudgeable(client: Client) -> None:
    def doubts(task: Task) -> Judgement:
        return {"unjudgeable": "skipped"} if task.payload["number"] % 9 == 0 else truly(task)

    session, desk = opened(client), Desk(doubts)
    done = bridged(session, desk)
    skipped = {task.id for task in desk.tasks.values() if task.payload["number"] % 9 == 0}
    assert done.unjudgeable == len(ledger(session, "unjudgeable")) == len(skipped)


def test_what_is_said_otherwise_later_becomes_an_amendment_with_its_reason(client: Client) -> None:
    session, changed = opened(client), set[str]()

    def judge(task: Task) -> Judgement:
        if len(desk.verdicts) == 9 and not changed:
            mark, old = next(iter(desk.verdicts.items()))
            changed.add(mark)
            loss = 1.0 - (old.judgement or {})["loss"]
            desk.verdicts[mark] = type(old)({"loss": loss}, "bea")
        return truly(task)

    desk = Desk(judge)
    done = bridged(session, desk)
    assert done.amended == 1
    (amendment,) = ledger(session, "amendment")
    assert amendment.detail["reason"] == "changed in the desk by bea"
    (mark,) = changed
    assert mark.endswith(f"/{amendment.round}")


def test_a_change_while_the_bridge_was_down_is_corrected_and_only_of_its_own(
    client: Client,
) -> None:
    session, desk = opened(client, precision=0.05), Desk(truly, cuts=[14])
    with pytest.raises(PowerCut):
        bridged(session, desk)
    marks = list(desk.verdicts)[:2]
    for mark in marks:
        old = desk.verdicts[mark]
        desk.verdicts[mark] = type(old)({"loss": 1.0 - (old.judgement or {})["loss"]}, "bea")
    theirs = int(marks[1].rpartition("/")[2])
    session.amend(theirs, "second look", unjudgeable="it was withdrawn")
    session.change(budget=len(ledger(session, "draw")))
    done = bridged(session, desk)
    assert (done.amended, done.overtaken) == (1, 1)
    assert [entry.detail["reason"] for entry in ledger(session, "amendment")] == [
        "second look",
        "changed in the desk by bea",
    ]


def test_a_key_that_only_judges_takes_back_only_its_last_label(
    client: Client, service: Service, database_url: str
) -> None:
    warnings: list[str] = []
    session = opened(client, precision=0.05, budget=40)
    calls = iter(range(1000))

    def judge(task: Task) -> Judgement:
        if next(calls) == 20:
            mark, old = next(iter(desk.verdicts.items()))
            desk.verdicts[mark] = type(old)({"loss": 1.0 - (old.judgement or {})["loss"]}, "bea")
        return truly(task)

    desk = Desk(judge)
    with Client(service.url, key_in(database_url, "label")) as blind:
        done = bridged(blind.session(session.id), desk, warn=warnings.append)
        assert done.state == "budget_spent"
    assert done.labels == len(ledger(session, "observation")) == 40
    assert done.amended == 0
    (warning,) = warnings
    assert "changed in the desk by bea, and stays" in warning
    with pytest.raises(InvalidValue, match="filled with another key"):
        bridged(session, desk)


def test_leases_are_renewed_while_people_think(client: Client) -> None:
    session = opened(client, lease_seconds=1, budget=4)
    began = time.monotonic()

    def slow(task: Task) -> Judgement | None:
        return truly(task) if time.monotonic() - began > 2.5 else None

    desk = Desk(slow)
    taker = threading.Timer(2.0, lambda: taken.extend(session_next(client, session)))
    taken: list[Any] = []
    taker.start()
    done = bridged(session, desk, hold=4)
    taker.join()
    assert (done.labels, done.overtaken, taken) == (4, 0, [])


def session_next(client: Client, session: Session) -> list[Any]:
    path = f"/v1/sessions/{session.id}/next"
    draws: list[Any] = client.run(post(path, {"worker": "other", "count": 4}))["draws"]
    return draws


def test_what_others_have_judged_meanwhile_is_overtaken_and_leaves_the_queue(
    client: Client,
) -> None:
    session = opened(client, lease_seconds=1, budget=4)
    desk = Desk(lambda _: None, cuts=[2])
    with pytest.raises(PowerCut):
        bridged(session, desk, hold=4)
    assert len(desk.tasks) == 4
    # Somebody at the desk has judged one; another judge judges all, when their leases have ended
    mark, task = next(iter(desk.tasks.items()))
    session.judge(lambda item: 1.0 - LOSSES[item.index], concurrency=1)
    desk.judge = lambda drawn: truly(drawn) if drawn.mark == mark else None
    done = bridged(session, desk)
    assert (done.state, done.labels, done.overtaken) == ("budget_spent", 0, 1)
    assert {*desk.tasks} == {mark}
    assert task.mark == mark


def test_a_change_of_what_another_judge_said_first_corrects_nothing(client: Client) -> None:
    session = opened(client, precision=0.01, budget=20, lease_seconds=30)

    def judge(task: Task) -> Judgement:
        if not desk.verdicts:
            program_judges(client, session, until=1)
        elif not changed:
            changed.append(mark := next(iter(desk.verdicts)))
            desk.verdicts[mark] = Verdict({"unjudgeable": "withdrawn"}, "bea")
        return truly(task)

    changed: list[str] = []
    desk = Desk(judge)
    done = bridged(session, desk, hold=1)
    assert changed == [f"{session.id}/1"]
    assert ledger(session, "amendment") == []
    (first,) = (entry for entry in ledger(session, "observation") if entry.round == 1)
    assert first.detail["worker"] == "program"
    others = [
        entry for entry in ledger(session, "observation") if entry.detail["worker"] != "program"
    ]
    assert (done.labels, done.unjudgeable, done.overtaken) == (len(others), 0, 1)


def program_judges(client: Client, session: Session, until: int) -> None:
    """Have a program judge one draw after the other, wrongly, up to and with a round."""
    path, form = f"/v1/sessions/{session.id}", {"worker": "program", "lease_seconds": 30}
    round_ = None
    while round_ != until:
        (draw,) = client.run(post(f"{path}/next", {**form, "count": 1}))["draws"]
        round_, loss = draw["round"], 1.0 - LOSSES[draw["item"]["index"]]
        client.run(post(f"{path}/observe", {**form, "round": round_, "loss": loss}))


def test_a_pause_keeps_the_queue_and_the_end_of_it_goes_on(client: Client) -> None:
    session, desk = opened(client), Desk(truly)
    session.change(state="paused")
    resumer = threading.Timer(1.0, lambda: session.change(state="active"))
    resumer.start()
    done = bridge(session, desk, hold=6, every=0.2)
    resumer.join()
    assert done.state == "target_reached"


def test_a_tool_that_is_away_for_a_while_is_waited_for(client: Client) -> None:
    session, desk, warnings = opened(client), Desk(truly, away=3), list[str]()
    assert bridged(session, desk, warn=warnings.append).state == "target_reached"
    assert warnings == ["the desk is away; trying again"] * 3


class Overloaded(httpx2.HTTPTransport):
    """Answers some judgements with 503 or `busy`, and asks to be left alone for long."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = [(503, "overloaded"), (409, "busy")] * 2

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if not request.url.path.endswith("/observe") or not self.answers:
            return super().handle_request(request)
        status, code = self.answers.pop()
        headers = {"Retry-After": "100"}
        return httpx2.Response(status, headers=headers, json={"code": code}, request=request)


def test_a_service_that_is_busy_loses_no_label(client: Client, service: Service) -> None:
    session, warnings, transport = opened(client, budget=12), list[str](), Overloaded()
    http = httpx2.Client(transport=transport)
    with http, Client(service.url, ADMIN, http=http) as slow:
        done = bridged(slow.session(session.id), Desk(truly), warn=warnings.append)
    assert (done.state, done.labels, transport.answers) == ("budget_spent", 12, [])
    assert len(warnings) == 4
    assert len(observed(session)) == 12


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.chdir(tmp_path)
    session = celeus.certify(ROWS, None, precision=0.3)
    yield session
    session.client.close()


def test_a_session_in_process_is_judged_in_a_tool_as_well(local: Session) -> None:
    desk = Desk(truly, cuts=[5])
    assert [*asked_of(local).options] == ["Correct", "Wrong"]
    with pytest.raises(PowerCut):
        bridged(local, desk)
    mark, old = next(iter(desk.verdicts.items()))
    assert bridged(local, desk).state == "target_reached"
    losses = observed(local)
    assert all(item is not None and loss == LOSSES[item] for item, loss in losses.items())
    assert len(losses) == len(desk.verdicts) < 200
    assert mark.startswith(local.id)
    assert old.judgement is not None


def test_a_verdict_that_is_none_is_told_and_waited_for(client: Client) -> None:
    session, warnings = opened(client, budget=3), list[str]()
    desk = Desk(lambda task: {"loss": 7.0} if task.id == first(desk) else truly(task))

    def told(text: str) -> None:
        warnings.append(text)
        mark, old = desk.said(first(desk))
        desk.verdicts[mark] = type(old)({"loss": 1.0})

    done = bridged(session, desk, hold=3, warn=told)
    assert (done.state, done.labels) == ("budget_spent", 3)
    (warning,) = warnings
    assert "not on the scale" in warning


def first(desk: Desk) -> str:
    """The item that was put first."""
    return desk.put_of[0]


def test_a_comparison_shows_two_answers_and_whose_they_are_nowhere(client: Client) -> None:
    rows = [
        {"id": f"q-{number}", "a": {"answer": "long " * number}, "b": {"answer": "x"}}
        for number in range(9)
    ]
    pool = client.create_pool(
        "pair", rows, systems={"a": "one", "b": "two"}, loss={"kind": "preference"}
    )
    session = client.open_session(pool, precision=0.01)
    question = asked_of(session)
    words = ["Left is better", "Equally good", "Both are bad", "Right is better"]
    assert [*question.options] == words

    def prefers(task: Task) -> Judgement | None:
        left, right = (len(side.answer or "") for side in task.sides)
        name = "Left is better" if left > right else "Right is better"
        return question.judgement_of("Both are bad" if 0 in (left, right) else name)

    done = bridged(session, Desk(prefers))
    assert done.state in {"target_reached", "exhausted"}
    estimate = session.status().estimate
    assert estimate is not None
    assert estimate < 0
    preferences = {label.preference for label in session.labels() if label.item == "q-0"}
    assert preferences == {"both_bad"}


def test_sessions_whose_judgements_have_no_such_form_are_refused(client: Client) -> None:
    rows = [{"id": f"q-{number}"} for number in range(40)]
    pool = client.create_pool(
        "table", rows, metrics={"true": {"kind": "zero_one"}, "kind": {"kind": "zero_one"}}
    )
    session = client.open_session(pool, precision=0.3)
    with pytest.raises(InvalidValue, match="several losses are judged on the page"):
        asked_of(session)
    with pytest.raises(InvalidValue, match="hold must be 1 to 256"):
        bridge(session, Desk(truly), hold=0)
