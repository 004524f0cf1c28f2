"""Nothing that a Parquet reader sends can do more than refuse the upload."""

import io
import pickle
import resource
import struct
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from celeus.api.pools import sheets
from celeus.api.pools.sheets import Limits
from celeus.api.pools.upload_rows import read_rows
from celeus.core.pools.rows.validation import MalformedRow
from celeus.errors import InvalidValue, ProcessEnded

LIMITS = Limits(bytes=1 << 20, rows=1000)


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
            for _ in read_rows(file, "parquet", LIMITS):
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
        [(numbers, found)] = read_rows(spooled, "parquet", LIMITS)
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
            list(read_rows(file, "parquet", LIMITS))
    assert "exit status 1" in caplog.text
