"""Seconds a round costs."""

from pathlib import Path

from study.engine.rows import Rows
from study.tables.cost import draw, jobs, page, run
from study.tables.efficiency import POLICIES, TARGETS


def test_every_policy_target_and_size_is_timed() -> None:
    found = jobs((500, 2000), 2)
    assert (
        len(found)
        == len({tuple(job.values()) for job in found})
        == 2 * 2 * len(TARGETS) * len(POLICIES)
    )


def test_a_timed_session_runs_as_many_rounds_as_it_was_given() -> None:
    for policy in POLICIES:
        found = run(20, {"items": 500, "target": "pool", "policy": policy, "run": 0})
        assert found["rounds"] == 20
        assert found["seconds"] > 0.0


def test_the_page_has_milliseconds_a_round_and_seconds_of_the_opening(tmp_path: Path) -> None:
    found = Rows(
        job | {"rounds": 50, "opening": 0.25, "seconds": 0.1} for job in jobs((500, 2000), 3)
    )
    text = page(found)
    assert "| sharp | pool | 2.000 (0.250) | 2.000 (0.250) |" in text
    assert "up to 50 rounds" in text
    draw(found, tmp_path / "one.png")
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
