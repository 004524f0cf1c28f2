"""Any file with a table, as the doors of the command line and of Python read it."""

import gzip
import io
import json
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from celeus.errors import InvalidValue, NeedsAnswer, UploadTooLarge
from celeus.intake.opening import SentFile, opened
from celeus.intake.rows import Options
from celeus.intake.sources.files import Source
from celeus.intake.sources.sheet import BadRow, Sheet
from celeus.intake.sources.tabular import plain, table_of, whole
from celeus.intake.table.asking import answered
from celeus.intake.table.roles import Kind
from tests.intake.workbooks import DAY, Cell, ods, sheet, workbook

ROWS = [{"frage": f"Wie heißt Fluss {at}?", "note": f"{at},5"} for at in range(4)]


def cells(separator: str) -> str:
    lines = [list(ROWS[0]), *([*row.values()] for row in ROWS)]
    return "".join(separator.join(line) + "\r\n" for line in lines)


@pytest.mark.parametrize(
    ("name", "content", "read_as"),
    [
        ("a.csv", cells(";").encode(), ("separated by semicolon",)),
        ("a.txt", cells("\t").encode("utf-16"), ("separated by tab", "UTF-16")),
        ("a.csv", cells(";").encode("cp1252"), ("separated by semicolon", "Windows-1252")),
        ("a.json", json.dumps({"results": ROWS}, indent=2).encode(), ("the rows of `results`",)),
        ("a.csv.gz", gzip.compress(cells("|").encode(), mtime=0), ("separated by bar",)),
    ],
)
def test_a_table_on_disk_is_read_as_one_that_is_sent(
    tmp_path: Path, name: str, content: bytes, read_as: tuple[str, ...]
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    table = table_of(plain(Source.of_path(path)))
    assert table.read_as == read_as
    assert [row for _, row in whole(table, name).rows()] == ROWS


@pytest.mark.parametrize(
    ("content", "said"), [(b"a,b\n1,2\n3\n", "line 3 of"), (b"\x1f\x8bno", "damaged")]
)
def test_a_fault_names_the_file(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidValue, match=said) as refusal:
        list(whole(table_of(plain(Source.of_path(path))), str(path)).rows())
    assert str(path) in refusal.value.detail


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('id,q\n1,"open\n' + "2,x\n" * 5, "not closed: line 2"),
        # It ends far down, at the next quote
        ('id,q\n1,"open\n' + "2,x\n" * 200 + '3,"y"\n', "not closed: line 2"),
        ("id,q\n1,x\n2," + "x" * (5 << 20) + "\n", "too long: line 3"),
    ],
)
def test_a_cell_without_end_is_one_fault_of_the_file(content: str, said: str) -> None:
    table = table_of(Source.of_file("t.csv", io.BytesIO(content.encode())))
    with pytest.raises(InvalidValue, match=said) as refusal:
        list(table.rows())
    assert refusal.value.field == said[-6:]


def test_a_quote_within_a_cell_is_a_fault_of_its_row() -> None:
    content = b'id,q\n1,"a" b\n2,"two\nlines"\n'
    table = table_of(Source.of_file("t.csv", io.BytesIO(content)))
    assert [(line, type(row)) for line, row in table.rows()] == [(2, BadRow), (3, dict)]


@pytest.mark.parametrize("bad", ["1\n", "1,2,3\n"])
def test_a_file_whose_rows_are_mostly_bad_is_read_no_further(bad: str) -> None:
    good = "x,y\n" * 60
    table = table_of(Source.of_file("t.csv", io.BytesIO(("a,b\n" + good + bad * 5000).encode())))
    with pytest.raises(InvalidValue, match="101 of the first 161 rows") as refusal:
        deque(table.rows(), maxlen=0)
    assert refusal.value.field == "line 162"


def test_a_few_hundred_bad_rows_among_good_ones_are_read() -> None:
    content = "a,b\n" + "1\n" * 60 + ("x,y\n" * 3 + "1\n") * 500
    rows = [
        row for _, row in table_of(Source.of_file("t.csv", io.BytesIO(content.encode()))).rows()
    ]
    assert sum(isinstance(row, BadRow) for row in rows) == 560


