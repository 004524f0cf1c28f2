"""A session as a picture in a notebook: the interval by labels, inline SVG without scripts."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from celeus.client.results import Point, Status

WIDTH, HEIGHT, MARGIN = 480.0, 160.0, 24.0
POINTS = 200
"""Rounds that are drawn: more than a line of this width shows."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure of HTML, which a notebook shows."""

    html: str

    def _repr_html_(self) -> str:
        return self.html


def picture(status: Status, points: Sequence[Point]) -> Picture:
    """The interval by labels, and the session's own sentence below it."""
    caption = escape(status.sentence or f"{status.id}: {status.state}")
    drawn = "" if not points or status.scale is None else _drawing(points)
    return Picture(
        f"<figure>{drawn}<figcaption>{caption} ({escape(status.state)})</figcaption></figure>"
    )


def _drawing(points: Sequence[Point]) -> str:
    last = points[-1]
    low, high = min(point.lower for point in points), max(point.upper for point in points)
    rise = (HEIGHT - 2 * MARGIN) / ((high - low) or 1.0)

    def place(point: Point, value: float) -> str:
        across = MARGIN + (WIDTH - 2 * MARGIN) * point.round / last.round
        return f"{across:.1f},{HEIGHT - MARGIN - rise * (value - low):.1f}"

    upper = [place(point, point.upper) for point in points]
    lower = [place(point, point.lower) for point in reversed(points)]
    middle = [place(point, point.estimate) for point in points]
    name = (
        f"interval of the mean loss after {last.round} labels: {last.lower:.3g} to {last.upper:.3g}"
    )
    texts = [
        (0, MARGIN - 8, "start", f"{high:.3g}"),
        (0, HEIGHT - MARGIN + 16, "start", f"{low:.3g}"),
        (WIDTH, HEIGHT - MARGIN + 16, "end", f"{last.round} labels"),
    ]
    labels = "".join(
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'
        for x, y, anchor, text in texts
    )
    return (
        f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" width="{WIDTH:g}" role="img"'
        f' aria-label="{escape(name)}" font-size="11" fill="currentColor">'
        f'<polygon points="{" ".join(upper + lower)}" fill="#4a90c4" opacity="0.35"/>'
        f'<polyline points="{" ".join(middle)}" fill="none" stroke="#1f77b4" stroke-width="1.5"/>'
        f"{labels}</svg>"
    )
