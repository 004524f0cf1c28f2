"""`celeus gate`: the answer of a session as an exit status, whatever happens to the server."""

import asyncio
import json
import math
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from httpx import AsyncClient, TransportError

from celeus.gates import waiting as gating
from tests.cli.calling import Run
from tests.factories import KnownPool, drawn, known_pool, labelled, opened
from tests.gates.odd import NOBODY, Odd, document, strangers
from tests.keys import ADMIN, bearer, key_in
from tests.pairs import A, B, pair
from tests.servers import Service, free_port, running_services
from tests.tabled import sheet
from tests.versions import NEW, OLD, Versions, judge
from tests.versions import judged as judged_version
from tests.versions import made as pool_of_versions

YES = [{"side": "at_most", "threshold": 0.9}]
NO = [{"side": "at_least", "threshold": 0.95}]


@pytest.fixture(autouse=True)
def keyed_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELEUS_KEY", ADMIN)
    monkeypatch.delenv("CELEUS_URL", raising=False)
    # A service on a busy machine is not one that is gone
    monkeypatch.setattr(gating, "REQUEST_SECONDS", 120.0)


@pytest.fixture
def mortal(database_url: str) -> Iterator[Service]:
    """A service of the test's own, which may be killed."""
    with running_services(1, database_url) as services:
        yield services[0]


class Clock:
    """A clock that moves by nothing but waiting, and waits no time."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return sum(self.pauses)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock by which the command waits."""
    clock = Clock()
    monkeypatch.setattr(gating, "time", clock)
    return clock


async def judged_at_once(client: AsyncClient, session: str, pool: KnownPool, labels: int) -> None:
    """Draw so many items and judge them, in two requests."""
    if labels:
        draws = (await drawn(client, session, labels))["draws"]
        told = [{"round": one["round"], "loss": pool.losses[one["item"]["index"]]} for one in draws]
        body = {"worker": "ada", "observations": told}
        (await client.post(f"/v1/sessions/{session}/observe", json=body)).raise_for_status()


async def asked(
    service: Service, questions: list[dict[str, Any]], labels: int = 80
) -> tuple[KnownPool, str]:
    """A session with these questions after some labels."""
    async with AsyncClient(base_url=service.url, headers=bearer(), timeout=30) as client:
        pool = await known_pool(client, 200)
        session = await opened(client, pool, questions=questions)
        await judged_at_once(client, session, pool, labels)
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
        answer = run("gate", session, "--url", service.url)
        assert (answer.status, answer.err) == (status, ""), answer
        assert answer.out.count("\n") == 1
        start = "error rate" if labels else "Nothing is judged yet: error rate"
        assert answer.out.startswith(f"{session}: {start} ")
        assert not labels or "valid at every look with 95 % confidence, based on " in answer.out
        assert said in answer.out


def test_json_says_the_same_to_a_program(
    run: Run, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, session = asyncio.run(asked(service, YES + NO))
    monkeypatch.setenv("CELEUS_URL", f"{service.url}/")
    answer = run("gate", session, "--json")
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
    where = (session, "--url", service.url)
    for question, status in (
        (("--at-most", 0.9), 0),
        (("--at-most", 0.1), 2),
        (("--at-most", 0.5), 3),
        (("--at-least", 0.1), 0),
        (("--at-least", 0.9), 2),
        (("--at-least", 0.5), 3),
        (("--at-most", "90%"), 0),
        (("--at-most", "10 %"), 2),
    ):
        assert run("gate", *where, *question).status == status, question
    nothing = run("gate", *where)
    assert (nothing.status, nothing.out) == (1, "")
    assert nothing.err == (
        f"celeus: {session} has no questions; ask one with --at-most or --at-least\n"
    )


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (("--at-most", 10), "did you mean 10 % (0.1)?"),
        (("--at-least", 5), "did you mean 5 % (0.05)?"),
        (("--score-at-most", "30"), "did you mean 30 % (0.3)?"),
        (("--score-at-least", 95), "did you mean 95 % (0.95)?"),
        (("--at-most", 1), "--at-most must be inside the scale, above 0 and below 1"),
        (("--at-most", "100%"), "--at-most must be above 0% and below 100%, not 100%"),
        (("--at-least", 0), "--at-least must be inside the scale, above 0 and below 1"),
        (("--at-least", -0.1), "--at-least must be inside the scale, above 0 and below 1"),
        (("--at-most", "a tenth"), "--at-most must be a finite number, as 0.1, or of a share 10%"),
    ],
)
def test_a_threshold_outside_the_scale_is_refused_as_at_an_opening(
    run: Run, odd: str, question: tuple[str, object], words: str
) -> None:
    Odd.replies = [(200, {}, document())]
    answer = run("gate", NOBODY, "--url", odd, *question)
    assert (answer.status, answer.out) == (1, "")
    assert words in answer.err


