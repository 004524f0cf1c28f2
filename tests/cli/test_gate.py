"""`celeus gate`: the answer of a session as an exit status, whatever happens to the server."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from httpx import AsyncClient, TransportError

from app.commands import gate as gating
from tests.cli.calling import Answer
from tests.factories import KnownPool, known_pool, labelled, opened
from tests.keys import ADMIN, bearer, key_in
from tests.servers import Service, free_port, running_services

Run = Callable[..., Answer]
YES = [{"side": "at_most", "threshold": 0.9}]
NO = [{"side": "at_least", "threshold": 0.95}]
NOBODY = f"ses_{'0' * 32}"


@pytest.fixture(autouse=True)
def fresh_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CELEUS_KEY", "CELEUS_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def service(database_url: str) -> Iterator[Service]:
    with running_services(1, database_url) as services:
        yield services[0]


@contextmanager
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ask often, for tests that wait."""
    with monkeypatch.context() as patched:
        patched.setattr(gating, "POLL_SECONDS", 0.05)
        yield


async def asked(
    service: Service, questions: list[dict[str, Any]], labels: int = 80
) -> tuple[KnownPool, str]:
    """A session with these questions after some labels."""
    async with AsyncClient(base_url=service.url, headers=bearer(), timeout=30) as client:
        pool = await known_pool(client, 200)
        session = await opened(client, pool, questions=questions)
        await labelled(client, session, pool, labels)
        return pool, session


def test_the_exit_status_is_the_answer(run: Run, service: Service) -> None:
    for questions, labels, status, said in (
        (YES, 80, 0, "at most 0.9: yes (round "),
        (NO, 80, 2, "at least 0.95: no (round "),
        (YES + NO, 80, 2, "at most 0.9: yes"),
        (YES, 0, 3, "at most 0.9: undecided"),
        ([*YES, {"side": "at_most", "threshold": 0.5}], 80, 3, "at most 0.5: undecided"),
    ):
        _, session = asyncio.run(asked(service, questions, labels))
        answer = run("gate", "--session", session, "--url", service.url, "--key", ADMIN)
        assert (answer.status, answer.err) == (status, ""), answer
        assert answer.out.count("\n") == 1
        assert answer.out.startswith(f"{session}: pool risk in [")
        assert "with probability 0.95 at every moment" in answer.out
        assert said in answer.out


def test_json_says_the_same_to_a_program(
    run: Run, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, session = asyncio.run(asked(service, YES + NO))
    monkeypatch.setenv("CELEUS_KEY", ADMIN)
    monkeypatch.setenv("CELEUS_URL", f"{service.url}/")
    answer = run("gate", "--session", session, "--json")
    assert answer.status == 2
    found = json.loads(answer.out)
    assert (found["session"], found["answer"], found["state"]) == (session, "no", "decided")
    assert [one["answer"] for one in found["answers"]] == ["yes", "no"]
    assert found["lower"] <= found["estimate"] <= found["upper"]
    assert {"target", "alpha", "round", "policy", "method_version"} <= found.keys()


def test_a_threshold_nobody_asked_beforehand_is_read_off_the_interval(
    run: Run, service: Service
) -> None:
    _, session = asyncio.run(asked(service, []))
    where = ("--session", session, "--url", service.url, "--key", ADMIN)
    for question, status in (
        (("--at-most", 0.9), 0),
        (("--at-most", 0.1), 2),
        (("--at-most", 0.5), 3),
        (("--at-least", 0.1), 0),
        (("--at-least", 0.9), 2),
        (("--at-least", 0.5), 3),
        (("--at-most", 1), 0),
        (("--at-least", 2), 2),
    ):
        assert run("gate", *where, *question).status == status, question
    nothing = run("gate", *where)
    assert (nothing.status, nothing.out) == (1, "")
    assert nothing.err == (
        f"celeus: {session} asks no questions; ask one with --at-most or --at-least\n"
    )


def test_what_nobody_can_tell_is_one_line_and_status_one(
    run: Run, service: Service, database_url: str
) -> None:
    _, session = asyncio.run(asked(service, YES, 0))
    label = key_in(database_url, "label")
    for arguments, words in (
        (("--session", NOBODY, "--url", service.url, "--key", ADMIN), "404"),
        (("--session", session, "--url", service.url), "401"),
        (("--session", session, "--url", service.url, "--key", ADMIN[:-1] + "x"), "401"),
        (("--session", session, "--url", service.url, "--key", label), "403"),
        (("--session", session, "--url", f"{service.url}/elsewhere", "--key", ADMIN), "404"),
    ):
        # A refusal is no trouble that passes: waiting for it to change would be for nothing.
        began = time.monotonic()
        answer = run("gate", *arguments, "--wait", 30)
        assert time.monotonic() - began < 15.0
        assert (answer.status, answer.out) == (1, ""), answer
        assert answer.err.startswith(f"celeus: the service answers {words}: ")
        assert answer.err.count("\n") == 1
        assert ADMIN not in answer.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Missing option '--session'"),
        (("--session", "ses_1"), "session must be `ses_` and 32 hexadecimal digits"),
        (("--session", f"{NOBODY}/../x"), "session must be"),
        (("--session", NOBODY, "--url", "ftp://here"), "url must be an address"),
        (("--session", NOBODY, "--url", "file:///etc/passwd"), "url must be an address"),
        (("--session", NOBODY, "--key", "two\nlines"), "other than visible characters"),
        (("--session", NOBODY, "--wait", "soon"), "--wait"),
        (("--session", NOBODY, "--wait", -1), "--wait"),
        (("--session", NOBODY, "--wait", "nan"), "--wait"),
        (("--session", NOBODY, "--at-most", 0.1, "--at-least", 0.1), "without --at-least"),
        (("--session", NOBODY, "--at-most", "nan"), "a finite number"),
        (("--session", NOBODY, "--until", "noon"), "--until"),
        (("--session", NOBODY, "more"), "more"),
        (("--session", NOBODY, "--url", "http://127.0.0.1:1"), "cannot be reached"),
        (("--session", NOBODY, "--url", "http://nowhere.invalid"), "cannot be reached"),
    ],
)
def test_wrong_usage_is_never_taken_for_an_answer(
    run: Run, arguments: tuple[object, ...], words: str
) -> None:
    answer = run("gate", *arguments)
    assert (answer.status, answer.out) == (1, "")
    assert words in answer.err
    assert answer.err.count("\n") == 1


