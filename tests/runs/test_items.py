"""In process any table or log is read as the service reads it, and items stay as they are."""

import csv
import gzip
import io
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import celeus
from celeus.errors import InvalidValue
from celeus.runs.items import item_rows, scale_of
from tests.intake.workbooks import sheet, workbook

ROWS = [
    {"Frage": f"{n} + {n}?", "Antwort": str(2 * n + (n % 5 == 0)), "Modell": "klein"}
    for n in range(40)
]
ITEMS = [
    {"id": str(n + 1), "payload": {"question": row["Frage"], "answer": row["Antwort"]}}
    for n, row in enumerate(ROWS)
]
SCORED: list[dict[str, Any]] = [
    {"question": f"{n} + {n}?", "answer": str(2 * n), "reference": str(2 * n), "score": n / 40}
    for n in range(40)
]


class Frame:
    """A table that gives its rows as polars does."""

    def to_dicts(self) -> list[dict[str, Any]]:
        return [dict(row) for row in ROWS]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(rows: list[dict[str, Any]], separator: str = ",") -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=separator)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write(name: str, content: str | bytes) -> str:
    path = Path(name)
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return name


def packed_parquet() -> bytes:
    file = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(ROWS), file)
    return file.getvalue()


def cells() -> bytes:
    return workbook({"Antworten": sheet([[*ROWS[0]], *([*row.values()] for row in ROWS)])})


SOURCES: dict[str, Callable[[], object]] = {
    "semicolons": lambda: write("a.csv", table(ROWS, ";")),
    "tabs in UTF-16": lambda: write("a.tsv", table(ROWS, "\t").encode("utf-16")),
    "packed": lambda: write("a.csv.gz", gzip.compress(table(ROWS).encode())),
    "a path": lambda: Path(write("a.json", json.dumps(ROWS, indent=1))),
    "lines": lambda: write("a.jsonl", "\n".join(map(json.dumps, ROWS))),
    "a document in a file of lines": lambda: write("a.jsonl", json.dumps(ROWS, indent=1)),
    "Excel": lambda: write("a.xlsx", cells()),
    "Parquet": lambda: write("a.parquet", packed_parquet()),
    "dicts": lambda: ROWS,
    "an iterator": lambda: iter(ROWS),
    "a frame": Frame,
    "Arrow": lambda: pa.Table.from_pylist(ROWS),
}


@pytest.mark.parametrize("name", SOURCES)
def test_any_table_makes_the_same_items(name: str) -> None:
    assert celeus.read_items(SOURCES[name]()) == ITEMS
    assert item_rows(SOURCES[name](), scale_of("zero_one")) == ITEMS


def test_a_table_is_certified_as_it_lies() -> None:
    def judge(item: celeus.Turn) -> float:
        first, second = item.payload["question"].removesuffix("?").split(" + ")
        return float(int(first) + int(second) != int(item.payload["answer"]))

    status = celeus.certify(write("a.csv", table(ROWS, ";")), judge, budget="all").status()
    assert status.items == 40
    assert status.estimate == pytest.approx(0.2)


def test_what_items_were_made_of_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "celeus"):
        celeus.read_items(ROWS)
    assert "payload: question (Frage), answer (Antwort); hidden: Modell" in caplog.text
    caplog.clear()
    celeus.read_items(ROWS, mapping={"Frage": "question", "Antwort": "answer"})
    assert not caplog.text


def test_items_stay_as_they_are() -> None:
    items: list[dict[str, Any]] = [
        {"id": "b", "payload": "a text", "surrogate": 0.1 + 0.2},
        {"id": "a", "payload": {"question": None, "deep": {"list": [1, 2.0, {}]}}, "surrogate": 1},
    ]
    before = json.dumps(items)
    assert json.dumps(item_rows(items, scale_of("zero_one"))) == before
    assert celeus.read_items(items) == items
    path = write("items.jsonl", "\n".join(map(json.dumps, items)))
    assert json.dumps(item_rows(path, scale_of("zero_one"))) == before