def test_percent_is_refused_on_a_scale_that_is_none_of_shares(run: Run, odd: str) -> None:
    stars = {"lower": 1.0, "upper": 10.0}
    Odd.replies = [(200, {}, document(scale=stars, lower=2.0, upper=3.0, estimate=2.5))]
    where = ("gate", NOBODY, "--url", odd)
    answer = run(*where, "--at-most", "10%")
    assert (answer.status, answer.out) == (1, "")
    rule = "a number on the scale, 1 to 10, which is none of shares"
    assert f"--at-most must be {rule}, not '10%'" in answer.err
    answer = run(*where, "--at-most", 11)
    assert (answer.status, "did you mean" in answer.err) == (1, False)
    assert run(*where, "--at-most", 4).status == 0


async def compared(service: Service, labels: int, **claim: object) -> str:
    """A session on two systems of which B, the llama, is the better one, after some labels."""
    async with AsyncClient(base_url=service.url, headers=bearer(), timeout=30) as client:
        two = await pair(client, "label", 60)
        assert sum(two.better) > 3
        made = await client.post("/v1/sessions", json={"pool_id": two.id, **claim})
        path = f"/v1/sessions/{made.json()['id']}"
        for _ in range(labels):
            draws = (await client.post(f"{path}/next", json={"worker": "ada"})).json()["draws"]
            if not draws:
                break
            said = {"worker": "ada", "round": draws[0]["round"]}
            said |= two.said(draws[0]["item"]["index"])
            assert (await client.post(f"{path}/observe", json=said)).is_success
        return str(made.json()["id"])


def test_of_two_systems_one_may_replace_the_other(run: Run, service: Service) -> None:
    margin = {"decide": {"margin": 0.05}}
    session = asyncio.run(compared(service, 60, **margin))
    where = (session, "--url", service.url)
    for system, status, words in (
        ("b", 0, f"{B} at least as good within 5 points: yes, b_at_least_as_good (round "),
        (B, 0, f"{B} at least as good within 5 points: yes"),
        (A, 2, f"{A} at least as good within 5 points: no, b_at_least_as_good (round "),
    ):
        answer = run("gate", *where, "--compare", system)
        assert (answer.status, answer.err) == (status, ""), answer
        assert words in answer.out
        assert answer.out.startswith(f"{session}: {B} ")
        assert A in answer.out
    answer = run("gate", *where, "--compare", A, "--margin", "95pt", "--json")
    found = json.loads(answer.out)
    assert (answer.status, found["answer"]) == (0, "yes")
    assert found["answers"][0]["margin"] == 0.95
    assert found["systems"] == {"a": A, "b": B}
    (one,) = found["answers"]
    assert (one["system"], one["verdict"], one["round"]) == (A, None, None)
    assert run("gate", *where, "--compare", A, "--margin", 0.02).status == 3


def test_equivalent_systems_may_replace_each_other(run: Run, service: Service) -> None:
    session = asyncio.run(compared(service, 60))
    where = (session, "--url", service.url)
    for margin, status in ((0.95, 0), ("95 pt", 0)):
        for system in "a", "b":
            answer = run("gate", *where, "--compare", system, "--margin", margin)
            assert answer.status == status, answer
    assert "within 95 points: yes\n" in run("gate", *where, "--compare", "a", "--margin", 0.95).out


def test_a_verdict_of_equivalence_lets_either_replace_the_other(run: Run, service: Service) -> None:
    session = asyncio.run(compared(service, 1, decide={"margin": 0.9}))
    for system in A, B:
        answer = run("gate", session, "--url", service.url, "--compare", system)
        assert answer.status == 0, answer
        assert f"{A} and {B} are equivalent: their error rates differ by at most 90 " in answer.out
        assert f"{system} at least as good within 90 points: yes, equivalent (" in answer.out


