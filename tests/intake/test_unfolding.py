"""What the rows of a JSON file are: forms of a document, headers and events among the lines."""

import io
import json
from typing import Any

import pytest

from celeus.errors import InvalidValue, NeedsAnswer
from celeus.intake.opening import SentFile, opened
from celeus.intake.rows import Options
from celeus.intake.sources.sheet import BadRow, Sheet

ROWS: list[dict[str, Any]] = [
    {"stadt": f"S{at}", "punkte": at / 2, "ok": at % 2 == 0} for at in range(5)
]
NAMES = [*ROWS[0]]
CELLS = [[*row.values()] for row in ROWS]
NUMBERED = {str(at): row for at, row in enumerate(ROWS)}
TAGS = [{"tag": "a"}, {"tag": "b"}]
FIVE = {"train", "results", "run.results"}


def sheet(document: Any, rows: str | None = None, name: str = "a.json") -> Sheet:  # noqa: ANN401 -- any JSON
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    given = SentFile(name, options=Options(rows=rows))
    return next(found for found in opened(io.BytesIO(content), given) if found is not None)


def lines(*rows: object) -> bytes:
    return "\n".join(map(json.dumps, rows)).encode()


def values(found: Sheet) -> list[Any]:
    return [row for _, row in found.rows()]


def choices(document: Any, rows: str | None = None) -> list[str]:  # noqa: ANN401 -- any JSON
    with pytest.raises(NeedsAnswer) as refusal:
        sheet(document, rows)
    question = refusal.value.questions[0]
    assert question["name"] == "rows"
    return [choice["value"] for choice in question["choices"]]


@pytest.mark.parametrize(
    "document",
    [
        ROWS,
        {name: {str(at): row[name] for at, row in enumerate(ROWS)} for name in NAMES},
        NUMBERED,
        {"columns": NAMES, "index": [*range(5)], "data": CELLS},
        {"schema": {"fields": [{"name": name} for name in NAMES]}, "data": ROWS},
        {"columns": NAMES, "data": CELLS},
        {name: [row[name] for row in ROWS] for name in NAMES},
        {"punkte": 1.0, "details": {"type": "GEN", **NUMBERED}},
        {"run": {"seed": 1}, "anything": ROWS},
        {"run": {"seed": 1, "outputs": ROWS}, "version": 3},
        {"run": {"columns": NAMES, "data": CELLS}},
        {"features": [{"name": "x"}], "rows": [{"row_idx": 0, "row": row} for row in ROWS]},
        [{"run": 1, "outputs": ROWS}],
        # A short list beside the rows, further in
        {"config": {"tags": TAGS}, "results": ROWS},
    ],
)
def test_a_document_is_unfolded_by_its_form(document: object) -> None:
    if isinstance(document, list) and len(document) == 1:
        assert choices(document) == ["outputs", "document"]
        assert values(sheet(document, "outputs")) == ROWS
    else:
        assert values(sheet(document)) == ROWS


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"train": ROWS, "test": ROWS[:2]}, ["index", "train", "test"]),
        ({"rows": TAGS, "results": ROWS}, ["rows", "results"]),
        ({"tags": TAGS, "run": {"results": ROWS}}, ["tags", "run.results"]),
        ({"train": NUMBERED, "test": NUMBERED}, ["train", "test"]),
        ({"model": "m", "outputs": ["a", "b"]}, ["outputs", "document"]),
        ({"q1": ROWS[0], "q2": ROWS[1]}, ["index", "columns", "document"]),
        ([{"role": "user", "content": "?"}] * 3, ["messages", "document"]),
        ({"inputs": TAGS, "outputs": TAGS}, ["columns", "index", "inputs", "outputs"]),
    ],
)
def test_what_may_hold_the_rows_in_several_places_is_asked(
    document: Any,  # noqa: ANN401 -- any JSON
    expected: list[str],
) -> None:
    assert choices(document) == expected
    for answer in expected:
        found = values(sheet(document, answer))
        assert len(found) == (1 if answer == "document" else 5 if answer in FIVE else len(found))
        assert len(found) > 1 or answer == "document"


def test_an_index_that_names_its_rows_is_a_column() -> None:
    split = {"columns": NAMES, "index": ["x", "y", "z", "u", "v"], "data": CELLS}
    assert [row["index"] for row in values(sheet(split))] == split["index"]
    named = values(sheet({"q1": ROWS[0], "q2": ROWS[1]}, "index"))
    assert named == [{"index": "q1"} | ROWS[0], {"index": "q2"} | ROWS[1]]


def test_a_list_within_the_only_row_under_an_id_is_asked_about() -> None:
    """As of an agent's answer under the id of its run, beside the steps that led to it."""
    document = {"c10bbc8d": {"question": "Why?", "steps": TAGS, "answer": "So."}}
    assert choices(document) == ["index", "c10bbc8d.steps", "document"]
    assert values(sheet(document, "index")) == [{"index": "c10bbc8d", **document["c10bbc8d"]}]
    assert values(sheet(document, "c10bbc8d.steps")) == TAGS


