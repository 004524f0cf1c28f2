"""The fixture of pytest: tests that pass, fail or wait for labels as sessions answer."""

import asyncio
import subprocess
import sys

# Here, since pytester forgets what its tests import first: exceptions would exist twice
import httpcore2  # noqa: F401
import pytest
from httpx import AsyncClient

from celeus import Client
from tests.factories import known_pool, labelled, opened
from tests.gates.odd import NOBODY
from tests.keys import ADMIN, bearer, key_in
from tests.pairs import A, B, pair
from tests.servers import Service

PROGRAM = """
def test_yes(celeus_gate):
    celeus_gate("{session}").passes()
    celeus_gate("{session}").at_most(0.9)
    celeus_gate("{session}").at_least("10%")

def test_no(celeus_gate):
    celeus_gate("{session}").at_most(0.1)

def test_undecided(celeus_gate):
    celeus_gate("{session}").at_least({estimate})

async def test_in_a_loop(celeus_gate):
    celeus_gate("{session}").at_most(0.9)
"""
PAIR = """
def test_the_better_one_may_replace_the_other(celeus_gate):
    celeus_gate("{session}").compare("{better}")
    celeus_gate("{session}").compare("{worse}", margin="95pt")

def test_the_worse_one_may_not(celeus_gate):
    celeus_gate("{session}").compare("{worse}")
"""
CLAIMS = """
def test_of_all(celeus_gate):
    celeus_gate("{session}", metric="correct").score_at_least(0.5)
    celeus_gate("{session}", metric="correct").at_most(0.5)

def test_of_a_group(celeus_gate):
    celeus_gate("{session}", metric="correct", group="topic=law").score_at_most(0.2)
"""
REFUSED = """
def test_refused(celeus_gate):
    celeus_gate("{session}"{call}
"""
INI = """
[pytest]
filterwarnings = error
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
"""


