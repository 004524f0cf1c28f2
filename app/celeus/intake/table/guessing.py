"""Give every column of a table a role by its name and its values, and say why.

A column is shown to judges only where these leave no doubt: a column of verdicts, of who gave them,
of a model's name or of times is hidden, and so is one that nothing is known of.
"""

import json
import re
from collections.abc import Iterable, Sequence

from celeus.intake.table.column_names import (
    ANSWERS,
    ERRORS,
    IDS,
    MARKS,
    NAMES,
    PARTS,
    REMARKS,
    ROW_NUMBERS,
    SUMMARISED,
    TIMES,
    effective_names,
    is_called_a_reply,
    is_of_models,
    is_run,
    last_name,
    names_a_mark,
    names_verdicts,
    snake,
    tokens_of,
    words,
)
from celeus.intake.table.columns import Column, is_messages, is_picture_text, shown
from celeus.intake.table.roles import (
    ASKS,
    GUESSES,
    HIDDEN,
    JUDGED,
    NUMBERS,
    SEEN,
    SIDES,
    Kind,
    Placed,
    Source,
)

_PAIRS = re.compile(
    r"(?:output_|model_|system_|assistant_)?(?:answer|response|output|completion|conversation|generation|prediction|text|reply|antwort"
    r"|translation|summary)_?([ab12])"
)
_NAMED_PAIRS = re.compile(r"(?:model|system|assistant)_?([ab12])")
"""Names of columns with the answers of two systems; or with their names, where these are short."""
_CHOSEN = {"chosen": "answer_a", "rejected": "answer_b"}
_CLOCK = re.compile(r"\d\d?:\d\d")
_OPTIONS = re.compile(r"[A-H]")
_VERDICT_WORDS = words(
    "accept accepted reject rejected ignore correct incorrect right wrong approve approved pass"
    " passed fail failed good bad tie win lose loss better worse hallucinated factual relevant"
    " irrelevant unrelated"
)
_SIGNS = re.compile(
    r"[0-9a-f]{16,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|https?://\S+|[-+]?[\d.,]+\s?%?"
    r"|\d{4}-\d\d?-\d\d?(?:[T ][\d:.,+Z-]*)?",
    re.IGNORECASE,
)
"""Hashes, addresses, numbers, times: nothing that anybody judges."""
_NUMBERED = re.compile(r" \(\d+\)$")
"""The end of a name that stood there before."""
_VERDICT_ID = re.compile(
    r"(?:review|reviewer|judge?ment|judge|verdict|rating|critique|feedback)_id"
)
"""Names of ids of verdicts, or of those who gave them."""
_MOST_GROUPS = 50
_LONGEST_ID = 256
_TIMES = 4
"""Rows to a value of the only texts, on average, that part the rows more than they are judged."""
_LONGEST_NAME = 40
_SENTENCE = 4
"""Fewest words of a sentence."""
_MOST = 0.8


def guessed(columns: Sequence[Column], kind: Kind) -> list[Placed]:
    """A role for every column by its name and values: each that stands for one column, to one."""
    return _Guess(columns, kind).placed()


def candidates(columns: Sequence[Column], placed: Sequence[Placed]) -> list[str]:
    """Columns that may be what is judged: hidden ones, of several texts that are no verdicts.

    Lists of objects may hold it, too.
    """
    return [
        column.name
        for column in _hidden(columns, placed)
        if (_may_be_judged(column) or _may_hold_answers(column)) and not _is_constant(column)
    ]


def rivals(columns: Sequence[Column], placed: Sequence[Placed]) -> list[str]:
    """The column that is judged by its name, and hidden texts that may be it instead.

    These are called a reply, or are any where what is judged is only called an answer and no
    reference stands beside it. Empty where there are none.
    """
    judged = [
        column.name for column in placed if column.role == "answer" and column.source == "name"
    ]
    if not judged:
        return []
    referred = any(column.role == "reference" for column in placed)
    certain = referred or last_name(judged[0]) not in ANSWERS
    found = [
        column.name
        for column in _hidden(columns, placed)
        if _may_be_judged(column)
        and _distinct(column) > 1
        and not _divides(column.values)
        and not tokens_of(column.name) & REMARKS
        and (is_called_a_reply(column.name) or not certain)
    ]
    return [*judged, *found] if found else []


