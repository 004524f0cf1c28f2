"""Three services as their SDKs' own models have them: what people say there comes back, once."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import pytest

import celeus
from celeus.bridges import argilla, langfuse, langsmith
from celeus.bridges.loop import Queue, Verdict, asked_of, bridge
from celeus.bridges.questions import Question, Task
from celeus.client.blocking import Session
from celeus.errors import Unauthenticated
from tests.ecosystem.queues import argilla_server, langfuse_server, langsmith_server
from tests.ecosystem.queues.served import Route, served
from tests.ecosystem.service import Service

pytestmark = pytest.mark.ecosystem

ROWS = [
    {"id": f"q-{at}", "surrogate": (at % 3) / 3, "payload": {"question": f"{at}?", "answer": at}}
    for at in range(150)
]
LOSSES = {"Correct": 0.0, "Wrong": 1.0, "Cannot tell": None}


class Tool(Protocol):
    """A service in memory."""

    @property
    def routes(self) -> Mapping[tuple[str, str], Route]: ...
    def waiting(self) -> list[tuple[str, dict[str, Any]]]: ...
    def everything(self) -> list[dict[str, Any]]: ...
    def say(self, id_: str, answer: str | float) -> None: ...


Opened = Callable[..., AbstractContextManager[Queue]]
"""A queue at an address, by the id of a session, its question, and another secret."""
Kind = tuple[Tool, Opened]


@contextmanager
def in_langfuse(
    url: str, session: str, question: Question, secret: str = langfuse_server.SECRET
) -> Iterator[Queue]:
    with langfuse.open_tool(url, langfuse_server.PUBLIC, secret) as tool:
        yield langfuse.AnnotationQueue(tool, session, question)


@contextmanager
def in_langsmith(
    url: str, session: str, question: Question, secret: str = langsmith_server.SECRET
) -> Iterator[Queue]:
    with langsmith.open_tool(url, secret) as tool:
        yield langsmith.AnnotationQueue(tool, session, question)


@contextmanager
def in_argilla(
    url: str, session: str, question: Question, secret: str = argilla_server.SECRET
) -> Iterator[Queue]:
    with argilla.open_tool(url, secret) as tool:
        yield argilla.Dataset(tool, session, question)


TOOLS: dict[str, tuple[Callable[[], Tool], Opened]] = {
    "argilla": (argilla_server.Argilla, in_argilla),
    "langfuse": (langfuse_server.Langfuse, in_langfuse),
    "langsmith": (langsmith_server.LangSmith, in_langsmith),
}


class Killed(BaseException):
    """The bridge ends here."""


class AtWork:
    """A queue with somebody who judges one item before each look; ends after so many calls."""

    def __init__(
        self, queue: Queue, tool: Tool, say: Callable[[int], str | float], calls: int = 10_000
    ) -> None:
        self.name = queue.name
        self._queue, self._tool, self._say, self._calls = queue, tool, say, calls

    def put(self, tasks: Sequence[Task]) -> None:
        self._queue.put(tasks)
        self._called()

    def done(self) -> Mapping[str, Verdict | None]:
        for id_, shown in self._tool.waiting()[-1:]:
            self._tool.say(id_, self._say(int(shown["answer"])))
        there = self._queue.done()
        self._called()
        return there

    def take_back(self, marks: Collection[str]) -> None:
        self._queue.take_back(marks)
        self._called()

    def _called(self) -> None:
        self._calls -= 1
        if self._calls == 0:
            raise Killed


@pytest.fixture
def client(service: Service) -> Iterator[celeus.Client]:
    with celeus.Client(service.url, service.key) as client:
        yield client


@pytest.fixture(params=TOOLS)
def kind(request: pytest.FixtureRequest) -> Kind:
    """A tool, and how its queue is opened."""
    made, opened = TOOLS[request.param]
    return made(), opened


def losses(session: Session) -> dict[int | None, float | None]:
    """Of every item that was judged its last loss."""
    entries = list(session.ledger())
    items = {one.round: one.item for one in entries if one.kind == "draw"}
    return {items[one.round]: one.loss for one in entries if one.kind != "draw"}


def test_people_judge_what_is_drawn_also_when_the_bridge_is_killed(
    client: celeus.Client, kind: Kind
) -> None:
    tool, opened = kind
    session = client.open_session(client.create_pool("answers", ROWS), precision=0.4)
    said: dict[int, str] = {}

    def say(number: int) -> str:
        rare = "Cannot tell" if len(said) == 2 else "Correct"
        return said.setdefault(number, "Wrong" if number % 4 == 0 else rare)

    with served(tool.routes) as at:
        for calls in (1, 2, 5, 8):
            with opened(at.url, session.id, asked_of(session)) as queue, pytest.raises(Killed):
                bridge(session, AtWork(queue, tool, say, calls), hold=3, every=0.01)
        with opened(at.url, session.id, asked_of(session)) as queue:
            done = bridge(session, AtWork(queue, tool, say), hold=3, every=0.01)
            assert done.state == "target_reached"
            first, shown = next(iter(said)), tool.everything()
            assert sorted(int(one["answer"]) for one in shown) == sorted(said)
            assert all({*one} == {"question", "answer"} for one in shown)
        assert losses(session) == {number: LOSSES[word] for number, word in said.items()}
        assert first in said
        with (
            pytest.raises(Unauthenticated, match="that work") as refused,
            opened(at.url, session.id, asked_of(session), "another-secret"),
        ):
            pass
        assert "another-secret" not in str(refused.value)


def test_a_changed_score_is_an_amendment(client: celeus.Client, kind: Kind) -> None:
    tool, opened = kind
    pool = client.create_pool("stars", ROWS, loss={"kind": "bounded", "lower": 0, "upper": 4})
    session = client.open_session(pool, budget=8)
    first: list[str] = []

    def say(_: int) -> float:
        if not first:
            first.append(tool.waiting()[-1][0])
        elif len(first) == 1 and session.status().rounds.judged == 3:
            tool.say(first[0], 3.0)
            first.append("changed")
        return 1.0

    with served(tool.routes) as at, opened(at.url, session.id, asked_of(session)) as queue:
        done = bridge(session, AtWork(queue, tool, say), hold=3, every=0.01)
    assert (done.labels, done.amended) == (8, 1)
    (amendment,) = [one for one in session.ledger() if one.kind == "amendment"]
    assert amendment.loss == 3.0
    assert str(amendment.detail["reason"]).startswith(f"changed in {queue.name} by ")
