"""The numbers of a column of scores, losses or verdicts: which way, on which scale, what is none.

A number x between the ends L and H of its scale is the loss

    l + (u - l) t,   t = (H - x) / (H - L)  where a higher number is better, else (x - L) / (H - L)

on the pool's scale from l to u.
"""

import math
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain

from celeus.intake import rows
from celeus.intake.rows import Options
from celeus.intake.sources.sheet import Known, refused
from celeus.intake.table.column_names import higher_by_name, words
from celeus.intake.table.columns import Column, is_missing, is_share, judges, number_of, shown
from celeus.intake.table.roles import GUESSES, Kind, Placed
from celeus.shorten import shortened

NOTHING = "none"
"""The answer that no value stands for no score, beside null and empty ones."""
ANY = "any"
"""The answer that whatever a column of errors says stands for no score."""
MOST_KEPT = 12
"""Distinct values that are kept of those that are no number of the scale."""
_SIGNS = frozenset({-1.0, -9.0, -99.0, -999.0, -9999.0, 99.0, 999.0, 9999.0})
_EMPTY = words("n/a na #n/a none null nan - -- .")
NO_SCORE = _EMPTY | words(
    "? unknown missing error not_parsable unparsable undefined skipped cancelled timeout"
)
_DIFFERENCES = {
    **{f"{stem}a": -1.0 for stem in ("", "model_", "system_", "answer_", "response_")},
    **{f"{stem}b": 1.0 for stem in ("", "model_", "system_", "answer_", "response_")},
    **dict.fromkeys(("tie", "tie (bothbad)", "tie (both bad)", "both bad", "both good"), 0.0),
}
"""The losses of a less those of b, by the words for which one is better."""
_SCALES = ((0.0, 1.0), (1.0, 5.0), (0.0, 5.0), (1.0, 10.0), (0.0, 10.0), (0.0, 100.0), (-1.0, 1.0))
_MOST = 0.8
_LONGEST_WORD = 20


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of numbers and what they mean.

    ``higher`` is None where nothing says it, and then asked; ``scale_given``: the ends ``low``
    and ``high`` are given, or certain. Of several values in a cell ``several`` says which count:
    the `first`, or all by their `mean`.
    """

    column: str
    role: str
    kind: Kind
    higher: bool | None
    low: float
    high: float
    scale_given: bool
    missing: frozenset[str]
    comma: bool = False
    several: str | None = None

    @property
    def way(self) -> str:
        """The direction and the scale of its numbers in a phrase."""
        if self.kind.two and self.role == "known":
            return "the name of the better one"
        better = "higher" if self.higher else "lower"
        return f"the {better} the better, from {spelled((self.low, self.high))}"

    def loss(self, value: object) -> object:
        """The loss of a value; None for one that is missing, and the value where it is none."""
        if is_missing(value):
            return None
        return self._of_several(value) if isinstance(value, list) else self._of_one(value)

    def _of_one(self, value: object) -> object:
        number = self.number(value)
        if number is None or math.isnan(number):
            return None if number is not None or shown(value).strip() in self.missing else value
        if self.missing and not self.missing.isdisjoint({shown(value).strip(), f"{number:g}"}):
            return None
        if not self.low <= number <= self.high:
            return Outside(number)
        lower, upper = self.kind.lower, self.kind.upper
        if (self.low, self.high) == (lower, upper):
            return number if self.higher is False else lower + upper - number
        away = number - self.low if self.higher is False else self.high - number
        return min(upper, lower + (upper - lower) * away / (self.high - self.low))

    def _of_several(self, values: list[object]) -> object:
        losses = [self.loss(value) for value in self.counted(values)]
        known = [loss for loss in losses if type(loss) is float]
        if not losses or losses.count(None) + len(known) < len(losses):
            return values
        return math.fsum(known) / len(known) if known else None

    def counted(self, values: list[object]) -> list[object]:
        """The values of a cell that count; none where it is open which ones do."""
        if len(values) == 1 or self.several == "mean":
            return values
        return values[:1] if self.several == "first" else []

    def read(self, value: object, place: str) -> float | None:
        """The loss of a value in a log, None for one that is missing; refuses any other."""
        loss = self.loss(value)
        if loss is None or (type(loss) is float and math.isfinite(loss)):
            return loss
        if isinstance(loss, float):
            missing = f"--given missing={loss:g} says that it is no score"
            ways = f"--given 'scale=LOW to HIGH' gives its ends, {missing}"
            what = f"{place} has the score {loss:g}, outside {self.low:g} to {self.high:g}"
            raise rows.refused(f"{what}: {ways}", "scale")
        missing = f"; --given missing={value} says that it is no score"
        way = missing if isinstance(value, str) else ""
        what = f"{place} has the score {shortened(value)}, which is no number: write one"
        raise rows.refused(f"{what}, such as 1 and 0 for right and wrong{way}", "metric")

    def number(self, value: object) -> float | None:
        """The number that a value is, or NaN; None where it is none, or infinite."""
        if self.kind.two and self.role == "known":
            return _DIFFERENCES.get(shown(value).strip().lower())
        number = number_of(value, comma=self.comma)
        if not isinstance(number, int | float) or abs(number) > sys.float_info.max:
            return None
        return float(number)


class Outside(float):
    """A number that is not on the scale of its column."""


@dataclass(slots=True)
class Numbers:
    """A summary of a column's numbers: those on the scale, and what else stands there."""

    count: int = 0
    total: float = 0.0
    ends: bool = True
    missing: int = 0
    low: float = math.inf
    high: float = -math.inf
    outside: int = 0
    scored: bool = False
    several: int = 0
    signs: dict[str, int] = field(default_factory=dict)
    words: dict[str, int] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)

    def note(self, measure: Measure, value: object) -> None:
        """Take the value of a row."""
        if isinstance(value, list) and any(measure.number(part) is not None for part in value):
            counted = measure.counted(value)
            self.several += not counted
            for part in counted:
                self.note(measure, part)
            return
        loss = measure.loss(value)
        if loss is None:
            self.missing += 1
        elif isinstance(loss, Outside):
            if NOTHING in measure.missing:
                self.scored = True
            elif loss in _SIGNS:
                self.signs[f"{loss:g}"] = self.signs.get(f"{loss:g}", 0) + 1
                return
            self.outside += 1
            self.low, self.high = min(self.low, loss), max(self.high, loss)
        elif isinstance(loss, float) and measure.number(value) is not None:
            number = measure.number(value) or 0.0
            self.count += 1
            self.total += loss
            self.ends = self.ends and number in {measure.low, measure.high}
            self.low, self.high = min(self.low, number), max(self.high, number)
        else:
            self._note_word(shown(value).strip())

    def _note_word(self, word: str) -> None:
        """Take what stands in place of a number: a sign of no score, or any other text."""
        counts = self.words if word.lower() in NO_SCORE else self.others
        word = word[:_LONGEST_WORD]
        if len(counts) < MOST_KEPT or word in counts:
            counts[word] = counts.get(word, 0) + 1

    @property
    def is_of_another_scale(self) -> bool:
        """Many of its numbers lie outside of the ends, or some that are said to be scores."""
        return self.scored or self.outside > (1 - _MOST) * (self.count + self.outside)

    def scales(self) -> list[tuple[float, float]]:
        """Scales in use that hold the numbers, and the one that these reach the ends of."""
        fitting = [(low, high) for low, high in _SCALES if low <= self.low and self.high <= high]
        reached = (self.low, self.high)
        return fitting if reached in fitting or self.low == self.high else [*fitting, reached]


