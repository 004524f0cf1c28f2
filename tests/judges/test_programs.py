"""Any executable as a judge: a line in, a line out, and what becomes of rubbish."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from celeus.client.threads import started
from celeus.errors import InvalidValue
from celeus.judges import programs
from celeus.judges.cases import Case
from celeus.judges.verdicts import Verdicts
from tests.cli.calling import Answer, Run

PAIR: dict[str, Any] = {
    "id": "p",
    "payload": {"q": 1},
    "a": {"answer": "x", "surrogate": 0.4},
    "b": {"answer": "y"},
}


def guessed(run: Run, line: dict[str, Any], said: str) -> Answer:
    """What a program that says this of every line comes to."""
    Path("pool.jsonl").write_text(json.dumps(line) + "\n")
    program = (
        "import sys\nfor line in sys.stdin: sys.stderr.write(line); print(sys.argv[1], flush=True)"
    )
    Path("judge.py").write_text(program)
    command = f"{sys.executable} judge.py '{said}'"
    return run("guess", "pool.jsonl", "--out", "out.jsonl", "--program", command)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('{"losses": {"left": 0, "right": 1}}', (None, 0.25, 0.75)),
        ('{"losses": [1, 0.5]}', (None, 0.875, 0.625)),
        ('{"preference": "right"}', (1.0, None, None)),
        ('{"preference": "left", "reason": "so"}', (-1.0, None, None)),
    ],
)
def test_losses_and_preferences_become_guesses(
    run: Run, said: str, expected: tuple[float | None, ...]
) -> None:
    answer = guessed(run, PAIR, said)
    assert answer.status == 0, answer.err
    line = json.loads(Path("out.jsonl").read_text())
    found = (line, line["a"], line["b"])
    assert tuple(line.get("surrogate") for line in found) == expected


@pytest.mark.parametrize(
    "said",
    [
        *("", "well", "[]", '{"loss": 1}', '{"loss": "1"}', '{"losses": [1]}', "{}"),
        *('{"losses": {"left": true, "right": 0}}', '{"preference": "a"}', '{"losses": [NaN, 1]}'),
        *('{"preference": "left", "unjudgeable": "blurred"}', '{"unjudgeable": null}'),
        *('{"unjudgeable": false}', '{"unjudgeable": " "}', '{"losses": [0, 1], "losses": [1, 0]}'),
        *('{"losses": [0, 1], "preference": null}', f'{{"losses": [0, 1{"0" * 400}]}}'),
    ],
)
def test_rubbish_is_refused_with_what_is_expected_and_is_not_kept(run: Run, said: str) -> None:
    answer = guessed(run, PAIR, said)
    assert answer.status == 1
    assert "which is no judgement of this item: it has to write a line such as" in answer.err
    assert Path("out.jsonl.verdicts.jsonl").read_text() == ""
    assert not Path("out.jsonl").exists()


def test_a_second_line_answers_no_other_item(run: Run, tmp_path: Path) -> None:
    both = guessed(run, PAIR, '{"losses": [0, 1]}\n{"losses": [1, 0]}')
    assert both.status == 1
    assert "wrote '{\"losses\": [1, 0]}' without being asked" in both.err
    program = (
        "import os, sys\nfor line in sys.stdin:\n"
        " print('{\"loss\": 0}', flush=True)\n"
        " while not os.path.exists('answered'): pass\n"
        " print('{\"loss\": 1}', flush=True)\n open('said', 'w')"
    )
    Path("twice.py").write_text(program)
    with (
        Verdicts(tmp_path / "verdicts") as verdicts,
        programs.Program(f"{sys.executable} twice.py", verdicts) as judge,
    ):
        assert judge(Case("first", None)).loss == 0.0
        Path("answered").touch()
        while not Path("said").exists():
            assert judge._all[0].poll() is None
        with pytest.raises(InvalidValue, match="one line for each line it reads"):
            judge(Case("second", None))


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("./not-there", "./not-there cannot be started: No such file"),
        (f"{sys.executable} -c 'raise SystemExit(4)'", "ended with status 4 and without an answer"),
        ("'", "--program cannot be read"),
        ("''", "cannot be started"),
        (" ", "names no program"),
    ],
)
def test_a_program_that_does_not_run_is_told(run: Run, command: str, says: str) -> None:
    Path("pool.jsonl").write_text(json.dumps(PAIR) + "\n")
    answer = run("guess", "pool.jsonl", "--out", "out.jsonl", "--program", command)
    assert (answer.status, says in answer.err) == (1, True), answer.err


def test_a_program_is_told_the_payload_and_no_guess(run: Run) -> None:
    Path("pool.jsonl").write_text(json.dumps(PAIR) + "\n")
    program = "import sys\nfor line in sys.stdin:\n open('told', 'a').write(line)\n"
    Path("judge.py").write_text(program + ' print(\'{"preference": "tie"}\', flush=True)')
    command = ("guess", "pool.jsonl", "--out", "o.jsonl", "--program", f"{sys.executable} judge.py")
    assert run(*command).status == 0
    assert run(*command).status == 0
    (line,) = Path("told").read_text().splitlines()
    shown = {"left": {"answer": "x", "payload": None}, "right": {"answer": "y", "payload": None}}
    assert json.loads(line) == {"id": "p", "payload": {"q": 1}, **shown}


def test_a_judge_is_a_rubric_and_a_model_or_a_program(run: Run, rubric: Path) -> None:
    Path("pool.jsonl").write_text(json.dumps(PAIR) + "\n")
    command = ("guess", "pool.jsonl", "--out", "o.jsonl")
    assert "give a --rubric and a --model, or a --program" in run(*command).err
    assert "takes neither" in run(*command, "--program", "cat", "--rubric", rubric).err
    (rubric.parent / "other.jsonl").write_text("{}\n")
    cat = ("--program", "cat")
    foreign = ("--cache", rubric.parent / "other.jsonl")
    assert "is no file of verdicts" in run(*command, *cat, *foreign).err
    assert "its folder is not there" in run(*command, *cat, "--out", "x/o.jsonl").err


def test_a_mended_program_is_asked_again(run: Run) -> None:
    assert guessed(run, PAIR, '{"losses": [1, 0]}').status == 0
    first = Path("out.jsonl").read_text()
    assert "; taken up: 1 verdicts" in guessed(run, PAIR, '{"losses": [1, 0]}').out
    program = (
        Path("judge.py").read_text().replace("print(sys.argv[1]", "print('{\"losses\": [0, 1]}'")
    )
    Path("judge.py").write_text(program)
    command = f"{sys.executable} judge.py '{{\"losses\": [1, 0]}}'"
    assert run("guess", "pool.jsonl", "--out", "out.jsonl", "--program", command).status == 0
    assert Path("out.jsonl").read_text() != first


def test_a_pipe_in_the_command_is_not_read_for_the_fingerprint(run: Run) -> None:
    os.mkfifo("pipe")
    Path("pool.jsonl").write_text(json.dumps(PAIR) + "\n")
    Path("judge.py").write_text("import sys\nfor line in sys.stdin: print('{\"losses\": [0, 1]}')")
    command = f"{sys.executable} judge.py pipe"
    answer = run("guess", "pool.jsonl", "--out", "out.jsonl", "--program", command)
    assert answer.status == 0, answer.err


def test_a_program_that_hangs_is_ended_with_the_judging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "STOP_SECONDS", 3600.0)
    Path("judge.py").write_text("import time\nopen('begun', 'w')\ntime.sleep(3600)\n")
    with Verdicts(tmp_path / "verdicts") as verdicts:
        program = programs.Program(f"{sys.executable} judge.py", verdicts)
        call = started(program, Case("q", None))
        while not Path("begun").exists():
            assert not call.done()
        started(program.__exit__).result(60)
        with pytest.raises(InvalidValue, match="ended with status -9"):
            call.result(60)


def test_an_answer_that_comes_when_no_more_are_asked_for_leaves_no_pipe_open(
    tmp_path: Path,
) -> None:
    command = f"{sys.executable} -c 'input()'"
    with (
        Verdicts(tmp_path / "verdicts") as verdicts,
        programs.Program(command, verdicts) as program,
    ):
        lent = program._process()
        process = lent.__enter__()
    lent.__exit__(None, None, None)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdin.closed
    assert process.stdout.closed
