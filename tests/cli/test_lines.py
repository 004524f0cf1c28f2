"""The one line that a refusal is on the command line."""

import subprocess
import sys
from pathlib import Path

import pytest

from celeus.core.certificate.report import Difference, Report
from celeus.errors import InvalidValue
from tests.cli.calling import Run
from tests.golden.make_certificates import FOLDER

CERTIFICATE = FOLDER / "uniform.bare.final.json"


@pytest.mark.parametrize(
    ("refusal", "line"),
    [
        (
            InvalidValue("no such tool", field="tool", rule="pg_dump or psql", value="pg"),
            "no such tool; expected tool to be pg_dump or psql, not 'pg'",
        ),
        (
            InvalidValue("a may not enter /x.", field="data_dir", rule="a path", value="/x"),
            "a may not enter /x; expected data_dir to be a path",
        ),
        (
            InvalidValue("runs must be at least 1", field="runs", rule="at least 1", value=0),
            "runs must be at least 1, not 0",
        ),
    ],
)
def test_a_refusal_says_what_is_wrong_expected_and_given_once(
    refusal: InvalidValue, line: str
) -> None:
    assert refusal.line == line


def test_a_file_that_is_no_certificate_is_described_in_words(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "empty.json"
    file.write_bytes(b"")
    answer = run("verify", file)
    assert answer.status == 2
    last = answer.err.splitlines()[-1]
    assert last.startswith("celeus: cannot be checked: the file is empty, expected a certificate")


@pytest.mark.parametrize(
    "words", [["dev", "openapi"], ["--help"], ["verify", "--json", str(CERTIFICATE)]]
)
def test_output_that_finds_no_room_is_one_line(words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "celeus.cli", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    checked = "cannot be checked: " if words[0] == "verify" else ""
    said = f"celeus: {checked}the output cannot be written: No space left on device\n"
    assert (ended.returncode, ended.stderr) == (2 if checked else 1, said)


def test_a_member_that_is_not_there_is_missing() -> None:
    report = Report("0" * 64, difference=Difference("claim.alpha", None, "a number"))
    assert report.line == "does not hold: claim.alpha is missing, expected a number"
