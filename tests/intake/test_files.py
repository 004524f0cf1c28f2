"""The files that an import makes."""

import io
from pathlib import Path

import numpy as np
import pytest

from celeus.intake.sources.files import npz, write
from tests.intake.made import refusal


def test_the_arrays_are_what_numpy_reads() -> None:
    columns: dict[str, list[float | int]] = {
        "loss": [0.0, 0.5, 1 / 3],
        "answer": [3, -1, 0],
        "a_name_that_is_longer_than_the_others": [1e-300] * 1000,
    }
    with np.load(io.BytesIO(npz(columns)), allow_pickle=False) as read:
        assert sorted(read.files) == sorted(columns)
        for name, values in columns.items():
            assert read[name].tolist() == values


@pytest.mark.parametrize("place", ["folder", "none/second"])
def test_all_files_are_written_or_none(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    said = refusal(write, {tmp_path / "first": b"1", tmp_path / place: b"2"})
    assert "cannot be written: " in said
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("before", [None, b"old"])
def test_a_file_is_whole_or_as_it_was(tmp_path: Path, before: bytes | None) -> None:
    path = tmp_path / "pool.ndjson"
    if before is not None:
        path.write_bytes(before)
    write({path: b"new"})
    assert path.read_bytes() == b"new"
    assert [one.name for one in tmp_path.iterdir()] == ["pool.ndjson"]
    usual = tmp_path / "usual"
    usual.write_bytes(b"")
    assert path.stat().st_mode == usual.stat().st_mode