def measures(
    columns: Sequence[Column],
    placed: Sequence[Placed],
    options: Options,
    kind: Kind,
    known: Known | None,
) -> list[Measure]:
    """The measures of the guess and of earlier verdicts, as far as anything settles them."""
    by_name = {column.name: column for column in columns}
    for place, named in (("better", options.directions), ("scale", options.scales)):
        strange = next((name for name in named if name and name not in by_name), None)
        if strange is not None:
            listed = ", ".join(by_name)[:400]
            raise refused("The file has no such column.", f"one of {listed}", strange, place)
    numeric = [column for column in placed if column.role in {*GUESSES, "known"}]
    # What is true of a score need not be of the verdicts beside it
    meant = {column.name for column in numeric if len(numeric) == 1 or column.role in GUESSES}
    missing = missing_by_column(options, [*by_name])
    if known is not None and "surrogate" in known.roles.values():
        # The reader of a log has used them for the losses
        options = replace(options, higher=None, directions={}, scales={}, missing=())
        missing = {}
    else:
        _check_taken(numeric, meant, options, missing)
    found = []
    for column in numeric:
        name, is_meant = column.name, column.name in meant
        values = (*missing.get(name, ()), *(missing.get("", ()) if is_meant else ()))
        about = replace(options, missing=values)
        found.append(_measure(by_name[name], column, about, kind, known, meant=is_meant))
    return found


