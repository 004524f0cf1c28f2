"""Give every column of a table a role, and say why.

A role is what a format or a user says, or it follows from names and values. By these a column is
shown to judges only where they leave no doubt: a column of verdicts, of who gave them, of a model's
name or of times is hidden, and so is one that nothing is known of.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from celeus.intake.sources.sheet import Known, refused
from celeus.intake.table.columns import Column, is_messages, is_picture_text, shown

SHOWN = ("question", "answer", "reference", "image", "messages", "text", "choices", "instructions")
"""Roles of what a judge is shown, by the names that these have in a payload."""
SIDES = ("answer_a", "answer_b")
SEEN = frozenset({*SHOWN, *SIDES, "payload"})
"""Roles of what a judge sees."""
GUESSES = ("surrogate", "score")
NUMBERS = (*GUESSES, "known", "weight", "prediction")
HIDDEN = "hidden"
MANY = frozenset({"payload", "group", HIDDEN})
"""Roles that several columns may have."""
ROLES = ("id", *SHOWN, *SIDES, *NUMBERS, "group", "payload", HIDDEN)
JUDGED = frozenset({"answer", "messages", *SIDES})
"""Roles of what is judged itself."""
ASKS = frozenset({"question", "text", "image", "payload"})
"""Roles of what is shown beside it, and is judged where there is nothing else."""

Source = Literal["format", "given", "name", "value"]


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


IDS = (
    "id item_id question_id example_id sample_id doc_id qid task_id problem_id prompt_id"
    " instance_id custom_id test_id case_id record_id query_id segment_id seg_id hit_id"
    " conversation_id uid"
)
"""Names of what tells items apart: rows that share one are of one item."""
_ROW_NUMBERS = "row_id uuid guid key nr no number index line_number"
_RUNS = words(
    "worker annotator rater reviewer labeler labeller coder assignment run epoch trial attempt"
    " repeat repetition iteration seed turn"
)
"""Names of columns by which the rows of one item differ: people, or runs of a model."""

_NAMES: Mapping[str, str] = {
    "instructions": "instructions rubric guidelines anleitung",
    "messages": "messages conversation conversations chat dialog dialogue turns history mapping"
    " transcript prompt input request",
    "question": "question prompt query instruction problem user_input user_message user_prompt"
    " request question_text question_content problem_statement input frage pregunta pergunta"
    " domanda questions goal human",
    "answer": "model_answer model_response model_output response actual_output prediction"
    " predicted_answer prediction_text predicted_text pred preds actual"
    " llm_answer llm_response llm_output assistant_response generated_text generated_answer"
    " generation completion output reply answer assistant hypothesis candidate summary"
    " generated_summary translation mt caption antwort respuesta réponse reponse resposta risposta"
    " filtered_resps modellantwort",
    "reference": "reference reference_answer reference_summary gold_summary reference_translation"
    " references expected expected_output expected_answer"
    " ground_truth gold gold_answer golden correct_answer right_answer best_answer ideal target"
    " truth solution answers musterlösung musterloesung lösung loesung referenz erwartet",
    "image": "image img picture photo image_url img_url picture_url bild thumbnail",
    "text": "text context contexts retrieved_contexts retrieval_context passage document article"
    " content body source premise story kontext input",
    "choices": "choices options auswahl",
    "weight": "weight weights sample_weight gewicht",
    "surrogate": "surrogate loss predicted_loss error_probability guessed_loss",
    "score": "score correct is_correct confidence probability p_correct acc accuracy exact_match"
    " passed success judge_score predicted_score",
    "group": "group category subject topic task subset domain language lang difficulty kategorie"
    " thema fach sprache section",
}
_HIGHER = words(
    "correct is_correct p_correct accuracy acc acc_norm exact_match em f1 passed pass pass_at_1"
    " success solved resolved correctness"
)
_LOWER = words(
    "loss predicted_loss guessed_loss error is_error error_rate error_probability incorrect"
    " is_incorrect wrong is_wrong failed perplexity"
)
_FORESEEN = words(
    "confidence probability p_correct predicted_score surrogate predicted_loss error_probability"
    " guessed_loss"
)
"""Names of guesses of a score, or of a loss, by who has not seen it."""
_PAIRS = re.compile(
    r"(?:answer|response|output|completion|conversation|generation|prediction|text|reply|antwort"
    r"|translation|summary)_?([ab12])"
)
_NAMED_PAIRS = re.compile(r"(?:model|system|assistant)_?([ab12])")
"""What two systems said; or their names, where they are short."""
_ANSWERS = words("answer antwort respuesta réponse reponse resposta risposta")
"""Names of what a model answered, and as often of what it is held against."""
_REMARKS = words("note notes remark remarks tag tags hint hints")
_SUMMARISED = words("review reviews")
"""Names of texts that are summarised, and else of verdicts."""
_CHOSEN = {"chosen": "answer_a", "rejected": "answer_b"}
_OPTIONS = re.compile(r"[A-H]")
_GENERIC = words("text value content raw output body completion label message parts string")
"""Names that say less than the one they stand under."""
_CONTAINERS = words(
    "data fields field inputs outputs input_data row record item example doc sample attributes"
    " payload values"
)
_VERDICTS = words(
    "annotator annotation annotated worker rater rating reviewer review labeler labeller coder"
    " evaluator evaluation grader judge judgment judgement verdict label score scored grade graded"
    " vote winner win preference preferred explanation rationale critique feedback comment"
    " justification reason reasoning accept approve approved reject severity confidence agreement"
    " suggestion metric"
)
_MARKS = words(
    "hash uuid guid sha md5 digest trace span url uri link href"
    " timestamp tstamp time date datetime created updated completed modified metadata meta vector"
    " embedding logprob latency token cost duration version seed user email session run error"
    " status usage"
)
_MODELS = words("model generator engine provider system assistant")
_OF_MODELS = _MODELS | words("name id version family type used a b 1 2 title")
_PARTS = words("id category type dataset split subset doc source title language difficulty topic")
"""Names of parts of a file, which nobody judges."""
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
_MOST_GROUPS = 50
_LONGEST_ID = 256
_LONGEST_NAME = 40
_SENTENCE = 4
"""Fewest words of a sentence."""
_MOST = 0.8


@dataclass(frozen=True, slots=True)
class Kind:
    """The losses of the pool: their scale, and whether two systems are compared.

    ``preferred`` says that a judge of the two says which one is better, and nothing else.
    """

    lower: float = 0.0
    upper: float = 1.0
    two: bool = False
    preferred: bool = False


@dataclass(frozen=True, slots=True)
class Placed:
    """A column with its role, the reason for it in a phrase, and where that is from."""

    name: str
    role: str
    why: str
    source: Source


def by_format(columns: Sequence[Column], known: Known) -> list[Placed]:
    """The roles that a format has for its columns; one without is hidden."""
    beside = "the format shows it to nobody"
    return [
        Placed(
            column.name,
            known.roles.get(column.name, HIDDEN),
            "the format says so" if column.name in known.roles else beside,
            "format",
        )
        for column in columns
    ]


def by_mapping(
    columns: Sequence[Column], mapping: Mapping[str, str], why: str = "given"
) -> list[Placed]:
    """The roles that somebody gave; a column that is left out is hidden.

    Refuses a column or role that is not there, or a role twice.
    """
    names = [column.name for column in columns]
    _check_given(names, mapping)
    if {*mapping.values()} <= {HIDDEN}:
        rule = "a role for one column at least"
        raise refused("No column says what the items are.", rule, None, "mapping")
    left_out = "left out of the mapping"
    return [
        Placed(name, mapping.get(name, HIDDEN), why if name in mapping else left_out, "given")
        for name in names
    ]


def with_roles(placed: Sequence[Placed], roles: Mapping[str, str]) -> list[Placed]:
    """The same columns, these with the roles that somebody gave, which no others have then."""
    _check_given([column.name for column in placed], roles)
    taken = {*roles.values()} - MANY
    if not taken.isdisjoint(GUESSES):
        taken |= {*GUESSES}
    return [
        Placed(column.name, roles[column.name], "given", "given")
        if column.name in roles
        else replace(column, role=HIDDEN, why=f"another column is the {column.role}")
        if column.role in taken
        else column
        for column in placed
    ]


def _check_given(names: Sequence[str], mapping: Mapping[str, str]) -> None:
    taken: dict[str, str] = {}
    for name, role in mapping.items():
        place = f"mapping.{name}"
        if name not in names:
            listed = ", ".join(names)[:400]
            raise refused("The file has no such column.", f"one of {listed}", name, place)
        if role not in ROLES:
            raise refused("There is no such role.", f"one of {', '.join(ROLES)}", role, place)
        if role not in MANY and role in taken:
            rule = f"a role of its own: {taken[role]} is the {role} already"
            raise refused("Two columns have one role.", rule, role, place)
        taken[role] = name
    if {*GUESSES} <= {*mapping.values()}:
        raise refused(
            "A guess of the loss is a surrogate, or follows from a score.",
            "one of the two",
            "surrogate and score",
            "mapping",
        )


def guessed(columns: Sequence[Column], kind: Kind) -> list[Placed]:
    """A role for every column by its name and values: each that stands for one column, to one."""
    return _Guess(columns, kind).placed()


def with_answer(placed: Sequence[Placed], answer: str) -> list[Placed]:
    """The same columns, this one being judged; refuses one that is not there.

    A question, or a text, that is named stays what it is: it is judged itself.
    """
    roles = {column.name: column.role for column in placed}
    if answer not in roles:
        listed = ", ".join(roles)[:400]
        raise refused("The file has no such column.", f"one of {listed}", answer, "answer")
    if roles[answer] not in ASKS | JUDGED:
        return with_roles(placed, {answer: "answer"})
    others = [name for name, role in roles.items() if role == "answer" and name != answer]
    return with_roles(placed, dict.fromkeys(others, HIDDEN))


def with_group(placed: Sequence[Placed], group: str | None) -> list[Placed]:
    """The same columns, this one, if any, being a group; refuses one that is not there."""
    names = [column.name for column in placed]
    if group is None:
        return list(placed)
    if group not in names:
        listed = ", ".join(names)[:400]
        raise refused("The file has no such column.", f"one of {listed}", group, "group")
    return with_roles(placed, {group: "group"})


def candidates(columns: Sequence[Column], placed: Sequence[Placed]) -> list[str]:
    """Columns that may be what is judged: hidden ones, of texts that are no verdicts."""
    return [column.name for column in _hidden(columns, placed) if _may_be_judged(column)]


def rivals(columns: Sequence[Column], placed: Sequence[Placed]) -> list[str]:
    """What is judged where it is only called an answer, and hidden texts that may be it instead.

    Empty where there are none, or where a reference stands beside it.
    """
    judged = [one.name for one in placed if one.role == "answer" and one.source == "name"]
    if not judged or _last(judged[0]) not in _ANSWERS:
        return []
    if any(column.role == "reference" for column in placed):
        return []
    found = [
        column.name
        for column in _hidden(columns, placed)
        if _may_be_judged(column)
        and _distinct(column) > 1
        and not _divides(column.values)
        and not _tokens(column.name) & _REMARKS
    ]
    return [*judged, *found] if found else []


def is_headless(columns: Sequence[Column], placed: Sequence[Placed]) -> bool:
    """Return True where no name is known and one is a sentence as its values are: a row itself."""
    if any(column.source == "name" and column.role != HIDDEN for column in placed):
        return False
    return any(
        len(column.name.split()) >= _SENTENCE and _are_sentences(column) for column in columns
    )


def sentences(columns: Sequence[Column], placed: Sequence[Placed]) -> list[str]:
    """Hidden columns of sentences, whatever they are called."""
    return [column.name for column in _hidden(columns, placed) if _are_sentences(column)]


def labels(columns: Sequence[Column], placed: Sequence[Placed]) -> list[str]:
    """Hidden columns of texts that are called a label: of a classifier, or of people."""
    named = {"label", "prediction", "class"}
    return [
        column.name
        for column in _hidden(columns, placed)
        if _texts(column) is not None and named & _tokens(column.name)
    ]


def _hidden(columns: Sequence[Column], placed: Sequence[Placed]) -> list[Column]:
    names = {column.name for column in placed if column.role == HIDDEN}
    return [column for column in columns if column.name in names]


def is_ambiguous(column: Placed) -> bool:
    """Return True for a reference that may be the answer itself, such as a `target`."""
    name = _last(column.name)
    return column.source == "name" and column.role == "reference" and name in {"target", "solution"}


def are_like_verdicts(column: Column, kind: Kind) -> bool:
    """Return True for words of verdicts, for labels that come again and again, and for scores."""
    if not column.values:
        return False
    labels = _divides(column.values) and all(len(shown(one).split()) == 1 for one in column.values)
    return labels or _verdicts_stand(column) or _are_numbers("score", column, kind)


def higher_by_name(name: str) -> bool | None:
    """Return the direction that a name says: True for accuracy, False for loss, else None."""
    names = _effective(name)[0]
    if _HIGHER & set(names):
        return True
    return False if _LOWER & set(names) else None


def is_foreseen(column: str) -> bool:
    """Return True for the name of a guess that was made before there was a verdict."""
    return not _FORESEEN.isdisjoint(_effective(column)[0])


def is_of_models(column: str) -> bool:
    """Return True if the rows of one item may differ by the model that this column names."""
    tokens = _tokens(column)
    return bool(tokens & _MODELS) and tokens <= _OF_MODELS


def is_run(column: str) -> bool:
    """Return True if the rows of one item differ by this column: a worker, an epoch, a trial."""
    named = _tokens(column) - words("id index no number name")
    return bool(named) and named <= _RUNS


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
        for role in _NAMES:
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
        return [one for one in self._columns if one.name not in self._found and one.values]

    def _sides(self) -> None:
        """The answers of two systems; `model_a` is one only where it is no name."""
        for pattern in (_PAIRS, _NAMED_PAIRS):
            sides: dict[str, Column] = {}
            for column in self._left():
                for name in _effective(column.name)[0]:
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
        """What tells items apart; where no column does, the one by which most rows differ."""
        named: dict[str, Column] = {}
        for name in f"{IDS} {_ROW_NUMBERS}".split():
            for column in self._left():
                if name in _effective(column.name)[0] and _are_ids(column):
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
        for alias in _NAMES[role].split():
            for column in self._left():
                names, parents = _effective(column.name)
                if alias not in names or not _fits(role, column, self._kind):
                    continue
                if _are_verdicts(parents) or (role not in NUMBERS and _verdicts_stand(column)):
                    continue
                if role == "group" and self._people():
                    continue
                self._take(column, role, "its name")
                return

    def _people(self) -> bool:
        """Rows are what several people found: a category is theirs."""
        people = {"annotator", "rater", "worker", "reviewer"}
        return any(people & _tokens(column.name) for column in self._columns)

    def _gold(self) -> None:
        """Beside what a model answered, a column `answer` is what it is held against.

        Another of the same name is not, nor is a part of it.
        """
        judged = [one.name for one in self._found.values() if one.role in {"answer", *SIDES}]
        if self._has("reference") or not judged:
            return
        for column in self._left():
            names, parents = _effective(column.name)
            if column.name.lower().startswith(judged[0].lower()):
                continue
            if "answer" in names and not _are_verdicts(parents) and not _verdicts_stand(column):
                self._take(column, "reference", "its name, beside what was answered")
                return

    def _of_a_task(self) -> None:
        """What stands beside an answer in the tables of one task, by the names these have there."""
        left = {_last(column.name): column for column in self._left()}
        named = {_last(one.name): one.role for one in self._found.values()}
        judged = next((name for name, role in named.items() if role == "answer"), "")
        if named.get("premise") == "text" and "hypothesis" in left:
            self._take(left["hypothesis"], "payload", "its name, beside a premise")
        if judged == "mt" or (judged == "hypothesis" and not self._has("text")):
            for names, role in ((("src", "source"), "text"), (("ref",), "reference")):
                column = next((left[name] for name in names if name in left), None)
                if column is not None and not self._has(role) and _texts(column) is not None:
                    self._take(column, role, "its name, beside a translation")
        if "summary" in _tokens(judged) and not self._has("text", "question", "messages"):
            short = next(one for one in self._columns if _last(one.name) == judged)
            longer = [
                column
                for name, column in left.items()
                if _are_sentences(column)
                and _length(column) > _length(short)
                and (name in _SUMMARISED or not _are_verdicts([column.name]))
            ]
            if len(longer) == 1:
                self._take(longer[0], "text", "the only longer text beside a summary", "value")

    def _by_value(self) -> None:
        """Chats and pictures under any name that is none of a verdict's."""
        for column in self._left():
            if _are_verdicts([column.name]):
                continue
            if (
                not self._has("messages")
                and is_messages(column.values[0])
                and not self._kind.two
                and not (_tokens(column.name) & {"a", "b", "1", "2", "chosen", "rejected"})
            ):
                self._take(column, "messages", "its values are chats", "value")
            elif not self._has("image") and _are_pictures(column.values):
                self._take(column, "image", "its values are pictures", "value")

    def _options(self) -> None:
        """Columns A, B, … beside a question are what may be chosen."""
        letters = [one for one in self._left() if _OPTIONS.fullmatch(one.name)]
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
        if len(left) == 1 and not any(map(_are_sentences, others)):
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
        if _are_verdicts([column.name]) or _named_like_a_mark(column.name):
            why = "its name: a verdict, or by whom, by which model or when"
            return Placed(column.name, HIDDEN, why, "name")
        if _verdicts_stand(column):
            return Placed(column.name, HIDDEN, "its values are verdicts", "value")
        return Placed(column.name, HIDDEN, "nothing says what it is", "value")


