"""The words beside figures: a session's answers and progress, and remarks on a plan.

Page, report and programs show these words as they are; nothing that is certified rests on them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from celeus.core.insights.curve import Point, Tempering
from celeus.core.insights.figures import Figures, count
from celeus.core.insights.planning import FixedSample
from celeus.core.insights.sentences import quantity
from celeus.core.interval import Interval
from celeus.core.pools.losses import LossScale
from celeus.core.pools.score import Score
from celeus.core.pools.systems import AnySystems, Systems
from celeus.units import PERCENT, PERCENT_SIGN, POINTS

MINUTE: Final = 60.0
HOUR: Final = 3600.0
MOST_MINUTES: Final = 90
MOST_HOURS: Final = 36
NEAR_THE_VALUE: Final = (
    "These labels are for a judge as good as assumed. One that is nearly as good as asked, or"
    " hardly better, takes about 1 000."
)
ALIKE: Final = 0.1
"""Share by which labels of two policies may differ and count as equally many."""


@dataclass(frozen=True, slots=True)
class Measure:
    """The quantity a session of one interval measures, for people: its name, and figures of it.

    ``score`` is the pool's; where two systems are compared it names the unit of their difference.
    ``success`` is which runs of a draw have to succeed, such as "all of 4".
    """

    scale: LossScale
    systems: AnySystems | None
    score: Score
    weighted: bool = False
    success: str | None = None

    @property
    def compared(self) -> bool:
        """The losses are differences of two systems."""
        return self.scale.kind == "difference"

    @property
    def shown_score(self) -> Score:
        """The score that figures are of: a difference is told as the losses have it."""
        return Score("difference", "lower", self.score.unit) if self.compared else self.score

    @property
    def shift(self) -> int:
        """The number of places by which the point of a figure is moved."""
        return PERCENT if self.score.unit == "share" else 0

    @property
    def sign(self) -> str:
        """The unit that follows a figure."""
        return (POINTS if self.compared else PERCENT_SIGN) if self.shift else ""

    @property
    def plain(self) -> str:
        """The name of the measured quantity, without its weights."""
        systems = self.systems
        if isinstance(systems, Systems) and systems.loss.kind == "preference":
            return f"mean preference (below 0 for {systems.a}, above 0 for {systems.b})"
        if isinstance(systems, Systems):
            return f"mean difference of loss ({systems.a} minus {systems.b})"
        return "mean loss of A less that of B" if self.compared else self.score.name

    @property
    def quantity(self) -> str:
        """The name of the measured quantity."""
        return quantity(self.plain, weighted=self.weighted, success=self.success)

    @property
    def names(self) -> tuple[str, str]:
        """The two systems; a pool of plain differences calls them A and B."""
        return (self.systems.a, self.systems.b) if isinstance(self.systems, Systems) else ("A", "B")

    def width(self, width: float) -> str:
        """A width that somebody chose, of a share in points."""
        figure = Figures(self.scale, 0.0, self.shift).given(width)
        return f"{figure} points" if self.shift else figure

    def ends(self, losses: Interval) -> str:
        """An interval of mean losses as the score has it, such as "79.3 to 87.9 %"."""
        scores = self.shown_score.image(losses, self.scale.interval)
        figures = Figures(self.scale, losses.width, self.shift)
        return f"{figures.below(scores.lower)} to {figures.above(scores.upper)}{self.sign}"

    def threshold(self, asked: Mapping[str, Any]) -> str:
        """Return what a question asks of the score, such as "at most 10 %"."""
        most = (asked["side"] == "at_most") == (self.shown_score.better == "lower")
        score = self.shown_score.at(asked["threshold"], self.scale.interval)
        threshold = Figures(self.scale, 0.0, self.shift).given(score)
        return f"{'at most' if most else 'at least'} {threshold}{self.sign}"

    def question(self, asked: Mapping[str, Any]) -> str:
        """A question as a question."""
        return f"Is the {self.quantity} {self.threshold(asked)}?"

    def answers(self, status: Mapping[str, Any]) -> list[dict[str, str]]:
        """Return the questions, the verdict first, each with its answer so far and since when.

        ``given`` is yes, no or undecided; of a verdict yes, once there is one.
        """
        closed = status["state"] == "closed"
        answers = [
            _answered(
                self.question(decision),
                decision["answer"],
                decision["answer"].title(),
                decision["round"],
                closed=closed,
            )
            for decision in status["decisions"]
        ]
        verdict = status["verdict"]
        if verdict is None:
            return answers
        a, b = self.names
        words = {
            "a_at_least_as_good": f"{a} is",
            "b_at_least_as_good": f"{b} is",
            "equivalent": "They are equivalent",
        }
        answer = words.get(verdict["answer"])
        question = f"Is {a} or {b} at least as good?"
        if verdict["margin"]:
            within = self.width(verdict["margin"])
            question = f"Is {a} or {b} at least as good, or are they equivalent to within {within}?"
        given = "undecided" if answer is None else "yes"
        first = _answered(question, given, answer or "", verdict["round"], closed=closed)
        return [first, *answers]


def _answered(
    question: str, given: str, answer: str, round_: int | None, *, closed: bool
) -> dict[str, str]:
    """A question with its answer, and when that was given."""
    text = "Undecided, for good" if closed else "Undecided so far"
    if given != "undecided" and round_ is not None:
        when = f"since label {count(round_)}" if round_ else "before the first label"
        text = f"{answer}, {when}"
    return {"question": question, "given": given, "answer": text}


def progress(status: Mapping[str, Any], labels: int) -> str:
    """Return in words the labels so far, those still likely, their time, and the plan."""
    planned = status.get("planned_labels")
    text = "No labels yet"
    if labels:
        text = _labels(labels) + ("" if status["stopped"] else _more(status))
    if planned is not None:
        text += f"; the plan at opening said about {_range(planned)}"
    return f"{text}."


def share_done(status: Mapping[str, Any], labels: int) -> float | None:
    """The labels as a share of those likely to be needed; None where nobody can tell.

    Pages, lists and report show this one figure, which `progress` has in words.
    """
    if status["stop_reason"] is not None:
        return 1.0
    left = _left(status)
    if left is None:
        begins = labels == 0 and status["precision"] is not None and not status["stopped"]
        return 0.0 if begins else None
    return labels / (labels + left["median"])


def cheaper(sharp: Point | None, uniform: Point | None, *, informed: bool) -> str | None:
    """The one of two policies that should take fewer labels of a pool, and why.

    None where one of them has no number, or never reaches the precision.
    """
    if sharp is None or uniform is None or min(sharp.reached, uniform.reached) == 0.0:
        return None
    if not informed:
        return "The policies sharp and uniform draw alike: no surrogate tells these items apart."
    by_scores, even = (round(point.labels.median) for point in (sharp, uniform))
    if by_scores < (1.0 - ALIKE) * even:
        saved = round(100.0 * (1.0 - by_scores / even))
        return (
            f"The cheaper policy is likely to be sharp, with {count(by_scores)} labels against"
            f" {count(even)} of uniform: it draws most where the surrogate lets it expect that"
            f" losses vary, which saves about {saved}{PERCENT_SIGN}."
        )
    if even < (1.0 - ALIKE) * by_scores:
        return (
            f"The cheaper policy is likely to be uniform, with {count(even)} labels against"
            f" {count(by_scores)} of sharp: over all that may be true of this surrogate, to draw by"
            " it costs more than it saves."
        )
    return (
        "The policies sharp and uniform are likely to take about as many labels,"
        f" {count(by_scores)} and {count(even)}: sharp fewer where the surrogate is better than"
        " expected, uniform where it is worse."
    )


def tempered(found: Tempering | None, *, whole: bool) -> str | None:
    """Return how a plan treats guesses that claim to be certain; ``whole``: losses are 0 or 1."""
    if found is None:
        return None
    part = round(100.0 * found.share)
    which = "All guesses are" if found.share == 1.0 else f"{part}{PERCENT_SIGN} of the guesses are"
    text = f"{which} at an end of the scale, and none is taken as certain"
    if not whole:
        return f"{text}."
    parts = [
        f"between {round(100.0 * least)} and {round(100.0 * most)}{PERCENT_SIGN} of the items"
        f" guessed {guess} had a loss of {1 - guess}"
        for guess, limits in enumerate((found.zeros, found.ones))
        if limits is not None
        for least, most in (limits,)
    ]
    return f"{text}: sessions are simulated as if {', and '.join(parts)}."


def fixed(found: FixedSample | None, items: int) -> str | None:
    """Return what a fixed sample would take instead, on a pool of so many ``items``."""
    if found is None:
        return None
    if found.paired:
        return (
            "A paired test that looks only once would take"
            f" {_labels(found.informed)}, if it were told difference and variance beforehand."
        )
    informed, safe = found.informed, found.safe
    whole = "A fixed sample that is judged whole before anybody looks would take"
    if safe is not None and safe <= informed:
        text = f"{whole} {_labels(safe)} to be as precise whatever losses do."
    else:
        rest = "" if safe is None else f", and {count(safe)} to be as precise whatever they do"
        vary = "if it were told beforehand how much losses vary"
        text = f"{whole} {_labels(informed)}, {vary}{rest}."
    return (
        text if max(informed, safe or 0) <= items else f"{text} This pool has {count(items)} items."
    )


def _range(planned: Mapping[str, int]) -> str:
    """The median of what is expected, with its 10 and 90 %."""
    low, median, high = (count(planned[name]) for name in ("low", "median", "high"))
    return median if low == high else f"{median} ({low} to {high})"


def _more(status: Mapping[str, Any]) -> str:
    left = _left(status)
    if left is None:
        return f" of at most {count(most_labels(status))}"
    if left["median"] == 0:
        return ""
    text = f", about {_range(left)} more"
    pace = status["forecast"].get("seconds_per_label")
    return text if pace is None else f"{text}, {duration(left['median'] * pace)} at the recent pace"


def most_labels(status: Mapping[str, Any]) -> int:
    """The most labels that there may be."""
    if status.get("repeats"):
        return int(status["budget"])
    return int(min(status["budget"], status["items"] - status["known"]))


def _left(status: Mapping[str, Any]) -> dict[str, int] | None:
    """The median of the labels left, with its 10 and 90 %; None without a forecast."""
    forecast, judged = status["forecast"], status["rounds"]["judged"]
    if forecast is None:
        return None
    # What was judged since is not left any more
    since = judged - forecast["round"]
    low, median, high = (
        max(min(max(forecast[name] - since, 1), most_labels(status) - judged), 0)
        for name in ("low", "labels_left", "high")
    )
    return {"low": low, "median": median, "high": high}


def duration(seconds: float) -> str:
    """Return a duration in rough words."""
    if seconds < MINUTE:
        return "less than a minute"
    if (minutes := round(seconds / MINUTE)) <= MOST_MINUTES:
        return f"about {_counted(minutes, 'minute')}"
    if (hours := round(seconds / HOUR)) <= MOST_HOURS:
        return f"about {_counted(hours, 'hour')}"
    return f"about {_counted(round(seconds / (24 * HOUR)), 'day')}"


def labels_remark(status: Mapping[str, Any], labels: int, inside: int) -> str | None:
    """Return the sentence on which labels are in the interval; None where it goes without saying.

    ``inside`` of the ``labels`` are in the interval. It goes without saying in a session that goes
    on and has no label that waits.
    """
    if labels == 0 or (labels == inside and not status["stopped"]):
        return None
    return _share_inside(status, labels, inside) + _open_draws(status)


def _share_inside(status: Mapping[str, Any], labels: int, inside: int) -> str:
    """Return how many labels are in the interval, and why others are not."""
    whole = "interval"
    if status["best"] is not None:
        whole = "answer"
    elif status["table"] is not None:
        whole = "claims"
    waiting = labels - inside
    if waiting == 0:
        every = "The one label is" if labels == 1 else f"All {_labels(labels)} are"
        return f"{every} in the {whole}"
    single = waiting == 1
    if status["state"] == "closed":
        reason = (
            f"{'was' if single else 'were'} given after a draw that nobody judged, and"
            f" {'is' if single else 'are'} not"
        )
    else:
        reason = f"{'waits' if single else 'wait'} for an item drawn earlier that is not judged yet"
    verb = "is" if labels == 1 else "are"
    share = f"{count(inside)} of {_labels(labels)} {verb} in the {whole}"
    return f"{share}; {count(waiting)} {reason}"


def _open_draws(status: Mapping[str, Any]) -> str:
    """Return the end of the sentence: what becomes of draws without a label."""
    pending, stopped = status["rounds"]["pending"], status["stopped"]
    closed = status["state"] == "closed"
    if pending == 0:
        return "; no draw is open." if stopped and not closed else "."
    draws = _counted(pending, "draw")
    if closed:
        return f". {draws} {'was' if pending == 1 else 'were'} never judged."
    if not stopped:
        return "."
    verb = "is" if pending == 1 else "are"
    return f". {draws} {verb} still open; labels for them count until the session is closed."


def provisional_remark(waiting: int, open_: int) -> str:
    """Return how an answer begins that counts labels that wait, and open draws at their worst."""
    labels = "label that waits" if waiting == 1 else f"{count(waiting)} labels that wait"
    draws, worst = ("open draw", "its") if open_ == 1 else (f"{count(open_)} open draws", "their")
    return f"With the {labels}, and the {draws} counted at {worst} worst"


def _labels(number: int) -> str:
    return _counted(number, "label")


def _counted(number: int, noun: str) -> str:
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"
