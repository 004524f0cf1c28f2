"""Rows of an upload in every form, and the process that reads Parquet."""

import csv
import io
import pickle
import resource
import struct
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from celeus.api.pools import sheets, upload_rows
from celeus.api.pools.sheets import Limits, Rows
from celeus.api.pools.upload_rows import read_rows
from celeus.api.wire.problems import status_of
from celeus.api.wire.uploads import Format
from celeus.core.pools.rows.validation import MalformedRow
from celeus.errors import InvalidValue, PoolTooLarge, ProcessEnded, UploadTooLarge

NAMED_ONCE = "every name once in an object"
LIMITS = Limits(bytes=1 << 26, rows=100_000)


def batches(body: bytes, form: Format, limits: Limits = LIMITS) -> list[Rows]:
    with tempfile.TemporaryFile() as file:
        file.write(body)
        file.seek(0)
        return list(read_rows(file, form, limits))


def read(body: bytes, form: Format) -> list[tuple[int, object]]:
    return [pair for lines, found in batches(body, form) for pair in zip(lines, found, strict=True)]


def refused(body: bytes, form: Format) -> InvalidValue:
    with pytest.raises(InvalidValue) as caught:
        read(body, form)
    return caught.value


def parquet(columns: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def test_ndjson_lines_keep_their_numbers_across_empty_ones() -> None:
    body = b'\xef\xbb\xbf{"id": "a"}\r\n\n   \n{"id": "b"}'
    assert read(body, "ndjson") == [(1, {"id": "a"}), (4, {"id": "b"})]


def test_an_ndjson_line_that_is_not_json_stands_among_the_others() -> None:
    found = read(b'{"id": "a"}\n{"id": \n{"id": "c"}\n', "ndjson")
    assert [line for line, _ in found] == [1, 2, 3]
    assert isinstance(found[1][1], MalformedRow)
    assert found[2][1] == {"id": "c"}


@pytest.mark.parametrize("line", [b"[" * 100_000, b"\xff\xfe", b'{"a": 1} {"b": 2}', b'"\\ud800'])
def test_a_hostile_line_is_malformed_and_nothing_worse(line: bytes) -> None:
    ((_, found),) = read(line, "ndjson")
    assert isinstance(found, MalformedRow)


def test_nan_in_ndjson_is_read_so_that_its_field_can_be_named() -> None:
    ((_, found),) = read(b'{"id": "a", "surrogate": NaN}', "ndjson")
    assert isinstance(found, dict)
    assert repr(found["surrogate"]) == "nan"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (b'{"id": "a", "id": "b"}', "id"),
        (b'{"id": "a", "payload": {"x": [{"y": 1, "y": 1}]}}', "y"),
        (b'{"id": "a", "i\\u0064": "\\u003a"}', "id"),
        (b'{"id": "a", "surrogate": NaN, "surrogate": 0.5}', "surrogate"),
        (b'{"id": "a", "payload": ' + b'{"a":' * 300 + b"0" + b',"b":0,"b":0}' * 300 + b"}", "b"),
    ],
)
def test_a_name_twice_in_an_object_is_a_fault_of_its_line(line: bytes, name: str) -> None:
    good = b'{"id": "a: b", "payload": "\\": \\u003a"}'
    found = read(good + b"\n" + line + b"\n" + good, "ndjson")
    assert found[1] == (2, MalformedRow(NAMED_ONCE, name))
    assert found[0][1] == found[2][1] == orjson.loads(good)


def test_a_name_twice_in_a_csv_payload_is_a_fault_of_its_line() -> None:
    ((_, found),) = read(b'id,payload\na,"{""x"": 1, ""x"": 2}"\n', "csv")
    assert found == MalformedRow(NAMED_ONCE, "x")


def test_a_line_in_utf_16_is_malformed() -> None:
    ((_, found),) = read('{"id": "a"}'.encode("utf-16-le"), "ndjson")
    assert isinstance(found, MalformedRow)


@pytest.mark.parametrize("form", ["ndjson", "csv"])
def test_an_endless_line_is_refused(form: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_rows, "MAX_LINE_BYTES", 100)
    assert refused(b"id\n" + b"x" * 101, form).field == "line 2"


def test_batches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_rows, "BATCH_ROWS", 3)
    body = b"".join(b'{"id": "%d"}\n' % number for number in range(8))
    assert [len(lines) for lines, _ in batches(body, "ndjson")] == [3, 3, 2]


