"""Any file with a table, as the doors of the command line and of Python read it."""

import gzip
import io
import json
from collections import deque
from pathlib import Path

import pytest

from celeus.errors import InvalidValue
from celeus.intake.sources.files import Source
from celeus.intake.sources.sheet import BadRow
from celeus.intake.sources.tabular import plain, table_of, whole

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
