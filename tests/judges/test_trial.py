"""The first verdicts of a judge are shown, and recorded only once they can be read."""

import json
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from celeus import Client
from celeus.client import call_times
from celeus.client.blocking import Session
from celeus.judges.cases import Case, Opinion
from celeus.judges.trial import Readability, judge_session
from tests.cli.calling import Answer, Run
from tests.client.pools import exam as known_losses
from tests.judges.endpoints import Running, choice, endpoint, item, number_of
from tests.keys import ADMIN
from tests.servers import Service

REFUSAL = "I am not able\nto judge this, though it may be correct."


@pytest.fixture
def client(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setenv("CELEUS_KEY", ADMIN)
    monkeypatch.setenv("CELEUS_URL", service.url)
    with Client() as client:
        yield client


def exam(client: Client, items: int = 60) -> Session:
    pool = client.create_pool("exam", [item(number) for number in range(items)])
    return client.open_session(pool, precision=0.001)


def judged(run: Run, session: Session, server: Running, *options: object) -> Answer:
    return run(
        *("judge", session.id, "--model", "m", "--base-url", server.url),
        *("--rubric", "rubric.toml", *options),
    )


def writes(form: Callable[[int, str], str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A judge that finds every fourth answer wrong, and writes that in some form."""

    def judge(body: dict[str, Any]) -> dict[str, Any]:
        number = number_of(body["messages"][-1]["content"])
        return choice(form(number, "correct" if number % 4 else "wrong"))

    return judge


def mean(session: Session) -> float | None:
    return session.status().estimate


@pytest.mark.usefixtures("rubric")
@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize(
    "form",
    [
        '```json\n{{"verdict": "{0}", "reason": "correct is Rome, not wrong"}}\n```',
        '```json\n{{"reason": "correct is Rome", "verdict": "{0}"}}\n```',
        "**Verdict:** {0}\nReason: Rome is correct, Milan is wrong.",
    ],
)
def test_a_judge_that_declines_the_schema_is_read_at_one_call_an_item(
    client: Client, run: Run, form: str, concurrency: int
) -> None:
    session = exam(client, 40)
    lacks = ("response_format", "logprobs", "seed")
    with endpoint(judge=writes(lambda _, verdict: form.format(verdict)), lacks=lacks) as server:
        answer = judged(run, session, server, "--concurrency", concurrency)
    assert answer.status == 0, answer.err
    assert mean(session) == pytest.approx(0.25, abs=1e-9)
    assert server.answered == 40
    shown = answer.err.splitlines()
    assert len(shown) == 5
    assert all(" is read as " in line and line.startswith("'q-") for line in shown)


@pytest.mark.usefixtures("rubric")
@pytest.mark.parametrize("concurrency", [1, 16])
def test_ten_texts_without_a_verdict_end_the_run_before_anything_is_recorded(
    client: Client, run: Run, concurrency: int
) -> None:
    session = exam(client)
    judge = writes(lambda *_: REFUSAL)
    with endpoint(judge=judge, lacks=("seed",)) as server:
        answer = judged(run, session, server, "--concurrency", concurrency)
    assert answer.status == 1
    assert "10 answers in a row of the judge hold no verdict" in answer.err
    assert (
        'the judge wrote "I am not able\\nto judge this, though it may be correct."' in answer.err
    )
    shown = answer.err.splitlines()[:5]
    assert all(line.endswith("be correct.' holds no verdict") for line in shown), shown
    assert server.answered <= 10 + concurrency
    assert session.status().rounds.judged == 0
    # A mended endpoint is asked again
    with endpoint(judge=writes(lambda _, verdict: verdict)) as server:
        assert judged(run, session, server).status == 0
    assert mean(session) == pytest.approx(0.25, abs=1e-9)
    assert server.answered == 60


@pytest.mark.usefixtures("rubric")
def test_half_of_the_first_thirty_end_the_run_and_none_of_them_is_recorded(
    client: Client, run: Run
) -> None:
    session = exam(client)
    turn = count()
    judge = writes(lambda *_: REFUSAL if next(turn) % 3 else "correct")
    with endpoint(judge=judge, lacks=("seed",)) as server:
        answer = judged(run, session, server, "--concurrency", 4)
    assert answer.status == 1
    assert "15 of the first" in answer.err
    labels = list(session.labels())
    assert labels
    assert all(label.loss == 0.0 for label in labels)


@pytest.mark.usefixtures("rubric")
@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_few_texts_without_a_verdict_are_unjudgeable_in_the_end(
    client: Client, run: Run, concurrency: int
) -> None:
    session = exam(client)
    judge = writes(lambda number, verdict: REFUSAL if number % 5 == 0 else verdict)
    with endpoint(judge=judge) as server:
        answer = judged(run, session, server, "--concurrency", concurrency)
    assert answer.status == 0, answer.err
    assert "60 labels now, 12 of them unjudgeable" in answer.out
    # Those are asked twice, with another seed
    assert server.answered == 72


@pytest.mark.usefixtures("rubric")
def test_a_short_session_is_recorded_at_its_end_if_anything_could_be_read(
    client: Client, run: Run
) -> None:
    short, unread = exam(client, 3), exam(client, 8)
    with endpoint(judge=writes(lambda number, verdict: verdict if number else REFUSAL)) as server:
        assert "3 labels now, 1 of them" in judged(run, short, server).out
    with endpoint(judge=writes(lambda *_: REFUSAL)) as server:
        answer = judged(run, unread, server)
    assert (answer.status, "all 8 answers of the judge" in answer.err) == (1, True)
    assert unread.status().rounds.judged == 0


@pytest.mark.usefixtures("rubric")
@pytest.mark.parametrize(
    ("items", "which"), [(1, "the only answer of the judge holds"), (3, "all 3 answers")]
)
def test_of_fewer_than_five_items_none_is_recorded_where_none_could_be_read(
    client: Client, run: Run, items: int, which: str
) -> None:
    session = exam(client, items)
    with endpoint(judge=writes(lambda *_: REFUSAL)) as server:
        answer = judged(run, session, server)
    assert answer.status == 1
    assert which in answer.err
    assert (
        'the judge wrote "I am not able\\nto judge this, though it may be correct."' in answer.err
    )
    assert session.status().rounds.judged == 0


def test_a_scale_from_one_to_ten_is_read_by_number(client: Client, run: Run) -> None:
    numbers = ", ".join(f'"{number}" = {(10 - number) / 9}' for number in range(1, 11))
    rubric = f'instructions = "Rate from 1 to 10."\nscale = {{{numbers}}}\n'
    template = 'template = "<question>$question</question>"\n'
    Path("rubric.toml").write_text(rubric + template)
    lines = [item(number) for number in range(20)]
    pool = client.create_pool("grades", lines, loss={"kind": "bounded", "lower": 0, "upper": 1})
    session = client.open_session(pool, precision=0.001)
    with endpoint(judge=writes(lambda number, _: f"Verdict: {1 + number % 10}/10")) as server:
        answer = judged(run, session, server)
        assert answer.status == 0, answer.err
        Path("pool.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        guess = run(
            *("guess", "pool.jsonl", "--out", "out.jsonl", "--rubric", "rubric.toml"),
            *("--model", "m", "--base-url", server.url),
        )
    assert mean(session) == pytest.approx(0.5, abs=1e-9)
    assert (guess.status, server.answered) == (1, 20)
    assert "'1' and '10' may share their first token" in guess.err


def test_guesses_end_early_where_nothing_can_be_read(run: Run, rubric: Path) -> None:
    lines = [item(number) for number in range(200)]
    Path("pool.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with endpoint(judge=writes(lambda *_: REFUSAL), lacks=("seed",)) as server:
        answer = run(
            *("guess", "pool.jsonl", "--out", "out.jsonl", "--rubric", rubric),
            *("--model", "m", "--base-url", server.url, "--concurrency", 4),
        )
    assert answer.status == 1
    assert "10 answers in a row of the judge hold no verdict" in answer.err
    assert server.answered < 30


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("true", "says True, which is no judgement of this item (a bool"),
        ('{"loss": true}', "(a bool says not whether it is right or wrong)"),
        ("correct", "says 'correct', which is no judgement"),
        ("null", "says 'null', which is no judgement"),
        ('{"loss": null}', "which is no judgement"),
    ],
)
def test_a_program_that_says_a_word_or_a_bool_is_refused_before_anything_is_recorded(
    client: Client, run: Run, line: str, says: str
) -> None:
    session = exam(client, 20)
    Path("judge.py").write_text(
        f"import sys\nfor _ in sys.stdin:\n    print({line!r}, flush=True)\n"
    )
    command = f"{sys.executable} judge.py"
    answer = run("judge", session.id, "--program", command)
    assert answer.status == 1
    assert says in answer.err
    assert session.status().rounds.judged == 0


def test_a_call_that_hangs_is_made_again_and_not_waited_for(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(call_times, "HANGING_SECONDS", 0.0)
    monkeypatch.setattr(call_times, "HANGING_TIMES", 0.0)
    rows, losses = known_losses(600)
    session = client.open_session(client.create_pool("exam", rows), precision=0.2)
    calls: Counter[str] = Counter()
    over, late, hung = threading.Event(), [], []

    def judge(case: Case) -> Opinion:
        calls[case.id] += 1
        if calls.total() == 10:
            hung.append(case.id)
            over.wait(60)
            late.append(case.id)
        return Opinion(loss=losses[case.payload["number"]])

    done = judge_session(session, judge, Readability(lambda _: None), 4, None, lambda: None)
    assert not late
    over.set()
    rounds = session.status().rounds
    assert done.state == "target_reached"
    assert (done.labels, done.overtaken) == (rounds.judged, 0)
    assert Counter(calls.values()) == {1: rounds.judged - 1, 2: 1}
    assert rounds.judged <= rounds.in_interval + 4
    warned = [line for line in caplog.messages if f"the judge of '{hung[0]}' has taken " in line]
    assert 1 <= len(warned) <= calls[hung[0]]
    assert re.search(r" s, the median call .* s: \d+ judgements wait for it$", warned[0])


def test_a_slow_run_is_not_made_again(client: Client) -> None:
    """Which of two runs ends first may depend on how it ends."""
    rows, losses = known_losses(600)
    pool = client.create_pool("exam", rows)
    session = client.open_session(pool, target="runs", precision=0.3, budget=60)
    calls: Counter[str] = Counter()
    over = threading.Event()

    def judge(case: Case) -> Opinion:
        calls[case.id] += 1
        if calls.total() == 10:
            over.wait(60)
        elif calls.total() == 40:
            over.set()
        return Opinion(loss=losses[case.payload["number"]])

    done = judge_session(session, judge, Readability(lambda _: None), 4, None, lambda: None)
    assert done.labels == session.status().rounds.judged
    assert set(calls.values()) == {1}