async def release(service: Service, better: float, labels: int) -> str:
    """A session on a new version and the old one, some of whose items were judged before."""
    versions = Versions.of(80, better=better)
    async with AsyncClient(base_url=service.url, headers=bearer(), timeout=30) as client:
        source, _ = await judged_version(client, versions, 20)
        pool = await pool_of_versions(
            client,
            items=versions.pairs(),
            systems={"a": OLD, "b": NEW},
            based_on={"session": source, "labels_seen": "no"},
        )
        body = {"pool_id": pool["id"], "decide": {"margin": 0.02}}
        session = str((await client.post("/v1/sessions", json=body)).json()["id"])
        await judge(client, session, lambda at: versions.said(versions.new, at), labels)
        return session


@pytest.mark.parametrize(
    ("better", "labels", "status"),
    [(1.0, 80, 0), (0.0, 80, 2), (0.8, 0, 3)],
)
def test_a_new_version_on_a_judged_pool_passes_the_gate_or_does_not(
    run: Run, service: Service, better: float, labels: int, status: int
) -> None:
    word = {0: "yes", 2: "no", 3: "undecided"}[status]
    session = asyncio.run(release(service, better, labels))
    answer = run("gate", session, "--url", service.url, "--compare", NEW)
    assert (answer.status, answer.err) == (status, ""), answer
    assert f"{NEW} at least as good within 2 points: {word}" in answer.out


def test_a_comparison_nobody_can_make_is_status_one(run: Run, service: Service) -> None:
    _, alone = asyncio.run(asked(service, YES, 0))
    two = asyncio.run(compared(service, 0))
    for session, more, words in (
        (alone, ("--compare", "a"), "compares no two systems"),
        (two, ("--compare", "gpt"), f"--compare must be {A} or {B}"),
        (two, ("--compare", "a"), "asks for no verdict; name a --margin"),
        (two, ("--margin", 0.1), "--margin needs --compare"),
        (two, ("--compare", "a", "--at-most", 0.1), "give only one of"),
        (two, ("--compare", "a", "--margin", "nan"), "a finite number"),
        (
            two,
            ("--compare", "a", "--margin", -1),
            "--margin must be at least 0 and below 1, not -1",
        ),
        (two, ("--compare", "a", "--margin", 2), "did you mean 2 pt (0.02)?"),
        (two, ("--compare", "a", "--margin", 1), "did you mean 1 pt (0.01)?"),
    ):
        answer = run("gate", session, "--url", service.url, *more)
        assert (answer.status, answer.out) == (1, ""), answer
        assert words in answer.err


def test_what_nobody_can_tell_is_one_line_and_status_one(
    run: Run, service: Service, database_url: str, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    _, session = asyncio.run(asked(service, YES, 0))
    label = key_in(database_url, "label")
    for asked_of, url, key, words in (
        (NOBODY, service.url, ADMIN, f"no session {NOBODY}; check its id, and"),
        (session, service.url, "", "there is no key: give one as `key`, or in CELEUS_KEY"),
        (session, service.url, ADMIN[:-1] + "x", "give a key that works as `key`, or in CELEUS_"),
        (
            session,
            service.url,
            label,
            "`celeus admin keys create --name me --scope read` makes one",
        ),
        (session, f"{service.url}/elsewhere", ADMIN, f"{service.url}/elsewhere is no Celeus serv"),
    ):
        monkeypatch.setenv("CELEUS_KEY", key)
        answer = run("gate", asked_of, "--url", url, "--wait", 30)
        # A refusal is no trouble that passes: waiting for it to change would be for nothing.
        assert clock.pauses == []
        assert (answer.status, answer.out) == (1, ""), answer
        assert answer.err.startswith("celeus: ")
        assert words in answer.err
        assert answer.err.count("\n") == 1
        assert ADMIN not in answer.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Missing argument 'SESSION'"),
        (("ses_1",), "session must be `ses_` and 32 hexadecimal digits"),
        ((f"{NOBODY}/../x",), "session must be"),
        ((NOBODY, "--url", "ftp://here"), "url must be an address"),
        ((NOBODY, "--url", "file:///etc/passwd"), "url must be an address"),
        ((NOBODY, "--key", "secret"), "--key"),
        ((NOBODY, "--wait", "soon"), "--wait"),
        ((NOBODY, "--wait", -1), "--wait"),
        ((NOBODY, "--wait", "nan"), "--wait"),
        ((NOBODY, "--at-most", 0.1, "--at-least", 0.1), "one of --at-most"),
        ((NOBODY, "--at-most", "nan"), "a finite number"),
        ((NOBODY, "--until", "noon"), "--until"),
        ((NOBODY, "more"), "more"),
        ((NOBODY, "--url", "http://127.0.0.1:1"), "cannot be reached"),
        ((NOBODY, "--url", "http://nowhere.invalid"), "cannot be reached"),
    ],
)
def test_wrong_usage_is_never_taken_for_an_answer(
    run: Run, arguments: tuple[object, ...], words: str
) -> None:
    answer = run("gate", *arguments)
    assert (answer.status, answer.out) == (1, "")
    assert words in answer.err
    assert answer.err.count("\n") == 1