def is_headless(columns: Sequence[Column], placed: Sequence[Placed]) -> bool:
    """Return True where no name is known and the names are a row: a sentence, or mostly values."""
    if any(column.source == "name" and column.role != HIDDEN for column in placed):
        return False
    if any(
        column.values and all(map(_is_sign, column.values)) and not _is_made(column.name)
        for column in columns
    ):
        # The name of a column of numbers, or of times, is none itself
        return False
    values = [column.name for column in columns if column.name in map(shown, column.values)]
    return 0 < len(columns) <= 2 * len(values) or any(
        len(column.name.split()) >= _SENTENCE and _are_sentences(column) for column in columns
    )


def sentences(columns: Sequence[Column], placed: Sequence[Placed]) -> list[str]:
    """Hidden columns of sentences, whatever they are called, but for times."""
    return [
        column.name
        for column in _hidden(columns, placed)
        if _are_sentences(column) and not _are_times(column)
    ]


def _are_times(column: Column) -> bool:
    """Return True for a column that is called a time, and has a clock's in every cell."""
    clocks = all(_CLOCK.search(str(value)) for value in column.values)
    return clocks and bool(tokens_of(column.name) & TIMES)


def texts_of_judges(columns: Sequence[Column], placed: Sequence[Placed]) -> list[str]:
    """The only text that judges see, where every row is a verdict: its id, or its judge's, says so.

    That text may be what the judge of it wrote. Empty for any other table.
    """
    seen = [column.name for column in placed if column.role in SEEN]
    if len(seen) > 1 or not any(_VERDICT_ID.fullmatch(snake(column.name)) for column in columns):
        return []
    return [name for name in seen if {"text", "content", "body", "message"} & {snake(name)}]


def labels(columns: Sequence[Column], placed: Sequence[Placed]) -> list[str]:
    """Hidden columns of texts that are called a label: of a classifier, or of people."""
    named = {"label", "prediction", "class"}
    return [
        column.name
        for column in _hidden(columns, placed)
        if _texts(column) is not None and named & tokens_of(column.name)
    ]


def _hidden(columns: Sequence[Column], placed: Sequence[Placed]) -> list[Column]:
    names = {column.name for column in placed if column.role == HIDDEN}
    return [column for column in columns if column.name in names]


def are_like_verdicts(column: Column, kind: Kind) -> bool:
    """Return True for words of verdicts, for labels that come again and again, and for scores."""
    if not column.values:
        return False
    labels = _divides(column.values) and all(
        len(shown(value).split()) == 1 for value in column.values
    )
    return labels or _verdicts_stand(column) or _are_numbers("score", column, kind)


def is_of_errors(column: Column) -> bool:
    """Return True for a column whose name says that it holds errors, and that holds no measures."""
    names, parents = effective_names(column.name)
    if ERRORS.isdisjoint({*names, *map(snake, parents)}):
        return False
    numbers = (column.number(value) for value in column.values)
    return all(not isinstance(number, float) or number.is_integer() for number in numbers)


