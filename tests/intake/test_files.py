"""The files that an import makes."""

from pathlib import Path

import pytest

from celeus.intake.sources.files import write
from tests.intake.made import refusal


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