def test_csv_cells_become_the_fields_of_a_row() -> None:
    body = (
        b"id,surrogate,target_probs.1,target_probs.0,prediction,payload.question,payload.hint\n"
        b'a,0.5,0.25,0.75,1,"Why,\nor ""how""?",\n'
        b"b,,,,,Who?,Ada\n"
    )
    first = {
        "id": "a",
        "surrogate": 0.5,
        "target_probs": [0.75, 0.25],
        "prediction": 1,
        "payload": {"question": 'Why,\nor "how"?'},
    }
    second = {"id": "b", "payload": {"question": "Who?", "hint": "Ada"}}
    assert read(body, "csv") == [(2, first), (4, second)]


def test_csv_text_that_is_no_number_is_left_for_the_check_to_name() -> None:
    ((_, found),) = read(b"id,surrogate,proxy,prediction\na,high,1_0,1.5\n", "csv")
    assert found == {"id": "a", "surrogate": "high", "proxy": "1_0", "prediction": "1.5"}


@pytest.mark.parametrize(
    ("cell", "payload"),
    [('"{""a"": 1}"', {"a": 1}), ("{text", "{text"), ("plain", "plain"), ("[1]", "[1]")],
)
def test_a_csv_payload_is_an_object_or_text(cell: str, payload: object) -> None:
    ((_, found),) = read(f"id,payload\na,{cell}\n".encode(), "csv")
    assert found == {"id": "a", "payload": payload}


def test_a_csv_line_with_other_cells_than_the_header_is_malformed() -> None:
    found = read(b"id,surrogate\na\nb,0.5\n", "csv")
    assert isinstance(found[0][1], MalformedRow)
    assert found[1] == (3, {"id": "b", "surrogate": 0.5})


@pytest.mark.parametrize(
    "header",
    [
        "id,colour",
        "id,id",
        "id,surrogates.0,surrogates.00",
        "id,surrogates.00",
        "surrogate",
        "id,target_probs.1",
        "id,target_probs.0,target_probs.2",
        "id,target_probs,target_probs.0",
        "id,payload,payload.x",
        "id,target_probs.x",
        "id,payload.",
        'id,"a"b',
        "",
    ],
)
def test_a_header_that_cannot_be_read_is_refused(header: str) -> None:
    body = f"{header}\na\n".encode()
    assert refused(body, "csv").field == "header"


@pytest.mark.parametrize("body", [b'id\n"a', b"id\n" + b"x" * 200_000, b"id\n\xff\n"])
def test_what_is_not_csv_is_refused_by_line(body: bytes) -> None:
    assert refused(body, "csv").field == "line 2"


def test_a_quote_within_a_cell_is_a_fault_of_its_line() -> None:
    bad, good = read(b'id\n"a"b\nc\n', "csv")
    assert bad[0] == 2
    assert isinstance(bad[1], MalformedRow)
    assert good == (3, {"id": "c"})


def test_a_table_read_before_does_not_raise_the_bound_of_a_cell() -> None:
    """Python has one bound for a process, and readers of whole tables raise it."""
    before = csv.field_size_limit(1 << 24)
    try:
        assert refused(b"id\n" + b"x" * 200_000, "csv").field == "line 2"
    finally:
        csv.field_size_limit(before)


def test_parquet_rows_come_from_plain_spread_and_nested_columns() -> None:
    body = parquet(
        {
            "id": ["a", "b"],
            "surrogate": pa.array([0.5, None], pa.float32()),
            "target_probs": [[0.25, 0.75], [1.0, 0.0]],
            "surrogate_probs.0": [0.5, 1.0],
            "surrogate_probs.1": [0.5, 0.0],
            "payload": [{"question": "Why?"}, None],
            "group": pa.array(["x", "y"]).dictionary_encode(),
        }
    )
    (_, first), (line, second) = read(body, "parquet")
    assert first == {
        "id": "a",
        "surrogate": 0.5,
        "target_probs": [0.25, 0.75],
        "surrogate_probs": [0.5, 0.5],
        "payload": {"question": "Why?"},
        "group": "x",
    }
    assert line == 2
    assert isinstance(second, dict)
    assert "surrogate" not in second


@pytest.mark.parametrize("kept", [0, 3, 100, -1, -9])
def test_a_truncated_parquet_file_is_refused(kept: int) -> None:
    body = parquet({"id": [f"item {number}" for number in range(1000)]})
    assert "cut off" in refused(body[:kept], "parquet").detail