def test_waiting_ends_with_the_answer(
    run: Run, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, session = asyncio.run(asked(service, YES, 5))

    async def judge() -> None:
        async with AsyncClient(base_url=service.url, headers=bearer(), timeout=30) as client:
            await asyncio.sleep(0.5)
            await labelled(client, session, pool, 200)

    thread = threading.Thread(target=lambda: asyncio.run(judge()))
    thread.start()
    with quick(monkeypatch):
        where = ("--session", session, "--url", service.url, "--key", ADMIN)
        answer = run("gate", *where, "--wait", 60)
    thread.join()
    assert (answer.status, answer.err) == (0, "")


def test_waiting_ends_when_its_time_is_over_or_nothing_can_change(
    run: Run, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, session = asyncio.run(asked(service, YES, 1))
    where = ("--session", session, "--url", service.url, "--key", ADMIN)
    with quick(monkeypatch):
        began = time.monotonic()
        assert run("gate", *where, "--wait", 1).status == 3
        assert 1.0 <= time.monotonic() - began < 8.0

        async def close() -> None:
            async with AsyncClient(base_url=service.url, headers=bearer()) as client:
                await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})

        asyncio.run(close())
        began = time.monotonic()
        assert run("gate", *where, "--wait", 60).status == 3
        assert time.monotonic() - began < 8.0