def missing_by_column(options: Options, names: Sequence[str]) -> dict[str, list[str]]:
    """The values that stand for no score, by column; those that are said of none, under ''.

    A column of objects goes by the name that those under it begin with. Refuses one that is not
    there.
    """
    within = [name[:end] for name in names for end, sign in enumerate(name) if sign == "."]
    found: dict[str, list[str]] = {}
    for text in options.missing:
        column = column_of(text, [*names, *within])
        if column is None and "=" in text:
            listed = ", ".join(names)[:400]
            rule = f"a value, or COLUMN=VALUE with one of {listed}"
            raise refused("The file has no such column.", rule, text, "missing")
        value = text if column is None else text[len(column) + 1 :].strip()
        found.setdefault(column or "", []).append(value)
    return found


def column_of(text: str, names: Sequence[str]) -> str | None:
    """The column in an answer COLUMN=VALUE; None where it names none of these."""
    fitting = [name for name in names if text.startswith(f"{name}=")]
    return max(fitting, key=len, default=None)


def _check_taken(
    numeric: Sequence[Placed],
    meant: set[str],
    options: Options,
    missing: Mapping[str, Sequence[str]],
) -> None:
    """Refuse an answer about numbers that no column takes: it would change nothing.

    One without a column is of what is ``meant``, unless that has an answer of its own.
    """
    names = {column.name for column in numeric}
    guessed = any(column.role in GUESSES for column in numeric)
    given = {
        "better": {*options.directions} | ({""} if options.higher is not None else set()),
        "scale": {*options.scales},
        "missing": {name for name in missing if name not in names and not guessed},
    }
    for place, columns in given.items():
        unused = sorted(columns - names - ({""} if meant - columns else set()))
        if unused:
            which = f"`{unused[0]}` has none of" if unused[0] else "none has one of"
            why = f"{which} the roles of numbers"
            if meant and not unused[0]:
                why = f"`{min(meant)}` has one of its own"
            detail = f"No column takes `{place}`: {why}."
            rule = "left out; or a role for its column by `mapping`: score, surrogate, known"
            raise refused(detail, rule, unused[0] or None, place)
    for column in numeric:
        if column.role == "surrogate" and (options.directions.get(column.name) or options.higher):
            detail = f"`{column.name}` is a guess of the loss, of which less is better."
            rule = "the role score in place of surrogate, by `mapping`"
            raise refused(detail, rule, "higher", "better")


