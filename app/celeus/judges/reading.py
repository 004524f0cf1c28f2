r"""Read a model's answer: its verdict, and the probability it gave each verdict.

A verdict is read from one of four forms, and never guessed:

1. a JSON object with the member `verdict`, alone, in a Markdown fence, or with prose around it;
2. a line `verdict: …`, in any case and with Markdown around it, perhaps with a reason behind it,
   or the line below such a heading, or a line of tags `<verdict>…</verdict>`;
3. a last line `The verdict is …`, `[[…]]` or `\boxed{…}`, or of a scale of numbers a first or
   last line `score: …` or `rating: …`;
4. the verdict and nothing else.

Several of them must agree. Anything else is unreadable: prose that holds a verdict's name may
refuse it, negate it, or quote it. So is an answer with a verdict in an object that is broken, for
objects inside it may be quoted, and one that introduces a verdict as an example, as a case or as
the words of what is judged.

The weight of a verdict is its probability at the first token of the verdict's value, over the
alternatives that are the beginning of exactly one verdict (G-Eval does the same for digits). The
expected loss under these weights is the soft score.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import takewhile, zip_longest
from typing import Any, Self

from celeus.judges.rubrics import CANNOT_TELL, spelled
from celeus.shorten import printable

UNREADABLE = "unreadable"
MOST_LETTERS = 500
LONGEST_LINE = 200
"""Letters of a line that are looked at: a verdict is short."""
GRAMMAR = "verdicts as JSON, as a line with a reason, in a tag, boxed, as a score, or alone"
"""Part of the key of a kept verdict: what was read by other rules is asked for again."""

MOST_HEADING_WORDS = 4
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_VALUE = r'(?<!\\)"verdict"\s*:\s*"?'
_STEM = re.compile(r'[\s"]*([^"]*)')
_OBJECT = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Takes the place of a JSON object in the prose."""
MOST_BROKEN = 1000
"""Places where an object is looked for in vain, after which a text is prose."""
_BEGIN = re.compile(r'\{(?=\s*["}])')
_REST = re.compile(r"""["']verdict["']\s*:""", re.IGNORECASE)
"""A verdict in an object that could not be read."""
_ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')
_COMMA = re.compile(r",(?=\s*[}\]])")
_THINKING = r"(?:think(?:ing)?|thoughts?|reasoning)>"
_THOUGHTS = re.compile(rf"\A.*</{_THINKING}", re.DOTALL)
_UNENDED = re.compile(rf"\A\s*<{_THINKING}")
_FENCE = re.compile(r"^\s*```\w*\s*$", re.MULTILINE)
_KEY = r"(?:\d+[.)]\s*)?[*_`]*(?:(?:my|the|our|final|overall)\s+)*verdict(?:\s+is)?[\s*_`]*"
_LINE = re.compile(rf"(?:[#*_`•-]+\s*)?{_KEY}[:=：](.*)", re.IGNORECASE)
_TAG = re.compile(
    r"(?:^|(?<=>))[ \t]*<verdict>([^<]*)</verdict>[ \t]*(?=$|<)", re.IGNORECASE | re.MULTILINE
)
_LAST = (
    re.compile(
        r"[*_`]*(?:(?:so|thus|therefore|hence),?\s+)?(?:(?:my|the|our|final|overall)\s+)*"
        r"verdict\s+is\s+(.*)",
        re.IGNORECASE,
    ),
    re.compile(r"[*_`]*\[\[([^\[\]]+)\]\][*_`.]*"),
    re.compile(r"\$*\\+boxed\{(?:\\+text(?:bf)?\{)?([^{}]+)\}{1,2}\$*\.?"),
)
"""Forms of a verdict in the last line."""
_SCORE = re.compile(
    r"[#*_`]*\s*(?:(?:my|the|final|overall)\s+)*(?:score|rating|grade)[\s*_`]*[:=：](.*)",
    re.IGNORECASE,
)
_FORMS = (_LINE, *_LAST, _SCORE)
_GOOD_MARKS, _BAD_MARKS = "✅✔✓☑👍", "❌✖✗✘👎"
_MARKS = f"\N{VARIATION SELECTOR-16} {_GOOD_MARKS}{_BAD_MARKS}"
_GOOD = frozenset({"correct", "right", "true", "yes", "pass", "good", "accurate"})
_BAD = frozenset({"incorrect", "wrong", "false", "no", "fail", "bad", "inaccurate"})
_WHY = re.compile(
    r"([^()\[\];:—–]+?)[*_`]*(?:\s*\((?=[^()]*\)[*_`.]*$)|\s*[—–;:]\s*|\s+-+\s+|\.\s+"
    r"|,?\s+(?=(?:because|since)\b))(?=[^\W\d_])(.*)",
    re.IGNORECASE,
)
"""A verdict, and behind it its reason."""
_HEDGED = re.compile(
    r"^(?:not|no|never|nope)\b"
    r"|(?:\bnot|n['’]t)\s*(?:(?:true|so|really|quite|entirely|fully|the case)\W*)?\W*$"
    r"|\?|\b(?:but|however|except|unless|if|or|part|partly|partially|mostly|almost|nearly"
    r"|probably|maybe|perhaps|possibly|likely|though|although|would|could|should|might|were|example"
    r"|instead|reservations?|only)\b",
    re.IGNORECASE,
)
"""Reasons that may take a verdict back or weaken it."""
_SUPPOSED = re.compile(
    r"\b(?:examples?|for instance|sample|hypothetical(?:ly)?|inject|possible|e\.g\.)(?!\w)"
    r"|^\W*(?:if|suppose|supposing|imagine|assuming|assume|had|were|when)\b"
    r"|\b(?:would|could|might|may|should)(?:\s+\w+){0,3}\W*$"
    r"|\b(?:says?|said|saying|writes?|wrote|writing|states?|stated|ends?(?: with)?|contains?"
    r"|claims?|claimed|quotes?|quoted|includes?|inserts?|inserted|asks?|demands?|instructs?"
    r"|instructions?|tells?)\b[^.,\n]{0,30}$",
    re.IGNORECASE,
)
"""Words that introduce an example, a case, or what the judged text says."""
_ONLY_SAID = re.compile(
    r"[ \t\"'`*)]*(?:(?:would|could|might|may|should|will|is|was|isn['’]t|seems|cannot|to)\b"
    r"|in (?:its|the) (?:answer|response|text)\b)",
    re.IGNORECASE,
)
"""Words behind a verdict that speak of it."""
_SENTENCE = re.compile(r"(?<!e\.g)[.!?](?:\s+|$)")
_HEADING = re.compile(rf"(?:#+\s*|\*\*|__){_KEY}", re.IGNORECASE)
_PART = re.compile(r"(\S+?)\s*(?:/|out of)\s*([0-9]+)")
_BOUND = re.compile(r"[<>]\s*[0-9.]")
_TAKEN_BACK = re.compile(
    r"\b(?:wait|hmm+|scratch that|on second thought|on reflection|correction(?=:)|let me re[a-z-]+"
    r"|take (?:it|that|this) back|i retract|change my|actually(?=,)|i (?:made a mistake|was wrong)"
    r"|verdict (?:should|would|ought|must)|but (?:it|that|this) is(?: not|n['’]t)(?=\W*(?:$|\Z))"
    r"|i can(?:no|')t (?:judge|decide|tell|evaluate))(?!\w)",
    re.IGNORECASE | re.MULTILINE,
)
_REFUSED = re.compile(r"\bi can(?:no|')t (?:help|assist|comply) with\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reading:
    """A model's verdict, its reason, and the verdicts' weights, empty without logprobs.

    ``text`` is what the model wrote, in full.
    """

    verdict: str
    reason: str = ""
    weights: Mapping[str, float] = field(default_factory=dict)
    text: str = ""

    def loss(self, scale: Mapping[str, float]) -> float | None:
        """Return the loss of the verdict, None if there is none."""
        return scale.get(self.verdict)

    def soft(self, scale: Mapping[str, float]) -> float | None:
        """The expected loss, None without logprobs."""
        if not self.weights or self.verdict not in scale:
            return None
        return math.fsum(scale[verdict] * weight for verdict, weight in self.weights.items())

    def to_dict(self) -> dict[str, Any]:
        """Return the members to be written to a file."""
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Make a reading from the members in a file."""
        return cls(**document)


def read(choice: Mapping[str, Any], verdicts: Sequence[str]) -> Reading:
    """Read the verdict of a choice; `UNREADABLE` if it holds none of the ``verdicts``."""
    message = choice.get("message")
    fields = message if isinstance(message, Mapping) else {}
    text = fields.get("content")
    if not isinstance(text, str):
        why = str(fields.get("refusal") or "the judge said nothing")
        return Reading(UNREADABLE, _short(why), text=printable(why))
    word, reason = "", ""
    why = "the judge gave no verdict, but"
    if choice.get("finish_reason") == "length":
        why = "the judge's answer was cut off:"
    else:
        word, reason = _verdict(_THOUGHTS.sub("", text), [*verdicts, CANNOT_TELL])
    if not word:
        return Reading(UNREADABLE, _short(f"{why} {text!r}"), text=printable(text))
    return Reading(word, _short(reason), _weights(choice, word, verdicts), printable(text))


def _verdict(text: str, known: Sequence[str]) -> tuple[str, str]:
    """Return the one verdict that a text gives and its reason; no verdict for any other text."""
    objects, prose, behind = _objects(text)
    if _UNENDED.match(text) or _REST.search(prose) or _REFUSED.search(prose):
        return "", ""
    if _only_quoted(prose):
        return "", ""
    values = [value for pairs in objects for name, value in pairs if _is_verdict(name)]
    reasons = [str(value or "") for pairs in objects for name, value in pairs if name == "reason"]
    lines = _lines(prose, known)
    values += lines
    if not values:
        lines = _scores(prose, known)
        values += lines
    if not values and not objects:
        values = [prose]
    words = {_named(value, known) or _reasoned(value, known, lines) for value in values}
    if len(words) != 1 or (objects and _TAKEN_BACK.search(behind)):
        return "", ""
    if lines and _TAKEN_BACK.search(prose.rpartition(lines[-1])[2]):
        return "", ""
    return words.pop(), reasons[-1] if reasons else text


def _is_verdict(name: str) -> bool:
    return name.strip().lower() == "verdict"


def _objects(text: str) -> tuple[list[list[tuple[str, Any]]], str, str]:
    """Return the members of every JSON object in a text, and the text around them and behind.

    A member given twice in an object is there twice. A comma before a closing bracket and a
    backslash that escapes nothing, as of TeX, are taken as they were meant.
    """
    text = _COMMA.sub("", _ESCAPE.sub(lambda sign: sign[0] if sign[1] else r"\\", text))
    found: list[list[tuple[str, Any]]] = []
    prose, begin, end, broken = "", 0, 0, 0
    while broken < MOST_BROKEN and (brace := _BEGIN.search(text, begin)) is not None:
        members: list[list[tuple[str, Any]]] = []
        decoder = json.JSONDecoder(object_pairs_hook=members.append, strict=False)
        begin = brace.start()
        try:
            _, behind = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            begin += 1
            broken += 1
            continue
        found += members
        prose += text[end:begin] + _OBJECT
        begin = end = behind
    return found, _FENCE.sub("", prose + text[end:]).strip(), text[end:]


def _only_quoted(prose: str) -> bool:
    """Return True if a verdict is introduced as an example or quotation, or spoken of behind."""
    lines = [line.strip() for line in prose.splitlines() if line.strip()]
    above = ""
    for line, below in zip_longest(lines, lines[1:], fillvalue=""):
        parts = line.split(_OBJECT)
        short = line[:LONGEST_LINE]
        is_line = short.startswith("<verdict>") or any(form.fullmatch(short) for form in _FORMS)
        heads = parts[:-1] if len(parts) > 1 else [""] * is_line
        for head in heads:
            introduction = head if head.strip(" *_`>#-") else _introduction(above)
            if _SUPPOSED.search(_SENTENCE.split(introduction)[-1].strip(" *_`#:,\"'")):
                return True
        if any(_ONLY_SAID.match(tail) for tail in parts[1:]):
            return True
        if is_line and re.match(r"(?:would|could|might)\b", below, re.IGNORECASE):
            return True
        above = line
    return False


def _introduction(line: str) -> str:
    """Return a line if it speaks of the one below it."""
    bare = line.rstrip(" *_`")
    return line if bare[-1:] in {":", ","} or len(bare.split()) <= MOST_HEADING_WORDS else ""


def _lines(prose: str, known: Sequence[str]) -> list[str]:
    """Return the values of all lines `verdict: …` and tags; of a heading the lines below it."""
    lines = [line.strip()[:LONGEST_LINE] for line in prose.splitlines() if line.strip()]
    values = _TAG.findall(prose)
    for number, line in enumerate(lines, start=1):
        match = _LINE.fullmatch(line)
        if match is not None and match[1].strip(" *_`"):
            values.append(match[1])
        elif match is not None or _HEADING.fullmatch(line):
            values += lines[number : number + 1] or [""]
            values += takewhile(lambda below: _named(below, known), lines[number + 1 :])
    for form in _LAST:
        found = [form.fullmatch(line) for line in lines]
        if found and found[-1] is not None:
            stated = [match[1] for match in found if match is not None]
            values += [value for value in stated if any(_names(value, word) for word in known)]
    return [value for value in values if spelled(value) != _OBJECT]


def _scores(prose: str, known: Sequence[str]) -> list[str]:
    """Return the values of a first and a last line `score: …`, if the verdicts are numbers."""
    if not all(_NUMBER.fullmatch(word) for word in known if word != CANNOT_TELL):
        return []
    lines = [line.strip()[:LONGEST_LINE] for line in prose.splitlines() if line.strip()]
    found = [_SCORE.fullmatch(line) for line in lines]
    values = [match[1] for match in found if match is not None]
    ends = bool(values) and (found[0] is not None or found[-1] is not None)
    return values if ends else []


def _names(text: str, word: str) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE) is not None


def _reasoned(value: object, known: Sequence[str], lines: Sequence[str]) -> str:
    """Return the verdict of a line that gives a reason behind it, which must not weaken it."""
    match = _WHY.fullmatch(value.strip()) if isinstance(value, str) and value in lines else None
    word = "" if match is None else _named(match[1], known)
    if match is None or not word:
        return ""
    why = match[2].rstrip(" )*_`.!")
    others = [other for other in known if other != word]
    others += [*(_BAD if word in _GOOD else _GOOD if word in _BAD else ())]
    doubtful = _HEDGED.search(why) or _TAKEN_BACK.search(why) or _OBJECT in why
    return "" if doubtful or any(_names(why, other) for other in others) else word


def _named(value: object, known: Sequence[str]) -> str:
    """Return the verdict that a value is, an empty text for none; 8/10 is 8 of a scale to 10."""
    text = value if isinstance(value, str) else json.dumps(value)
    bare = text.strip(_MARKS)
    word = "" if _BOUND.search(text) else spelled(bare)
    names = {spelled(verdict): verdict for verdict in known}
    part = _PART.fullmatch(word)
    if part is not None and spelled(part[2]) == _highest(names):
        word = spelled(part[1])
    marks = set(text) - set(bare)
    if (word in _BAD and marks & {*_GOOD_MARKS}) or (word in _GOOD and marks & {*_BAD_MARKS}):
        return ""
    return names.get(word, "")


def _highest(names: Mapping[str, str]) -> str:
    numbers = [name for name in names if re.fullmatch(r"[0-9.]+", name)]
    return max(numbers, key=float, default="")


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
    value = rf"(?={re.escape(word)})"
    for before in (rf"{_VALUE}\s*", r"verdict[^\w\n]*[:=：][^\w\n]*", r"\A\W*"):
        places = [match.end() for match in re.finditer(before + value, text)]
        if places:
            return places[-1]
    return -1


def _stem(token: str, head: str) -> str:
    """Return a token's part of the verdict, in lower case, without the text around it."""
    match = _STEM.match(token.removeprefix(head))
    return "" if match is None else match[1].strip().lower()


def _short(text: object) -> str:
    return printable(str(text).replace("\0", "\\0"))[:MOST_LETTERS]
