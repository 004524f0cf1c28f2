"""`celeus judge-check`, answered at the terminal."""

import csv
import io
import json
from pathlib import Path

import pytest

from tests.cli.calling import Answer
from tests.cli.calling import celeus as command_line

ITEMS = 200
ASKED = ("answers.csv", "--verdict", "verdict", "--positive", "pass")


class Terminal:
    """A folder with `answers.csv`, and a person who is asked there."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.folder = folder
        self._patch, self._printed = monkeypatch, capsys
        monkeypatch.chdir(folder)

    def write(self, found: float, labels: int = 0) -> None:
        """Good answers, of which the judge finds a share, and people labelled the first few."""
        with (self.folder / "answers.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["id", "question", "answer", "verdict", "human"])
            for number in range(ITEMS):
                verdict = "pass" if number % 100 < 100 * found else "fail"
                human = "pass" if number < labels else ""
                table.writerow([f"a{number}", f"{number}?", "yes\u202e", verdict, human])

    def __call__(self, pressed: str, *options: str) -> Answer:
        """What the command leaves behind when these keys are pressed."""
        self._patch.setattr("sys.stdin", io.StringIO("".join(f"{key}\n" for key in pressed)))
        return command_line(self._patch, self._printed, "judge-check", *ASKED, *options)


@pytest.fixture
def terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    return Terminal(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize(("found", "status", "word"), [(0.99, 0, "yes"), (0.5, 2, "no")])
def test_a_rate_is_answered(terminal: Terminal, found: float, status: int, word: str) -> None:
    terminal.write(found)
    answer = terminal("y" * ITEMS, "--at-least", "tpr=80%", "--report", "report.html")
    assert answer.status == status
    assert answer.out.startswith("tpr: true-positive rate ")
    assert f"At least 80%: {word}." in answer.out
    assert "judge: pass" in answer.out
    report = (terminal.folder / "report.html").read_text()
    assert "true-positive rate" in report
    assert '<th scope="row">judge: pass</th>' in report


def test_what_is_judged_is_shown_and_its_verdict_is_not(terminal: Terminal) -> None:
    terminal.write(0.5)
    shown = terminal("yynsq", "--at-least", "tpr=0.9").err
    assert "question: " in shown
    assert shown.index("question: ") < shown.index("answer: ")
    assert "\u202e" not in shown
    assert "fail" not in shown
    assert shown.count("pass? ") == 5


def test_it_goes_on_where_it_was_stopped(terminal: Terminal) -> None:
    terminal.write(0.99)
    stopped = terminal("yyq", "--at-least", "tpr=0.8", "--json")
    assert stopped.status == 3
    assert json.loads(stopped.out)["labels"] == 2
    # The input ends as if somebody had stopped, and a key of no meaning asks again
    again = terminal("y?y", "--at-least", "tpr=0.8", "--json")
    assert again.status == 3
    assert json.loads(again.out)["labels"] == 4
    assert terminal("y" * ITEMS, "--at-least", "tpr=0.8").status == 0


def test_labels_that_people_gave_before_are_not_asked_again(terminal: Terminal) -> None:
    terminal.write(0.99, labels=150)
    answer = terminal("y" * ITEMS, "--at-least", "tpr=0.8", "--people", "human", "--json")
    told = json.loads(answer.out)
    assert answer.status == 0
    assert told["labels"] < 30
    assert told["claims"][0]["known"] == 150


def test_two_is_for_no_and_one_for_what_cannot_be_asked(terminal: Terminal) -> None:
    terminal.write(0.5)
    assert terminal("", "--nothing").status == 1
    assert terminal("", "--at-least", "tpr=90").status == 1
    assert (
        "must be a file in a folder"
        in terminal("", "--at-least", "tpr=0.9", "--report", "no/r.html").err
    )
    nothing = terminal("")
    assert nothing.status == 1
    assert "Missing option '--at-least'" in nothing.err


def test_a_report_that_cannot_be_written_is_one_line(terminal: Terminal) -> None:
    terminal.write(0.99)
    answer = terminal("q", "--at-least", "tpr=80%", "--report", "/dev/full")
    assert answer.status == 1
    assert "celeus: /dev/full cannot be written: " in answer.err


def test_what_the_file_leaves_open_is_asked_with_the_options_that_answer(
    terminal: Terminal,
) -> None:
    terminal.write(0.5)
    file = terminal.folder / "answers.csv"
    head, *rows = file.read_text().splitlines()
    file.write_text("\n".join([f"{head},score", *(f"{row},0.25" for row in rows)]))
    asking = terminal("q", "--at-least", "tpr=80%")
    assert (asking.status, asking.out) == (1, "")
    assert "\n    --given better=lower: " in asking.err
    assert asking.err.splitlines()[-1].endswith("answer each by one of its options")
    answered = terminal("yq", "--at-least", "tpr=80%", "--given", "better=lower")
    assert answered.status == 3, answered.err
    assert "question: " in answered.err
    assert "fail" not in answered.err
    roles = ("--mapping", "question=question", "--mapping", "id=id")
    shown = terminal("q", "--at-least", "tpr=80%", *roles)
    assert shown.status == 3, shown.err
    assert "answer: " not in shown.err
