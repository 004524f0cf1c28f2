"""Answers that do not come, come late, or come from somebody else."""

import json
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from celeus import AsyncClient, Client, Problem, Refusal, Unreachable
from celeus.client.exchange import (
    LONGEST_WAIT,
    PATIENCE_SECONDS,
    TRIES,
    Answer,
    Flow,
    LostAnswer,
    Pause,
    Request,
    sent,
)
from tests.client.pools import Exam, Lossy, exam
from tests.keys import ADMIN
from tests.servers import Service

ASKED = Request("POST", "/v1/x")
CONTRACT = Path(__file__).parents[2] / "openapi" / "openapi.json"


def driven(flow: Flow[Answer], *outcomes: Answer | LostAnswer) -> tuple[Answer, list[float]]:
    """Return the value of a flow that is sent these answers, and its pauses."""
    answers, pauses = iter(outcomes), []
    step: Any = next(flow)
    while True:
        try:
            if isinstance(step, Pause):
                pauses.append(step.seconds)
                step = flow.send(None)
            else:
                step = flow.send(next(answers))
        except StopIteration as ended:
            return ended.value, pauses


def answer(status: int, code: str = "", retry_after: str | None = None) -> Answer:
    headers = {} if retry_after is None else {"retry-after": retry_after}
    return Answer(status, headers, b'{"detail": "so it is", "code": "%s"}' % code.encode())


def test_every_first_answer_is_lost_and_nothing_is_there_twice(service: Service) -> None:
    rows, losses = exam(60)
    with (
        httpx2.Client(transport=Lossy()) as http,
        Client(service.url, ADMIN, http=http) as client,
    ):
        known = Exam(client.create_pool("exam", rows), losses)
        session = client.open_session(known.pool, budget=12)
        session.judge(known, concurrency=2)
        assert [pool.id for pool in client.pools()] == [known.pool.id]
        assert [listed.id for listed in client.sessions()] == [session.id]
        entries = list(session.ledger())
        judged = [entry.round for entry in entries if entry.kind == "observation"]
        assert len(judged) == len(set(judged)) == 12
        assert sum(entry.kind == "draw" for entry in entries) == 12


@pytest.mark.parametrize(
    "first",
    [LostAnswer("gone"), answer(408), answer(429), answer(500), answer(503), answer(409, "busy")],
    ids=lambda outcome: getattr(outcome, "reason", None) or str(outcome.status),
)
def test_what_may_pass_is_tried_again(first: Answer | LostAnswer) -> None:
    done, pauses = driven(sent(ASKED), first, answer(200))
    assert done.status == 200
    assert len(pauses) == 1
    assert 0.25 <= pauses[0] <= 0.5


@pytest.mark.parametrize("code", ["observation_conflict", "session_closed", "round_not_held"])
def test_a_conflict_is_an_answer(code: str) -> None:
    with pytest.raises(Problem) as refused:
        driven(sent(ASKED), answer(409, code))
    assert (refused.value.status, refused.value.code) == (409, code)


def test_a_service_says_when_to_ask_again() -> None:
    done, pauses = driven(sent(ASKED), answer(429, retry_after="7"), answer(200))
    assert (done.status, pauses) == (200, [7.0])
    with pytest.raises(Problem, match="so it is"):
        driven(sent(ASKED), answer(429, retry_after=str(int(LONGEST_WAIT) + 1)))


def test_five_tries_are_made_with_longer_and_longer_pauses() -> None:
    with pytest.raises(Unreachable, match="gone"):
        driven(sent(ASKED), *[LostAnswer("gone")] * TRIES)
    pauses = []

    def patient(flow: Flow[Answer]) -> Flow[Answer]:
        outcome: Any = None
        while True:
            step = flow.send(outcome)
            outcome = answer(500)
            if isinstance(step, Pause):
                pauses.append(step.seconds)
                outcome = None
            yield step

    with pytest.raises(Problem):
        list(patient(sent(ASKED)))
    assert len(pauses) == TRIES - 1
    assert all(
        0.25 * 2**attempt <= pause <= 0.5 * 2**attempt for attempt, pause in enumerate(pauses)
    )


def test_who_judges_outlasts_a_restart_of_the_service() -> None:
    away: list[Answer | LostAnswer] = [LostAnswer("gone"), answer(502), answer(503)] * 8
    done, pauses = driven(sent(ASKED, patient=True), *away, answer(200))
    assert done.status == 200
    assert sum(pauses) > 60, "a service that starts may take a minute"
    with pytest.raises(Problem, match="so it is"):
        driven(sent(ASKED, patient=True), *[answer(500)] * TRIES)