def test_a_key_with_other_characters_is_refused_unsent(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELEUS_KEY", "two\nlines")
    answer = run("gate", NOBODY, "--url", "http://127.0.0.1:1")
    assert (answer.status, answer.out) == (1, "")
    assert "characters that no key has" in answer.err
    assert "lines" not in answer.err


def test_waiting_ends_with_the_answer(
    run: Run, service: Service, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, session = asyncio.run(asked(service, YES, 5))

    async def judge() -> None:
        async with AsyncClient(base_url=service.url, headers=bearer(), timeout=30) as client:
            await labelled(client, session, pool, 200)

    def judged_meanwhile(seconds: float) -> None:
        clock.pauses.append(seconds)
        asyncio.run(judge())

    monkeypatch.setattr(clock, "sleep", judged_meanwhile)
    answer = run("gate", session, "--url", service.url, "--wait", 60)
    assert (answer.status, answer.err) == (0, "")
    assert clock.pauses == [2.0]


def test_waiting_ends_when_its_time_is_over_or_nothing_can_change(
    run: Run, service: Service, clock: Clock
) -> None:
    _, session = asyncio.run(asked(service, YES, 1))
    where = (session, "--url", service.url)
    assert run("gate", *where, "--wait", 5).status == 3
    assert clock.pauses == [2.0, 2.0, 1.0]

    async def close() -> None:
        async with AsyncClient(base_url=service.url, headers=bearer()) as client:
            await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})

    asyncio.run(close())
    clock.pauses.clear()
    assert run("gate", *where, "--wait", 60).status == 3
    assert clock.pauses == []


