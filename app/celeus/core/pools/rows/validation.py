"""The rules of a single row, spelled out: which field breaks which rule with which value.

This is the slow and exact half of the import; `core.pools.rows` decides with array operations
whether it is needed at all. The two must agree on what is good, which a property test checks.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from celeus.core.canonical import EXACT, canonical_json
from celeus.core.pools.losses import LossScale
from celeus.core.pools.rows.fields import FIELDS
from celeus.core.pools.systems import SIDES
from celeus.core.pools.weights import LARGEST_WEIGHT, LEAST_WEIGHT, WEIGHT_RULE
from celeus.shorten import VALUE_LENGTH, as_json, printable

MAX_TEXT = 256
"""Longest id and group name, in characters."""
MAX_PAYLOAD_BYTES = 1 << 20
"""Longest payload, as canonical JSON with its numbers written out, as the database writes them."""
MAX_PAYLOAD_DEPTH = 100
"""Objects and lists within each other; JSON writers give up at some 250."""
MAX_PAYLOAD_VALUES = 100_000
"""Members and elements, all levels together; each takes its readers some fifty bytes."""
MAX_SURROGATES = 64
WITHOUT_CLASSES = frozenset({"bounded", "difference"})
"""Kinds of loss that do not follow from a true class."""
MAX_INT = 2**31 - 1
SUM_TOLERANCE = 1e-3
"""The distance from 1 that a sum of probabilities may have: what models print is rounded. They are
divided by their sum afterwards."""

STATED = frozenset({"known", "loss_lower", "loss_upper", "bound_reason"})
"""Fields of a row that state something of its loss."""
"""Fields that only the items have of whose losses something is stated."""
PAIR_RULE = "left out, unless system_a and system_b name the two systems of the pool"
TEXT_RULE = f"a string of 1 to {MAX_TEXT} characters without U+0000"
PAYLOAD_RULE = (
    f"a string or JSON object of finite numbers, at most {MAX_PAYLOAD_BYTES} bytes with every"
    " number written out, without U+0000"
)
DEPTH_RULE = f"at most {MAX_PAYLOAD_DEPTH} objects and lists within each other"
WIDTH_RULE = f"at most {MAX_PAYLOAD_VALUES} members and elements, all levels together"
NUMBER_RULE = f"a number below {EXACT} in size; longer ones, such as ids, as text"
SUM_RULE = f"probabilities that sum to 1 within {SUM_TOLERANCE:g}"
_LEFT_OUT = "left out, as in the items before, which lack it"
_DIGITS = len(str(EXACT))
_NO_DIGITS = bytes(set(range(256)) - set(b"0123456789"))
_SMALL = re.compile(rb"\de-\d")

Violation = tuple[str, str, object]
"""Field, rule and value."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A reason why a line cannot become an item; ``value`` is short JSON, safe in any answer."""

    line: int
    field: str
    rule: str
    value: object

    @classmethod
    def of(cls, line: int, field: str, rule: str, value: object) -> Self:
        """The fault with its value as short JSON; the field may be any key of a row."""
        return cls(line, printable(field[:VALUE_LENGTH]), rule, as_json(value))

    def members(self) -> dict[str, Any]:
        """Its members in an answer."""
        return {"line": self.line, "field": self.field, "rule": self.rule, "value": self.value}


@dataclass(frozen=True, slots=True)
class Shape:
    """The optional fields that every item of a pool carries.

    ``carried`` are those beyond a plain row: fields of each system, or the columns that group
    columns and surrogates of metrics become.
    """

    surrogates: int = 0
    proxy: bool = False
    target_probs: bool = False
    surrogate_probs: bool = False
    prediction: bool = False
    group: bool = False
    weight: bool = False
    classes: int | None = None
    carried: frozenset[str] = frozenset()

    @classmethod
    def of_columns(cls, columns: Sequence[str], classes: int | None) -> Self:
        """Shape of a pool that has these columns already."""
        classes_of_both = "prediction_a" in columns
        per_system = {
            "prediction": classes_of_both or "predictions" in columns,
            "answer": "answers" in columns or ("same" in columns and not classes_of_both),
            "surrogate": "change" in columns or "surrogates" in columns,
        }
        several = sum(name.startswith("surrogate.") for name in columns)
        return cls(
            surrogates=0 if per_system["surrogate"] else several,
            proxy="proxy" in columns,
            target_probs="target_probs" in columns,
            surrogate_probs="hard" in columns or "entropy_g" in columns,
            prediction="prediction" in columns,
            group="group" in columns,
            weight="weight" in columns,
            classes=classes,
            carried=frozenset(
                [name for name in per_system if per_system[name]]
                + [name for name in columns if name.startswith(("surrogate_", "group_"))]
            ),
        )

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> Self:
        """Shape the first row gives to its pool; meaningful only when the row has no fault."""
        surrogates, target = row.get("surrogates"), row.get("target_probs")
        several = len(surrogates) if isinstance(surrogates, list) else 0
        return cls(
            surrogates=1 if "surrogate" in row else several,
            proxy="proxy" in row,
            target_probs="target_probs" in row,
            surrogate_probs="surrogate_probs" in row,
            prediction="prediction" in row,
            group="group" in row,
            weight="weight" in row,
            classes=len(target) if isinstance(target, list) else None,
        )

    def fields(self) -> frozenset[str]:
        """Fields of a row of this shape beside `id`, `payload` and the surrogates."""
        flags = ("proxy", "target_probs", "surrogate_probs", "prediction", "group", "weight")
        return frozenset(name for name in flags if getattr(self, name))


