"""`celeus judge`: a model or a program is the truth of a session at a real service."""

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from celeus import Client
from celeus.client.blocking import Session
from tests.cli.calling import Answer, Run
from tests.judges.endpoints import (
    Running,
    choice,
    endpoint,
    item,
    number_of,
    spoken,
    unit,
    usual,
    wrong,
)
from tests.keys import ADMIN, key_in
from tests.servers import Service

SYSTEMS = {"a": "one", "b": "two"}


@pytest.fixture
def client(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setenv("CELEUS_KEY", ADMIN)
    monkeypatch.setenv("CELEUS_URL", service.url)
    with Client() as client:
        yield client


def exam(client: Client, count: int = 60, **opening: Any) -> Session:  # noqa: ANN401
    """A session of which every item is drawn."""
    pool = client.create_pool("exam", [item(number) for number in range(count)])
    return client.open_session(pool, **{"precision": 0.001, **opening})


def judged(run: Run, session: Session, server: Running, *options: object) -> Answer:
    return run(
        *("judge", session.id, "--model", "judge-1", "--base-url", server.url),
        *("--rubric", "rubric.toml", *options),
    )


@pytest.mark.usefixtures("rubric")
def test_the_verdicts_of_a_model_are_the_truth_of_the_certificate(client: Client, run: Run) -> None:
    session = exam(client)
    with endpoint(busy=0.1) as server:
        answer = judged(run, session, server, "--price", "1,0")
    assert (answer.status, answer.err.count("\n")) == (0, 5)
    assert f"{session.id}: judge-1 is the truth here; 60 labels now, 0 of them" in answer.out
    assert "(target_reached)" in answer.out
    assert "60 calls" in answer.out
    status = session.status()
    truth = sum(wrong(number) > 0.5 for number in range(60)) / 60
    assert status.lower is not None
    assert status.upper is not None
    assert status.lower - 1e-9 <= truth <= status.upper + 1e-9
    assert status.upper - status.lower < 0.001


@pytest.mark.usefixtures("rubric")
def test_rubbish_and_doubt_are_unjudgeable_with_the_reason(client: Client, run: Run) -> None:
    session = exam(client, 12)

    def judge(body: dict[str, Any]) -> dict[str, Any]:
        number = number_of(body["messages"][-1]["content"])
        if number == 3:
            return choice("well")
        return spoken("cannot_tell", {"cannot": 1.0}) if number == 4 else usual(body)

    with endpoint(judge=judge) as server:
        answer = judged(run, session, server)
    assert "12 labels now, 2 of them unjudgeable" in answer.out
    text = json.dumps([entry.raw for entry in session.ledger()])
    assert "the judge gave no verdict, but 'well'" in text
    assert "the judge cannot tell: so it is" in text


@pytest.mark.usefixtures("rubric")
def test_a_run_that_is_out_of_money_is_continued_by_the_next(
    client: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELEUS_WORKER", "w")
    session = exam(client, 30, lease_seconds=10)
    price = ("--price", "1000,0", "--concurrency", 2)
    with endpoint() as server:
        answer = judged(run, session, server, *price, "--max-cost", 1)
        assert answer.status == 3
        assert "--max-cost is spent" in answer.err
        first = server.answered
        assert first < 30
        answer = judged(run, session, server, *price, "--json")
    done = json.loads(answer.out)
    assert done["state"] == "target_reached"
    assert first + done["calls"] == server.answered == 30
    assert done["cost"] > 0


@pytest.mark.usefixtures("rubric")
def test_what_goes_wrong_is_told_as_it_is_and_no_item_is_judged(
    client: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = exam(client, 20)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong")
    with endpoint() as server:
        answer = judged(run, session, server)
    assert answer.status == 1
    assert "refuses the key (401)" in answer.err
    assert answer.err.count("\n") == 1
    assert session.status().rounds.judged == 0
    monkeypatch.setenv("CELEUS_KEY", "ce_wrong")
    with endpoint() as server:
        answer = judged(run, session, server)
    assert (answer.status, server.bodies) == (1, [])


@pytest.mark.usefixtures("rubric")
def test_a_key_that_may_only_judge_judges_and_is_told_no_more(
    client: Client, run: Run, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = exam(client, 10)
    monkeypatch.setenv("CELEUS_KEY", key_in(database_url, "label"))
    with endpoint() as server:
        answer = judged(run, session, server)
    assert answer.status == 0, answer.err
    assert "10 labels now" in answer.out
    assert "error rate" not in answer.out


def weighed(body: dict[str, Any]) -> dict[str, Any]:
    """Prefers the answer of the greater number; shown the same gap it leans to the first."""
    text = body["messages"][-1]["content"]
    first, second = (
        int(text.partition(f"<{name}>\nA ")[2].split()[0]) for name in ("first", "second")
    )
    if abs(first - second) < 3:
        return spoken("first", {"first": 0.6, "second": 0.3, "tie": 0.1})
    if first > second:
        return spoken("first", {"first": 0.9, "second": 0.1})
    return spoken("second", {"second": 0.8, "first": 0.2})


def pairs(count: int = 24) -> list[dict[str, Any]]:
    """Two answers each, by number."""
    made = []
    for number in range(count):
        left, right = (int(10 * unit(side, number)) for side in "ab")
        answers = {"a": {"answer": f"A {left} "}, "b": {"answer": f"A {right}  "}}
        made.append({"id": f"p-{number}", "payload": {"question": f"? {number}"}, **answers})
    return made


def numbers(line: dict[str, Any]) -> tuple[int, int]:
    return int(line["a"]["answer"].split()[1]), int(line["b"]["answer"].split()[1])


@pytest.mark.parametrize("disagreement", ["tie", "unjudgeable"])
def test_pairs_are_judged_in_both_orders(
    client: Client, run: Run, pair_rubric: Path, disagreement: str
) -> None:
    pair_rubric.write_text(pair_rubric.read_text().replace("tie", disagreement))
    lines = pairs()
    pool = client.create_pool("pair", lines, loss={"kind": "preference"}, systems=SYSTEMS)
    session = client.open_session(pool, precision=0.001)
    with endpoint(judge=weighed) as server:
        answer = judged(run, session, server, "--rubric", pair_rubric)
    assert answer.status == 0, answer.err
    assert server.answered == 48
    close = sum(abs(left - right) < 3 for left, right in map(numbers, lines))
    assert 3 < close < 20
    unjudgeable = close if disagreement == "unjudgeable" else 0
    assert f"24 labels now, {unjudgeable} of them unjudgeable" in answer.out
    if disagreement == "tie":
        better = sum((b > a) - (a > b) for a, b in map(numbers, lines) if abs(a - b) >= 3) / 24
        estimate = session.status().estimate
        assert estimate == pytest.approx(better, abs=1e-9)


def test_guesses_of_pairs_are_of_the_difference_and_in_both_orders(
    client: Client, run: Run, pair_rubric: Path
) -> None:
    lines = pairs()
    Path("pool.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with endpoint(judge=weighed) as server:
        answer = run(
            *(
                "guess",
                "pool.jsonl",
                "--out",
                "out.jsonl",
                "--model",
                "m",
                "--base-url",
                server.url,
            ),
            *("--rubric", pair_rubric),
        )
    assert "24 soft" in answer.out, answer.err
    for line in map(json.loads, Path("out.jsonl").read_text().splitlines()):
        left, right = numbers(line)
        # Left is a: below 0 it is better; both orders are a mean
        expected = 0.0 if abs(left - right) < 3 else -0.7 if left > right else 0.7
        assert line["surrogate"] == pytest.approx(expected, abs=1e-9)
    client.create_pool("p", "out.jsonl", loss={"kind": "preference"}, systems=SYSTEMS)


@pytest.mark.usefixtures("rubric")
def test_a_scale_judges_both_answers_of_a_pair(client: Client, run: Run) -> None:
    lines = [
        {"id": f"p-{number}", "payload": {"question": "?"}}
        | {side: {"answer": f"Q {number + by}"} for side, by in (("a", 0), ("b", 100))}
        for number in range(20)
    ]
    pool = client.create_pool("pair", lines, systems=SYSTEMS)
    session = client.open_session(pool, precision=0.001)
    with endpoint() as server:
        answer = judged(run, session, server)
    assert answer.status == 0, answer.err
    right = [wrong(number) > 0.5 for number in range(120)]
    estimate = (sum(right[:20]) - sum(right[100:])) / 20
    assert session.status().estimate == pytest.approx(estimate, abs=1e-9)


def test_a_rubric_of_the_wrong_kind_is_refused_before_anything_is_paid(
    client: Client, run: Run, pair_rubric: Path
) -> None:
    session = exam(client, 5)
    with endpoint() as server:
        answer = judged(run, session, server, "--rubric", pair_rubric)
    assert answer.status == 1
    assert "the rubric compares two answers" in answer.err
    assert server.bodies == []


PROGRAM = """
import json, sys
for line in sys.stdin:
    case = json.loads(line)
    assert "surrogate" not in line
    number = int(case["id"].removeprefix("q-"))
    said = {"unjudgeable": "too odd"} if number % 10 == 7 else {"loss": number % 2}
    print(json.dumps(said), flush=True)
"""


def test_any_program_judges(client: Client, run: Run) -> None:
    Path("judge.py").write_text(PROGRAM)
    command = f"{sys.executable} judge.py"
    session = exam(client, 40)
    answer = run("judge", session.id, "--program", command)
    assert answer.status == 0, answer.err
    assert "40 labels now, 4 of them unjudgeable" in answer.out


RUNS = """
import json, pathlib, sys
for line in sys.stdin:
    made = len(pathlib.Path("made").read_text())
    if made == 13 and pathlib.Path("dies").exists():
        sys.exit(4)
    open("made", "a").write("x")
    print(json.dumps({"loss": int(made % 4 == 0)}), flush=True)
"""
"""A system whose every fourth run fails, and which dies in its fourteenth."""


@pytest.mark.parametrize("success", [None, "all of 3", "any of 2"])
def test_a_program_makes_every_run_afresh_and_goes_on_after_a_kill(
    client: Client, run: Run, monkeypatch: pytest.MonkeyPatch, success: str | None
) -> None:
    monkeypatch.setenv("CELEUS_WORKER", "ada")
    Path("runs.py").write_text(RUNS)
    Path("made").touch()
    Path("dies").touch()
    pool = client.create_pool("tasks", [{"id": f"t{n}"} for n in range(5)], loss="zero_one")
    opening: dict[str, Any] = {"target": "runs", "repeats": True, "precision": 0.45}
    session = client.open_session(pool, **opening | ({"success": success} if success else {}))
    program = f"{sys.executable} runs.py"
    command = ("judge", session.id, "--program", program, "--concurrency", "1")
    killed = run(*command)
    assert killed.status == 1
    assert "ended with status 4" in killed.err
    Path("dies").unlink()
    ended = run(*command)
    assert ended.status == 0, ended.err
    status, made = session.status(), Path("made").read_text()
    assert status.state == "target_reached"
    assert status.rounds.judged > 5, "items are run again"
    assert len(made) == (status.runs or status.rounds.judged), "none is lost or made twice"
    failed = len(range(0, len(made), 4))
    losses = [label.loss for label in session.labels()]
    if success == "any of 2":
        assert losses.count(0.0) == len(made) - failed, "each success settles its draw"
    else:
        assert losses.count(1.0) == failed, "each failure settles its draw"


@pytest.mark.usefixtures("rubric")
def test_a_model_that_gives_a_kept_verdict_again_makes_no_run(client: Client, run: Run) -> None:
    session = exam(client, 4, target="runs", repeats=True, precision=0.4)
    with endpoint() as server:
        refused = judged(run, session, server)
    assert refused.status == 1
    assert "runs its items again, and a verdict on an item is kept" in refused.err
    assert "`session.judge` with a function, or `celeus judge --program`" in refused.err


class Terminal(io.StringIO):
    """Somebody at a keyboard."""

    def isatty(self) -> bool:
        return True


def test_all_is_judged_only_where_somebody_says_so(
    client: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("judge.py").write_text(PROGRAM)
    session = exam(client, 6, precision=None)
    command = ("judge", session.id, "--program", f"{sys.executable} judge.py")
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    answer = run(*command)
    assert answer.status == 1
    assert "all 6 items would be judged: give" in answer.err
    assert "or --all" in answer.err
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    answer = run(*command)
    assert (answer.status, "go on? [y/N]" in answer.err) == (1, True)
    assert session.status().rounds.judged == 0
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert "6 labels now" in run(*command).out
    other = exam(client, 6, precision=None)
    assert "6 labels now" in run("judge", other.id, *command[2:], "--all").out


def test_a_mended_program_is_refused_until_its_judgements_are_kept(
    client: Client, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    session = exam(client, 40, budget=9)
    command = ("judge", session.id, "--program", f"{sys.executable} judge.py")
    Path("judge.py").write_text(PROGRAM.replace("number % 2", "1"))
    assert "9 labels now" in run(*command).out
    assert not caplog.messages
    session.change(budget=20)
    Path("judge.py").write_text(PROGRAM)
    answer = run(*command)
    assert (answer.status, session.status().rounds.judged) == (1, 9)
    assert "the judge changed since the earlier judgements" in answer.err
    assert "--keep goes on" in answer.err
    assert f"taken up: 9 judgements from {session.id}, the last at 20" in caplog.text
    assert "11 labels now" in run(*command, "--keep").out
    session.change(budget=21)
    caplog.clear()
    assert "1 labels now" in run(*command).out
    assert f"cannot tell whether the judge changed: what {sys.executable} loads" in caplog.text


@pytest.mark.usefixtures("rubric")
def test_a_mended_rubric_is_refused_until_its_judgements_are_kept(client: Client, run: Run) -> None:
    session = exam(client, 40, budget=9)
    with endpoint() as server:
        assert "9 labels now" in judged(run, session, server).out
        session.change(budget=20)
        rubric = Path("rubric.toml")
        rubric.write_text(rubric.read_text().replace("is right", "is quite right"))
        assert "the judge changed since the earlier judgements" in judged(run, session, server).err
        assert "11 labels now" in judged(run, session, server, "--keep").out
        session.change(budget=21)
        answer = judged(run, session, server, "--model", "judge-2")
        assert (answer.status, "the judge changed" in answer.err) == (1, True)


def test_judgements_of_others_say_nothing_of_the_judge(
    client: Client, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    session = exam(client, 40, budget=9)
    session.judge(lambda _: 0.0)
    session.change(budget=12)
    Path("judge.py").write_text(PROGRAM)
    command = ("judge", session.id, "--program", f"{sys.executable} judge.py")
    assert "3 labels now" in run(*command).out
    assert "cannot tell whether the judge changed: it is not known who" in caplog.text