@contextmanager
def begun(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A `celeus` process, ended at the latest on leaving."""
    heard = subprocess.DEVNULL if arguments[0] == "serve" else subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-m", "celeus.cli", *arguments],
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


def times_asked(service: Service) -> float:
    """How often a session's state was asked for."""
    metrics = httpx.get(f"{service.url}/metrics", headers=bearer(), timeout=30).text
    found = re.findall(r'requests_total{method="GET",route="([^"]*)"[^}]*} (\S+)', metrics)
    return sum(float(count) for route, count in found if route == "/v1/sessions/{session_id}")


@pytest.mark.nightly
def test_a_server_that_dies_meanwhile_is_asked_again(database_url: str, mortal: Service) -> None:
    pool, session = asyncio.run(asked(mortal, YES, 5))
    where = (session, "--url", mortal.url)
    port = mortal.url.rpartition(":")[2]
    with begun("gate", *where, "--wait", "90", CELEUS_KEY=ADMIN) as gate:
        while times_asked(mortal) == 0:
            time.sleep(0.05)
        mortal.kill()
        with socket.create_server(("127.0.0.1", int(port))) as nobody:
            nobody.settimeout(60)
            nobody.accept()[0].close()
        assert gate.poll() is None
        with begun("serve", "--port", port, CELEUS_DATABASE_URL=database_url):
            asyncio.run(judged_when_it_is_back(mortal, pool, session))
            out, err = gate.communicate(timeout=60)
    assert (gate.returncode, err) == (0, "")
    assert "at most 0.9: yes" in out


@pytest.fixture
def odd() -> Iterator[str]:
    with strangers() as url:
        yield url


def test_a_service_that_is_busy_is_asked_again_when_it_says(
    run: Run, odd: str, clock: Clock
) -> None:
    Odd.replies = [
        (503, {"Retry-After": "7"}, b"{}"),
        (429, {"Retry-After": "5"}, b'{"detail": "too many"}'),
        (200, {}, document()),
    ]
    answer = run("gate", NOBODY, "--url", odd, "--wait", 20)
    assert answer.status == 0
    assert clock.pauses == [7.0, 5.0]
    assert len(Odd.seen) == 3


def test_a_service_that_is_gone_for_a_while_is_asked_again(
    run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers, listens no more while the command waits, and is back at the third pause."""
    undecided = {"side": "at_most", "threshold": 0.3, "answer": "undecided", "round": None}
    with ExitStack() as first, ExitStack() as second:
        Odd.replies = [(200, {}, document(decisions=[undecided]))]
        url = first.enter_context(strangers())

        def meanwhile(seconds: float) -> None:
            clock.pauses.append(seconds)
            if len(clock.pauses) == 1:
                first.close()
            elif len(clock.pauses) == 3:
                Odd.replies = [(200, {}, document())]
                second.enter_context(strangers(int(url.rpartition(":")[2])))

        monkeypatch.setattr(clock, "sleep", meanwhile)
        answer = run("gate", NOBODY, "--url", url, "--wait", 60)
    assert (answer.status, answer.err) == (0, "")
    assert clock.pauses == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("after", ["3600", "Fri, 01 Jan 2100 00:00:00 GMT"])
def test_a_service_that_wants_longer_than_the_wait_is_left_alone(
    run: Run, odd: str, after: str, clock: Clock
) -> None:
    Odd.replies = [(503, {"Retry-After": after}, b'{"detail": "the database is away"}')]
    answer = run("gate", NOBODY, "--url", odd, "--wait", 20)
    assert clock.pauses == []
    assert (answer.status, answer.out) == (1, "")
    assert answer.err == "celeus: the database is away (503)\n"
    assert len(Odd.seen) == 1


@pytest.mark.parametrize(
    "reply",
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
    run: Run,
    odd: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reply: tuple[int, dict[str, str], bytes],
) -> None:
    Odd.replies = [reply]
    file = tmp_path / "key"
    file.write_text("secret-key\n")
    monkeypatch.setenv("CELEUS_KEY_FILE", str(file))
    answer = run("gate", NOBODY, "--url", odd)
    assert (answer.status, answer.out) == (1, "")
    assert answer.err.count("\n") == 1
    assert "secret-key" not in answer.err
    assert "\x1b" not in answer.err
    # One request, and none to where a redirection points.
    assert [key for _, key in Odd.seen] == ["Bearer secret-key"]


DECISION = {"side": "at_most", "threshold": 0.3, "answer": "yes", "round": 12}
HUGE = 10**400


@pytest.mark.parametrize(
    "changed",
    [
        {"id": f"ses_{'1' * 32}"},
        {"id": NOBODY.upper()},
        *({name: value} for name in ("lower", "upper", "estimate") for value in (HUGE, math.nan)),
        {"lower": False, "upper": True},
        {"lower": True, "upper": False},
        {"lower": 0.3, "upper": 0.2},
        {"lower": -math.inf},
        *({"scale": ends} for ends in (None, {"lower": 1, "upper": 0}, {"lower": 0})),
        *({"alpha": value} for value in (-5, 0, 1, 1.5, HUGE, math.nan, True)),
        *({name: value} for name in ("round", "revision") for value in (True, -1, 0.5, HUGE)),
        *({"changes": value} for value in ("\x1b[2Jnever", {"a": 1}, True, -1, HUGE, None)),
        *({"fixed": value} for value in ("\x1b[2J", 1, None)),
        *({"decisions": [DECISION | {"threshold": one}]} for one in (True, HUGE, math.inf)),
        *({"decisions": [DECISION | {"round": one}]} for one in (True, -1, HUGE)),
    ],
)
def test_a_document_with_a_value_no_session_has_is_no_answer(
    run: Run, odd: str, changed: dict[str, Any]
) -> None:
    Odd.replies = [(200, {}, document(**changed))]
    for question in ((), ("--at-most", 0.3)):
        answer = run("gate", NOBODY, "--url", odd, *question)
        assert (answer.status, answer.out) == (1, "")
        assert answer.err == f"celeus: {odd} answers with something that is not {NOBODY}\n"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ((200, {}, b'{"service": "celeus", "version": "99.1.0"}'), "runs celeus 99.1.0, and this"),
        ((200, {}, b'{"service": "other", "version": "1.0"}'), "is no Celeus service"),
        ((200, {}, b"<html>hello</html>"), "this is no Celeus service"),
        ((404, {}, b"{}"), "is no Celeus service"),
    ],
)
def test_another_program_or_another_version_is_not_asked_again(
    run: Run, odd: str, clock: Clock, reply: tuple[int, dict[str, str], bytes], words: str
) -> None:
    Odd.replies, Odd.version = [reply], None
    answer = run("gate", NOBODY, "--url", odd, "--wait", 30)
    assert (answer.status, answer.out, clock.pauses) == (1, "", [])
    assert answer.err.count("\n") == 1
    assert words in answer.err
    assert [path for path, _ in Odd.seen] == ["/version"]


def test_a_service_that_is_always_busy_is_given_up_with_the_wait(
    run: Run, odd: str, clock: Clock
) -> None:
    Odd.replies, Odd.version = [(429, {"Retry-After": "4"}, b'{"detail": "Too many."}')], None
    answer = run("gate", NOBODY, "--url", odd, "--wait", 10)
    assert (answer.status, answer.out, clock.pauses) == (1, "", [4.0, 4.0])
    assert answer.err == "celeus: Too many; ask again in 4 seconds (429)\n"


@pytest.mark.parametrize(
    "name", ["decisions", "fixed", "verdict", "systems", "scale", "score", "sentence"]
)
def test_a_document_without_a_member_of_a_session_is_no_answer(
    run: Run, odd: str, name: str
) -> None:
    other = json.loads(document())
    del other[name]
    Odd.replies = [(200, {}, json.dumps(other).encode())]
    answer = run("gate", NOBODY, "--url", odd, "--at-most", 0.3)
    assert (answer.status, answer.out) == (1, "")
    assert answer.err == f"celeus: {odd} answers with something that is not {NOBODY}\n"


def test_an_answer_that_never_ends_is_given_up(
    run: Run, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Odd.replies = [(200, {}, None)]
    monkeypatch.setattr(gating, "REQUEST_SECONDS", 1.0)
    answer = run("gate", NOBODY, "--url", odd)
    assert (answer.status, answer.out) == (1, "")
    assert "does not answer within 1 seconds" in answer.err


def test_a_server_that_accepts_and_says_nothing_is_given_up(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gating, "REQUEST_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", free_port())) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        answer = run("gate", NOBODY, "--url", url)
    assert answer.status == 1


VERDICT = {"margin": 0.02, "answer": "a_at_least_as_good", "round": 12}


@pytest.mark.parametrize(
    ("names", "system", "status"),
    [
        ({"a": "b", "b": "a"}, "a", 2),
        ({"a": "b", "b": "a"}, "b", 0),
        ({"a": "v 2", "b": "v  2"}, "v  2", 2),
        ({"a": "v 2", "b": "v  2"}, "v 2", 0),
        ({"a": "v  2", "b": "v   2"}, "v 2", 1),
        ({"a": "v  1", "b": "v  2"}, "v 2", 2),
        ({"a": "old", "b": "new"}, "b", 2),
    ],
)
def test_a_name_is_that_of_its_system_whatever_else_it_resembles(
    run: Run, odd: str, names: dict[str, str], system: str, status: int
) -> None:
    Odd.replies = [(200, {}, document(systems=names, verdict=VERDICT, decisions=[]))]
    answer = run("gate", NOBODY, "--url", odd, "--compare", system)
    assert answer.status == status, answer


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ({"best": {"winner": None, "standing": ["x", "y"]}}, "seeks the best of several systems"),
        ({"table": {"claims": 8, "wanted": 5, "met": 0}}, "makes a table of claims"),
    ],
)
def test_a_session_without_a_single_interval_has_none_to_ask(
    run: Run, odd: str, kind: dict[str, Any], words: str
) -> None:
    Odd.replies = [(200, {}, document(**kind, lower=None, upper=None, estimate=None))]
    answer = run("gate", NOBODY, "--url", odd, "--at-most", 0.3)
    assert answer.status == 1
    assert words in answer.err


def test_a_score_is_asked_in_its_own_direction(run: Run, service: Service) -> None:
    async def made() -> str:
        async with AsyncClient(base_url=service.url, headers=bearer(), timeout=30) as client:
            items = [{"id": str(number), "surrogate": 0.5} for number in range(60)]
            form = {"name": "p", "loss": {"kind": "zero_one"}, "items": items, "sealed": True}
            score = {"score": {"name": "accuracy", "better": "higher"}}
            pool = (await client.post("/v1/pools", json=form | score)).json()
            session = await opened(client, KnownPool(pool["id"], []))
            await judged_at_once(client, session, KnownPool(pool["id"], [0] * 60), 40)
            return session

    session = asyncio.run(made())
    where = (session, "--url", service.url)
    for question, status, said in (
        (("--score-at-least", 0.5), 0, "accuracy at least 0.5: yes"),
        (("--score-at-most", 0.1), 2, "accuracy at most 0.1: no"),
        (("--score-at-least", 0.999), 3, "accuracy at least 0.999: undecided"),
        (("--at-most", 0.5), 0, "; risk at most 0.5: yes"),
    ):
        answer = run("gate", *where, *question)
        assert (answer.status, answer.err) == (status, ""), answer
        assert answer.out.startswith(f"{session}: accuracy ")
        assert said in answer.out
    found = json.loads(run("gate", *where, "--score-at-least", 0.5, "--json").out)
    assert found["score"]["name"] == "accuracy"
    assert found["sentence"].startswith("accuracy ")
    both = run("gate", *where, "--score-at-least", 0.5, "--at-most", 0.5)
    assert both.status == 1


def test_two_systems_are_asked_by_name_and_not_by_score(run: Run, service: Service) -> None:
    session = asyncio.run(compared(service, 1))
    answer = run("gate", session, "--url", service.url, "--score-at-least", 0.5)
    assert answer.status == 1
    assert "has no score of one system" in answer.err


def test_a_claim_of_a_table_is_asked_by_metric_and_group(run: Run, service: Service) -> None:
    async def made() -> str:
        async with AsyncClient(base_url=service.url, headers=bearer(), timeout=30) as client:
            pool = await sheet(client, size=120)
            asked = {"pool_id": pool.id, "groups": ["topic"], "precision": {"faithful": 0.05}}
            own = {"metric": "faithful", "side": "at_most", "threshold": 0.9}
            opening = await client.post("/v1/sessions", json=asked | {"questions": [own]})
            session = str(opening.raise_for_status().json()["id"])
            for _ in range(60):
                draws = (await drawn(client, session))["draws"]
                losses = {"faithful": 0.0, "stars": pool.losses[draws[0]["item"]["index"]]["stars"]}
                body = {"round": draws[0]["round"], "worker": "ada", "losses": losses}
                answer = await client.post(f"/v1/sessions/{session}/observe", json=body)
                answer.raise_for_status()
            return session

    session = asyncio.run(made())
    where = (session, "--url", service.url)
    for question, status, said in (
        (("--metric", "faithful"), 0, "faithful: faithfulness"),
        (("--metric", "faithful", "--score-at-least", 0.5), 0, "faithfulness at least 0.5: yes"),
        (("--metric", "faithful", "--score-at-most", 0.2), 2, "faithfulness at most 0.2: no"),
        (
            ("--metric", "faithful", "--group", "topic=law", "--score-at-least", 0.1),
            0,
            "faithful, topic law: faithfulness",
        ),
        (("--metric", "stars", "--at-most", 3.9), 0, "stars: mean loss"),
    ):
        answer = run("gate", *where, *question)
        assert (answer.status, said in answer.out) == (status, True), answer
    told = json.loads(run("gate", *where, "--metric", "faithful", "--json").out)
    assert told["claim"] == {"metric": "faithful", "column": None, "value": None}
    assert told["score"]["name"] == "faithfulness"
    for wrong, words in (
        ((), "name one by --metric"),
        (("--metric", "cost"), "no metric cost"),
        (("--metric", "faithful", "--group", "topic=geology"), "no group geology in topic"),
        (("--metric", "faithful", "--group", "law"), "COLUMN=VALUE"),
        (("--group", "topic=law"), "--group needs --metric"),
    ):
        answer = run("gate", *where, *wrong)
        assert (answer.status, words in answer.err) == (1, True), answer
