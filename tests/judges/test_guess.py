"""`celeus guess`: every item of a pool gets a guess of its loss, whatever the endpoint does."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from celeus.judges import endpoint as asking
from tests.cli.calling import Answer, Run
from tests.judges.endpoints import (
    KEY,
    TOKENS_IN,
    TOKENS_OUT,
    Running,
    choice,
    endpoint,
    item,
    unit,
    wrong,
)

PRICES = ("--price", "0.15,0.6")
CALL = (TOKENS_IN * 0.15 + TOKENS_OUT * 0.6) / 1e6


def pool_of(items: list[dict[str, Any]]) -> Path:
    path = Path("pool.jsonl")
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return path


def guessed(run: Run, server: Running, *options: object, rubric: str = "rubric.toml") -> Answer:
    return run(
        *("guess", "pool.jsonl", "--out", "out.jsonl", "--rubric", rubric),
        *("--model", "judge-1", "--base-url", server.url, *options),
    )


def lines(path: str = "out.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


@pytest.mark.usefixtures("rubric")
def test_every_item_gets_the_probability_that_the_judge_gives_to_wrong(run: Run) -> None:
    items = [item(number, group="g") for number in range(60)]
    pool_of(items)
    with endpoint(busy=0.1) as server:
        answer = guessed(run, server, *PRICES)
    assert (answer.status, answer.err) == (0, "")
    assert "guesses of judge-1 on 60 items, 60 soft, 0 hard, 0 without a verdict" in answer.out
    assert f"60 calls, {len(server.bodies) - 60} more tries" in answer.out
    assert len(server.bodies) > 60
    assert f"${60 * CALL:.4f}" in answer.out
    for number, line in enumerate(lines()):
        assert line.pop("surrogate") == pytest.approx(wrong(number), abs=1e-9)
        assert line == items[number]


@pytest.mark.usefixtures("rubric")
def test_every_item_has_a_guess_where_a_tenth_is_refused_and_some_answers_are_broken(
    run: Run,
) -> None:
    pool_of([item(number) for number in range(200)])
    with endpoint(busy=0.1, broken=0.02, torn=0.02) as server:
        answer = guessed(run, server, "--concurrency", 32)
    assert (answer.status, answer.err) == (0, "")
    bodies = {json.dumps(body["messages"]) for body in server.bodies}
    broken = [text for text in bodies if unit("broken", text) < 0.02]
    torn = [text for text in bodies if unit("torn", text) < 0.02]
    assert broken
    assert torn
    count = len(broken)
    assert f"{200 - count} soft, 0 hard, {count} without a verdict" in answer.out
    mean = sum(line["surrogate"] for line in lines()) / 200
    assert f"mean guess {mean:.3f}" in answer.out
    # An answer without a verdict is asked for once more, with another seed
    assert sum(body["seed"] == 1 for body in server.bodies) == count


@pytest.mark.usefixtures("rubric")
@pytest.mark.parametrize("lacks", [("logprobs",), ("logprobs", "temperature", "seed")])
def test_a_bare_verdict_is_drawn_towards_the_mean(run: Run, lacks: tuple[str, ...]) -> None:
    pool_of([item(number) for number in range(40)])
    with endpoint(lacks=lacks) as server:
        answer = guessed(run, server)
    assert answer.status == 0, answer.err
    assert "0 soft, 40 hard" in answer.out
    verdicts = [float(wrong(number) > 0.5) for number in range(40)]
    mean = sum(verdicts) / 40
    found = [line["surrogate"] for line in lines()]
    assert found == pytest.approx([(verdict + mean) / 2 for verdict in verdicts])
    # After the first few it is asked for no more
    assert not {*lacks, "top_logprobs"} & {*server.bodies[-1]}


@pytest.mark.usefixtures("rubric")
def test_an_endpoint_with_fewer_alternatives_is_asked_for_fewer(run: Run) -> None:
    pool_of([item(number) for number in range(10)])
    with endpoint(most_alternatives=5) as server:
        answer = guessed(run, server, "--concurrency", 1)
    assert "10 soft" in answer.out
    assert [body["top_logprobs"] for body in server.bodies] == [20, *[5] * 10]


@pytest.mark.usefixtures("rubric")
def test_without_a_schema_the_last_verdict_counts_and_stays_soft(run: Run) -> None:
    pool_of([item(number) for number in range(10)])
    with endpoint(lacks=("response_format",)) as server:
        answer = guessed(run, server)
    assert answer.status == 0, answer.err
    found = [line["surrogate"] for line in lines()]
    assert found == pytest.approx([wrong(number) for number in range(10)], abs=1e-9)


@pytest.mark.usefixtures("rubric")
def test_the_second_run_asks_nothing_and_says_the_same(run: Run) -> None:
    pool_of([item(number) for number in range(20)])
    with endpoint() as server:
        guessed(run, server)
        first, asked = Path("out.jsonl").read_bytes(), len(server.bodies)
        answer = run(
            *("guess", "out.jsonl", "--out", "out.jsonl", "--rubric", "rubric.toml"),
            *("--model", "judge-1", "--base-url", server.url),
        )
        assert answer.status == 0
        assert len(server.bodies) == asked
        assert Path("out.jsonl").read_bytes() == first
        # Another model is another judge
        other = guessed(run, server, "--model", "judge-2")
    assert other.status == 0
    assert len(server.bodies) == 2 * asked


@pytest.mark.usefixtures("rubric")
def test_the_cost_is_kept_to_within_the_calls_in_flight_and_a_second_run_goes_on(run: Run) -> None:
    pool_of([item(number) for number in range(60)])
    with endpoint(pause=0.01) as server:
        limit = 20.5 * CALL
        answer = guessed(run, server, *PRICES, "--max-cost", limit, "--concurrency", 4)
        assert answer.status == 3
        assert answer.err.startswith("celeus: --max-cost is spent: $")
        assert answer.err.count("\n") == 1
        assert 21 <= server.answered <= 21 + 3
        assert not Path("out.jsonl").exists()
        first = server.answered
        answer = guessed(run, server, *PRICES)
    assert answer.status == 0
    assert server.answered == 60
    assert f"{60 - first} calls" in answer.out


@pytest.mark.usefixtures("rubric")
def test_a_cost_that_cannot_be_known_is_not_promised(run: Run) -> None:
    pool_of([item(0)])
    with endpoint(usage=False) as server:
        answer = guessed(run, server, *PRICES, "--max-cost", 1)
        assert (answer.status, "leave it out" in answer.err) == (1, True)
        assert guessed(run, server).status == 0
        answer = guessed(run, server, "--max-cost", 1)
        assert answer.err == "celeus: --max-cost needs --price\n"
        answer = guessed(run, server, *PRICES, "--max-cost", "nan")
    assert answer.err == "celeus: prices and --max-cost must be finite numbers\n"


@pytest.mark.usefixtures("rubric")
@pytest.mark.parametrize(
    ("always", "status", "says"),
    [
        ((429, {"error": {"message": "slow down"}}, {"retry-after-ms": "1"}), 3, "slow down; run"),
        ((429, {"error": {"message": "no"}}, {"retry-after": "900"}), 3, "alone for 900 seconds"),
        ((429, {"error": {"message": "insufficient_quota"}}, {}), 3, "insufficient_quota; run"),
        ((503, {}, {"retry-after-ms": "1"}), 3, "answers 503: Service Unavailable; run"),
        ((404, {"error": {"message": "no model x"}}, {}), 1, "no model x: is this the address"),
        ((400, {"error": "bad"}, {}), 1, "answers 400: bad"),
        ((200, {"hello": 1}, {}), 3, "no completion; run"),
    ],
)
def test_what_an_endpoint_says_for_ever_is_one_line_and_no_file(
    run: Run,
    always: tuple[int, dict[str, Any], dict[str, str]],
    status: int,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking, "FIRST_PAUSE", 0.001)
    pool_of([item(number) for number in range(8)])
    with endpoint(always=always) as server:
        answer = guessed(run, server)
    assert answer.status == status, answer.err
    assert says in answer.err
    assert answer.err.startswith("celeus: ")
    assert answer.err.count("\n") == 1
    assert not Path("out.jsonl").exists()


@pytest.mark.usefixtures("rubric")
def test_a_wrong_key_is_named_by_its_variable_and_never_printed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    pool_of([item(0)])
    with endpoint() as server:
        answer = guessed(run, server)
    assert answer.status == 1
    assert "refuses the key (401): put one that works in OPENAI_API_KEY" in answer.err
    assert "sk-secret" not in answer.err + answer.out
    monkeypatch.delenv("OPENAI_API_KEY")
    command = ("guess", "pool.jsonl", "--out", "o", "--rubric", "rubric.toml", "--model", "m")
    assert run(*command).err == "celeus: there is no key in OPENAI_API_KEY: set it\n"


@pytest.mark.usefixtures("rubric")
def test_nobody_there_is_told_and_the_run_may_be_repeated(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "FIRST_PAUSE", 0.001)
    pool_of([item(0)])
    with endpoint() as server:
        pass
    answer = guessed(run, server)
    assert answer.status == 3
    assert "cannot be reached" in answer.err


@pytest.mark.usefixtures("rubric")
def test_a_text_that_is_too_long_is_one_item_without_a_verdict(run: Run) -> None:
    too_long = {"error": {"message": "maximum context length is 8"}}

    pool_of([item(0), item(1)])
    with endpoint() as server:
        guessed(run, server)
        Path("out.jsonl").unlink()
        server.behaviour.always = (400, too_long, {})
        pool_of([item(0), item(1), item(2)])
        answer = guessed(run, server)
    assert "2 soft, 0 hard, 1 without a verdict" in answer.out


@pytest.mark.usefixtures("rubric")
def test_an_item_that_lacks_what_the_rubric_shows_is_named_before_anything_is_paid(
    run: Run,
) -> None:
    pool_of([item(0), {"id": "q-1", "payload": {"question": "Q 1"}}])
    with endpoint() as server:
        answer = guessed(run, server)
    assert answer.status == 1
    assert "item 'q-1' has no 'answer' to show, only payload, question" in answer.err
    assert server.bodies == []


@pytest.mark.usefixtures("rubric")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no items"),
        ("{\n", "line 1 of pool.jsonl is no JSON"),
        ('{"payload": 1}\n', "needs an id"),
        ('{"id": "a", "surrogates": [1]}\n', "several surrogates"),
    ],
)
def test_what_is_no_pool_is_refused(run: Run, text: str, says: str) -> None:
    Path("pool.jsonl").write_text(text)
    with endpoint() as server:
        answer = guessed(run, server)
    assert (answer.status, says in answer.err) == (1, True)


@pytest.mark.usefixtures("rubric")
def test_a_judge_that_only_says_rubbish_guesses_nothing(run: Run) -> None:
    pool_of([item(0), item(1)])
    with endpoint(judge=lambda _: choice("well")) as server:
        answer = guessed(run, server)
    assert answer.status == 1
    assert "gave no verdict on any item" in answer.err
    assert not Path("out.jsonl").exists()


@pytest.mark.usefixtures("rubric")
def test_answers_of_several_systems_are_guessed_one_by_one(run: Run) -> None:
    line = {
        "id": "q",
        "payload": {"question": "which?"},
        "a": {"answer": "Q 1", "surrogate": 0.9},
        "b": {"answer": "Q 2"},
    }
    answers = {"m": {"answer": "Q 3"}, "n": {"answer": "Q 4"}}
    several = {"id": "r", "payload": {"question": "x"}, "answers": answers}
    pool_of([line, several])
    with endpoint() as server:
        answer = guessed(run, server)
    assert answer.status == 0, answer.err
    first, second = lines()
    assert first["a"]["surrogate"] == pytest.approx(wrong(1), abs=1e-9)
    assert first["b"]["surrogate"] == pytest.approx(wrong(2), abs=1e-9)
    assert second["answers"]["n"]["surrogate"] == pytest.approx(wrong(4), abs=1e-9)
    assert "surrogate" not in first


@pytest.mark.usefixtures("rubric")
def test_a_run_that_was_killed_pays_for_nothing_twice() -> None:
    pool_of([item(number) for number in range(80)])
    with endpoint(pause=0.02) as server:
        command = [sys.executable, "-m", "celeus.cli", "guess", "pool.jsonl", "--out", "out.jsonl"]
        command += ["--rubric", "rubric.toml", "--model", "m", "--base-url", server.url]
        command += ["--concurrency", "4"]
        with subprocess.Popen(command) as process:
            while server.answered < 20:
                assert process.poll() is None
            process.kill()
        kept = Path("out.jsonl.verdicts.jsonl")
        with kept.open("ab") as file:
            file.write(b'{"key": "torn')
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(lines()) == 80
    # What was in flight when it was killed was paid, and is not known
    assert server.answered <= 80 + 4
    assert KEY not in kept.read_text()