ARROW_ROWS = [{"frage": f"F{at}", "chat": [{"role": "user", "content": "?"}]} for at in range(600)]
TABLE = pa.Table.from_pylist(ARROW_ROWS)


def written(writer: Callable[[Any, Any], Any]) -> bytes:
    sink = io.BytesIO()
    with writer(sink, TABLE.schema) as file:
        file.write_table(TABLE, max_chunksize=400)
    return sink.getvalue()


def feather() -> bytes:
    sink = io.BytesIO()
    pyarrow.feather.write_feather(TABLE, sink, compression="zstd")
    return sink.getvalue()


def read(content: bytes) -> Sheet:
    found = opened(io.BytesIO(content), SentFile("rows.arrow"))
    return next(sheet for sheet in found if sheet is not None)


@pytest.mark.parametrize(
    "content", [written(pa.ipc.new_file), written(pa.ipc.new_stream), feather()]
)
def test_a_table_of_arrow_is_read(content: bytes) -> None:
    found = read(content)
    assert found.form == "arrow"
    assert list(found.rows()) == list(enumerate(ARROW_ROWS, 1)) == list(found.rows())


def test_a_file_that_was_cut_off_is_refused() -> None:
    with pytest.raises(InvalidValue, match="cannot be read as Arrow"):
        list(read(written(pa.ipc.new_file)[:-20]).rows())


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_value_that_stands_in_every_row_counts_in_each(form: str) -> None:
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 2_000, pa.int32()), ["x" * 100_000])
    table = pa.table({"question": texts if form == "arrow" else texts.cast(pa.string())})
    sink = io.BytesIO()
    if form == "parquet":
        pyarrow.parquet.write_table(table, sink, compression="zstd")
    else:
        with pa.ipc.new_file(sink, table.schema) as file:
            file.write_table(table)
    assert len(sink.getvalue()) < 1 << 20
    given = SentFile("rows", limit_bytes=1 << 24)
    with pytest.raises(UploadTooLarge):
        list(next(filter(None, opened(sink, given))).rows())


def test_a_dictionary_is_not_counted_once_a_batch() -> None:
    names = [f"{at} {'x' * 1_000}" for at in range(2_000)]
    texts = pa.DictionaryArray.from_arrays(pa.array(range(2_000), pa.int32()), names)
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, (table := pa.table({"question": texts})).schema) as file:
        file.write_table(table)
    found = next(filter(None, opened(sink, SentFile("rows", limit_bytes=4_000_000))))
    assert len(list(found.rows())) == 2_000


HEADER: list[Cell] = ["fluss", "länge", "tag", "nass"]
DANUBE: list[Cell] = ["Donau", 2850.0, f'< s="{DAY}"><v>45293</v>', True]
RHINE: list[Cell] = ["Rhein", 1232.5, None, False]
WORKBOOK_ROWS = [
    {"fluss": "Donau", "länge": 2850, "tag": "2024-01-02", "nass": True},
    {"fluss": "Rhein", "länge": 1232.5, "tag": None, "nass": False},
]


def read_workbook(content: bytes, rows: str | None = None) -> Sheet:
    given = SentFile("f.xlsx", options=Options(rows=rows))
    return next(found for found in opened(io.BytesIO(content), given) if found is not None)


def single(rows: Sequence[Any], merged: tuple[str, ...] = ()) -> bytes:
    return workbook({"T": sheet(rows, merged)})


def test_cells_are_values_with_the_numbers_of_their_rows() -> None:
    found = read_workbook(single([HEADER, DANUBE, [], RHINE]))
    assert (found.form, found.read_as) == ("workbook", ("the sheet T",))
    assert list(found.rows()) == [(2, WORKBOOK_ROWS[0]), (4, WORKBOOK_ROWS[1])]
    assert [type(value) for value in WORKBOOK_ROWS[0].values()] == [str, int, str, bool]


def test_a_sheet_of_libreoffice_is_read() -> None:
    assert list(read_workbook(ods([["a", "b"], ["x", "0,5"]])).rows()) == [
        (2, {"a": "x", "b": "0,5"})
    ]