def _measure(  # noqa: PLR0913 -- all that says it
    column: Column,
    placed: Placed,
    options: Options,
    kind: Kind,
    known: Known | None,
    *,
    meant: bool,
) -> Measure:
    """The measure of a column; ``meant``: an answer without a column is one about it."""
    of_format = known is not None and known.roles.get(placed.name) == placed.role
    formatted = known if of_format else None
    lists = (value if isinstance(value, list) else [value] for value in column.values)
    column = replace(column, values=[*chain.from_iterable(lists)])
    shares = bool(column.values) and all(map(is_share, column.values))
    ends = options.scales.get(placed.name)
    if ends is None and meant:
        ends = options.scales.get("")
    if ends is None and formatted is not None:
        ends = formatted.scale
    if ends is None and shares:
        ends = (0.0, 1.0)
    higher = _higher(column, placed, options, formatted, meant=meant)
    if kind.two and placed.role == "known":
        if not kind.preferred:
            detail = "The better of two answers need not be right, nor the other one wrong."
            rule = "a pool of the kind preference, without grades, for earlier verdicts on pairs"
            raise refused(detail, rule, placed.name, f"mapping.{placed.name}")
        higher, ends = False, (kind.lower, kind.upper)
    low, high = ends or (kind.lower, kind.upper)
    missing = _texts((*options.missing, *(formatted.missing if formatted else ())))
    scale_given = ends is not None
    return Measure(
        *(placed.name, placed.role, kind, higher, low, high, scale_given, missing),
        comma=column.comma,
    )


def _higher(
    column: Column, placed: Placed, options: Options, known: Known | None, *, meant: bool
) -> bool | None:
    """Return True if higher numbers are better: by role, answer, format or name; else None."""
    if placed.role == "surrogate":
        return False
    given = options.directions.get(placed.name)
    if given is None and meant:
        given = options.higher
    if given is None and known is not None:
        given = known.higher
    if given is None:
        given = higher_by_name(placed.name)
    if given is None and judges(column.values):
        given = True
    return given


def _texts(values: Collection[object]) -> frozenset[str]:
    """The values as texts, numbers also as they are compared: -1.0 is -1."""
    texts = {shown(value).strip() for value in values}
    short = {text: f"{_parsed(text):g}" for text in texts}
    return frozenset(texts | {less for text, less in short.items() if float(less) == _parsed(text)})


def _parsed(text: str) -> float:
    """The number that a text is; NaN for any other."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def loss_in_log(options: Options, score: object, place: str, *, higher: bool) -> float | None:
    """The loss of a score in a tool's log, on the scale of the options; ``place`` as in a refusal.

    None for one that is missing.
    """
    return _of_log(options.scale, options.missing, higher=higher).read(score, place)


@lru_cache(maxsize=16)
def _of_log(ends: tuple[float, float], missing: tuple[str, ...], *, higher: bool) -> Measure:
    """The measure of a log's scores: one for all its rows."""
    return Measure("", "score", Kind(), higher, *ends, True, _texts(missing))


def is_nothing(value: object) -> bool:
    """Return True for a cell that says there is nothing, as of errors: empty, None, False or 0."""
    if is_missing(value) or shown(value).strip().lower() in _EMPTY:
        return True
    return number_of(value) == 0 and not judges([value])


def ends_of(text: str) -> tuple[float, float] | None:
    """The two ends in a text such as `1 to 5` or `0 10`; None where it has none."""
    parts = text.replace(",", " ").replace(" to ", " ").split()
    try:
        low, high = map(float, parts)
    except ValueError:
        return None
    return (low, high) if low < high and math.isfinite(high - low) else None


def spelled(ends: tuple[float, float]) -> str:
    """Two ends as `ends_of` takes them."""
    return f"{ends[0]:g} to {ends[1]:g}"


def by_column(texts: Sequence[str], place: str) -> Mapping[str, str]:
    """Answers by column: `COLUMN=ANSWER` is that of one, and another text that of all, as ''.

    Refuses two answers for one column.
    """
    found: dict[str, str] = {}
    for name, _, answer in (text.rpartition("=") for text in texts):
        if found.setdefault(name, answer) != answer:
            rule = f"{place} once, or for each column as COLUMN={answer}"
            raise refused(f"{place} has two answers.", rule, ", ".join(texts), place)
    return found