@contextmanager
def begun(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A `celeus` process, ended at the latest on leaving."""
    heard = subprocess.DEVNULL if arguments[0] == "serve" else subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-m", "app.cli", *arguments],
        env={"PATH": os.environ["PATH"]} | environment,
        stdout=heard,
        stderr=heard,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


async def judged_when_it_is_back(service: Service, pool: KnownPool, session: str) -> None:
    async with AsyncClient(base_url=service.url, headers=bearer(), timeout=30) as client:
        for _ in range(600):
            with suppress(TransportError):
                if (await client.get("/readyz")).is_success:
                    break
            await asyncio.sleep(0.1)
        await labelled(client, session, pool, 200)


def test_a_server_that_dies_meanwhile_is_asked_again(database_url: str, service: Service) -> None:
    pool, session = asyncio.run(asked(service, YES, 5))
    where = ("--session", session, "--url", service.url, "--key", ADMIN)
    with begun("gate", *where, "--wait", "90") as gate:
        time.sleep(3.0)
        service.kill()
        time.sleep(3.0)
        assert gate.poll() is None
        port = service.url.rpartition(":")[2]
        with begun("serve", "--port", port, CELEUS_DATABASE_URL=database_url):
            asyncio.run(judged_when_it_is_back(service, pool, session))
            out, err = gate.communicate(timeout=60)
    assert (gate.returncode, err) == (0, "")
    assert "at most 0.9: yes" in out


class Odd(BaseHTTPRequestHandler):
    """A server that is none of ours; ``replies`` are sent one after the other, the last for ever.

    A reply is a status, headers and a body; a body of None is sent byte by byte without end.
    """

    replies: ClassVar[list[tuple[int, dict[str, str], bytes | None]]] = []
    seen: ClassVar[list[tuple[str, str | None]]] = []

    def do_GET(self) -> None:
        self.seen.append((self.path, self.headers.get("Authorization")))
        status, headers, body = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if body is not None:
            self.wfile.write(body)
            return
        try:
            while True:
                self.wfile.write(b" ")
                time.sleep(0.1)
        except OSError:
            return

    def log_message(self, *_: Any) -> None:  # noqa: ANN401 -- as the standard library has it
        """Say nothing."""


@pytest.fixture
def odd() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Odd)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    Odd.seen.clear()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def document(**changed: Any) -> bytes:  # noqa: ANN401 -- any member of a session
    known = {
        "id": NOBODY,
        "target": "pool",
        "alpha": 0.05,
        "lower": 0.1,
        "upper": 0.2,
        "estimate": 0.15,
        "round": 40,
        "state": "active",
        "policy": "sharp",
        "method_version": "celeus-1",
        "revision": 1,
        "decisions": [{"side": "at_most", "threshold": 0.3, "answer": "yes", "round": 12}],
    }
    return json.dumps(known | changed).encode()


def test_a_service_that_is_busy_is_asked_again_when_it_says(
    run: Run, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Odd.replies = [
        (503, {"Retry-After": "1"}, b"{}"),
        (429, {"Retry-After": "1"}, b'{"detail": "too many"}'),
        (200, {}, document()),
    ]
    with quick(monkeypatch):
        began = time.monotonic()
        answer = run("gate", "--session", NOBODY, "--url", odd, "--wait", 20)
    assert answer.status == 0
    assert time.monotonic() - began >= 2.0
    assert len(Odd.seen) == 3


@pytest.mark.parametrize("after", ["3600", "Fri, 01 Jan 2100 00:00:00 GMT"])
def test_a_service_that_wants_longer_than_the_wait_is_left_alone(
    run: Run, odd: str, after: str
) -> None:
    Odd.replies = [(503, {"Retry-After": after}, b'{"detail": "the database is away"}')]
    began = time.monotonic()
    answer = run("gate", "--session", NOBODY, "--url", odd, "--wait", 20)
    assert time.monotonic() - began < 10.0
    assert (answer.status, answer.out) == (1, "")
    assert answer.err == "celeus: the service answers 503: the database is away\n"
    assert len(Odd.seen) == 1


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (200, {}, b"<html>hello</html>"),
        (200, {}, b"[]"),
        (200, {}, b"{}"),
        (200, {}, b"[" * 100_000),
        (200, {}, document(lower="0.1")),
        (200, {}, document(decisions=None)),
        (200, {}, document(decisions=["yes"])),
        (200, {}, document(decisions=[{"side": [], "threshold": 0.1, "answer": [], "round": 1}])),
        (200, {}, document(decisions=[{"side": "at_most", "threshold": 0.1, "answer": "oui"}])),
        (302, {"Location": "http://127.0.0.1:1/elsewhere"}, b""),
        (500, {}, b"\x1b[2Jboom\nboom"),
        (418, {}, b'{"detail": "a\\nteapot \\u001b[2J"}'),
    ],
)
def test_whoever_else_answers_is_no_session(
    run: Run, odd: str, status: int, headers: dict[str, str], body: bytes
) -> None:
    Odd.replies = [(status, headers, body)]
    answer = run("gate", "--session", NOBODY, "--url", odd, "--key", "secret-key")
    assert (answer.status, answer.out) == (1, "")
    assert answer.err.count("\n") == 1
    assert "secret-key" not in answer.err
    assert "\x1b" not in answer.err
    # One request, and none to where a redirection points.
    assert [key for _, key in Odd.seen] == ["Bearer secret-key"]


def test_a_session_that_says_nothing_of_decisions_can_be_asked_all_the_same(
    run: Run, odd: str
) -> None:
    older = json.loads(document())
    del older["decisions"]
    Odd.replies = [(200, {}, json.dumps(older).encode())]
    where = ("--session", NOBODY, "--url", odd)
    assert run("gate", *where, "--at-most", 0.3).status == 0
    assert run("gate", *where).status == 1


def test_an_answer_that_never_ends_is_given_up(
    run: Run, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Odd.replies = [(200, {}, None)]
    monkeypatch.setattr(gating, "REQUEST_SECONDS", 1.0)
    began = time.monotonic()
    answer = run("gate", "--session", NOBODY, "--url", odd)
    assert time.monotonic() - began < 5.0
    assert (answer.status, answer.out) == (1, "")
    assert "does not answer within 1 seconds" in answer.err


def test_a_server_that_accepts_and_says_nothing_is_given_up(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gating, "REQUEST_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", free_port())) as silent:
        began = time.monotonic()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        answer = run("gate", "--session", NOBODY, "--url", url)
    assert time.monotonic() - began < 5.0
    assert answer.status == 1
