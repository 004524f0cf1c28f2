"""Tables as logs, by a map of their columns."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from celeus.errors import InvalidValue, NeedsAnswer
from celeus.intake.formats.registry import read as read_logs
from celeus.intake.formats.registry import sources
from celeus.intake.formats.tables import read, rows_of
from celeus.intake.joining import join
from celeus.intake.rows import Columns, Options, Row
from celeus.intake.sources.files import Source
from tests.intake.made import mean, refusal, rows

SCORES = [1.0, 0.25, 0.0, None]
TABLE = [
    {"item": f"q{at}", "score": score, "run": "a", "text": f"{at}?", "gold": "x", "said": "y"}
    for at, score in enumerate(SCORES)
]
COLUMNS = Columns(
    "item",
    score="score",
    model="run",
    payload={"question": "text", "reference": "gold", "answer": "said"},
)
OPTIONS = Options(higher=True, columns=COLUMNS)


def written(folder: Path, form: str, table: list[dict[str, Any]]) -> Path:
    path = folder / f"table.{form}"
    if form == "parquet":
        parquet.write_table(pa.Table.from_pylist(table), path)
    elif form == "json":
        path.write_text(json.dumps(table))
    elif form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table))
    else:
        cells = [["" if it is None else str(it) for it in row.values()] for row in table]
        path.write_text("\n".join(",".join(row) for row in [list(table[0]), *cells]) + "\n")
    return path


def of(table: Any, **columns: Any) -> list[Row]:  # noqa: ANN401 -- any rows
    options = Options(higher=columns.pop("higher", None), columns=Columns(**columns))
    return rows_of(table, options).rows


@pytest.mark.parametrize("form", ["csv", "jsonl", "json", "parquet"])
def test_every_form_of_a_table_gives_the_rows_of_its_dicts(tmp_path: Path, form: str) -> None:
    found = rows("table", written(tmp_path, form, TABLE), options=OPTIONS)
    assert found == rows_of(TABLE, OPTIONS).rows
    assert [row.loss for row in found] == [0.0, 0.75, 1.0, None]
    assert mean(row.loss for row in found) == pytest.approx(1 - 1.25 / 3, abs=1e-12)
    assert (found[0].question, found[0].reference, found[0].answer) == ("0?", "x", "y")


def test_a_loss_needs_no_direction_and_a_score_does() -> None:
    assert [row.loss for row in of(TABLE, id="item", loss="score")] == [1.0, 0.25, 0.0, None]
    said = refusal(of, TABLE, id="item", score="score")
    assert said.startswith("the table: Which values of `score` are better? (--higher-is-better:")


@pytest.mark.parametrize("right", ["Pass", "correct", "RIGHT", "passed"])
def test_words_that_judge_say_their_direction(right: str) -> None:
    (row,) = of([{"id": 1, "said": right}], id="id", score="said")
    assert row.loss == 0.0


@pytest.mark.parametrize("bad", [True, "yes", "TRUE", 1, 1.0])
def test_whether_yes_is_good_is_asked(bad: object) -> None:
    """A column `hallucinated` and a column `grounded` hold the same words."""
    table = [{"id": 1, "hallucinated": bad}]
    said = refusal(of, table, id="id", score="hallucinated")
    assert said.startswith("the table: Which values of `hallucinated` are better?")
    (row,) = of(table, id="id", score="hallucinated", higher=False)
    assert row.loss == 1.0


@pytest.mark.parametrize("missing", [None, "", float("nan"), "nan", np.float64("nan")])
def test_a_missing_score_is_never_0(missing: object) -> None:
    assert of([{"id": 1, "loss": missing}], id="id", loss="loss")[0].loss is None


def test_what_may_stand_for_no_score_or_another_scale_is_asked_as_of_an_upload() -> None:
    table = [{"id": at, "loss": loss} for at, loss in enumerate([1, 5, "None", -1])]
    with pytest.raises(NeedsAnswer) as raised:
        of(table, id="id", loss="loss")
    assert [question["name"] for question in raised.value.questions] == ["scale", "missing"]
    for option in ("--scale 1 5: ", "--missing None: ", "--missing -1: "):
        assert option in raised.value.detail


def test_verdicts_in_words_have_a_scale_of_their_own_beside_grades() -> None:
    table = [{"id": 1, "grade": 5, "human": "wrong"}, {"id": 2, "grade": 1, "human": "correct"}]
    table.append({"id": 3, "grade": -1, "human": "None"})
    columns = Columns("id", score="grade", known="human")
    said = Options(higher=True, scale=(1.0, 5.0), missing=("-1", "None"), columns=columns)
    found = rows_of(table, said).rows
    assert [(row.loss, row.known) for row in found] == [(0.0, 1.0), (1.0, 0.0), (None, None)]


@pytest.mark.parametrize("none", ["False", "None", "nan", "", "0", 0, False, None, float("nan")])
def test_a_column_of_errors_may_say_that_there_is_none(none: object) -> None:
    table = [{"id": 1, "loss": 0, "failed": none}, {"id": 2, "loss": 0, "failed": "timed out"}]
    found = of(table, id="id", loss="loss", error="failed")
    assert [row.loss for row in found] == [0.0, None]


@pytest.mark.parametrize(
    ("text", "losses"),
    [
        (b"id;score\na;0,25\nb;1,0\n", [0.75, 0.0]),
        (b"id\tscore\na\t25 %\nb\t100%\n", [0.75, 0.0]),
        ("id,score,said\na,0.25,\u00fc\nb,1,\n".encode("utf-16"), [0.75, 0.0]),
        ("id,score,said\na,0.25,\u00fc\nb,1,\n".encode("cp1252"), [0.75, 0.0]),
        (b'{\n "results": [\n  {"id": 1, "score": 0.25}, {"id": 2, "score": 1}]}', [0.75, 0.0]),
    ],
)
def test_the_command_reads_what_the_page_reads(
    tmp_path: Path, text: bytes, losses: list[float]
) -> None:
    path = tmp_path / "table.txt"
    path.write_bytes(text)
    columns = Columns("id", score="score")
    found = rows("table", path, options=Options(higher=True, columns=columns))
    assert [row.loss for row in found] == losses


def test_a_failed_row_has_no_score() -> None:
    table = [{"id": 1, "loss": 0, "failed": "timed out"}, {"id": 2, "loss": 0, "failed": ""}]
    found = of(table, id="id", loss="loss", error="failed")
    assert [row.loss for row in found] == [None, 0.0]


@pytest.mark.parametrize("absent", [None, "", float("nan")])
@pytest.mark.parametrize("column", ["id", "model", "group"])
def test_what_names_an_item_its_model_or_its_group_is_there(column: str, absent: object) -> None:
    table = [{"id": 1, "loss": 0, "model": "a", "group": "x"} | {column: absent}]
    said = refusal(of, table, id="id", loss="loss", model="model", group="group")
    assert said == f"row 1 of the table has no {column}"


def test_a_loss_of_which_more_is_better_is_refused() -> None:
    said = refusal(of, TABLE, id="item", loss="score", higher=True)
    assert said == "of a loss less is better: give --score score in place of --loss score"


def test_nested_rows_are_read_by_their_paths() -> None:
    table = [{"metadata": {"item": 7}, "scores": {"exact": 1}, "a.b": 0.5}]
    (row,) = of(table, id="metadata.item", score="scores.exact", higher=True)
    assert (row.id, row.loss) == ("7", 0.0)
    assert of(table, id="metadata.item", loss="a.b")[0].loss == 0.5
    said = refusal(of, table, id="metadata.name", loss="a.b")
    assert said == "the table has no column 'metadata.name', only metadata, scores, a.b"


def test_a_row_that_lacks_a_column_of_others_has_nothing_there() -> None:
    """As rows of errors have no scores in them."""
    table: list[dict[str, Any]] = [
        {"id": 1, "scores": {}, "error": "down"},
        {"id": 2, "scores": {"exact": True}},
        {"id": 3},
        {"id": 4, "scores": {"exact": None}, "error": float("nan"), "text": float("nan")},
    ]
    shown = {"question": "text"}
    found = of(table, id="id", score="scores.exact", error="error", payload=shown, higher=True)
    assert [row.loss for row in found] == [None, 0.0, None, None]
    assert [row.question for row in found] == [None] * 4
    assert refusal(of, table[1:], id="error", score="scores.exact", higher=True) == (
        "row 1 of the table has no error"
    )


def test_whole_numbers_that_a_frame_holds_as_floats_are_the_ids_they_were() -> None:
    assert of([{"id": 3.0, "loss": 0}], id="id", loss="loss")[0].id == "3"


def test_without_ids_rows_are_told_apart_by_their_question() -> None:
    shown = {"question": "text"}
    found = of(TABLE, loss="score", payload=shown)
    assert len({row.id for row in found}) == len(TABLE)
    assert "say how the items of the table are told apart" in refusal(of, TABLE, loss="score")


def test_another_question_under_one_id_is_refused_by_item() -> None:
    table = [
        {"id": "q1", "loss": 0, "m": "a", "text": "Why?"},
        {"id": "q1", "loss": 0, "m": "b", "text": "How?"},
    ]
    found = of(table, id="id", loss="loss", model="m", payload={"question": "text"})
    assert refusal(join, found).startswith("item q1 is not the same in the logs of a and b")


def test_an_id_that_stands_twice_is_refused_unless_repeats_are_counted(tmp_path: Path) -> None:
    table = [{"id": "q1", "loss": loss, "trial": at} for at, loss in enumerate([0, 1])]
    path = written(tmp_path, "jsonl", table)
    said = refusal(rows, "table", path, options=Options(columns=Columns("id", "loss")))
    assert said.startswith("item q1 stands twice in ")
    found = rows("table", path, options=Options(columns=Columns("id", "loss", repeat="trial")))
    assert join(found).items[0].guess == 0.5


@pytest.mark.parametrize(
    ("rule", "losses"),
    [("mean", {"q0": 0.5, "q1": 0.5}), ("first", {"q0": 0.0, "q1": 0.0}),
     ("items", {"q0": 0.0, "q0 (2)": 1.0, "q1": 0.0, "q1 (2)": 1.0})],
)  # fmt: skip
def test_rows_of_one_id_are_what_is_said_of_them(
    tmp_path: Path, rule: str, losses: dict[str, float]
) -> None:
    table = [{"id": f"q{at // 2}", "loss": at % 2} for at in range(4)]
    path = written(tmp_path, "jsonl", table)
    for way in ("--repeat COLUMN", "--repeats mean"):
        assert way in refusal(rows, "table", path, options=Options(columns=Columns("id", "loss")))
    options = Options(repeats=rule, columns=Columns("id", "loss"))
    found: dict[str, list[float | None]] = {}
    for row in rows("table", path, options=options):
        found.setdefault(row.id, []).append(row.loss)
    assert {name: mean(of_item) for name, of_item in found.items()} == losses


def test_runs_of_one_example_are_asked_about_where_every_row_has_an_id_too(tmp_path: Path) -> None:
    """Of an experiment with repetitions, in which every run and every example has an id."""
    table = [
        {"inputs.q": f"{at // 2}?", "outputs.a": f"{at}.", "feedback.accuracy": at % 2,
         "example_id": f"e{at // 2}", "id": f"run-{at}"}
        for at in range(4)
    ]  # fmt: skip
    path = written(tmp_path, "csv", table)

    def read(id_: str, repeats: str | None, repeat: str | None = None) -> list[Row]:
        columns = Columns(id_, score="feedback.accuracy", repeat=repeat)
        return rows("table", path, options=Options(repeats=repeats, columns=columns))

    for repeats in (None, "mean"):
        said = refusal(read, "id", repeats)
        assert "4 rows have 2 values of `example_id`" in said
        assert "with --id example_id" in said
    assert len(join(read("id", "items")).items) == 4
    assert [item.guess for item in join(read("example_id", "mean")).items] == [0.5, 0.5]


def test_grades_of_a_table_of_inspect_are_read_as_inspect_does(tmp_path: Path) -> None:
    table = [
        {"sample_id": f"s{at}", "eval_id": "e", "id": at, "epoch": 1, "score_match": grade}
        for at, grade in enumerate("CPIN")
    ]
    path = written(tmp_path, "csv", table)
    found = rows("table", path, options=Options(columns=Columns("id", score="score_match")))
    assert [row.loss for row in found] == [0.0, 0.5, 1.0, 1.0]
    plain = [{"id": row["id"], "score_match": row["score_match"]} for row in table]
    said = refusal(of, plain, id="id", score="score_match", higher=True)
    assert "which is no number: write one" in said
    assert "--missing C" in said


def test_columns_that_no_option_names_have_the_roles_of_an_upload(tmp_path: Path) -> None:
    table = [
        {"doc_id": f"d{at}", "question": f"{at}?", "response": f"{at}!", "target": "x",
         "acc": at % 2, "subject": "law" if at % 2 else "tort"}
        for at in range(6)
    ]  # fmt: skip
    path = written(tmp_path, "jsonl", table)
    (log,) = read_logs("table", sources("table", [path]), Options())
    shown = [(row.id, row.question, row.answer, row.reference, row.group) for row in log.rows]
    assert shown[0] == ("d0", "0?", "0!", None, "tort")
    assert [row.loss for row in log.rows] == [1.0, 0.0] * 3
    assert "id: doc_id" in log.told[0]
    assert "score: acc" in log.told[0]
    hashed = Options(columns=Columns(payload={"question": "question"}))
    (named,) = read_logs("table", sources("table", [path]), hashed)
    assert named.rows[0].id != "d0"
    assert named.rows[0].answer is None
    written(tmp_path, "jsonl", [*table, table[0] | {"doc_id": "d6", "subject": None}])
    assert {row.group for row in rows("table", path, options=Options())} == {None}


def test_an_answer_that_may_be_another_column_is_left_out(tmp_path: Path) -> None:
    rivals = [{"id": at, "acc": 1, "answer": f"It is {at}.", "memo": f"So {at}."} for at in "abc"]
    (row, *_) = rows("table", written(tmp_path, "jsonl", rivals), options=Options())
    assert row.answer is None


def test_a_count_that_is_not_that_of_the_rows_is_told(tmp_path: Path) -> None:
    path = tmp_path / "nightly.json"
    path.write_text(json.dumps({"total": 3, "results": [{"id": at, "loss": 0} for at in "ab"]}))
    options = Options(columns=Columns("id", "loss"))
    (log,) = read_logs("table", sources("table", [path]), options)
    assert "total says 3, where 2 rows were read" in " ".join(log.told)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"id": "item"}, "say which column of the table is the score"),
        ({"id": "item", "loss": "score", "score": "score"}, "say which column"),
        ({"id": "item", "loss": "text"}, "row 1 of the table has the score '0?', which is no num"),
        ({"id": "gold", "loss": "score", "payload": {"text": "text"}}, "a judge is shown question"),
        ({"id": "score", "loss": "score"}, "row 4 of the table has no score"),
        ({"id": "item", "loss": "score", "repeat": "text"}, "row 1 of the table has the repeat"),
    ],
)
def test_what_the_map_gets_wrong_is_refused_in_one_line(columns: dict[str, Any], said: str) -> None:
    assert refusal(of, TABLE, **columns).startswith(said)
    assert "has no rows" in refusal(of, [], id="item", loss="score")


@pytest.mark.parametrize(
    ("form", "text", "said"),
    [
        ("csv", b"id,loss\na,0\nb,0,1\n", "line 3 of "),
        ("csv", b'id,loss\na,"0', "A quote is opened and not closed: line 2 of "),
        ("csv", b"id,loss,loss\na,0,1\n", "has two columns 'loss'"),
        ("jsonl", b'{"id": 1, "loss": 0}\n{"id"\n', "line 2 of "),
        ("jsonl", b'{"id": 1, "loss": 0}\n[1]\n', "line 2 of "),
        ("json", b"[1, 2]", "line 1 of "),
        ("json", b'[{"id": 1}', "may have been cut off"),
        ("parquet", b"PAR1 and no more", "may have been cut off"),
    ],
)
def test_a_file_that_is_not_whole_is_refused(
    tmp_path: Path, form: str, text: bytes, said: str
) -> None:
    path = tmp_path / f"table.{form}"
    path.write_bytes(text)
    assert said in refusal(rows, "table", path, options=Options(columns=Columns("id", "loss")))


def test_a_cell_may_be_as_long_as_what_a_model_writes(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"id,loss,said\na,0,{'x' * 300_000}\n")
    options = Options(columns=Columns("id", "loss", payload={"answer": "said"}))
    assert len(str(rows("table", path, options=options)[0].answer)) == 300_000


def test_without_pyarrow_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "parquet", TABLE)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = refusal(rows, "table", path, options=OPTIONS)
    assert said.endswith("Parquet needs a library: pip install 'celeus[parquet]'")


def test_several_scores_of_an_item_are_refused_with_the_way_on(tmp_path: Path) -> None:
    path = tmp_path / "batch.csv"
    lines = "".join(f"H{at // 2},W{at % 2},q,a,{at % 2},{at // 2}\n" for at in range(6))
    path.write_text(f"HITId,WorkerId,Input.q,Input.answer,Answer.label,mean\n{lines}")
    scored = Options(columns=Columns(score="Answer.label"), higher=True, scale=(0.0, 2.0))
    with pytest.raises(InvalidValue, match=r"several scores.*such as their mean"):
        read(Source.of_path(path), scored)
    log = read(Source.of_path(path), replace(scored, columns=Columns(score="mean")))
    assert [row.loss for row in log.rows] == [1.0, 0.5, 0.0]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_last_row_with_the_mean_is_asked(tmp_path: Path, form: str) -> None:
    table = [{"said": f"It is {at}", "score": at % 2, "item": f"q{at}"} for at in range(4)]
    path = written(tmp_path, form, [*table, {"said": "Average", "score": 0.5, "item": 4}])
    options = Options(higher=True, columns=Columns("item", score="score"))
    assert "--rows with_id" in refusal(rows, "table", path, options=options)
    for answer, count in (("with_id", 4), ("all", 5)):
        assert len(rows("table", path, options=replace(options, rows=answer))) == count