class _Guess:
    """Roles under way, by the names of columns."""

    def __init__(self, columns: Sequence[Column], kind: Kind) -> None:
        self._columns = columns
        self._kind = kind
        self._found: dict[str, Placed] = {}

    def placed(self) -> list[Placed]:
        if self._kind.two:
            self._sides()
        self._id()
        for role in NAMES:
            if role == "answer" and self._has(SIDES[0]):
                continue
            self._by_name(role)
        self._gold()
        self._of_a_task()
        self._by_value()
        self._options()
        self._alone()
        return [self._found.get(column.name) or self._hidden(column) for column in self._columns]

    def _has(self, *roles: str) -> bool:
        return any(column.role in roles for column in self._found.values())

    def _take(self, column: Column, role: str, why: str, source: Source = "name") -> None:
        self._found[column.name] = Placed(column.name, role, why, source)

    def _left(self) -> Iterable[Column]:
        return [
            column for column in self._columns if column.name not in self._found and column.values
        ]

    def _sides(self) -> None:
        """The answers of two systems; `model_a` is one only where it is no name."""
        for pattern in (_PAIRS, _NAMED_PAIRS):
            sides: dict[str, Column] = {}
            for column in self._left():
                for name in effective_names(column.name)[0]:
                    pair, role = pattern.fullmatch(name), _CHOSEN.get(name)
                    if pair is not None:
                        role = SIDES[0] if pair[1] in "a1" else SIDES[1]
                    if role is not None and role not in sides:
                        sides[role] = column
                        break
            if len(sides) < len(SIDES):
                continue
            if pattern is _NAMED_PAIRS and any(map(_are_names, sides.values())):
                continue
            for role, column in sides.items():
                self._take(column, role, "its name, beside that of the other")
            return

    def _id(self) -> None:
        """Take the column that tells items apart, or else the one by which most rows differ."""
        named: dict[str, Column] = {}
        for name in f"{IDS} {ROW_NUMBERS}".split():
            for column in self._left():
                if name in effective_names(column.name)[0] and _are_ids(column):
                    named.setdefault(name, column)
        whole = [name for name, column in named.items() if _tells_apart(column)]
        again = [
            name
            for name, column in named.items()
            if name in words(IDS) and name not in whole and _distinct(column) > 1
        ]
        runs = any(is_run(column.name) for column in self._columns)
        again.sort(key=lambda name: -_distinct(named[name]))
        if whole and not (again and (runs or whole[0] not in words(IDS))):
            self._take(named[whole[0]], "id", "its name, and no two rows share one")
        elif again or (again := [name for name in named if name == "id"]):
            # Where all rows share one it is asked what they are
            self._take(named[again[0]], "id", "its name")

    def _by_name(self, role: str) -> None:
        if self._has(role) or (role == "score" and self._has("surrogate")):
            return
        for alias in NAMES[role].split():
            for column in self._left():
                names, parents = effective_names(column.name)
                if alias not in names or not _fits(role, column, self._kind):
                    continue
                if names_verdicts(parents) or (role not in NUMBERS and _verdicts_stand(column)):
                    continue
                if role == "group" and self._people():
                    continue
                self._take(column, role, "its name")
                return

    def _people(self) -> bool:
        """Rows are what several people found: a category is theirs."""
        people = {"annotator", "rater", "worker", "reviewer"}
        return any(people & tokens_of(column.name) for column in self._columns)

    def _gold(self) -> None:
        """Beside what a model answered, a column `answer` is what it is held against.

        Another of the same name is not, nor is a part of it.
        """
        judged = [
            column.name for column in self._found.values() if column.role in {"answer", *SIDES}
        ]
        if self._has("reference") or not judged:
            return
        for column in self._left():
            names, parents = effective_names(column.name)
            if column.name.lower().startswith(judged[0].lower()):
                continue
            if "answer" in names and not names_verdicts(parents) and not _verdicts_stand(column):
                self._take(column, "reference", "its name, beside what was answered")
                return

    def _of_a_task(self) -> None:
        """Take columns beside an answer by the names that they have in the tables of one task."""
        left = {last_name(column.name): column for column in self._left()}
        named = {last_name(column.name): column.role for column in self._found.values()}
        judged = next((name for name, role in named.items() if role == "answer"), "")
        if named.get("premise") == "text" and "hypothesis" in left:
            self._take(left["hypothesis"], "payload", "its name, beside a premise")
        if judged == "mt" or (judged == "hypothesis" and not self._has("text")):
            for names, role in ((("src", "source"), "text"), (("ref",), "reference")):
                column = next((left[name] for name in names if name in left), None)
                if column is not None and not self._has(role) and _texts(column) is not None:
                    self._take(column, role, "its name, beside a translation")
        if "summary" in tokens_of(judged) and not self._has("text", "question", "messages"):
            short = next(column for column in self._columns if last_name(column.name) == judged)
            longer = [
                column
                for name, column in left.items()
                if _are_sentences(column)
                and _length(column) > _length(short)
                and (name in SUMMARISED or not names_verdicts([column.name]))
            ]
            if len(longer) == 1:
                self._take(longer[0], "text", "the only longer text beside a summary", "value")

    def _by_value(self) -> None:
        """Chats and pictures under any name that is none of a verdict's."""
        for column in self._left():
            if names_verdicts([column.name]):
                continue
            if (
                not self._has("messages")
                and is_messages(column.values[0])
                and not self._kind.two
                and not (tokens_of(column.name) & {"a", "b", "1", "2", "chosen", "rejected"})
            ):
                self._take(column, "messages", "its values are chats", "value")
            elif not self._has("image") and _are_pictures(column.values):
                self._take(column, "image", "its values are pictures", "value")

    def _options(self) -> None:
        """Columns A, B, … beside a question are what may be chosen."""
        letters = [column for column in self._left() if _OPTIONS.fullmatch(column.name)]
        names = "".join(column.name for column in letters)
        if self._has("question") and names[:2] == "AB" and "ABCDEFGH".startswith(names):
            for column in letters:
                self._take(column, "payload", "its name: an option")

    def _alone(self) -> None:
        """The only text there is; or of two columns of texts the one that asks."""
        if self._has(*JUDGED, *ASKS):
            return
        left = [column for column in self._left() if _may_be_judged(column)]
        others = [column for column in self._left() if column not in left]
        alike = len(self._columns) > 1 and all(
            _is_constant(column) or _divides(column.values, _TIMES) for column in left
        )
        if len(left) == 1 and not alike and not any(map(_are_sentences, others)):
            self._take(left[0], "payload", "the only text", "value")
        elif len(left) == len(self._columns) == len(SIDES):
            asks = [column for column in left if _asks(column)]
            if len(asks) == 1:
                self._take(asks[0], "question", "its texts are questions", "value")
                (other,) = (column for column in left if column is not asks[0])
                self._take(other, "answer", "the only text beside the questions", "value")

    def _hidden(self, column: Column) -> Placed:
        if not column.values:
            return Placed(column.name, HIDDEN, "it is empty", "value")
        if _are_numbers_of_few(column):
            why = "few rows have one: verdicts that exist already are `known`"
            return Placed(column.name, HIDDEN, why, "value")
        if _are_outside(column, self._kind):
            ends = f"{self._kind.lower:g} to {self._kind.upper:g}"
            why = f"its numbers are not from {ends}: as a score it needs a scale"
            return Placed(column.name, HIDDEN, why, "value")
        if names_verdicts([column.name]) or names_a_mark(column.name):
            why = "its name: a verdict, or by whom, by which model or when"
            return Placed(column.name, HIDDEN, why, "name")
        if _verdicts_stand(column):
            return Placed(column.name, HIDDEN, "its values are verdicts", "value")
        return Placed(column.name, HIDDEN, "nothing says what it is", "value")


