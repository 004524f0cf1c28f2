"""What is drawn on a terminal."""

import io
from typing import Any

from rich.console import Console

from celeus.demo.screen import Progress, count, sparks, watch


def session(sequence: int, lower: float, upper: float, labels: int) -> dict[str, Any]:
    return {
        "sequence": sequence,
        "lower": lower,
        "upper": upper,
        "width": upper - lower,
        "estimate": (lower + upper) / 2,
        "precision": 0.05,
        "items": 1737,
        "round": labels,
        "rounds": {"judged": labels},
        "forecast": None,
        "stopped": upper - lower <= 0.05,
    }


def drawn(progress: Progress) -> str:
    console = Console(file=io.StringIO(), width=100)
    with console.capture() as captured:
        console.print(progress.drawing())
    return captured.get()


def test_the_bar_shows_the_interval_at_its_place() -> None:
    progress = Progress("title")
    progress.take(session(1, 0.1, 0.2, 300))
    [bar] = [line for line in drawn(progress).splitlines() if "error rate" in line]
    axis = bar.removeprefix("  error rate  ")
    assert len(axis) == 60
    assert axis.index("━") == 12
    assert axis.rindex("━") == 24
    assert axis.index("●") == 18


def test_an_interval_beyond_the_axis_leaves_it_at_the_right() -> None:
    progress = Progress("title")
    progress.take(session(1, 0.0, 1.0, 1))
    assert "▶" in drawn(progress)


def test_an_answer_overtaken_by_a_newer_one_is_not_shown() -> None:
    progress = Progress("title")
    assert progress.take(session(5, 0.1, 0.2, 300))
    assert not progress.take(session(4, 0.0, 0.9, 299))
    assert "300 of 1 737" in drawn(progress)


def test_the_forecast_counts_from_its_own_round() -> None:
    progress = Progress("title")
    forecast = {"round": 250, "labels_left": 400}
    progress.take(session(1, 0.1, 0.2, 300) | {"forecast": forecast})
    assert "300 of 1 737, about 350 more" in drawn(progress)


def test_sparks_fall_with_the_width() -> None:
    assert sparks([1.0, 0.5, 0.0]) == "█▅▁"
    assert len(sparks([0.5] * 1000)) == 60
    assert sparks([]) == ""


def test_elsewhere_a_line_tells_every_hundred_labels_and_the_end_once() -> None:
    console = Console(file=io.StringIO(), width=100)
    with console.capture() as captured, watch(console, "title") as seen:
        for labels in range(1, 251):
            seen(session(labels, 0.1, 0.2, labels))
        seen(session(251, 0.1, 0.14, 251))
        seen(session(252, 0.1, 0.14, 252))
    lines = captured.get().splitlines()
    assert lines[0] == "title"
    assert [line.split(" of ")[0].strip() for line in lines[1:]] == ["100", "200", "251"]


def test_a_terminal_is_drawn_in_place() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    with watch(console, "title") as seen:
        seen(session(1, 0.1, 0.2, 1))
    assert isinstance(console.file, io.StringIO)
    assert "error rate" in console.file.getvalue()


def test_thousands_stand_apart() -> None:
    assert count(1737) == "1 737"