@dataclass(frozen=True, slots=True)
class MalformedRow:
    """Stands for a row that could not be read at all."""

    rule: str
    text: str


def not_an_object(row: object) -> Violation:
    """The violation of something uploaded that is no row at all."""
    if isinstance(row, MalformedRow):
        return "", row.rule, row.text
    return "", "a JSON object", row


def row_faults(row: object, scale: LossScale, shape: Shape | None) -> list[Violation]:
    """Everything wrong with a row (nulls taken out); empty when it can become an item."""
    if not isinstance(row, dict):
        return [not_an_object(row)]
    strange = strange_members(row, FIELDS)
    violations = [
        (name, PAIR_RULE if name in SIDES else rule, value) for name, rule, value in strange
    ]
    if not is_text(row.get("id")):
        violations.append(("id", TEXT_RULE, row.get("id")))
    if "payload" in row and encode_payload(row["payload"]) is None:
        violations.append(_payload_fault(row["payload"]))
    if "group" in row and not is_text(row["group"]):
        violations.append(("group", TEXT_RULE, row["group"]))
    if "weight" in row and not is_number(row["weight"], LEAST_WEIGHT, LARGEST_WEIGHT):
        violations.append(("weight", WEIGHT_RULE, row["weight"]))
    violations += _score_faults(row, scale)
    violations += _probability_faults(row, scale)
    violations += stated_faults(row, scale)
    return violations or list(_shape_faults(Shape.of_row(row), shape, row))


def strange_members(
    row: dict[str, Any], fields: frozenset[str], place: str = "", where: str = ""
) -> Iterator[Violation]:
    """Violations of members that are none of these; ``place`` stands before their names."""
    for name, value in row.items():
        if name not in fields:
            yield f"{place}{name}", f"one of {', '.join(sorted(fields))}{where}", value


