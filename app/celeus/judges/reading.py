"""Read a model's answer: its verdict, and the probability it gave each verdict.

The weight of a verdict is its probability at the first token of the verdict's value, over the
alternatives that are the beginning of exactly one verdict (G-Eval does the same for digits). The
expected loss under these weights is the soft score.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from celeus.judges.rubrics import CANNOT_TELL
from celeus.shorten import printable

UNREADABLE = "unreadable"
MOST_LETTERS = 500

_VALUE = r'(?<!\\)"verdict"\s*:\s*"'
_STEM = re.compile(r'[\s"]*([^"]*)')


@dataclass(frozen=True, slots=True)
class Reading:
    """A model's verdict, its reason, and the verdicts' weights, empty without logprobs."""

    said: str
    reason: str = ""
    weights: Mapping[str, float] = field(default_factory=dict)

    def loss(self, scale: Mapping[str, float]) -> float | None:
        """Return the loss of the verdict, None if there is none."""
        return scale.get(self.said)

    def soft(self, scale: Mapping[str, float]) -> float | None:
        """The expected loss, None without logprobs."""
        if not self.weights or self.said not in scale:
            return None
        return math.fsum(scale[verdict] * weight for verdict, weight in self.weights.items())

    def to_dict(self) -> dict[str, Any]:
        """Return the members to be written to a file."""
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Make a reading from the members in a file."""
        return cls(**document)


def read(choice: Mapping[str, Any], verdicts: Sequence[str], *, structured: bool) -> Reading:
    """Read the verdict of a choice; `UNREADABLE` if it is none of the ``verdicts``.

    Of a model that was not held to a schema (``structured``) the last verdict it names counts.
    """
    message = choice.get("message")
    fields = message if isinstance(message, Mapping) else {}
    text = fields.get("content")
    if not isinstance(text, str):
        return Reading(UNREADABLE, _short(fields.get("refusal") or "the judge said nothing"))
    known = [*verdicts, CANNOT_TELL]
    word, reason = _said(text)
    if word not in known and not structured and choice.get("finish_reason") != "length":
        word, reason = _last_word(text, known), text
    if word not in known:
        return Reading(UNREADABLE, _short(f"the judge gave no verdict, but {text!r}"))
    return Reading(word, _short(reason), _weights(choice, word, verdicts))


def _said(text: str) -> tuple[str, str]:
    try:
        document = json.loads(text)
        return str(document["verdict"]).strip().lower(), str(document.get("reason", ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "", ""


def _last_word(text: str, known: Sequence[str]) -> str:
    found = re.findall(_words(known), text.lower())
    return str(found[-1]) if found else ""


def _words(known: Sequence[str]) -> str:
    longest_first = sorted(known, key=len, reverse=True)
    return rf"\b({'|'.join(map(re.escape, longest_first))})\b"


def _weights(choice: Mapping[str, Any], word: str, verdicts: Sequence[str]) -> dict[str, float]:
    try:
        return _weighed(choice["logprobs"]["content"], word, verdicts)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        # Of another form than the one this was asked in, or not there at all
        return {}


def _weighed(
    tokens: Sequence[Mapping[str, Any]], word: str, verdicts: Sequence[str]
) -> dict[str, float]:
    """Probabilities of the verdicts, of sum 1; nothing where the place is not to be found."""
    text = "".join(token["token"] for token in tokens)
    begin = _place(text.lower(), word)
    offset = 0
    for token in tokens:
        if begin < 0 or offset + len(token["token"]) > begin:
            break
        offset += len(token["token"])
    else:
        return {}
    head = token["token"][: max(begin - offset, 0)]
    if begin < 0 or not word.startswith(_stem(token["token"], head) or " "):
        return {}
    weights = dict.fromkeys(verdicts, 0.0)
    for alternative in token["top_logprobs"]:
        stem = _stem(alternative["token"], head)
        begun = [verdict for verdict in verdicts if stem and verdict.startswith(stem)]
        if len(begun) == 1:
            weights[begun[0]] += math.exp(alternative["logprob"])
    total = math.fsum(weights.values())
    if not 0.0 < total < math.inf:
        return {}
    return {verdict: weight / total for verdict, weight in weights.items()}


def _place(text: str, word: str) -> int:
    """Return the position where the verdict's value begins, −1 if it is not found."""
    places = [match.end() for match in re.finditer(_VALUE + rf"\s*(?={re.escape(word)})", text)]
    places = places or [match.start() for match in re.finditer(_words([word]), text)]
    return places[-1] if places else -1


def _stem(token: str, head: str) -> str:
    """Return a token's part of the verdict, in lower case, without the text around it."""
    match = _STEM.match(token.removeprefix(head))
    return "" if match is None else match[1].strip().lower()


def _short(text: object) -> str:
    return printable(str(text).replace("\0", "\\0"))[:MOST_LETTERS]
