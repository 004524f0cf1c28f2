"""Workbooks of spreadsheet programs as tables."""

import io
import sys
import time
from collections.abc import Sequence
from typing import Any

import pytest

from celeus.errors import InvalidValue, NeedsAnswer, UploadTooLarge
from celeus.intake.opening import SentFile, opened
from celeus.intake.rows import Options
from celeus.intake.sources.sheet import Sheet
from celeus.intake.table.asking import answered
from celeus.intake.table.roles import Kind
from tests.intake.workbooks import DAY, Cell, ods, sheet, workbook

HEADER: list[Cell] = ["fluss", "länge", "tag", "nass"]
DANUBE: list[Cell] = ["Donau", 2850.0, f'< s="{DAY}"><v>45293</v>', True]
RHINE: list[Cell] = ["Rhein", 1232.5, None, False]
ROWS = [
    {"fluss": "Donau", "länge": 2850, "tag": "2024-01-02", "nass": True},
    {"fluss": "Rhein", "länge": 1232.5, "tag": None, "nass": False},
]


def read(content: bytes, rows: str | None = None) -> Sheet:
    given = SentFile("f.xlsx", options=Options(rows=rows))
    return next(found for found in opened(io.BytesIO(content), given) if found is not None)


def single(rows: Sequence[Any], merged: tuple[str, ...] = ()) -> bytes:
    return workbook({"T": sheet(rows, merged)})


def test_cells_are_values_with_the_numbers_of_their_rows() -> None:
    found = read(single([HEADER, DANUBE, [], RHINE]))
    assert (found.form, found.read_as) == ("workbook", ("the sheet T",))
    assert list(found.rows()) == [(2, ROWS[0]), (4, ROWS[1])]
    assert [type(value) for value in ROWS[0].values()] == [str, int, str, bool]


def test_a_sheet_of_libreoffice_is_read() -> None:
    assert list(read(ods([["a", "b"], ["x", "0,5"]])).rows()) == [(2, {"a": "x", "b": "0,5"})]


def test_titles_stand_above_the_header_and_empty_columns_are_none() -> None:
    rows = [["", "Flüsse 2024"], [], ["", *HEADER], [None, *DANUBE], [None, *RHINE]]
    found = read(single(rows, ("B1:E1",)))
    assert [row for _, row in found.rows()] == ROWS
    assert found.read_as[1] == "the header in row 3, below a title"


def test_merged_cells_are_of_every_row_that_they_stand_in() -> None:
    rows = [["group", "q"], ["a", "x"], [None, "y"], ["b", "z"]]
    found = read(single(rows, ("A2:A3",)))
    assert [row["group"] for _, row in found.rows()] == ["a", "a", "b"]  # type: ignore[index]
    assert "merged cells that have one value each" in found.read_as


@pytest.mark.parametrize(
    ("rows", "merged", "said"),
    [
        ([["both", None, "c"], ["x", "y", "z"]], ("A1:B1",), "header are merged"),
        ([["Report", "2024"], ["a", "b", "c", "d", "e"], [*"12345"]], (), "is no header"),
        ([["a", "b"], ["x", "<><f>1+1</f><v></v>"]], (), "formulas without their values"),
        ([["a", "b"], ["x", "<><f>1+1</f>"]], (), "formulas without their values"),
        ([], (), "no rows"),
    ],
)
def test_what_a_sheet_leaves_unclear_is_refused(
    rows: list[list[Any]], merged: tuple[str, ...], said: str
) -> None:
    with pytest.raises(InvalidValue, match=said):
        read(single(rows, merged))


def test_formulas_have_the_values_that_were_saved() -> None:
    formulas = ["<><f>1+1</f><v>2</v>", '< t="str"><f>IF(A1,"","")</f><v></v>']
    assert [row for _, row in read(single([["a", "b"], formulas])).rows()] == [{"a": 2, "b": None}]


def test_an_error_of_a_formula_is_no_value() -> None:
    rows = [["a", "b"], ["x", '< t="e"><f>1/0</f><v>#DIV/0!</v>']]
    assert [row for _, row in read(single(rows)).rows()] == [{"a": "x", "b": None}]


def test_which_of_several_sheets_is_asked() -> None:
    sheets = {"one": sheet([HEADER, RHINE]), "two": sheet([HEADER, DANUBE]), "none": sheet([])}
    with pytest.raises(NeedsAnswer) as refusal:
        read(workbook(sheets))
    questions: Any = refusal.value.more["questions"]
    assert [choice["value"] for choice in questions[0]["choices"]] == ["one", "two"]
    assert [row for _, row in read(workbook(sheets), "two").rows()] == ROWS[:1]
    assert [row for _, row in read(workbook(sheets, hidden=["one"])).rows()] == ROWS[:1]


def test_cells_that_are_too_far_apart_are_refused_before_they_take_memory() -> None:
    far = sheet([["a"]]).replace("</sheetData>", '<c r="XFD1048576"><v>1</v></c></sheetData>')
    with pytest.raises(InvalidValue, match="too far apart"):
        read(workbook({"T": far}))


@pytest.mark.parametrize("begun", ["<c ", "<c r=", "<c><f "])
def test_cells_that_never_close_cost_no_more_than_others(begun: str) -> None:
    hostile = sheet([["a"]]).replace("</sheetData>", begun * 30_000)
    start = time.process_time()
    with pytest.raises(InvalidValue, match="cannot be read"):
        read(workbook({"T": hostile}))
    assert time.process_time() - start < 1.0


def test_what_is_no_whole_workbook_is_refused() -> None:
    content = single([HEADER, DANUBE])
    for damaged in (content[:-30], b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)):
        with pytest.raises(InvalidValue, match=r"no workbook|cannot be read"):
            read(damaged)


def test_without_the_library_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(InvalidValue, match=r"celeus\[excel\]"):
        read(single([HEADER, DANUBE]))


@pytest.mark.parametrize("rows", [10, 5_000])
def test_a_text_that_many_cells_share_counts_in_each(rows: int) -> None:
    cells: list[list[Cell]] = [[f'< t="s"><v>{min(at, 1)}</v>'] for at in range(rows)]
    content = workbook({"T": sheet(cells)}, shared=["question", "x" * 100_000])
    assert len(content) < 1 << 16
    given = SentFile("f.xlsx", limit_bytes=1 << 24)
    if rows < 100:
        found = next(filter(None, opened(io.BytesIO(content), given)))
        assert [len(row["question"]) for _, row in found.rows()] == [100_000] * (rows - 1)  # type: ignore[index]
        return
    with pytest.raises(UploadTooLarge):
        next(filter(None, opened(io.BytesIO(content), given)))


def test_rows_that_a_filter_hides_are_read_and_told() -> None:
    rows = [["id", "answer"], *([f"i{at}", f"So {at}"] for at in range(3))]
    plain = sheet(rows)
    found = read(workbook({"one": plain.replace('<row r="3"', '<row r="3" hidden="1"')}))
    assert found.read_as[-1] == "hidden rows like the others"
    assert len([*found.rows()]) == len([*read(workbook({"one": plain})).rows()]) == 3
    assert "hidden rows like the others" not in read(workbook({"one": plain})).read_as


def test_a_row_with_the_total_is_asked() -> None:
    rows = [["question", "response", "score"], *([f"Why {at}?", f"So {at}", 1] for at in range(5))]
    found = read(single([*rows, ["Total", None, 5]]))
    with pytest.raises(NeedsAnswer) as refusal:
        list(answered(found, Kind(), Options(higher=True)))
    assert [question["name"] for question in refusal.value.questions] == ["rows"]