def is_text(value: object) -> bool:
    """A string that may be an id or a group's name."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT or "\0" in value:
        return False
    return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)


def encode_payload(payload: object) -> bytes | None:
    """Canonical JSON of a payload, None where it is not one."""
    if not isinstance(payload, (dict, str)) or _is_wide(payload):
        return None
    try:
        encoded = canonical_json(payload)
    except (ValueError, TypeError, RecursionError):
        return None
    # The database's JSON type cannot hold U+0000.
    if len(encoded) > MAX_PAYLOAD_BYTES or _has_nul(encoded):
        return None
    if _is_costly(payload, encoded):
        return None
    # A large number has this many digits or an exponent; few payloads have to be searched for it.
    suspect = b"e+" in encoded or len(encoded.translate(None, _NO_DIGITS)) >= _DIGITS
    return None if suspect and any(_large_numbers("", payload)) else encoded


def _has_nul(encoded: bytes) -> bool:
    """Return whether JSON text holds a character U+0000, after an even number of backslashes."""
    return b"\\u0000" in encoded and b"\\u0000" in encoded.replace(b"\\\\", b"")


def _is_costly(payload: object, encoded: bytes) -> bool:
    """Deeper or longer than its readers should have to bear; few have to be searched."""
    opened = encoded.count(b"{") + encoded.count(b"[")
    if opened > MAX_PAYLOAD_DEPTH and _is_deep(payload):
        return True
    return bool(_SMALL.search(encoded)) and len(encoded) + _zeros(payload) > MAX_PAYLOAD_BYTES


def _is_deep(value: object, levels: int = MAX_PAYLOAD_DEPTH) -> bool:
    """More than so many objects and lists lie within each other."""
    if not isinstance(value, (dict, list)):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deep(part, levels - 1) for part in inner)


def _is_wide(payload: object) -> bool:
    """More than MAX_PAYLOAD_VALUES members and elements; no further are looked at."""
    waiting, count = [payload], 0
    while waiting:
        value = waiting.pop()
        if isinstance(value, (dict, list)):
            count += len(value)
            if count > MAX_PAYLOAD_VALUES:
                return True
            waiting.extend(value.values() if isinstance(value, dict) else value)
    return False


def _zeros(value: object) -> int:
    """Zeros at the front of all small numbers, which the database writes without an exponent."""
    if isinstance(value, (dict, list)):
        return sum(map(_zeros, value.values() if isinstance(value, dict) else value))
    if not isinstance(value, float) or not 0.0 < abs(value) < 1.0:
        return 0
    return -math.floor(math.log10(abs(value)))


def _payload_fault(payload: object) -> Violation:
    """The violation of a payload that cannot be encoded, at the number if one is the cause."""
    if _is_wide(payload):
        return "payload", WIDTH_RULE, payload
    if _is_deep(payload):
        return "payload", DEPTH_RULE, payload
    if isinstance(payload, dict):
        large = next(_large_numbers("payload", payload), None)
        if large is not None:
            return large[0], NUMBER_RULE, large[1]
    return "payload", PAYLOAD_RULE, payload


def _large_numbers(place: str, value: object) -> Iterator[tuple[str, float]]:
    """Numbers that another reader of JSON may take for others, each with its place.

    From 2^53 on a whole number may lie between two doubles, which is what RFC 8785 takes numbers
    for; NaN and the infinities are none.
    """
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _large_numbers(f"{place}.{name}", inner)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _large_numbers(f"{place}[{position}]", inner)
    elif isinstance(value, int | float) and not abs(value) < EXACT:
        yield place, value


def _score_faults(row: dict[str, Any], scale: LossScale) -> Iterator[Violation]:
    rule = f"a number from {scale.lower:g} to {scale.upper:g}"
    for name in ("surrogate", "proxy"):
        if name in row and not is_number(row[name], scale.lower, scale.upper):
            yield name, rule, row[name]
    if "surrogates" not in row:
        return
    values = row["surrogates"]
    if "surrogate" in row:
        yield "surrogates", "left out when `surrogate` is given", values
    elif not isinstance(values, list) or not 0 < len(values) <= MAX_SURROGATES:
        yield "surrogates", f"a list of 1 to {MAX_SURROGATES} numbers", values
    else:
        for position, value in enumerate(values):
            if not is_number(value, scale.lower, scale.upper):
                yield f"surrogates[{position}]", rule, value


def stated_faults(row: dict[str, Any], scale: LossScale) -> Iterator[Violation]:
    """Violations in the loss or the bounds that a row states."""
    for name in ("loss_lower", "loss_upper"):
        if name not in row:
            continue
        if scale.kind == "zero_one":
            yield name, "left out: a zero_one loss has no bounds but 0 and 1", row[name]
        elif "known" in row:
            yield name, "left out where the loss is known", row[name]
        elif not is_number(row[name], scale.lower, scale.upper):
            yield name, f"a number from {scale.lower:g} to {scale.upper:g}", row[name]
        elif name == "loss_upper" and is_number(row.get("loss_lower", scale.lower), row[name]):
            rule = "above loss_lower; a loss that is known goes into `known`, with its reason"
            yield name, rule, row[name]
    if row.get("loss_lower") == scale.upper and "loss_upper" not in row:
        yield "loss_lower", "below the upper end of the scale", row["loss_lower"]
    if "bound_reason" in row:
        yield from _bound_reason_faults(row["bound_reason"], row)
    if "known" in row:
        yield from _known_faults(row["known"], row, scale)


def _bound_reason_faults(reason: object, row: dict[str, Any]) -> Iterator[Violation]:
    if row.keys().isdisjoint({"loss_lower", "loss_upper"}):
        yield "bound_reason", "left out where there is no loss_lower and no loss_upper", reason
    elif not isinstance(reason, str) or not is_text(reason) or not reason.strip():
        yield "bound_reason", f"why the loss has these bounds: {TEXT_RULE}, not blank", reason


def _known_faults(known: object, row: dict[str, Any], scale: LossScale) -> Iterator[Violation]:
    if not isinstance(known, dict) or not set(known) <= {"loss", "label", "reason"}:
        yield "known", "an object of `reason` and either `loss` or `label`", known
        return
    if not is_text(known.get("reason")) or not known["reason"].strip():
        rule = f"why the loss is known: {TEXT_RULE}, not blank"
        yield "known.reason", rule, known.get("reason")
    if ("loss" in known) == ("label" in known):
        yield "known", "an object of `reason` and either `loss` or `label`", known
    elif "loss" in known:
        whole = scale.kind == "zero_one"
        within = is_number(known["loss"], scale.lower, scale.upper)
        if not within or (whole and known["loss"] not in {0, 1}):
            rule = f"a number from {scale.lower:g} to {scale.upper:g}"
            yield "known.loss", "exactly 0 or 1" if whole else rule, known["loss"]
    elif not _follows(row, scale):
        rule = "left out, with `loss` in its place: no loss of this item follows from a label"
        yield "known.label", rule, known["label"]
    else:
        target = row.get("target_probs")
        last = len(target) - 1 if isinstance(target, list) else MAX_INT
        if type(known["label"]) is not int or not 0 <= known["label"] <= last:
            yield "known.label", f"a whole number from 0 to {last}", known["label"]


def _follows(row: dict[str, Any], scale: LossScale) -> bool:
    """A loss of the row follows from its true class."""
    if scale.kind == "cross_entropy":
        return "target_probs" in row
    return scale.kind == "zero_one" and ("target_probs" in row or "prediction" in row)


def _probability_faults(row: dict[str, Any], scale: LossScale) -> Iterator[Violation]:
    for name in ("target_probs", "surrogate_probs"):
        if name not in row:
            continue
        if scale.kind in WITHOUT_CLASSES:
            yield (
                name,
                f"left out: a {scale.kind} loss does not follow from probabilities",
                row[name],
            )
        else:
            yield from _distribution_faults(name, row[name])
    target, surrogate = row.get("target_probs"), row.get("surrogate_probs")
    if "surrogate_probs" in row and not isinstance(target, list):
        yield "surrogate_probs", "given only together with target_probs", surrogate
    elif isinstance(surrogate, list) and len(surrogate) != len(target or ()):
        yield "surrogate_probs", f"as long as target_probs ({len(target or ())})", len(surrogate)
    if "prediction" in row:
        yield from _prediction_faults(row["prediction"], target, scale)


def _distribution_faults(name: str, values: object) -> Iterator[Violation]:
    if not isinstance(values, list) or len(values) < 2:
        yield name, "a list of at least 2 probabilities", values
        return
    for position, value in enumerate(values):
        if not is_number(value, 0.0, 1.0):
            yield f"{name}[{position}]", "a number from 0 to 1", value
            return
    # The same sum as in the batch: at the very edge of the tolerance the two must agree.
    total = float(np.array([values], dtype=np.float64).sum(axis=1)[0])
    if abs(total - 1.0) > SUM_TOLERANCE:
        yield name, SUM_RULE, total


def _prediction_faults(prediction: object, target: object, scale: LossScale) -> Iterator[Violation]:
    last = len(target) - 1 if isinstance(target, list) else MAX_INT
    if scale.kind != "zero_one":
        yield "prediction", "left out: only a zero_one loss follows from it", prediction
    elif type(prediction) is not int or not 0 <= prediction <= last:
        yield "prediction", f"a whole number from 0 to {last}", prediction


def _shape_faults(shape: Shape, pool: Shape | None, row: dict[str, Any]) -> Iterator[Violation]:
    """Differences from the items before; ``shape`` is of a row that is good in itself."""
    if pool is None or shape == pool:
        return
    if shape.surrogates != pool.surrogates:
        name = "surrogates" if "surrogates" in row or pool.surrogates > 1 else "surrogate"
        yield name, _count_rule(pool.surrogates), row.get(name)
    for name in sorted(shape.fields() ^ pool.fields()):
        if name in row:
            yield name, _LEFT_OUT, row[name]
        else:
            yield name, "given, as in the items before", None
    if shape.target_probs and pool.target_probs and shape.classes != pool.classes:
        yield "target_probs", f"{pool.classes} probabilities, as before", shape.classes


def _count_rule(count: int) -> str:
    if count == 0:
        return _LEFT_OUT
    return "given, as in the items before" if count == 1 else f"{count} numbers, as before"


def is_number(value: object, lower: float, upper: float = math.inf) -> bool:
    """A number of JSON within the limits."""
    # bool is a subclass of int; NaN fails both comparisons; a huge int compares exactly.
    return type(value) in {int, float} and lower <= value <= upper  # type: ignore[operator]