def _snake(part: str) -> str:
    """A name in lower case with underscores, without a unit in brackets."""
    part = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", part.strip())
    part = re.sub(r"[\s\-/]+", "_", part.lower()).strip("_")
    return re.sub(r"(?<=[a-z])_?\(.*\)$", "", part)


def _plain(part: str) -> str:
    part = re.sub(r"[\s\-/]+", "_", part.strip().lower()).strip("_")
    return re.sub(r"(?<=[a-z])_?\(.*\)$", "", part)


@lru_cache(maxsize=4096)
def _effective(path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names that a column goes by, and those that it stands under.

    A last name that says little gives way to the one that it stands under.
    """
    parts = path.split(".")
    at = len(parts) - 1
    if _plain(parts[at]) == "choices" and at and _plain(parts[at - 1]) in {"response", "body"}:
        return ("response",), tuple(parts[: at - 1])
    while at and (_plain(parts[at]) in _GENERIC or parts[at].isdigit()):
        at -= 1
    if _plain(parts[at]) in _CONTAINERS and at < len(parts) - 1:
        at += 1
    named = dict.fromkeys((_plain(parts[at]), _snake(parts[at])))
    return tuple(named), tuple(parts[:at])


def _last(path: str) -> str:
    return _effective(path)[0][0]


def _tokens(path: str) -> set[str]:
    words = [word for part in path.split(".") for word in re.split(r"[^\w]|_", _snake(part))]
    return {word for word in words if word} | {word.removesuffix("s") for word in words if word}


def _are_verdicts(parts: Sequence[str]) -> bool:
    """Something stands under the name of a verdict, or beside what is judged."""
    return any(_tokens(part) & (_VERDICTS | {"metadata", "meta", "prediction"}) for part in parts)


def _named_like_a_mark(name: str) -> bool:
    return bool(_tokens(name) & _MARKS) or is_of_models(name)


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
    if role == "text" and _last(column.name) == "source":
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
    named = {name for role in GUESSES for name in _NAMES[role].split()}
    return not named.isdisjoint(_effective(column.name)[0])


def _objects(value: list[object]) -> bool:
    return any(isinstance(element, dict | list) for element in value)


def _are_ids(column: Column) -> bool:
    """Most values are short, and no lists; the rows with others are told as bad ones, or asked."""
    short = [
        not isinstance(value, dict | list | bool) and len(shown(value)) <= _LONGEST_ID
        for value in column.values
    ]
    return sum(short) >= _MOST * len(short)


def _distinct(column: Column) -> int:
    return len({shown(value) for value in column.values})


def _tells_apart(column: Column) -> bool:
    """No two rows share a value; a few rows may have none, where the name is one of an item."""
    if _distinct(column) < len(column.values):
        return False
    return column.missing == 0 or (
        bool(words(IDS) & set(_effective(column.name)[0]))
        and column.missing < (1 - _MOST) * (column.missing + len(column.values))
    )


def _divides(values: Sequence[object]) -> bool:
    """Few values that come again and again."""
    if any(isinstance(value, dict | list | float) for value in values):
        return False
    several = {shown(value) for value in values}
    return 1 < len(several) <= min(_MOST_GROUPS, len(values) // 2)


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
    if texts is None or _are_verdicts([column.name]) or _tokens(column.name) & _MARKS:
        return False
    if is_of_models(column.name) and _are_names(column):
        return False
    if _tokens(_last(column.name)) & _PARTS or all(map(_records_verdicts, texts)):
        return False
    return not _verdicts_stand(column) and not all(map(_is_sign, texts))


def _records_verdicts(text: str) -> bool:
    """A cell holds JSON with a member that is called a verdict, as a judge's calls are written."""
    if text.lstrip()[:1] not in {"[", "{"}:
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    records = value if isinstance(value, list) else [value]
    return any(isinstance(record, dict) and _are_verdicts([*record]) for record in records)


def _is_sign(value: object) -> bool:
    return isinstance(value, str) and _SIGNS.fullmatch(value.strip()) is not None


def _verdicts_stand(column: Column) -> bool:
    """Every value is the word for a verdict, such as accept or wrong."""
    texts = [value for value in column.values if isinstance(value, str)]
    return bool(texts) and all(text.strip().lower() in _VERDICT_WORDS for text in texts)


def _asks(column: Column) -> bool:
    texts = _texts(column) or []
    return sum(text.rstrip().endswith("?") for text in texts) >= _MOST * len(texts)