def test_lines_of_items_may_state_a_loss_and_nothing_else() -> None:
    items = [{"id": "a", "payload": "a text"}, {"id": "b", "known": {"loss": 1, "reason": "seen"}}]
    path = write("items.jsonl", "\n".join(map(json.dumps, items)))
    assert celeus.read_items(path) == items
    assert item_rows(path, scale_of("zero_one")) == items


def test_a_table_of_items_has_theirs_by_column() -> None:
    text = 'id,payload.question,payload.answer,surrogate,known_loss,known_reason\n7,Why?,"So, so.",'
    path = write("items.csv", f"{text}0.25,1,seen\n8,Who?,Ada,0.5,,\n")
    first = {"id": "7", "payload": {"question": "Why?", "answer": "So, so."}, "surrogate": 0.25}
    first["known"] = {"loss": 1.0, "reason": "seen"}
    second = {"id": "8", "payload": {"question": "Who?", "answer": "Ada"}, "surrogate": 0.5}
    assert celeus.read_items(path) == [first, second]
    payload = '{""question"": ""Why?""}'
    path = write("items.csv", f'id,payload\n7,"{payload}"\n')
    assert celeus.read_items(path) == [{"id": "7", "payload": {"question": "Why?"}}]


def test_what_a_table_leaves_open_is_asked_in_python() -> None:
    path = write("scored.csv", table(SCORED))
    with pytest.raises(celeus.NeedsAnswer) as asked:
        celeus.certify(path, None, precision=0.1)
    head, *choices = str(asked.value).splitlines()
    call = 'celeus.read_items("scored.csv", better=…)'
    assert head == f"scored.csv leaves questions open; {call} takes the answers:"
    assert choices == [
        "Which values of `score` are better?",
        '    better="higher": a higher number, or yes, is better',
        '    better="lower": a lower number, or no, is better',
    ]
    assert [question["name"] for question in asked.value.questions] == ["better"]
    assert [row["surrogate"] for row in celeus.read_items(path, better="higher")][:2] == [
        1.0,
        pytest.approx(0.975),
    ]
    with pytest.raises(celeus.NeedsAnswer, match=r"items, better=…, loss=\(0, 5\)\) takes"):
        celeus.certify(SCORED, None, precision=0.1, loss=(0, 5))