def _fits(role: str, column: Column, kind: Kind) -> bool:  # noqa: PLR0911 -- a rule a role
    values = column.values
    if role == "messages":
        return is_messages(values[0])
    if role == "choices":
        return all(isinstance(value, list) and not _objects(value) for value in values)
    if role == "image":
        return any(not isinstance(value, int | float) for value in values)
    if role in NUMBERS:
        return _are_numbers(role, column, kind)
    if role == "group":
        return column.missing == 0 and _divides(values)
    if is_messages(values[0]) and role in {"text", "reference"}:
        return False
    if role == "text" and last_name(column.name) == "source":
        # The one that is translated, not where a row is from
        return _are_sentences(column)
    return not all(isinstance(value, bool) for value in values)


def _are_numbers(role: str, column: Column, kind: Kind) -> bool:
    """Weights of all items, or guesses within the scale of most."""
    numbers = [column.number(value) for value in column.values]
    if role == "weight":
        least = all(isinstance(number, float | int) and number > 0 for number in numbers)
        return column.missing == 0 and least
    if len(column.values) < column.missing:
        return False
    within = [
        isinstance(number, float | int) and kind.lower <= number <= kind.upper for number in numbers
    ]
    return sum(within) >= _MOST * len(within)


def _are_numbers_of_few(column: Column) -> bool:
    """Numbers under the name of a guess that most rows do not have."""
    return _is_named_a_guess(column) and len(column.values) < column.missing


def _are_outside(column: Column, kind: Kind) -> bool:
    """Numbers under the name of a guess, but of another scale."""
    numbers = [isinstance(column.number(value), float | int) for value in column.values]
    mostly = sum(numbers) >= _MOST * len(numbers)
    return _is_named_a_guess(column) and mostly and not _are_numbers("score", column, kind)


def _is_named_a_guess(column: Column) -> bool:
    named = {name for role in GUESSES for name in NAMES[role].split()}
    return not named.isdisjoint(effective_names(column.name)[0])


