"""`celeus.judge_check`: how good an automatic judge is, from a file of its verdicts."""

import csv
from pathlib import Path

import numpy as np
import pytest

import celeus
from tests.cli.calling import Run as Command
from tests.cli.calling import celeus as command_line

ITEMS = 600


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Calls `celeus`."""
    return lambda *words: command_line(monkeypatch, capsys, *words)


def answers(
    path: Path, right: float = 0.97, signs: tuple[str, str] = ("fail", "pass")
) -> dict[str, bool]:
    """Write answers with a judge's verdicts, and return what people say of them, by id."""
    chance = np.random.default_rng(4)
    people = {f"a{number}": bool(chance.random() < 0.5) for number in range(ITEMS)}
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "question", "answer", "judge_label"])
        for number, (name, said) in enumerate(people.items()):
            verdict = signs[said if chance.random() < right else not said]
            table.writerow([name, f"What is {number}?", f"It is {number * 3}.", verdict])
    return people


def test_a_good_judge_passes_a_gate_from_a_file(folder: Path, run: Command) -> None:
    people = answers(folder / "answers.csv")
    shown: list[str] = []

    def ask(turn: celeus.Turn) -> bool:
        shown.append(str(turn.payload))
        return people[turn.id]

    session = celeus.judge_check(
        "answers.csv", ask, verdict="judge_label", positive="pass", tpr=0.9, tnr="85%"
    )
    assert session.status().state == "target_reached"
    assert [(claim.metric, claim.answers[0].answer) for claim in session.claims()] == [
        ("tpr", "yes"),
        ("tnr", "yes"),
    ]
    assert session.claims()[0].score.lower >= 0.9
    assert len(shown) < ITEMS
    assert not [text for text in shown if "pass" in text or "judge_label" in text]
    bundle = folder / "bundle.celeus"
    bundle.write_bytes(session.bundle())
    found = run("verify", str(bundle))
    assert found.status == 0, found.out
    assert "A yes to all questions is false with probability at most 5 %" in found.out
    assert "what people say of an item does not rest on them" in found.out


def test_a_bad_judge_is_told_so(folder: Path) -> None:
    people = answers(folder / "answers.csv", right=0.6)
    session = celeus.judge_check(
        "answers.csv", lambda turn: people[turn.id], verdict="judge_label", positive="pass", tpr=0.9
    )
    assert session.claims()[0].answers[0].answer == "no"


def test_true_and_false_need_no_word_for_positive(folder: Path) -> None:
    people = answers(folder / "answers.csv", signs=("False", "True"))
    session = celeus.judge_check(
        "answers.csv", lambda turn: people[turn.id], verdict="judge_label", precision={"f1": 0.1}
    )
    table = session.status().table
    assert table is not None
    assert table["check"]["positive"] == "True"
    counts = {(count["judge"], count["people"]): count for count in table["check"]["counts"]}
    assert sum(count["judged"] for count in counts.values()) == session.status().round
    assert sum(count["expected"] for count in counts.values()) == pytest.approx(ITEMS)
    assert counts[True, True]["expected"] > counts[True, False]["expected"]


def test_verdicts_of_rows_may_be_true_and_false(folder: Path) -> None:
    del folder
    chance = np.random.default_rng(7)
    people = {f"a{number}": bool(chance.random() < 0.5) for number in range(200)}
    rows = [{"id": name, "answer": f"no. {name}", "ok": said} for name, said in people.items()]
    for positive in (None, True):
        session = celeus.judge_check(
            rows,
            lambda turn: people[turn.id],
            verdict="ok",
            positive=positive,
            tpr=0.8,
            precision=0.2,
        )
        assert session.claims()[0].score.upper == 1.0
        assert session.status().table["check"]["column"] == "ok"  # type: ignore[index]


def test_another_group_is_no_verdict(folder: Path) -> None:
    del folder
    rows = [
        {"id": f"a{n}", "payload": {"answer": n}, "group": "yes" if n % 2 else "no"}
        for n in range(40)
    ]
    with pytest.raises(celeus.Refusal, match="item 1 has no verdict judge_label") as refused:
        celeus.judge_check(rows, None, verdict="judge_label", tpr=0.9)
    assert refused.value.field == "verdict"


def test_a_rate_of_what_is_never_found_is_said_to_be_none(folder: Path) -> None:
    del folder
    rows = [{"id": f"a{n}", "answer": f"no. {n}", "ok": n % 2 == 0} for n in range(40)]
    session = celeus.judge_check(rows, lambda _: False, verdict="ok", tpr=0.9)
    (warning,) = session.status().warnings
    assert "no item was found that counts for tpr" in warning


def test_labels_of_people_count_in_the_words_of_the_verdicts(folder: Path) -> None:
    del folder
    rows = [
        {
            "id": f"a{number}",
            "answer": f"no. {number}",
            "ok": number % 2,
            # A frame with gaps has 1.0 where it had 1
            "human": float(number % 2) if number < 30 else None,
        }
        for number in range(40)
    ]
    session = celeus.judge_check(
        rows, lambda turn: turn.index % 2, verdict="ok", people="human", tpr=0.9
    )
    (claim,) = session.claims()
    assert claim.known == 30
    assert claim.answers[0].answer == "yes"
    assert session.status().table["check"]["counts"][0]["judged"] >= 15  # type: ignore[index]


def test_a_label_of_people_that_is_no_verdict_is_refused(folder: Path) -> None:
    del folder
    rows = [
        {"id": f"a{n}", "answer": f"no. {n}", "ok": "pass" if n % 2 else "fail", "human": "maybe"}
        for n in range(40)
    ]
    with pytest.raises(celeus.Refusal, match="people and judge say fail, maybe") as refused:
        celeus.judge_check(rows, None, verdict="ok", positive="pass", people="human", tpr=0.9)
    assert refused.value.field == "people"


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"verdict": "judge_label", "tpr": 0.9, "people": "nobody"}, "group"),
        ({"verdict": "judge_label", "tpr": 0.9}, "positive"),
        ({"verdict": "judge_label", "positive": "maybe", "tpr": 0.9}, "positive"),
        ({"verdict": "judge_label", "positive": "pass"}, "check.measures"),
        ({"verdict": "judge_label", "positive": "pass", "tpr": 90}, "tpr"),
        (
            {"verdict": "judge_label", "positive": "pass", "precision": {"auc": 0.1}},
            "check.measures",
        ),
        ({"verdict": "no_column", "positive": "pass", "tpr": 0.9}, "group"),
    ],
)
def test_what_is_not_said_is_asked(folder: Path, settings: dict[str, object], field: str) -> None:
    answers(folder / "answers.csv")
    with pytest.raises(celeus.Refusal) as refused:
        celeus.judge_check("answers.csv", None, **settings)  # type: ignore[arg-type]
    assert refused.value.field == field
