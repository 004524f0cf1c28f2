"""The page on sessions in process: its code runs as it stands, from top to bottom."""

from pathlib import Path

import pytest

import celeus
from celeus.core.certificate.verify import verify
from tests.docs.pages import ROOT, blocks


def test_the_code_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs" / "in-process.md", "python"):
        exec(compile(block.text, "in-process.md", "exec"), names)  # noqa: S102 -- the page's own code
    score, verdict = capsys.readouterr().out.splitlines()
    assert "based on" in score
    assert "a_at_least_as_good" in verdict
    certificate = (tmp_path / "certificate.json").read_bytes()
    assert verify(certificate).valid
    assert isinstance(names["session"], celeus.Session)