def test_answers_are_given_by_name() -> None:
    rows = [
        {"key": n // 2, "q": "Why?", "a": f"So {n}.", "stars": 1 + n % 5, "people": n % 2}
        for n in range(20)
    ] + [{"key": 10, "q": "Why?", "a": "So.", "stars": -1, "people": None}]
    mapping = {"key": "id", "q": "question", "a": "answer", "stars": "score", "people": "known"}
    answers: dict[str, Any] = {"missing": -1, "repeats": "first"}
    answers |= {"better": {"stars": "higher", "people": "lower"}, "scale": {"stars": (1, 5)}}
    found = celeus.read_items(rows, mapping=mapping, **answers)
    assert [row["id"] for row in found] == [str(n) for n in range(11)]
    assert found[1]["surrogate"] == 0.5
    assert found[0]["known"] == {"loss": 0.0, "reason": "labelled before"}
    assert "known" not in found[10]


def test_a_score_that_is_nan_is_missing() -> None:
    rows = [dict(row) for row in SCORED]
    rows[0]["score"] = float("nan")
    scores = [1 - row["score"] for row in rows[1:]]
    found = celeus.read_items(rows, better="higher")
    assert found[0]["surrogate"] == pytest.approx(sum(scores) / len(scores))


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "no file": (lambda: celeus.read_items("a.csv"), "a.csv cannot be read: No such file"),
    "a folder": (lambda: celeus.read_items(Path()), "cannot be read: Is a directory"),
    "nothing": (lambda: celeus.read_items(None), "items must be a frame, a Dataset, dicts"),
    "no rows": (lambda: celeus.read_items([]), "there are no items"),
    "a header": (
        lambda: celeus.read_items(write("a.csv", "question,answer\n")),
        "a.csv: The file has no rows",
    ),
    "no dicts": (lambda: celeus.read_items([7]), "row 1 is no mapping"),
    "empty": (lambda: celeus.certify(write("a.csv", ""), None), "a.csv: The file is no table"),
    "bytes": (lambda: celeus.read_items(write("a.csv", bytes(range(256)))), "a.csv: The file is"),
    "a line": (
        lambda: celeus.read_items(write("a.csv", "question,answer\na,b\na,b,c\na\n")),
        "line 3 of a.csv cannot be read, nor can 1 other; expected 2 cells, as in the header",
    ),
    "a number that is a text": (
        lambda: celeus.read_items(write("a.csv", 'id,payload,surrogate\nx,Why?,"1,000"\n')),
        "line 2 of a.csv cannot be read; expected surrogate: a number from 0 to 1, not '1,000'",
    ),
    "a few numbers outside the scale": (
        lambda: celeus.read_items(
            [*SCORED, {"question": "?", "answer": "1", "score": -0.01}], better="higher"
        ),
        "line 41 .* expected surrogate: a number from 0 to 1; scale gives other ends, and missing",
    ),
    "a quote": (
        lambda: celeus.read_items(write("a.csv", 'question,answer\n"a,b\nc,d\n')),
        "A quote is opened and not closed: line 2 of a.csv; expected cells",
    ),
    "a way": (
        lambda: celeus.read_items(SCORED, better="up"),
        "better must be higher or lower",
    ),
    "a column": (
        lambda: celeus.read_items(SCORED, answer="reply"),
        "answer to be one of question, answer, reference, score, not 'reply'",
    ),
    "a role": (
        lambda: celeus.read_items(SCORED, mapping={"question": "frage"}),
        "mapping.question to be one of id, question",
    ),
    "a mapping": (
        lambda: celeus.read_items(SCORED, mapping="question"),  # type: ignore[arg-type]
        "mapping must be roles by columns",
    ),
    "a text": (
        lambda: celeus.read_items(SCORED, repeats=1),  # type: ignore[arg-type]
        "repeats must be text",
    ),
    "a loss": (lambda: celeus.read_items(SCORED, loss="rouge"), "loss must be zero_one"),
    "pairs": (
        lambda: celeus.read_items(ROWS, mapping={"Frage": "answer_a", "Antwort": "answer_b"}),
        "the table holds pairs of answers: .* `celeus.compare`",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_by_name(name: str) -> None:
    call, text = REFUSED[name]
    with pytest.raises(celeus.Refusal, match=text):
        call()


def test_a_guess_off_the_scale_is_refused_with_the_value_of_the_file(tmp_path: Path) -> None:
    """Guesses of 0 and 1 are drawn to their mean; this one is no guess."""
    attempt = {"entry_type": "attempt", "status": 2, "probe_classname": "dan.A"}
    attempts = [
        attempt
        | {"uuid": f"u{number}", "prompt": {"turns": [{"content": {"text": f"Do {number}"}}]}}
        | {"outputs": [{"text": f"No {number}"}], "detector_results": {"dan.Hit": [found]}}
        for number, found in enumerate([5.0, *(0.0, 1.0) * 15])
    ]
    path = tmp_path / "garak.report.jsonl"
    path.write_text("\n".join(map(json.dumps, attempts)))
    with pytest.raises(InvalidValue) as caught:
        item_rows(path, scale_of("zero_one"))
    assert (caught.value.rule or "").startswith("surrogate: a number from 0 to 1")
    assert caught.value.value == "5.0"


def test_columns_that_are_groups_are_kept_by_name_and_named_in_the_call_that_answers(
    tmp_path: Path,
) -> None:
    file = tmp_path / "answers.csv"
    file.write_text("question,answer,verdict,score\n1?,1,pass,0.2\n2?,3,fail,0.9\n")
    with pytest.raises(celeus.NeedsAnswer, match=r'better=…, groups=\["verdict"\]\) takes the'):
        celeus.read_items(file, groups=["verdict"])
    items = celeus.read_items(file, groups=["verdict"], better="lower")
    assert [item["groups"] for item in items] == [{"verdict": "pass"}, {"verdict": "fail"}]
    session = celeus.judge_check(
        items, None, verdict="verdict", positive="pass", tpr=0.9, file=tmp_path / "run.jsonl"
    )
    assert session.status().round == 0
