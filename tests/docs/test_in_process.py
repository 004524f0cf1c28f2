"""The page on Python, without a service: its code runs as it stands, from top to bottom."""

from pathlib import Path

import pytest

import celeus
from celeus.core.certificate.verify import verify
from tests.docs.pages import ROOT, blocks


def test_the_code_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{n} + {n}?,{2 * n + (n % 5 == 0)},{2 * n}" for n in range(400)]
    (tmp_path / "answers.csv").write_text("\n".join(["question,answer,expected", *rows]))
    names: dict[str, object] = {}
    *programs, _first, _threads, _reading, _awaiting = blocks(ROOT / "docs" / "python.md", "python")
    assert len(programs) == 6
    for block in programs:
        exec(compile(block.text, "python.md", "exec"), names)  # noqa: S102 -- the page's own code
        if "answers.csv" in block.text:
            table = names["session"]
            assert isinstance(table, celeus.Session)
            # A seed is secret: at the usual alpha one run in twenty may miss
            lower, upper = table.status().lower, table.status().upper
            assert lower is not None
            assert upper is not None
            assert lower - 0.1 <= 0.2 <= upper + 0.1
    score, verdict, best = capsys.readouterr().out.splitlines()
    assert "based on" in score
    assert "a_at_least_as_good" in verdict
    assert best.startswith("new is at least as good as every other of 3 systems")
    certificate = (tmp_path / "certificate.json").read_bytes()
    assert verify(certificate).valid
    assert isinstance(names["session"], celeus.Session)


def test_the_hill_climb_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (climb,) = blocks(ROOT / "docs" / "compare.md", "python")
    exec(compile(climb.text, "compare.md", "exec"), {})  # noqa: S102 -- the page's own code
    worse, better, left = capsys.readouterr().out.splitlines()
    assert worse.startswith("proposal 1 rejected")
    assert better.startswith("proposal 2 accepted")
    assert left == "prom 0.025"
