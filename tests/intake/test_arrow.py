"""Tables of Arrow, in the forms in which it writes files."""

import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pytest

from celeus.errors import InvalidValue
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
