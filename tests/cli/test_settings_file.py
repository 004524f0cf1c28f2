"""Settings in a file or one by one, and `-` for standard input."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cli.calling import Run, simulated


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pool.npz"
    np.savez(path, loss=np.arange(60) % 2, surrogate=np.full(60, 0.5))
    return path


def typed_in(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Have this content stand on standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_the_last_setting_counts_and_an_option_more(run: Run, file: Path, tmp_path: Path) -> None:
    settings = tmp_path / "claim.toml"
    claim = 'policy = "celeus"\nalpha = 0.1\nprecision = "30%"\n'
    settings.write_text(f'{claim}[parameters]\nbeta = 0.4\nrange = "exact"\n')
    given = ("--runs", 1, "--settings", settings)
    report = simulated(run, file, *given)
    assert (report["alpha"], report["precision"]) == (0.1, 0.3)
    later = ("--settings", "alpha=20%", "--settings", "parameters.beta=0.6", "--precision", "40%")
    report = simulated(run, file, *given, *later)
    assert (report["alpha"], report["precision"]) == (0.2, 0.4)
    policy = report["policy"]
    assert (policy["beta"], policy["range"]) == (0.6, "exact")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("alfa=0.1", "settings must be one of precision, "),
        ("missing.toml", "missing.toml cannot be read: No such file"),
        ("broken.toml", "broken.toml is no TOML"),
        ("parameters=0.1", "parameters must be a table of its members, or parameters.NAME=VALUE"),
        ("loss.upper=high", "upper must be a number, not 'high'"),
        ("ahead=few", "ahead must be a whole number, at least 1, not 'few'"),
        *(
            (f"budget={value}", f"budget must be a whole number, at least 1, not {value}")
            for value in ("'abc'", "[1]", "1.5")
        ),
        ("budget=true", "budget must be a whole number, at least 1, not True"),
        ("policy=[1]", "policy must be a text, not [1]"),
        ("small_groups=[1]", "small_groups must be a text, not [1]"),
        ("deep.toml", "deep.toml is no TOML"),
        (f"x={'[' * 5_000}", "x=[[[[["),
        ("/dev/zero", "/dev/zero must be a file, and no device"),
        ("a b=1", "a b=1 is no TOML"),
        ("=3", "=3 is no TOML"),
        ("name=😀", "settings must be one of precision, "),
        (f"name={'long' * 99}", "settings must be one of precision, "),
    ],
)
def test_a_setting_that_is_none_is_refused_in_one_line(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch, *, settings: str, words: str
) -> None:
    monkeypatch.chdir(file.parent)
    Path("broken.toml").write_text("alpha: 0.1")
    Path("deep.toml").write_text(f"x = {'[' * 5_000}{']' * 5_000}")
    refused = run("dev", "simulate", file, "--settings", settings)
    assert (refused.status, refused.out, refused.err.count("\n")) == (1, "", 1)
    assert words in refused.err


def test_a_file_may_come_on_standard_input_once(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = ("--precision", 0.4, "--runs", 1)
    expected = simulated(run, file, *asked)
    typed_in(monkeypatch, file.read_bytes())
    assert simulated(run, Path("-"), *asked)["labels"] == expected["labels"]
    typed_in(monkeypatch, b"precision = 0.4")
    found = simulated(run, file, "--runs", 1, "--settings", "-")
    assert found["labels"] == expected["labels"]
    typed_in(monkeypatch, b"id,loss\n1,0\n2,1\n")
    roles = ("--mapping", "id=id", "--mapping", "loss=score")
    made = run("import", "-", *roles, "--out", tmp_path / "pool.ndjson", "--json")
    assert json.loads(made.out)["format"] == "table"
    assert len((tmp_path / "pool.ndjson").read_text().splitlines()) == 2
    typed_in(monkeypatch, b"id,loss\n1,0\n2,1\n")
    refused = run("compare", "-", "-", *roles)
    assert refused.status == 1
    assert "- must be given once" in refused.err
    typed_in(monkeypatch, b"precision = 0.4")
    refused = run("dev", "simulate", "-", "--settings", "-")
    assert refused.status == 1
    assert "- must be given once" in refused.err
    refused = run("dev", "simulate", file, "--settings", "-", "--settings", "-")
    assert refused.status == 1
    assert "- must be given once" in refused.err


def test_messages_name_standard_input_and_not_the_copy_of_it(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed_in(monkeypatch, b"")
    refused = run("import", "-", "--out", file.with_name("pool.ndjson"))
    assert refused.err.startswith("celeus: standard input: The file is no table")
    typed_in(monkeypatch, b"x = [")
    refused = run("dev", "simulate", file, "--settings", "-")
    assert refused.err.startswith("celeus: standard input is no TOML")


def test_settings_on_standard_input_are_read_whole_or_refused(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed_in(monkeypatch, b"#" * 100_000 + b'\nprecision = "none"')
    refused = run("dev", "simulate", file, "--settings", "-")
    assert refused.status == 1
    assert "too large: expected at most 100000 bytes" in refused.err