def test_titles_stand_above_the_header_and_empty_columns_are_none() -> None:
    rows = [["", "Flüsse 2024"], [], ["", *HEADER], [None, *DANUBE], [None, *RHINE]]
    found = read_workbook(single(rows, ("B1:E1",)))
    assert [row for _, row in found.rows()] == WORKBOOK_ROWS
    assert found.read_as[1] == "the header in row 3, below a title"


def test_merged_cells_are_of_every_row_that_they_stand_in() -> None:
    rows = [["group", "q"], ["a", "x"], [None, "y"], ["b", "z"]]
    found = read_workbook(single(rows, ("A2:A3",)))
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
        read_workbook(single(rows, merged))


def test_formulas_have_the_values_that_were_saved() -> None:
    formulas = ["<><f>1+1</f><v>2</v>", '< t="str"><f>IF(A1,"","")</f><v></v>']
    assert [row for _, row in read_workbook(single([["a", "b"], formulas])).rows()] == [
        {"a": 2, "b": None}
    ]


def test_an_error_of_a_formula_is_no_value() -> None:
    rows = [["a", "b"], ["x", '< t="e"><f>1/0</f><v>#DIV/0!</v>']]
    assert [row for _, row in read_workbook(single(rows)).rows()] == [{"a": "x", "b": None}]


def test_which_of_several_sheets_is_asked() -> None:
    sheets = {"one": sheet([HEADER, RHINE]), "two": sheet([HEADER, DANUBE]), "none": sheet([])}
    with pytest.raises(NeedsAnswer) as refusal:
        read_workbook(workbook(sheets))
    questions: Any = refusal.value.more["questions"]
    assert [choice["value"] for choice in questions[0]["choices"]] == ["one", "two"]
    assert [row for _, row in read_workbook(workbook(sheets), "two").rows()] == WORKBOOK_ROWS[:1]
    assert [
        row for _, row in read_workbook(workbook(sheets, hidden=["one"])).rows()
    ] == WORKBOOK_ROWS[:1]


def test_cells_that_are_too_far_apart_are_refused_before_they_take_memory() -> None:
    far = sheet([["a"]]).replace("</sheetData>", '<c r="XFD1048576"><v>1</v></c></sheetData>')
    with pytest.raises(InvalidValue, match="too far apart"):
        read_workbook(workbook({"T": far}))


@pytest.mark.parametrize("begun", ["<c ", "<c r=", "<c><f "])
def test_cells_that_never_close_cost_no_more_than_others(begun: str) -> None:
    hostile = sheet([["a"]]).replace("</sheetData>", begun * 30_000)
    start = time.process_time()
    with pytest.raises(InvalidValue, match="cannot be read"):
        read_workbook(workbook({"T": hostile}))
    assert time.process_time() - start < 1.0


def test_what_is_no_whole_workbook_is_refused() -> None:
    content = single([HEADER, DANUBE])
    for damaged in (content[:-30], b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)):
        with pytest.raises(InvalidValue, match=r"no workbook|cannot be read"):
            read_workbook(damaged)


def test_without_the_library_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(InvalidValue, match=r"celeus\[excel\]"):
        read_workbook(single([HEADER, DANUBE]))


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
    found = read_workbook(workbook({"one": plain.replace('<row r="3"', '<row r="3" hidden="1"')}))
    assert found.read_as[-1] == "hidden rows like the others"
    assert len([*found.rows()]) == len([*read_workbook(workbook({"one": plain})).rows()]) == 3
    assert "hidden rows like the others" not in read_workbook(workbook({"one": plain})).read_as


def test_a_row_with_the_total_is_asked() -> None:
    rows = [["question", "response", "score"], *([f"Why {at}?", f"So {at}", 1] for at in range(5))]
    found = read_workbook(single([*rows, ["Total", None, 5]]))
    with pytest.raises(NeedsAnswer) as refusal:
        list(answered(found, Kind(), Options(higher=True)))
    assert [question["name"] for question in refusal.value.questions] == ["rows"]