def test_a_parquet_file_with_a_broken_page_is_refused() -> None:
    body = bytearray(parquet({"id": [f"item {number}" for number in range(1000)]}))
    body[50:500] = b"\xff" * 450
    assert refused(bytes(body), "parquet").field == "body"


def written(table: pa.Table, **how: Any) -> bytes:  # noqa: ANN401 - whatever pyarrow takes
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd", **how)
    return file.getvalue()


def many_long_texts() -> pa.Table:
    """Ten thousand times the same megabyte, written once."""
    places = pa.array(np.zeros(10_000, dtype=np.int32))
    payload = pa.DictionaryArray.from_arrays(places, pa.array(["x" * (1 << 20)]))
    return pa.table({"id": [str(i) for i in range(10_000)], "payload": payload})


def one_long_list() -> pa.Table:
    """A list of twenty million zeros, written as how many there are."""
    zeros = pa.array(np.zeros(20_000_000, dtype=np.int8))
    return pa.table({"id": ["a"], "surrogates": pa.ListArray.from_arrays([0, len(zeros)], zeros)})


@pytest.mark.parametrize(
    ("table", "how"),
    [
        (many_long_texts, {}),
        (one_long_list, {}),
        (lambda: pa.table({"id": ["a"], "payload": ["x" * 60_000_000]}), {"use_dictionary": False}),
        (lambda: pa.table({"id": [str(i) + "x" * 60_000 for i in range(1000)]}), {}),
    ],
    ids=["a dictionary", "a run", "a page", "a declared size"],
)
def test_a_small_parquet_file_that_unpacks_to_much_is_refused_and_costs_little(
    table: Callable[[], pa.Table], how: dict[str, Any]
) -> None:
    body = written(table(), **how)
    assert len(body) < 100_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    limits = Limits(bytes=50 << 20, rows=100_000, memory=128 << 20)
    with pytest.raises((UploadTooLarge, InvalidValue)) as caught:
        batches(body, "parquet", limits)
    assert status_of(type(caught.value)) in {413, 422}
    # Kibibytes, of this process: the reader's own are bounded by the kernel.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_the_reader_of_parquet_may_not_have_more_memory_than_it_was_given() -> None:
    body = parquet({"id": [f"item {number}" for number in range(200_000)]})
    with tempfile.TemporaryFile() as file:
        file.write(body)
        with closing(read_rows(file, "parquet", Limits(1 << 26, 1 << 20, memory=1 << 27))) as found:
            next(found)
            children = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text()
            reader = int(children.split()[-1])
            bound, _ = resource.prlimit(reader, resource.RLIMIT_AS)
            own = int(Path(f"/proc/{reader}/statm").read_text().split()[0]) * 4096
    assert own < bound < own + (1 << 27)
    assert not Path(f"/proc/{reader}").exists(), "it is ended with the reading"


def test_more_rows_than_a_pool_may_have_are_refused_by_what_the_file_declares() -> None:
    body = written(pa.table({"id": pa.nulls(5_000_000, pa.string())}))
    with pytest.raises(PoolTooLarge) as caught:
        batches(body, "parquet", Limits(bytes=1 << 26, rows=4_999_999))
    assert caught.value.value == 5_000_000


def test_a_csv_row_over_many_lines_has_the_same_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_rows, "MAX_LINE_BYTES", 1000)
    endless = b"id\n" + b'"a\n",' * 1000
    assert "row" in refused(endless, "csv").detail
    assert len(read(b"id\n" + b'"a\nb"\n' * 1000, "csv")) == 1000


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_table_of_too_many_columns_is_refused(form: Format) -> None:
    names = ["id", *(f"payload.{i}" for i in range(20_000))]
    body = ",".join(names).encode() if form == "csv" else parquet({key: ["a"] for key in names})
    assert refused(body, form).rule == "at most 20000 columns"


def test_a_row_of_many_members_is_malformed_and_not_named_member_by_member() -> None:
    ((_, found),) = read(orjson.dumps({f"k{i}": i for i in range(100_000)}), "ndjson")
    assert isinstance(found, MalformedRow)


@given(st.binary(max_size=200), st.sampled_from(["ndjson", "csv", "parquet"]))
def test_any_bytes_are_read_or_refused(body: bytes, form: Format) -> None:
    with suppress(InvalidValue):
        assert all(line >= 1 for line, _ in read(body, form))


FEW_ROWS = Limits(bytes=1 << 20, rows=1000)