@pytest.mark.parametrize(
    ("told", "took"),
    [
        (LostAnswer("gone"), 0.0),
        (LostAnswer("no answer"), 60.0),
        (answer(503, retry_after="60"), 0.0),
    ],
    ids=["refused", "swallowed", "asked to wait"],
)
def test_who_judges_gives_up_five_minutes_after_the_first_failure(
    told: Answer | LostAnswer, took: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("celeus.client.exchange.monotonic", lambda: now)

    def ask(flow: Flow[Answer]) -> None:
        nonlocal now
        step = next(flow)
        while now < 10 * PATIENCE_SECONDS:
            now += step.seconds if isinstance(step, Pause) else took
            step = flow.send(None if isinstance(step, Pause) else told)

    with pytest.raises((Unreachable, Problem)):
        ask(sent(ASKED, patient=True))
    assert PATIENCE_SECONDS - LONGEST_WAIT <= now - took <= PATIENCE_SECONDS + took


def answering(
    handler: Callable[[httpx2.Request], httpx2.Response],
) -> Iterator[Client]:
    with (
        httpx2.Client(transport=httpx2.MockTransport(handler)) as http,
        Client("http://celeus.test", ADMIN, http=http) as client,
    ):
        yield client


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (httpx2.Response(200, json={"service": "celeus", "version": "9.1.0"}), "celeus==9.*"),
        (httpx2.Response(200, json={"service": "celeus", "version": "0.9.7"}), "celeus==0.9.*"),
        (httpx2.Response(200, json={"name": "other"}), "is no Celeus service"),
        (httpx2.Response(200, text="<h1>Welcome</h1>"), "this is no Celeus service"),
        (httpx2.Response(404, text="no"), "is no Celeus service"),
        (httpx2.Response(302, headers={"Location": "http://evil.test"}), "is no Celeus service"),
    ],
    ids=["major", "series", "other", "page", "missing", "redirect"],
)
def test_another_service_is_told_in_one_line(found: httpx2.Response, said: str) -> None:
    for client in answering(lambda _: found):
        with pytest.raises(Unreachable) as refused:
            list(client.pools())
        assert said in str(refused.value)
        assert "\n" not in str(refused.value)


def test_nobody_there_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("celeus.client.exchange.FIRST_PAUSE", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with (
        Client(f"http://127.0.0.1:{port}", ADMIN) as client,
        pytest.raises(Unreachable, match="cannot be reached: "),
    ):
        client.pool("pool_0")


@pytest.mark.parametrize(
    ("url", "key", "said"),
    [
        ("ftp://celeus.test", ADMIN, "url must be an address"),
        ("http://celeus.test", "ce_ä", "characters that no key has"),
        ("http://celeus.test", None, "there is no key"),
    ],
)
def test_no_client_without_address_and_key(
    monkeypatch: pytest.MonkeyPatch, url: str, key: str | None, said: str
) -> None:
    monkeypatch.delenv("CELEUS_KEY", raising=False)
    with pytest.raises(Refusal, match=said):
        Client(url, key)


def test_address_and_key_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, service: Service
) -> None:
    monkeypatch.setenv("CELEUS_URL", service.url + "/")
    monkeypatch.setenv("CELEUS_KEY", ADMIN)
    with Client() as client:
        assert list(client.pools()) == []


def test_a_key_that_does_not_work_is_told_what_to_do(service: Service) -> None:
    with (
        Client(service.url, ADMIN[:-1] + "x") as client,
        pytest.raises(Problem, match="in CELEUS_KEY") as refused,
    ):
        client.pool("pool_0")
    assert (refused.value.status, refused.value.code) == (401, "unauthenticated")


def test_a_problem_names_field_rule_and_rows(client: Client, known: Exam) -> None:
    with pytest.raises(Problem) as refused:
        client.open_session(known.pool, precision=7)
    assert (refused.value.code, refused.value.field) == ("invalid_value", "precision")
    assert refused.value.rule is not None
    with pytest.raises(Problem, match="line 2: surrogate must be") as rows:
        client.create_pool("bad", [{"id": "a", "surrogate": 0.1}, {"id": "b", "surrogate": 7}])
    assert rows.value.code == "bad_rows"
    assert [pool.name for pool in client.pools()] == ["exam"], "nothing half made is left"


async def test_without_retry_a_request_is_sent_once_by_either_client() -> None:
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(503, headers={"Retry-After": "50"}, json={"detail": "not now"})

    transport = httpx2.MockTransport(handler)
    with httpx2.Client(transport=transport) as http:
        client = Client("http://celeus.test", ADMIN, http=http, retry=False)
        with pytest.raises(Problem, match="not now") as refused:
            list(client.pools())
    assert (refused.value.retry_after, refused.value.passing) == (50.0, True)
    async with httpx2.AsyncClient(transport=transport) as unblocked:
        other = AsyncClient("http://celeus.test", ADMIN, http=unblocked, retry=False)
        with pytest.raises(Problem, match="not now"):
            await other.pool("pool_1")
    assert [request.url.path for request in seen] == ["/version", "/version"]


def test_a_request_has_a_key_where_its_answer_is_kept() -> None:
    """A service refuses the key of a request whose answer it does not keep."""
    kept = {}

    def handler(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/version":
            return httpx2.Response(200, json={"service": "celeus", "version": "0"})
        kept[request.url.path] = "idempotency-key" in request.headers
        return httpx2.Response(200, json={})

    routes = {
        re.sub(r"\{.*?\}", "x", path): methods["post"].get("parameters", [])
        for path, methods in json.loads(CONTRACT.read_text())["paths"].items()
        if "post" in methods
    }
    for client in answering(handler):
        for path in routes:
            client.request("POST", path, {})
    assert kept == {
        path: any(parameter.get("name") == "Idempotency-Key" for parameter in parameters)
        for path, parameters in routes.items()
    }


@pytest.mark.parametrize("more", ["?key=secret", "#secret"])
def test_an_address_that_may_hold_a_secret_is_refused_and_not_shown(more: str) -> None:
    for url in (f"http://celeus.test/{more}", "http://ann:secret@celeus.test"):
        with pytest.raises(Refusal, match="url must be an address") as refused:
            Client(url, ADMIN)
        assert "secret" not in refused.value.line
