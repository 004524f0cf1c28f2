"""Console output of the demo: text, the narrowing interval, and the summary.

On a terminal the interval is drawn in place; elsewhere a line is printed every hundred labels.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

Session = dict[str, Any]
"""Status of a session, as the service returns it."""
OnSession = Callable[[Session], object]

_COLUMNS = 60
_AXIS = 0.5
"""Largest risk that the bar shows; larger ones are cut at its right end."""
_SPARKS = "▁▂▃▄▅▆▇█"
_LINE_EVERY = 100
_NARROWEST_TERMINAL = _COLUMNS + 12


class Progress:
    """Newest status of one session, and the widths so far."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.session: Session | None = None
        self.widths: list[float] = []

    def take(self, session: Session) -> bool:
        """Store the status if it is newer; answers to eight judges may arrive out of order."""
        if self.session is not None and session["sequence"] <= self.session["sequence"]:
            return False
        self.session = session
        self.widths.append(session["width"])
        return True

    def drawing(self) -> Group:
        """Return title, bar with estimate and interval, labels used, and the widths so far."""
        session = self.session
        if session is None:
            return Group(Text(self.title, style="bold"))
        label = f"{percent(session['lower'])} … {percent(session['upper'])}"
        return Group(
            Text(self.title, style="bold"),
            Text.assemble("  error rate  ", _bar(session)),
            Text(f"              0 %{percent(_AXIS, digits=0):>{_COLUMNS - 3}}", style="dim"),
            Text.assemble("  interval    ", (f"{label:<22}", "bold green"), _target(session)),
            Text.assemble("  width       ", (sparks(self.widths), "cyan")),
            Text(f"  labels      {count_line(session)}{_remaining(session)}"),
        )


@contextmanager
def watch(console: Console, title: str) -> Iterator[OnSession]:
    """Show a session while it is judged; yields the callback for each new status."""
    progress = Progress(title)
    if console.is_terminal and console.width >= _NARROWEST_TERMINAL:
        with Live(console=console, get_renderable=progress.drawing, refresh_per_second=12) as live:
            yield progress.take
            live.refresh()
        return
    console.print(Text(title, style="bold"))
    last = 0

    def update(session: Session) -> None:
        nonlocal last
        labels = session["rounds"]["judged"]
        if progress.take(session) and (labels >= last + _LINE_EVERY or session["stopped"]):
            if session["stopped"] and last < 0:
                return
            last = -1 if session["stopped"] else labels - labels % _LINE_EVERY
            console.print(Text(_line(session)))

    yield update


def percent(value: float, *, digits: int = 1) -> str:
    """Return a share as text in percent."""
    return f"{100 * value:.{digits}f} %"


def count_line(session: Session) -> str:
    """Return the number of items judged and of all items, as text."""
    return f"{count(session['rounds']['judged'])} of {count(session['items'])}"


def count(number: int) -> str:
    """Return a whole number with its thousands separated."""
    return f"{number:,}".replace(",", " ")


def sparks(widths: list[float]) -> str:
    """Return the course of the width as blocks, one per equal share of the labels."""
    columns = min(_COLUMNS, len(widths))
    sample = [widths[(index + 1) * len(widths) // columns - 1] for index in range(columns)]
    top = len(_SPARKS) - 1
    return "".join(_SPARKS[min(top, round(width * top))] for width in sample)


def _bar(session: Session) -> Text:
    places = [
        min(_COLUMNS - 1, max(0, int(session[name] / _AXIS * _COLUMNS)))
        for name in ("lower", "estimate", "upper")
    ]
    lower, estimate, upper = places
    bar = Text("─" * lower, style="dim")
    for place in range(lower, upper + 1):
        bar.append(
            "●" if place == estimate else "━", "bold yellow" if place == estimate else "green"
        )
    bar.append("─" * (_COLUMNS - 1 - upper), "dim")
    if session["upper"] > _AXIS:
        bar.append("▶", "green")
    return bar


def _target(session: dict[str, Any]) -> str:
    width = 100 * session["width"]
    target = 100 * session["precision"]
    return f"  {width:.1f} points wide, {target:.1f} wanted"


def _remaining(session: Session) -> str:
    """Return the service's forecast as text, if there is one."""
    forecast = session["forecast"]
    if forecast is None or session["stopped"]:
        return ""
    remaining = forecast["labels_left"] + forecast["round"] - session["round"]
    return f", about {count(remaining)} more" if remaining > 0 else ""


def _line(session: Session) -> str:
    interval = f"{percent(session['lower'])} to {percent(session['upper'])}"
    return f"  {count_line(session)} labels: {interval}, {100 * session['width']:.1f} points wide"
