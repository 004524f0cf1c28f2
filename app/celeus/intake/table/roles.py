"""Guess the meaning of a sheet's columns by their names and values.

A guess is a suggestion: whoever makes a pool of the file sees it with the first items, and says
otherwise by a mapping.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from celeus.intake.table.columns import Column, is_messages, shown

SHOWN = ("question", "answer", "reference", "image", "messages", "text", "choices", "instructions")
"""Roles of what a judge is shown, by the names that these have in a payload."""
SIDES = ("answer_a", "answer_b")
NUMBERS = ("surrogate", "score", "weight", "prediction")
MANY = frozenset({"payload", "group", "ignore"})
"""Roles that several columns may have."""
ROLES = ("id", *SHOWN, *SIDES, *NUMBERS, "group", "payload", "ignore")

_NAMES: Mapping[str, str] = {
    "id": "id item_id doc_id example_id sample_id question_id qid custom_id conversation_id row_id"
    " uid uuid guid key nr no number index",
    "instructions": "instructions rubric guidelines anleitung",
    "messages": "messages conversation conversations chat dialog dialogue turns history mapping"
    " transcript prompt input request",
    "question": "question prompt query instruction problem user_input user_message request"
    " question_text input frage pregunta pergunta domanda questions goal human",
    "answer": "model_answer model_response model_output response actual_output prediction"
    " predicted_answer generated_text generated_answer generation completion output reply answer"
    " assistant hypothesis candidate summary translation antwort respuesta réponse reponse"
    " resposta risposta filtered_resps modellantwort",
    "reference": "reference reference_answer references expected expected_output expected_answer"
    " ground_truth gold gold_answer golden correct_answer right_answer best_answer ideal target"
    " truth solution label answers musterlösung musterloesung lösung loesung referenz erwartet",
    "image": "image img picture photo image_url img_url picture_url bild thumbnail",
    "text": "text context passage document article content body source premise story kontext input",
    "choices": "choices options auswahl",
    "weight": "weight weights sample_weight gewicht",
    "surrogate": "surrogate guess loss predicted_loss error_probability guessed_loss",
    "score": "score correct is_correct confidence probability p_correct acc accuracy exact_match"
    " passed success judge_score predicted_score score",
    "group": "group category subject topic task subset domain language lang difficulty kategorie"
    " thema fach sprache section",
}
_PAIRS = re.compile(
    r"(?:answer|response|output|completion|prediction|model|system|text|reply|antwort)_?([ab12])"
)
_CHOSEN = {"chosen": "answer_a", "rejected": "answer_b"}
_GENERIC = frozenset({"text", "value", "content", "raw", "output", "body", "completion", "label"})
"""Names that say less than the one they stand under."""
_PICTURE = re.compile(
    r"data:image/|https?://\S+\.(?:png|jpe?g|gif|webp|svg|avif|bmp)(?:[?#]|$)", re.IGNORECASE
)
_MOST_GROUPS = 50
_LONGEST_ID = 256
_MANY_WORDS = 12
"""Mean characters of a text that is more than a word."""
_MOST = 0.8


@dataclass(frozen=True, slots=True)
class Kind:
    """The losses of the pool: their scale, and whether two systems are compared."""

    lower: float = 0.0
    upper: float = 1.0
    two: bool = False


def guessed(columns: Sequence[Column], kind: Kind) -> dict[str, str]:
    """A role for every column, by its name: each role that stands for one column, to one."""
    found: dict[str, str] = {}
    by_name = {column.name: column for column in columns}
    if kind.two:
        found |= _sides(columns)
    for role in _NAMES:
        if role in found.values():
            continue
        for alias in _NAMES[role].split():
            fitting = (column for column in columns if _may(column, role, alias, found, kind))
            name = next((column.name for column in fitting), None)
            if name is not None:
                found[name] = role
                break
    _gold(found, by_name)
    _by_value(found, columns, kind)
    if not set(found.values()) & {"question", "answer", "text", "messages", "image", *SIDES}:
        _texts(found, columns)
    return {column.name: found.get(column.name, "ignore") for column in columns}


def _may(column: Column, role: str, alias: str, found: dict[str, str], kind: Kind) -> bool:
    """The column, which has no role yet, is called so and fits the role."""
    return column.name not in found and alias in _names(column.name) and _fits(role, column, kind)


def _names(path: str) -> list[str]:
    """Candidate names of a column: its last name, and the one before where that says little."""
    parts = [re.sub(r"[\s\-/]+", "_", part.strip().lower()).strip("_") for part in path.split(".")]
    parts = [re.sub(r"(?<=[a-z])_?\(.*\)$", "", part) for part in parts]
    last = parts[-1]
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", path.rsplit(".", maxsplit=1)[-1].strip()).lower()
    named = [last, snake.replace(" ", "_").replace("-", "_")]
    if len(parts) > 1 and last in _GENERIC:
        named.insert(0, parts[-2])
    if last == "choices" and len(parts) > 1 and parts[-2] in {"response", "body", "completion"}:
        named = ["response"]
    return named


def _fits(role: str, column: Column, kind: Kind) -> bool:  # noqa: PLR0911 -- a rule a role
    values = column.values
    if not values:
        return False
    if role == "id":
        return column.missing == 0 and _tells_apart(values)
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
    return not all(isinstance(value, bool) for value in values)


def _are_numbers(role: str, column: Column, kind: Kind) -> bool:
    """Weights of all items, or guesses within the scale of most."""
    numbers = [column.number(value) for value in column.values]
    if role == "weight":
        least = all(isinstance(number, float | int) and number > 0 for number in numbers)
        return column.missing == 0 and least
    within = [
        isinstance(number, float | int) and kind.lower <= number <= kind.upper for number in numbers
    ]
    return sum(within) >= _MOST * len(within)


def _objects(value: list[object]) -> bool:
    return any(isinstance(element, dict | list) for element in value)


def _tells_apart(values: list[object]) -> bool:
    if any(isinstance(value, dict | list | bool) for value in values):
        return False
    names = [shown(value) for value in values]
    return len(set(names)) == len(names) and max(map(len, names)) <= _LONGEST_ID


def _divides(values: list[object]) -> bool:
    """Few values that come again and again."""
    if any(isinstance(value, dict | list | float) for value in values):
        return False
    several = {shown(value) for value in values}
    return 1 < len(several) <= min(_MOST_GROUPS, len(values) // 2)


def _sides(columns: Sequence[Column]) -> dict[str, str]:
    """The answers of two systems."""
    found: dict[str, str] = {}
    for column in columns:
        for name in _names(column.name):
            pair = _PAIRS.fullmatch(name)
            role = _CHOSEN.get(name)
            if pair is not None:
                role = SIDES[0] if pair[1] in "a1" else SIDES[1]
            if role is not None and column.values and role not in found.values():
                found[column.name] = role
                break
    return found if len(found) == len(SIDES) else {}


def _gold(found: dict[str, str], columns: Mapping[str, Column]) -> None:
    """Beside what a model answered, a column `answer` is what it is held against."""
    if "reference" in found.values() or "answer" not in found.values():
        return
    for name in columns:
        if name not in found and "answer" in _names(name) and columns[name].values:
            found[name] = "reference"
            return


def _by_value(found: dict[str, str], columns: Sequence[Column], kind: Kind) -> None:
    """Chats and pictures under any name."""
    for column in columns:
        if not column.values or column.name in found:
            continue
        if "messages" not in found.values() and is_messages(column.values[0]) and not kind.two:
            found[column.name] = "messages"
        elif "image" not in found.values() and _are_pictures(column.values):
            found[column.name] = "image"


def _are_pictures(values: list[object]) -> bool:
    some = [isinstance(value, str) and _PICTURE.match(value) is not None for value in values]
    return sum(some) >= _MOST * len(some)


def _texts(found: dict[str, str], columns: Sequence[Column]) -> None:
    """Texts under names that say nothing: the first is asked, the second answers."""
    left = ["question", "answer"]
    long = []
    for column in columns:
        texts = [value for value in column.values if isinstance(value, str)]
        if column.name in found or not texts or len(texts) < len(column.values):
            continue
        if sum(map(len, texts)) >= _MANY_WORDS * len(texts):
            long.append((column.name, texts))
    asks = [name for name, texts in long if _asks(texts)]
    for name in [*asks, *(name for name, _ in long if name not in asks)]:
        found[name] = left.pop(0) if left else "payload"
    if not long:
        for column in columns:
            if column.name not in found and column.values:
                found[column.name] = "payload"


def _asks(texts: list[str]) -> bool:
    return sum(text.rstrip().endswith("?") for text in texts) >= _MOST * len(texts)
