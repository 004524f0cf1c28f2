"""`make nightly`: run what protects users but takes long, job after job, and print one table.

A job goes on after a failure of the one before. What a job could not run here is named below the
table, with the reason.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from _pytest.mark import ParameterSet

ROOT = Path(__file__).parents[1]
NIGHTLY = os.environ.get("CELEUS_NIGHTLY") == "1"
"""Whether tests that repeat themselves do so as often as their claims need."""
LONGEST_SECONDS = 4 * 3600
"""Longest time of one test by night, after which it fails."""


def by_day(count: int, cases: Collection[Any]) -> list[ParameterSet]:
    """Return values of a test's parameters of which `make test` tries so many, spread evenly."""
    days = {number * len(cases) // count for number in range(count)}
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if number in days else pytest.mark.nightly,
        )
        for number, case in enumerate(cases)
    ]


FOLDERS = {
    "packaging": ["tests/packaging"],
    "image": ["tests/docker"],
    "browser": ["tests/browser"],
    "faults": ["tests/faults"],
    "attacks": [
        "tests/attacks",
        "tests/api/access/test_blind_attack.py",
        "tests/operations/sessions/test_groups_as_sequence.py",
    ],
    "claims": ["tests/claims"],
}
"""Jobs that run all tests of these folders, each with its full count."""
ALONE = {"faults", "image"}
"""Jobs that measure how long others wait, or change what the whole machine shares."""
REST = "rest"
"""The job of all tests marked `nightly` in other folders."""
ENVIRONMENTS = sorted(path.parent.name for path in ROOT.glob("tests/ecosystem/*/requirements.lock"))
PYTHONS = ("python3.13", "python3.14")
"""Jobs that run `make test` on another interpreter, in an environment of its own."""
JOBS = [*FOLDERS, REST, *PYTHONS, *(f"ecosystem/{name}" for name in ENVIRONMENTS)]


@dataclass
class Result:
    """Counts of one job's tests, and the reasons for those that did not run."""

    job: str
    minutes: float
    ended_well: bool
    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def failed(self) -> bool:
        """Whether a test failed, or the job could not start or ended before its report."""
        return not self.ended_well or not self.counts["passed"] + self.counts["skipped"]

    @property
    def state(self) -> str:
        """The word of the table."""
        if self.failed:
            return "FAILED"
        return "incomplete" if self.counts["skipped"] else "passed"


def command(job: str, report: Path) -> list[str]:
    """The command that runs a job and writes its report."""
    name, _, environment = job.partition("/")
    written = f"--junit-xml={report}"
    if name == "ecosystem":
        make = ["make", "--no-print-directory", "ecosystem", f"ONLY={environment}"]
        return [*make, f"ARGS={written}"]
    if job in PYTHONS:
        make = ["make", "--no-print-directory", "test", f"PYTHON={interpreter(job)}"]
        return [*make, f"VENV=.venv-{job}", f"ARGS={written}"]
    workers = [] if name in ALONE else ["-n", "2", "--dist", "worksteal"]
    if name == REST:
        elsewhere = (f"--ignore={path}" for paths in FOLDERS.values() for path in paths)
        chosen = ["tests", *elsewhere, "-m", "nightly"]
    else:
        chosen = FOLDERS[name]
    return [sys.executable, "-m", "pytest", *chosen, *workers, written]


def interpreter(name: str) -> Path | None:
    """Return the interpreter of this name on the path, or pyenv's; None if neither starts."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    version = name.removeprefix("python")
    found = shutil.which(name)
    known = sorted(map(str, pyenv.glob(f"{version}.*/bin/python")), reverse=True)
    for program in [found, *known] if found else known:
        done = subprocess.run([program, "-c", ""], check=False, capture_output=True)
        if done.returncode == 0:
            return Path(program)
    return None


def run(job: str) -> Result:
    """Run one job to its end and read its report."""
    say(f"\n===== {job}")
    if job in PYTHONS and interpreter(job) is None:
        reason = f"there is no {job} here, neither on the path nor of pyenv"
        return Result(
            job, 0.0, ended_well=True, counts=Counter(skipped=1), reasons=Counter({reason: 1})
        )
    with tempfile.TemporaryDirectory(prefix="celeus-nightly-") as folder:
        report = Path(folder) / "report.xml"
        began = time.monotonic()
        counts = {"CELEUS_NIGHTLY": "0" if job in PYTHONS else "1"}
        done = subprocess.run(command(job, report), cwd=ROOT, env=os.environ | counts, check=False)
        result = Result(job, (time.monotonic() - began) / 60, done.returncode == 0)
        if report.exists():
            read(report, result)
    return result


def read(report: Path, result: Result) -> None:
    """Count a report's tests into the result."""
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 -- our own
        skipped = case.find("skipped")
        if skipped is not None:
            result.counts["skipped"] += 1
            result.reasons[skipped.get("message", "")] += 1
        elif case.find("failure") is not None or case.find("error") is not None:
            result.counts["failed"] += 1
        else:
            result.counts["passed"] += 1


def table(results: list[Result]) -> str:
    """One line for each job, and one for each reason that kept tests from running."""
    lines = [f"{'job':28}{'result':12}{'passed':>8}{'failed':>8}{'skipped':>8}{'minutes':>9}"]
    for result in results:
        counts = "".join(f"{result.counts[name]:8}" for name in ("passed", "failed", "skipped"))
        lines.append(f"{result.job:28}{result.state:12}{counts}{result.minutes:9.1f}")
    for result in results:
        for reason, tests in result.reasons.items():
            lines.append(f"{result.job}: {tests} not run here: {reason}")
    return "\n".join(lines)


def say(text: str) -> None:
    """Print before what the jobs print next."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(chosen: list[str]) -> int:
    """Run the chosen jobs, or all; 1 if one failed."""
    unknown = set(chosen) - set(JOBS)
    if unknown:
        say(f"No job is called {', '.join(sorted(unknown))}. There are: {', '.join(JOBS)}")
        return 2
    results = [run(job) for job in chosen or JOBS]
    say(f"\n{table(results)}")
    return int(any(result.failed for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
