"""Tables of Arrow, in the forms in which it writes files."""

import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from celeus.errors import InvalidValue, UploadTooLarge
from celeus.intake.opening import SentFile, opened
from celeus.intake.sources.sheet import Sheet

ROWS = [{"frage": f"F{at}", "chat": [{"role": "user", "content": "?"}]} for at in range(600)]
TABLE = pa.Table.from_pylist(ROWS)


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
    assert list(found.rows()) == list(enumerate(ROWS, 1)) == list(found.rows())


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
