"""The table of `make nightly`: nothing that failed or did not run looks green."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import nightly
from tests.kinds import mark_for_the_night
from tests.nightly import JOBS, LONGEST_SECONDS, ROOT, Result, command, main, read, table

REPORT = """<testsuites><testsuite>
<testcase name="a"/><testcase name="b"><failure/></testcase><testcase name="c"><error/></testcase>
<testcase name="d"><skipped message="no network"/></testcase>
</testsuite></testsuites>"""


def test_a_report_is_counted_with_the_reasons_of_what_did_not_run(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    result = Result("faults", 1.0, ended_well=False)
    read(report, result)
    assert result.counts == {"passed": 1, "failed": 2, "skipped": 1}
    assert result.reasons == {"no network": 1}


@pytest.mark.parametrize(
    ("ended_well", "counts", "state"),
    [
        (True, {"passed": 2}, "passed"),
        (True, {"passed": 2, "skipped": 1}, "incomplete"),
        (False, {"passed": 2, "failed": 1}, "FAILED"),
        (False, {}, "FAILED"),
        (True, {}, "FAILED"),
    ],
)
def test_a_job_is_green_only_if_all_its_tests_ran_and_passed(
    ended_well: bool,  # noqa: FBT001 -- a parameter of a test
    counts: dict[str, int],
    state: str,
) -> None:
    assert Result("claims", 1.0, ended_well, Counter(counts)).state == state


def test_all_jobs_run_though_one_fails_and_the_end_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = [sys.executable, "-c", "raise SystemExit(1)"]
    monkeypatch.setattr(nightly, "command", lambda _job, _report: failing)
    assert main(["faults", "claims"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[-2:]] == [["faults", "FAILED"], ["claims", "FAILED"]]


def test_an_interpreter_that_is_not_here_is_named_and_not_green(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert main(["python3.14"]) == 0
    line, reason = capsys.readouterr().out.splitlines()[-2:]
    assert line.split()[:2] == ["python3.14", "incomplete"]
    assert reason.startswith("python3.14: 1 not run here: there is no python3.14 here")
    program = tmp_path / "versions" / "3.14.0" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.symlink_to(sys.executable)
    assert nightly.interpreter("python3.14") == program
    asked = command("python3.14", tmp_path / "report.xml")
    assert {f"PYTHON={program}", "VENV=.venv-python3.14"} <= {*asked}


def test_a_test_called_by_its_path_may_take_as_long_by_night(
    request: pytest.FixtureRequest,
) -> None:
    mark_for_the_night(request.node)
    marker = request.node.get_closest_marker("timeout")
    assert marker is not None
    assert marker.args == (LONGEST_SECONDS,)


@pytest.mark.timeout(60)
def test_a_limit_of_its_own_stays(request: pytest.FixtureRequest) -> None:
    mark_for_the_night(request.node)
    assert [marker.args for marker in request.node.iter_markers("timeout")] == [(60,)]


@pytest.mark.nightly
def test_a_test_whose_count_is_larger_at_night_runs_then() -> None:
    (module,) = ROOT.glob("tests/core/**/test_provisional.py")
    asked = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "nightly", str(module)]
    environment = os.environ | {"CELEUS_NIGHTLY": "1"}
    done = subprocess.run(
        asked, cwd=ROOT, env=environment, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert "::test_" in done.stdout


def test_a_reason_for_not_running_stands_below_the_table() -> None:
    skipped = Result("image", 0.0, ended_well=True, reasons=Counter({"no root": 5}))
    assert table([skipped]).splitlines()[-1] == "image: 5 not run here: no root"


def test_every_job_has_a_command_and_an_unknown_one_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for job in JOBS:
        assert any("report.xml" in part for part in command(job, Path("report.xml")))
    assert main(["clams"]) == 2
    assert "No job is called clams" in capsys.readouterr().out