@pytest.fixture(autouse=True)
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project of its own, whose warnings are errors."""
    pytester.makeini(INI)
    monkeypatch.setenv("CELEUS_KEY", ADMIN)
    # The plugins of this project take seconds
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("CELEUS_URL", raising=False)


async def judged(service: Service, labels: int = 80) -> str:
    """A session after some labels that asks whether the risk is at most 0.9."""
    async with AsyncClient(base_url=service.url, headers=bearer(), timeout=30) as client:
        pool = await known_pool(client, 200)
        questions = [{"side": "at_most", "threshold": 0.9}]
        session = await opened(client, pool, questions=questions, stop_when_decided=False)
        await labelled(client, session, pool, labels)
        return session


def run(pytester: pytest.Pytester, program: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(program)
    return pytester.runpytest_subprocess("-p", "celeus", "-p", "asyncio", "-rA", *options)


def test_yes_passes_no_fails_and_undecided_does_as_it_is_told(
    pytester: pytest.Pytester, service: Service
) -> None:
    session = asyncio.run(judged(service))
    with Client(service.url, ADMIN) as client:
        # Within its interval, whatever was drawn
        estimate = client.session(session).status().estimate
    junit = ("--junit-xml=told.xml", f"--celeus-url={service.url}")
    program = PROGRAM.format(session=session, estimate=estimate)
    for word, outcome in (("skip", "skipped"), ("xfail", "xfailed")):
        result = run(pytester, program, *junit, f"--celeus-undecided={word}")
        result.assert_outcomes(**{"passed": 2, "failed": 1, outcome: 1})
    result = run(pytester, program, *junit)
    result.assert_outcomes(passed=2, failed=2)
    words = [line for line in result.outlines if line.startswith(f"{session}: error rate ")]
    assert any("; at most 0.1: no" in line for line in words)
    assert not [line for line in result.outlines if "plugin.py" in line and "SKIP" not in line]
    assert f"at least {estimate:g}: undecided" in str(result.stdout)
    written = (pytester.path / "told.xml").read_text()
    assert f'<property name="celeus" value="{session}: error rate' in written
    assert ADMIN not in str(result.stdout) + str(result.stderr) + written


def test_a_test_waits_for_labels(pytester: pytest.Pytester, service: Service) -> None:
    session = asyncio.run(judged(service, 1))
    program = f'def test_it(celeus_gate):\n    celeus_gate("{session}").passes()\n'
    result = run(pytester, program, f"--celeus-url={service.url}", "--celeus-wait=1")
    result.assert_outcomes(failed=1)
    assert result.duration > 1.0
    assert "at most 0.9: undecided" in str(result.stdout)


def test_two_systems_are_compared(pytester: pytest.Pytester, service: Service) -> None:
    async def made() -> str:
        async with AsyncClient(base_url=service.url, headers=bearer(), timeout=30) as client:
            two = await pair(client, "label", 60)
            opening = {"pool_id": two.id, "decide": {"margin": 0.05}}
            made = (await client.post("/v1/sessions", json=opening)).json()
            path, ada = f"/v1/sessions/{made['id']}", {"worker": "a"}
            while draws := (await client.post(f"{path}/next", json=ada)).json()["draws"]:
                judgement = ada | {"round": draws[0]["round"]}
                judgement |= two.said(draws[0]["item"]["index"])
                (await client.post(f"{path}/observe", json=judgement)).raise_for_status()
            return str(made["id"])

    program = PAIR.format(session=asyncio.run(made()), better=B, worse=A)
    result = run(pytester, program, f"--celeus-url={service.url}")
    result.assert_outcomes(passed=1, failed=1)
    assert f"{A} at least as good within 5 points: no, b_at_least_as_good (" in str(result.stdout)


def test_a_claim_is_asked_by_metric_and_group(
    pytester: pytest.Pytester, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"id": str(number), "groups": {"topic": "law" if number % 2 else "art"}}
        for number in range(120)
    ]
    score = {"name": "accuracy", "better": "higher"}
    with Client(service.url, ADMIN) as client:
        metrics = {"correct": {"kind": "zero_one", "score": score}}
        pool = client.create_pool("exam", rows, metrics=metrics)
        session = client.open_session(
            pool, groups=["topic"], precision={"correct": 0.05}, budget=80
        )
        for draw in session.draws():
            draw.observe({"correct": 0.0})
    monkeypatch.setenv("CELEUS_URL", service.url)
    result = run(pytester, CLAIMS.format(session=session.id))
    result.assert_outcomes(passed=1, failed=1)
    assert "accuracy at most 0.2: no" in str(result.stdout)


def test_what_cannot_be_asked_is_one_line(pytester: pytest.Pytester, service: Service) -> None:
    with Client(service.url, ADMIN) as client:
        pool = client.create_pool("p", [{"id": "1"}, {"id": "2"}])
        questions = [{"side": "at_most", "threshold": 0.1}]
        real = client.open_session(pool, questions=questions).id
        bare = client.open_session(pool).id
    refused = [
        (NOBODY, ").passes()", f"celeus: There is no session {NOBODY}"),
        ("ses_1", ").passes()", "celeus: session must be `ses_` and 32 hexadecimal digits"),
        (real, ').compare("b")', "compares no two systems"),
        (real, ').at_most(float("nan"))', "at_most must be a finite number"),
        (real, ").at_most(10)", "celeus: at_most must be inside the scale, above 0 and below 1"),
        (real, ").score_at_least(95)", "did you mean 95 % (0.95)?"),
        (real, ', metric="x").passes()', "makes one claim, which has no metric"),
        (real, ', group="x=y").passes()', "group needs metric"),
        (bare, ").passes()", "has no questions; ask one with at_most or at_least"),
    ]
    program = "".join(
        f'def test_{number}(celeus_gate):\n    celeus_gate("{session}"{call}\n'
        for number, (session, call, _) in enumerate(refused)
    )
    result = run(pytester, program, f"--celeus-url={service.url}", "--tb=long")
    result.assert_outcomes(failed=len(refused))
    body = result.outlines[result.outlines.index(_head(result, "FAILURES")) + 1 :]
    for number, (_, _, words) in enumerate(refused):
        # The heading of a failure, its one line, and the next heading
        heading, line, after = body[2 * number : 2 * number + 3]
        assert heading.strip("_ ") == f"test_{number}"
        assert line.startswith("celeus: ")
        assert words in line
        assert after.startswith(("_", "="))


def _head(result: pytest.RunResult, word: str) -> str:
    return next(line for line in result.outlines if line.strip("= ") == word)


def test_a_key_of_another_scope_says_how_to_make_one(
    pytester: pytest.Pytester,
    service: Service,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CELEUS_KEY", key_in(database_url, "label"))
    session = asyncio.run(judged(service, 1))
    program = REFUSED.format(session=session, call=").passes()")
    result = run(pytester, program, f"--celeus-url={service.url}")
    result.assert_outcomes(failed=1)
    assert "`celeus admin keys create --name me --scope read` makes one" in str(result.stdout)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:1", "http://127.0.0.1:1 cannot be reached: "),
        ("ftp://here", "url must be an address such as "),
    ],
)
def test_a_service_that_is_away_is_an_error_of_one_line(
    pytester: pytest.Pytester, url: str, words: str
) -> None:
    result = run(pytester, PROGRAM.format(session=NOBODY, estimate=0.5), f"--celeus-url={url}")
    result.assert_outcomes(errors=4)
    body = result.outlines[result.outlines.index(_head(result, "ERRORS")) + 2 :]
    assert body[0].startswith(f"celeus: {words}")
    assert body[1].startswith("_")


def test_without_a_key_is_an_error(
    pytester: pytest.Pytester, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CELEUS_KEY")
    result = run(
        pytester, PROGRAM.format(session=NOBODY, estimate=0.5), f"--celeus-url={service.url}"
    )
    result.assert_outcomes(errors=4)
    assert "celeus: there is no key: give one as `key`, or in CELEUS_KEY" in result.outlines


def test_who_does_not_use_it_imports_next_to_nothing(pytester: pytest.Pytester) -> None:
    program = "import pytest, sys; before = set(sys.modules); import celeus.gates.plugin;"
    program += "print(*set(sys.modules) - before)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=pytester.path)
    assert set(done.stdout.split()) <= {"celeus", "celeus.gates", "celeus.gates.plugin"}


def test_the_command_brings_no_pytest() -> None:
    program = "import sys, celeus.cli, celeus.gates.reports, celeus.gates.waiting;"
    program += "assert 'pytest' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
