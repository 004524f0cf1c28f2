"""Who is judging: windows of one person are one, and what labels wait for is named."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from celeus.web.session.workers import Held, held, persons

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


def worker(name: str, *rounds: int, seconds: int = 240, last: str | None = None) -> dict[str, Any]:
    ends = (NOW + timedelta(seconds=seconds)).isoformat()
    return {
        "worker": name,
        "labels_minute": 1,
        "labels_hour": 4,
        "last_label_at": last,
        "draws": [{"round": round_, "expires_at": ends} for round_ in rounds],
    }


def session(judged: int, in_interval: int, state: str = "active") -> dict[str, Any]:
    return {"state": state, "rounds": {"judged": judged, "in_interval": in_interval}}


def test_windows_of_a_person_are_added_up() -> None:
    earlier, later = "2026-11-27T11:58:00+00:00", "2026-11-27T11:59:00+00:00"
    windows = [
        worker("Ada 0123456789ab", 3, last=later),
        worker("Ada ba9876543210", 5, seconds=80, last=earlier),
        worker("program"),
    ]
    ada, program = persons(windows, NOW)
    assert (ada.name, ada.minute, ada.hour, ada.last) == ("Ada", 2, 8, later)
    assert (list(ada.rounds), ada.left) == ([3, 5], "80\u202fs")
    assert (program.last, list(program.rounds), program.left) == (None, [], "")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (session(3, 2), "1 label waits for an item drawn earlier, which Ada holds."),
        (session(9, 7), "2 labels wait for an item drawn earlier, which is free for whoever asks"),
    ],
)
def test_labels_wait_for_the_first_round_that_is_not_judged(
    told: dict[str, Any], words: str
) -> None:
    found = held(told, persons([worker("Ada", 3, 4)], NOW))
    assert isinstance(found, Held)
    assert found.words.startswith(words)
    assert list(found.rounds) == ([3, 4] if found.first == 3 else [])


@pytest.mark.parametrize("told", [session(3, 3), session(3, 2, "paused"), session(3, 2, "closed")])
def test_nothing_is_said_where_no_label_waits_or_nobody_judges(told: dict[str, Any]) -> None:
    assert held(told, persons([worker("Ada", 3)], NOW)) is None