def test_a_report_of_means_is_no_row_that_nobody_said_it_is() -> None:
    report = {"by": {"a": {"means": {"x": 1}}, "b": {"means": {"x": 2}}}, "n": 2}
    assert choices(report) == ["by", "document"]
    assert [row["index"] for row in values(sheet(report, "by"))] == ["a", "b"]
    report = {"run": {"accuracy": 0.5, "easy": {"passed": 3}}, "config": {"seed": 1}}
    assert choices(report) == ["document"]
    assert values(sheet(report, "document")) == [report]


def test_one_object_is_one_row() -> None:
    assert values(sheet({"question": "?", "answer": "!"})) == [{"question": "?", "answer": "!"}]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (CELLS, "without names of columns"),
        ({"data": CELLS, "n": 1}, "without names of columns"),
        ({"columns": ["a", "a"], "data": [[1, 2]]}, "one name"),
        (3.5, "no table that is known"),
    ],
)
def test_a_document_without_rows_is_refused(document: object, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        sheet(document, name="")


def test_a_row_that_is_too_short_is_a_bad_one() -> None:
    found = values(sheet({"columns": NAMES, "data": [*CELLS, ["x"]]}))
    assert found[:5] == ROWS
    assert isinstance(found[5], BadRow)


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ({"total_instances": 8}, "total_instances says 8, where 5 rows were read"),
        ({"summary": {"numSamples": 6}}, "numSamples says 6, where 5 rows were read"),
        ({"n_samples": 5, "total": 4.5, "seed": 7}, None),
    ],
)
def test_a_count_in_the_header_is_compared(header: dict[str, Any], told: str | None) -> None:
    counts = [phrase for phrase in sheet(header | {"rows": ROWS}).read_as if "says" in phrase]
    assert counts == ([told] if told else [])


EVENTS = [
    event
    for at in range(3)
    for event in (
        {"id": at, "type": "call", "data": {"prompt": "?", "sampled": "!"}},
        {"id": at, "type": "grade", "data": {"right": True, "expected": "!", "picked": "!"}},
    )
]
HEADER = {"accuracy": 0.5, "total_count": 9}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([HEADER, *ROWS], ["stadt", "accuracy", "all"]),
        ([*ROWS, HEADER], ["stadt", "accuracy", "all"]),
        ([{"q": "?", "a": "!"}, {"q": "?", "error": "late"}], ["a", "error", "all"]),
        (EVENTS, ["type=call", "type=grade", "all"]),
        ([HEADER, *EVENTS], ["type=call", "type=grade", "accuracy", "all"]),
    ],
)
def test_rows_of_several_kinds_are_asked(rows: list[Any], expected: list[str]) -> None:
    for content in (lines(*rows), rows):
        assert choices(content) == expected
        counts = [len(values(sheet(content, answer))) for answer in expected]
        assert counts[-1] == len(rows) == sum(counts[:-1])


def test_a_header_that_was_left_out_is_still_compared() -> None:
    found = sheet(lines(HEADER, *ROWS), "stadt")
    assert found.read_as == (
        "only rows with stadt",
        "total_count says 9, where 5 rows were read",
    )


def test_kinds_within_a_member_are_asked_by_its_path() -> None:
    document = {"a": [HEADER, *ROWS], "b": TAGS}
    assert choices(document) == ["a", "b"]
    assert choices(document, "a") == ["a:stadt", "a:accuracy", "a:all"]
    assert values(sheet(document, "a:stadt")) == ROWS


def test_a_row_of_another_kind_far_down_is_a_bad_one() -> None:
    rows = [{"q": "?", "a": str(at)} for at in range(1200)]
    found = values(sheet(lines(*rows[:1100], HEADER, *rows[1100:]), name="a.jsonl"))
    assert [type(row) for row in found].count(BadRow) == 1
    assert isinstance(found[1100], BadRow)


def test_rows_that_lack_a_few_members_are_rows() -> None:
    rows = [row | {"note": "x", "extra": 1} if at % 2 else row for at, row in enumerate(ROWS)]
    assert values(sheet(lines(*rows))) == rows


@pytest.mark.parametrize("content", [{"runs": ROWS}, ROWS, lines(*ROWS)])
def test_an_answer_that_fits_no_row_is_refused(content: object) -> None:
    with pytest.raises(InvalidValue) as refused:
        sheet(content, "rums")
    assert refused.value.field == "rows"


def test_lists_of_rows_under_names_are_all_of_them_where_that_is_said() -> None:
    document = {"task_a": ROWS[:2], "task_b": ROWS[2:]}
    assert values(sheet(document, "index")) == [
        {"index": "task_a" if at < 2 else "task_b"} | row for at, row in enumerate(ROWS)
    ]


@pytest.mark.parametrize(
    "labels",
    [{"811": "ja", "812": "nein"}, {f"case {at}": at % 2 for at in range(41)}],
)
def test_a_value_for_each_of_many_ids_may_be_a_row_for_each(labels: dict[str, object]) -> None:
    assert choices(labels) == ["index", "document"]
    rows = [{"index": name, "value": value} for name, value in labels.items()]
    assert values(sheet(labels, rows="index")) == rows
    assert values(sheet(labels, rows="document")) == [labels]
