"""The course of an interval, as a picture and in numbers: on the session's page and its report."""

from collections.abc import Sequence
from functools import cached_property

from celeus.core.insights.figures import count
from celeus.operations.sessions.history import Course, Point
from celeus.web.report.chart import Chart, ChartData, Mark, Row, chart
from celeus.web.report.interval import IntervalFigures


class CourseWords:
    """The course of a session's score."""

    def __init__(self, words: IntervalFigures, course: Course, rows: int) -> None:
        """Show about as many ``rows`` in numbers."""
        self._words, self._course = words, course
        self._most = rows

    @cached_property
    def points(self) -> list[Point]:
        """The course on the scale of the score."""
        words, points = self._words, []
        for point in self._course.points:
            image = words.image(point.lower, point.upper)
            points.append(Point(point.round, words.at(point.estimate), image.lower, image.upper))
        return points

    @cached_property
    def rows(self) -> list[Row]:
        """The course in numbers, evenly spaced, the last round among them."""
        step = max(1, -(-len(self.points) // self._most))
        return [self._row(point) for point in reversed(self.points[::-1][::step])]

    @property
    def caption(self) -> str:
        """The number of rounds in the rows."""
        last = self.points[-1].round
        if len(self.rows) == last:
            return "Every round"
        return f"{len(self.rows)} of {count(last)} rounds, evenly spaced"

    @property
    def heads(self) -> list[str]:
        """The columns of the numbers."""
        names = ("Estimate", "Lower end", "Upper end", "Width")
        unit = f",{self._words.sign}" if self._words.sign else ""
        return ["Labels", *(name + unit for name in names)]

    @property
    def unit(self) -> str:
        """The measure on the upright axis; names of systems may be too long for it."""
        words = self._words
        if words.compared:
            return f"difference of the two systems{', points' if words.shift else ''}"
        return f"{words.quantity} ({words.score.better} is better)"

    @property
    def now(self) -> str:
        """The last point in words."""
        return (
            f"Now, {self.rows[-1].sentence[0].lower()}{self.rows[-1].sentence[1:]}"
            if self.rows
            else ""
        )

    @property
    def spoken(self) -> str:
        """The picture in words, with what is asked of the score."""
        asked = "; ".join(
            f"{self._words.threshold(asked)}? {asked['answer']}"
            for asked in self._words.status["decisions"]
        )
        return self.now + (f". Asked: {asked}" if asked else "")

    def chart(
        self, *, whole: bool = False, expected: int | None = None, spots: bool = False
    ) -> Chart:
        """Return the picture, of the ``whole`` scale or of what the interval has come to.

        ``expected`` is the round of the forecast; with ``spots``, a point leads to its item.
        """
        words, status = self._words, self._words.status
        moments = []
        if self._course.reached is not None:
            moments.append(Mark(self._course.reached, "stop"))
        if expected is not None:
            moments.append(Mark(expected, "expected"))
        data = ChartData(
            points=self.points,
            lower=status["scale"]["lower"],
            upper=status["scale"]["upper"],
            levels=self._levels(),
            moments=moments,
            margin=(status["verdict"] or {"margin": 0.0})["margin"],
            shift=words.shift,
            sign="" if words.compared else words.sign,
            last=expected or 1,
            whole=whole,
        )
        return chart(data, self.rows if spots else ())

    def _levels(self) -> Sequence[Mark]:
        words, status = self._words, self._words.status
        levels = [
            Mark(words.at(asked["threshold"]), "asked", words.threshold(asked))
            for asked in status["decisions"]
        ]
        if words.compared:
            levels.append(Mark(0.0, "zero"))
        precision = status["precision"]
        if precision is not None and self.points:
            low = words.at(status["estimate"]) - precision / 2.0
            levels += [Mark(low, "target"), Mark(low + precision, "target")]
        return levels

    def _row(self, point: Point) -> Row:
        words, figures = self._words, self._words.figures
        estimate, lower, upper = (
            figures.nearest(point.estimate),
            figures.below(point.lower),
            figures.above(point.upper),
        )
        width = figures.nearest(point.upper - point.lower)
        sentence = (
            f"After {count(point.round)} label{'s' * (point.round != 1)}: {estimate}{words.sign},"
            f" between {lower} and {upper}{words.sign}"
            f" (width {words.width(point.upper - point.lower)})"
        )
        return Row(point.round, estimate, lower, upper, width, sentence)