def _objects(value: list[object]) -> bool:
    return any(isinstance(element, dict | list) for element in value)


def _are_ids(column: Column) -> bool:
    """Most values are short, and no lists; the rows with others are told as bad ones, or asked."""
    short = [
        not isinstance(value, dict | list | bool) and len(shown(value)) <= _LONGEST_ID
        for value in column.values
    ]
    return sum(short) >= _MOST * len(short)


def _is_constant(column: Column) -> bool:
    """Return True for one value in all of several rows."""
    return len(column.values) > 1 and _distinct(column) == 1


def _distinct(column: Column) -> int:
    return len({shown(value) for value in column.values})


def _tells_apart(column: Column) -> bool:
    """No two rows share a value; a few rows may have none, where the name is one of an item."""
    if _distinct(column) < len(column.values):
        return False
    return column.missing == 0 or (
        bool(words(IDS) & set(effective_names(column.name)[0]))
        and column.missing < (1 - _MOST) * (column.missing + len(column.values))
    )


def _divides(values: Sequence[object], times: int = 2) -> bool:
    """Few values that come again and again, on average so many times."""
    if any(isinstance(value, dict | list | float) for value in values):
        return False
    several = {shown(value) for value in values}
    return 1 < len(several) <= min(_MOST_GROUPS, len(values) // times)


def _are_names(column: Column) -> bool:
    """Short texts that come again, without blanks: names of models."""
    texts = _texts(column)
    if texts is None:
        return True
    short = all(len(text) <= _LONGEST_NAME and "\n" not in text for text in texts)
    return short and (len(set(texts)) < len(texts) or not any(" " in text for text in texts))


def _are_sentences(column: Column) -> bool:
    texts = _texts(column) or []
    return sum(len(text.split()) >= _SENTENCE for text in texts) > _MOST * len(column.values)


def _length(column: Column) -> int:
    return sum(map(len, _texts(column) or []))


def _are_pictures(values: Sequence[object]) -> bool:
    some = [isinstance(value, str) and is_picture_text(value) for value in values]
    return sum(some) >= _MOST * len(some)


def _texts(column: Column) -> list[str] | None:
    """The texts of a column, those of a list joined; None where it holds anything else."""
    texts = []
    for value in column.values:
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            texts.append("\n".join(value))
        elif isinstance(value, str):
            texts.append(value)
        elif is_messages(value):
            texts.append(shown(value))
        else:
            return None
    return texts or None


def _may_be_judged(column: Column) -> bool:
    """Texts, or chats, that are neither verdicts nor signs, under a name that says neither."""
    texts = _texts(column)
    if texts is None or names_verdicts([column.name]) or tokens_of(column.name) & MARKS:
        return False
    if is_of_models(column.name) and _are_names(column):
        return False
    if tokens_of(last_name(column.name)) & PARTS or all(map(_records_verdicts, texts)):
        return False
    return not _verdicts_stand(column) and not all(map(_is_sign, texts))


def _may_hold_answers(column: Column) -> bool:
    """Lists of objects under a name that says neither verdicts nor marks."""
    lists = all(isinstance(value, list) and _objects(value) for value in column.values)
    named = names_verdicts([column.name]) or names_a_mark(column.name)
    return bool(column.values) and lists and not named


def _records_verdicts(text: str) -> bool:
    """A cell holds JSON with a member that is called a verdict, as a judge's calls are written."""
    if text.lstrip()[:1] not in {"[", "{"}:
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    records = value if isinstance(value, list) else [value]
    return any(isinstance(record, dict) and names_verdicts([*record]) for record in records)


def _is_sign(value: object) -> bool:
    return isinstance(value, str) and _SIGNS.fullmatch(value.strip()) is not None


def _is_made(name: str) -> bool:
    """Return True for a name that is a value, or that the reader made of a column's number."""
    return _is_sign(_NUMBERED.sub("", name)) or name.startswith("column ")


def _verdicts_stand(column: Column) -> bool:
    """Every value is the word for a verdict, such as accept or wrong."""
    texts = [value for value in column.values if isinstance(value, str)]
    return bool(texts) and all(text.strip().lower() in _VERDICT_WORDS for text in texts)


def _asks(column: Column) -> bool:
    texts = _texts(column) or []
    return sum(text.rstrip().endswith("?") for text in texts) >= _MOST * len(texts)