class Evil:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (str(self.place), "w"))


def frame(head: bytes, body: bytes = b"") -> bytes:
    return struct.pack("<QQ", len(head), len(body)) + head + body


def rows(text: bytes) -> bytes:
    return frame(b'[{}, [["rows", "|u1", [%d]]]]' % len(text), text)


ANSWERS = {
    "garbage": b"no frame at all, but long enough to be read as the sizes of one",
    "a frame of a terabyte": struct.pack("<QQ", 2, 1 << 40),
    "a frame beyond all numbers": struct.pack("<QQ", 2**64 - 1, 2**64 - 1),
    "no JSON": frame(b"{"),
    "no text": frame(b"\xff\xfe"),
    "too deep": frame(b"[" * 100_000),
    "another form": frame(b'{"a": 1, "b": 2}'),
    "an array of objects": frame(b'[{}, [["rows", "|O", [1]]]]', bytes(8)),
    "an array of less than nothing": frame(b'[{}, [["rows", "|u1", [-1]]]]'),
    "an array that is not there": frame(b'[{}, [["rows", "|u1", [1000000000000]]]]'),
    "an array beyond all numbers": frame(b'[{}, [["rows", "<f8", [%d]]]]' % 10**30),
    "a refusal nobody knows": frame(b'[{"refusal": {"code": "ledger_broken"}}, []]'),
    "a refusal without a word": frame(b'[{"refusal": {"code": "invalid_value"}}, []]'),
    "rows that are none": rows(b"[NaN"),
    "rows without end": rows(b"[" * 100_000),
    "one row": rows(b'{"id": "a"}'),
    "rows without lines": rows(b'[{"id": "a"}]'),
    "lines that are none": frame(b'[{"lines": 1}, []]'),
}


def answered(
    folder: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes, times: int = 1
) -> InvalidValue:
    """The refusal of an upload whose reader gives this answer, so many times."""
    content, reader = folder / "answer", folder / "reader"
    content.write_bytes(answer)
    lines = (
        f"#!{sys.executable}",
        "import sys",
        f"answer = open({str(content)!r}, 'rb').read()",
        f"for _ in range({times}): sys.stdout.buffer.write(answer)",
    )
    reader.write_text("\n".join(lines), encoding="utf-8")
    reader.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(reader))
    with tempfile.TemporaryFile() as file:
        pq.write_table(pa.table({"id": ["a"]}), file)
        file.flush()
        with pytest.raises(InvalidValue) as caught:
            for _ in read_rows(file, "parquet", FEW_ROWS):
                pass
    return caught.value


def test_a_pickle_from_the_reader_is_refused_and_executes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "executed"
    refusal = answered(tmp_path, monkeypatch, pickle.dumps(("rows", Evil(place))))
    assert not place.exists()
    assert refusal.field == "body"


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_what_is_no_answer_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    assert answered(tmp_path, monkeypatch, answer).field == "body"


ENDLESS: dict[str, Callable[[], bytes]] = {
    "rows of nothing": lambda: b"[" + b"{}," * 2_000_000 + b"{}]",
    "no rows": lambda: b"[]",
    "spaces": lambda: b"[" + b" " * 10**8,
}


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS)
def test_a_reader_that_does_not_end_is_refused_and_takes_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: Callable[[], bytes]
) -> None:
    answer = rows(text())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answered(tmp_path, monkeypatch, answer, times=200_000)
    # Kibibytes
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10


def test_values_that_json_has_not_are_faults_of_their_row() -> None:
    file = io.BytesIO()
    columns = {"id": [b"a", b"b"], "surrogate": [0.5, float("nan")]}
    pq.write_table(pa.table(columns), file)
    with tempfile.TemporaryFile() as spooled:
        spooled.write(file.getvalue())
        [(numbers, found)] = read_rows(spooled, "parquet", FEW_ROWS)
    assert numbers == [1, 2]
    assert ["bytes" in row.text for row in found if isinstance(row, MalformedRow)] == [True, True]


def test_a_reader_that_ends_by_itself_is_no_failure_of_the_file(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sheets, "MODULE", "celeus.api.pools.there_is_none")
    with tempfile.TemporaryFile() as file:
        pq.write_table(pa.table({"id": ["a"]}), file)
        file.flush()
        with pytest.raises(ProcessEnded, match="exit status 1"):
            list(read_rows(file, "parquet", FEW_ROWS))
    assert "exit status 1" in caplog.text
