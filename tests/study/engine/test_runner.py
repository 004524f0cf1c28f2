"""What runs over all cores, is kept line by line, and goes on where it was ended."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from celeus.errors import InvalidValue
from study.engine.rows import Rows, Values, grid
from study.engine.runner import Series, measure, read

HERE = Path(__file__)


FIELDS = ("square", "seen")


def squared(job: Values) -> Values:
    return {"square": job["number"] ** 2, "seen": [[job["number"], 0.1]]}


def slowly(job: Values) -> Values:
    time.sleep(0.05)
    return squared(job)


def never(job: Values) -> Values:
    raise AssertionError(job)


def failing(limit: int, job: Values) -> Values:
    if job["number"] == limit:
        raise ArithmeticError(job["number"])
    return squared(job)


SQUARES = Series("squares", slowly, FIELDS, seed=3, parameters={"sizes": (1, 2)})


def jobs(count: int) -> list[Values]:
    return [{"number": number, "part": 0.25} for number in range(count)]


def rows(count: int) -> Rows:
    return Rows(job | squared(job) for job in jobs(count))


def test_a_grid_is_every_combination_the_last_axis_fastest() -> None:
    found = grid({"run": range(2), "policy, beta": [("celeus", 0.1), ("sharp", 0.2)]})
    assert [tuple(job.values()) for job in found] == [
        (0, "celeus", 0.1),
        (0, "sharp", 0.2),
        (1, "celeus", 0.1),
        (1, "sharp", 0.2),
    ]
    assert list(found[0]) == ["run", "policy", "beta"]


def test_rows_are_grouped_in_the_order_they_came() -> None:
    found = Rows({"a": a, "b": b} for a, b in [(2, 1), (1, 1), (2, 2), (2, 1)])
    assert list(found.by("a")) == [(2,), (1,)]
    assert found.by("a", "b")[2, 1] == [{"a": 2, "b": 1}] * 2
    assert found.where(a=2, b=2).of("b") == [2]
    assert found.plus(lambda row: {"sum": row["a"] + row["b"]}).of("sum") == [3, 2, 4, 3]


def test_results_come_in_the_order_of_the_jobs_and_are_kept_with_a_head(tmp_path: Path) -> None:
    kept = tmp_path / "new" / "squares.jsonl"
    found = measure(SQUARES, jobs(9), kept, 2)
    assert found == rows(9)
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    assert lines[0]["study"] == "squares"
    assert (lines[0]["seed"], lines[0]["parameters"]) == (3, {"sizes": [1, 2]})
    assert len(lines) == 1 + 9
    assert sorted(read(SQUARES, kept).values(), key=lambda one: one["square"]) == found


def test_only_what_is_missing_is_run(tmp_path: Path) -> None:
    kept = tmp_path / "squares.jsonl"
    measure(SQUARES, jobs(3), kept, 1)
    untouched = kept.read_bytes()
    again = Series("squares", never, FIELDS, seed=3, parameters={"sizes": (1, 2)})
    assert measure(again, jobs(3), kept, 1) == rows(3)
    assert kept.read_bytes() == untouched
    assert len(measure(SQUARES, jobs(5), kept, 1)) == 5
    assert len(kept.read_text().splitlines()) == 1 + 5


def test_a_line_cut_short_is_run_again_and_spoils_no_other(tmp_path: Path) -> None:
    kept = tmp_path / "squares.jsonl"
    expected = measure(SQUARES, jobs(4), kept, 1)
    kept.write_bytes(kept.read_bytes()[:-9])
    assert len(read(SQUARES, kept)) == 3
    assert measure(SQUARES, jobs(4), kept, 1) == expected
    assert len(read(SQUARES, kept)) == 4


def test_what_came_before_a_failure_is_kept(tmp_path: Path) -> None:
    kept = tmp_path / "squares.jsonl"
    broken = Series("squares", partial(failing, 6), FIELDS, seed=3)
    with pytest.raises(ArithmeticError):
        measure(broken, jobs(7), kept, 1)
    assert 1 <= len(read(broken, kept)) <= 6


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (Series("cubes", squared, FIELDS, 3, {"sizes": (1, 2)}), "study"),
        (Series("squares", squared, FIELDS, 4, {"sizes": (1, 2)}), "seed"),
        (Series("squares", squared, FIELDS, 3, {"sizes": (1, 3)}), "parameters"),
    ],
)
def test_a_file_of_another_run_is_refused_and_left_alone(
    tmp_path: Path, other: Series, named: str
) -> None:
    kept = tmp_path / "squares.jsonl"
    measure(SQUARES, jobs(1), kept, 1)
    untouched = kept.read_bytes()
    with pytest.raises(InvalidValue, match=f"holds another run, with {named}"):
        measure(other, jobs(2), kept, 1)
    assert kept.read_bytes() == untouched


@pytest.mark.parametrize(
    "text", ['{"job": {"number": 1}}\n', "not JSON\n", "[1]\n", '{"study": "squares"}\n']
)
def test_a_file_that_is_none_of_ours_is_refused(tmp_path: Path, text: str) -> None:
    kept = tmp_path / "squares.jsonl"
    kept.write_text(text)
    with pytest.raises(InvalidValue, match=r"squares\.jsonl"):
        measure(SQUARES, jobs(1), kept, 1)
    assert kept.read_text() == text


def test_a_line_that_is_no_result_is_named(tmp_path: Path) -> None:
    kept = tmp_path / "squares.jsonl"
    measure(SQUARES, jobs(1), kept, 1)
    with kept.open("a") as lines:
        lines.write('{"job": {"number": 2}, "cube": 8}\n')
    with pytest.raises(InvalidValue, match="line 3 is no result"):
        read(SQUARES, kept)


def test_a_killed_run_leaves_its_results_and_no_workers(tmp_path: Path) -> None:
    kept = tmp_path / "squares.jsonl"
    command = [sys.executable, str(HERE), str(kept)]
    found = {"PYTHONPATH": str(HERE.parents[3])}
    running = subprocess.Popen(command, env=os.environ | found, start_new_session=True)
    until = time.monotonic() + 60.0
    while not (kept.exists() and kept.read_bytes().count(b"\n") >= 6):
        assert running.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    before = len(read(SQUARES, kept))
    assert 5 <= before < 400
    while time.monotonic() < until and _group_lives(running.pid):
        time.sleep(0.05)
    assert not _group_lives(running.pid)
    assert measure(SQUARES, jobs(before + 5), kept, 2) == rows(before + 5)


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    measure(SQUARES, jobs(400), Path(sys.argv[1]), 2)
