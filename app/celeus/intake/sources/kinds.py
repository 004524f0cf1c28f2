"""Headers, summaries and events among the rows of a file: rows of several kinds, by their members.

Which of them are meant is asked, unless it was said: `all`, a MEMBER that they have, or
MEMBER=VALUE. Behind a colon may stand which of these are items, which is another's business.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from celeus.errors import NeedsAnswer
from celeus.intake.questions import Choice, Question, asked
from celeus.intake.sources.sheet import BadRow, SheetRow, refused
from celeus.intake.sources.unfolding import announced, are_alike
from celeus.intake.table.item_columns import are_items
from celeus.shorten import shortened

EVERY = frozenset({"all", "with_id"})
"""Answers that leave no row out here."""
_TYPES = ("type", "event", "event_type", "kind", "record_type")
_MOST = 12
_MOST_NAMED = 6
_RULE = "a row with the members that the first ones have"

Row = Mapping[str, Any]
Keep = Callable[[SheetRow], SheetRow | None]


@dataclass(slots=True)
class _RowKind:
    members: frozenset[str]
    count: int = 0
    first: Row = field(default_factory=dict)
    line: int = 0


def settled(
    sample: Sequence[tuple[int, SheetRow]], place: str, answer: str | None, path: str = ""
) -> tuple[Keep, list[str]]:
    """The function that keeps a row or leaves it out, and phrases on how the file is read.

    A row that is not meant becomes None, one of a kind not seen in the ``sample`` a bad row. Asks
    where the sample is of several kinds, unless it is of items as they are; ``path`` is what the
    answers begin with. Refuses an answer that no row of the sample fits.
    """
    if answer is not None and answer not in EVERY:
        before, _, last = answer.rpartition(":")
        answer = before if last in EVERY else answer
    is_meant = None if answer is None or answer in EVERY else _having(answer)
    kept = [(line, row) for line, row in sample if isinstance(row, dict) and row]
    if is_meant is not None:
        kept = [(line, row) for line, row in kept if is_meant(row)]
        if not kept:
            rule = "a place in the document, a member that rows have, or MEMBER=VALUE"
            raise refused(f"{place} has no such rows.", rule, answer, "rows")
    if answer in EVERY or (is_meant is None and kept and are_items([*kept[0][1]])):
        return lambda row: row, []
    kinds = _by_members(kept)
    named: list[tuple[str, _RowKind]] = []
    for kind in kinds:
        rows = [row for _, row in kept if are_alike(kind.members, row)]
        by_type = is_meant is None or "=" not in str(answer)
        events = _by_type(rows) if by_type else {}
        named += events.items() or [(_name(kind, kinds), kind)]
    if len(named) > 1:
        raise _asked(place, named, path)
    read_as = [] if is_meant is None else [f"only rows with {answer}"]
    return _keeping(kinds[0].members if kinds else frozenset(), is_meant), read_as


def _keeping(members: frozenset[str], is_meant: Callable[[Row], bool] | None) -> Keep:
    def keep(row: SheetRow) -> SheetRow | None:
        if isinstance(row, BadRow):
            return row
        if is_meant is not None:
            return row if is_meant(row) else None
        return row if are_alike(members, row.keys()) else BadRow(_RULE, shortened(row))

    return keep


def _having(answer: str) -> Callable[[Row], bool]:
    name, equals, value = answer.partition("=")
    if not equals:
        return lambda row: name in row
    return lambda row: name in row and str(row[name]) == value


def _by_members(rows: Iterable[tuple[int, Row]]) -> list[_RowKind]:
    """Kinds of rows, the most frequent first."""
    shapes: dict[frozenset[str], _RowKind] = {}
    for line, row in rows:
        members = frozenset(row)
        shape = shapes.setdefault(members, _RowKind(members, 0, row, line))
        shape.count += 1
    kinds: list[_RowKind] = []
    for shape in sorted(shapes.values(), key=lambda shape: -shape.count):
        kind = next((kind for kind in kinds if are_alike(kind.members, shape.members)), None)
        if kind is not None:
            kind.count += shape.count
        elif len(kinds) == _MOST:
            raise refused("The rows have no members in common.", "rows of the same members")
        else:
            kinds.append(shape)
    return kinds


def _by_type(rows: Sequence[Row]) -> dict[str, _RowKind]:
    """Kinds by a member that names the type of an event; none where all have the same members."""
    for name in _TYPES:
        values = [row.get(name) for row in rows]
        if not all(isinstance(value, str) for value in values):
            continue
        counts = Counter(map(str, values))
        if not 1 < len(counts) <= _MOST:
            continue
        first = {value: rows[values.index(value)] for value in counts}
        if any(_differ(row, other) for row in first.values() for other in first.values()):
            return {
                f"{name}={value}": _RowKind(frozenset(first[value]), count, first[value])
                for value, count in counts.items()
            }
    return {}


def _differ(row: Row, other: Row) -> bool:
    """An object within both has other members in each."""
    return any(
        isinstance(row[name], dict)
        and isinstance(other[name], dict)
        and not are_alike(row[name], other[name])
        for name in row.keys() & other.keys()
    )


def _name(kind: _RowKind, kinds: Sequence[_RowKind]) -> str:
    """A member that rows of this kind have and no others."""
    others = {member for other in kinds if other is not kind for member in other.members}
    return next((member for member in kind.first if member not in others), next(iter(kind.first)))


def _asked(place: str, kinds: Sequence[tuple[str, _RowKind]], path: str) -> NeedsAnswer:
    choices = []
    for name, kind in kinds:
        members = ", ".join([*kind.first][:_MOST_NAMED])
        more = ", …" if len(kind.first) > _MOST_NAMED else ""
        choices.append(Choice(f"{path}{name}", f"{kind.count} of those seen, with {members}{more}"))
    choices.append(Choice(f"{path}all", "all rows, whatever they hold"))
    least = min((kind for _, kind in kinds), key=lambda kind: kind.count)
    example = {name: shortened(value) for name, value in [*least.first.items()][:20]}
    most = max(kind.count for _, kind in kinds)
    counts = [phrase for _, kind in kinds for phrase in announced(kind.first, most)]
    announcement = f" ({'; '.join(counts)})" if counts else ""
    text = f"The rows are of {len(kinds)} kinds: which of them are meant?{announcement}"
    return asked(place, [Question("rows", text, tuple(choices), example=example)])
