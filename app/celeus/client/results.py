"""What the service tells, as values: the members of docs/api.md by their names.

What a newer release of the service adds is in `raw`, which holds the whole answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from celeus.client.refusals import Unreachable

T = TypeVar("T")
Raw = dict[str, Any]


def read(kind: type[T], raw: object) -> T:
    """The value of a result type that an answer holds; raises Unreachable where it holds none."""
    try:
        known: Any = kind
        made: T = _known_reader(known)(raw)
    except (AttributeError, TypeError) as error:
        raise Unreachable(f"the answer is no {kind.__name__}: this is no Celeus service") from error
    return made


def _reader(kind: Any) -> Callable[[Any], Any]:  # noqa: ANN401 -- any annotation of a field
    """How a member of this type is read."""
    if is_dataclass(kind):
        readers = {one.name: _reader(one.type) for one in fields(kind) if one.name != "raw"}
        build: Any = kind
        whole = {"raw"} & {one.name for one in fields(kind)}

        def made(raw: Mapping[str, Any]) -> Any:  # noqa: ANN401
            known = {name: reader(raw.get(name)) for name, reader in readers.items()}
            return build(**known, **dict.fromkeys(whole, raw))

        return made
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (UnionType, Union):
        (inner,) = (one for one in parts if one is not type(None))
        return _unless_none(_reader(inner))
    if origin is tuple:
        reader = _reader(parts[0])
        return lambda raw: tuple(map(reader, raw or ()))
    if origin is dict:
        reader = _reader(parts[1])
        return lambda raw: {name: reader(value) for name, value in (raw or {}).items()}
    return lambda raw: raw


_known_reader = cache(_reader)


def _unless_none(reader: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda raw: None if raw is None else reader(raw)


@dataclass(frozen=True, slots=True)
class Scale:
    """Where every loss lies."""

    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Loss:
    """Kind and scale of a loss."""

    kind: str
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class ScoreName:
    """What people call the mean loss, whether more of it is `better`, and its `unit`."""

    name: str
    better: str
    unit: str


@dataclass(frozen=True, slots=True)
class Metric:
    """One of several losses that a judgement gives."""

    kind: str
    lower: float
    upper: float
    score: ScoreName


@dataclass(frozen=True, slots=True)
class Systems:
    """The two systems `a` and `b` of a pool, or the `names` of several."""

    a: str | None
    b: str | None
    names: tuple[str, ...]
    loss: Loss | None
    normalisation: str


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool without its items."""

    id: str
    name: str
    loss: Loss | None
    score: ScoreName | None
    metrics: dict[str, Metric]
    levels: tuple[dict[str, Any], ...]
    group_columns: dict[str, tuple[str, ...]]
    systems: Systems | None
    based_on: dict[str, Any] | None
    sealed: bool
    items: int
    classes: int | None
    columns: tuple[str, ...]
    groups: tuple[str, ...]
    known: dict[str, Any] | None
    digest: str | None
    archived: bool
    created_at: str
    sealed_at: str | None
    raw: Raw = field(repr=False)


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What is left of a deleted session: digests, and which certificates were issued for it."""

    id: str
    pool_id: str
    pool_digest: str
    plan_digest: str
    commitment: str
    ledger_head: str
    sequence: int
    revision: int
    state: str
    pushed: bool
    opened_at: str
    deleted_at: str
    deleted_by: str | None
    issued: int
    certificates: tuple[dict[str, Any], ...]
    raw: Raw = field(repr=False)


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a pool, with what its systems answered where it has several."""

    index: int
    id: str
    payload: Any
    a: Any
    b: Any
    answers: Any
    raw: Raw = field(repr=False)


@dataclass(frozen=True, slots=True)
class Score:
    """The interval by the name and in the direction that the pool declared."""

    name: str
    better: str
    unit: str
    estimate: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to a question, and the round that gave it."""

    side: str
    threshold: float
    answer: str
    round: int | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which of two systems is at least as good, or whether they are equivalent."""

    margin: float
    answer: str
    round: int | None


@dataclass(frozen=True, slots=True)
class Rounds:
    """Counts of rounds: drawn = judged + pending, and judged = in_interval + waiting."""

    drawn: int
    judged: int
    in_interval: int
    pending: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """Labels left until the stop, counted from a round: median, 10 and 90 %."""

    round: int
    labels_left: int
    low: int
    high: int
    seconds_per_label: float | None


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """A question, and its answer so far, in words."""

    question: str
    given: str
    answer: str


@dataclass(frozen=True, slots=True)
class Words:
    """What stands beside the sentence of a session, for people."""

    answers: tuple[QuestionAnswer, ...]
    progress: str
    holds: str | None
    labels: int


@dataclass(frozen=True, slots=True)
class Sides:
    """How often which side had the smaller loss."""

    left: int
    tie: int
    right: int


@dataclass(frozen=True, slots=True)
class Origin:
    """Of a session that ran in a process of its own: `pushed`, and when it came to its service."""

    kind: str
    at: str


@dataclass(frozen=True, slots=True)
class Status:
    """Where a session stands. The interval speaks for `rounds.in_interval` of its rounds."""

    id: str
    name: str | None
    pool_id: str
    state: str
    target: str
    alpha: float
    policy: str | None
    strategy: str | None
    method_version: str
    round: int
    estimate: float | None
    lower: float | None
    upper: float | None
    width: float | None
    score: Score | None
    sentence: str
    words: Words
    owner: str | None
    tags: tuple[str, ...]
    active_at: str | None
    precision: float | None
    budget: int
    items: int
    known: int
    effective_items: float | None
    scale: Scale | None
    stopped: bool
    stop_reason: str | None
    stop_when_decided: bool
    fixed: bool
    changes: int
    decisions: tuple[Decision, ...]
    verdict: Verdict | None
    systems: dict[str, str] | None
    sides: Sides | None
    raters: dict[str, Any] | None
    best: dict[str, Any] | None
    table: dict[str, Any] | None
    rounds: Rounds
    forecast: Forecast | None
    planned_labels: dict[str, int] | None
    contradictions: tuple[dict[str, Any], ...]
    warnings: tuple[str, ...]
    sequence: int
    revision: int
    lease_seconds: int
    commitment: str
    ledger_head: str
    archived: bool
    created_at: str
    origin: Origin | None
    raw: Raw = field(repr=False)

    def __str__(self) -> str:
        pushed = "" if self.origin is None else " (pushed)"
        return f"{self.id}{pushed}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class Spread:
    """Half of the simulated sessions came to less than `median`, 80 % between `low` and `high`."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PlannedPoint:
    """Labels of a session that stops at one precision."""

    precision: float | None
    labels: Spread
    reached: float
    runs: int
    extrapolated: bool


@dataclass(frozen=True, slots=True)
class PolicyPlan:
    """What one policy would need: `expected` is the number to plan with, a point of the `curve`."""

    policy: str
    refused: dict[str, Any] | None
    warning: str | None
    smallest_width: dict[str, float] | None
    expected: PlannedPoint | None
    curve: tuple[PlannedPoint, ...]
    surrogate_right: dict[str, Any] | None
    surrogate_useless: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast labels came in the latest sessions of a project."""

    seconds_per_label: float
    sessions: int


@dataclass(frozen=True, slots=True)
class Plan:
    """How many labels each policy would need, a forecast; `notes` say what it is worth."""

    pool_id: str
    items: int
    target: str
    alpha: float
    precision: Any
    suggested_precision: dict[str, Any] | None
    budget: int
    strategy: str | None
    seed: int
    assumed_risk: float | None
    assumed_risks: dict[str, float]
    informed: bool
    fixed_sample: int | None
    notes: tuple[str, ...]
    pace: Pace | None
    policies: tuple[PolicyPlan, ...]
    claims: tuple[dict[str, Any], ...]
    raw: Raw = field(repr=False)

    @property
    def planned_labels(self) -> dict[str, int] | None:
        """What is expected of the first policy, to open a session with; None where nothing is."""
        expected = self.policies[0].expected if self.policies else None
        if expected is None:
            return None
        labels = expected.labels
        values = {"low": labels.low, "median": labels.median, "high": labels.high}
        return {name: round(value) for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer to be judged, and nothing that tells whose it is."""

    answer: str | None
    payload: Any


@dataclass(frozen=True, slots=True)
class DrawnItem:
    """What is to be judged."""

    index: int
    id: str
    payload: Any


@dataclass(frozen=True, slots=True)
class Draw:
    """An item held until `expires_at`; of several systems with the answers to be compared."""

    round: int
    item: DrawnItem
    left: ShownAnswer | None
    right: ShownAnswer | None
    answers: tuple[ShownAnswer, ...]
    turn: int | None
    expires_at: str
    raw: Raw = field(repr=False)


@dataclass(frozen=True, slots=True)
class Point:
    """The interval after a round."""

    round: int
    sequence: int
    estimate: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Entry:
    """An event of the ledger."""

    sequence: int
    kind: str
    round: int | None
    item: int | None
    q: float | None
    strata_q: str | None
    seen: int | None
    loss: float | None
    losses: tuple[float | None, ...]
    detail: dict[str, Any]
    at: str
    raw: Raw = field(repr=False)


@dataclass(frozen=True, slots=True)
class Comment:
    """What a judge added to a judgement, by whom; the last one said stands."""

    round: int
    item: str
    comment: str
    author: str | None
    worker: str
    at: str


@dataclass(frozen=True, slots=True)
class Label:
    """A judgement as it stands, after its corrections, and what to weight it by.

    Labels are no uniform sample: the mean of their losses is not the score.
    """

    sequence: int
    round: int
    kind: str
    item: str
    index: int
    loss: float | None
    losses: dict[str, Any] | None
    label: int | None
    preference: str | None
    grade: int | None
    unjudgeable: str | None
    person: str | None
    worker: str | None
    rater: str | None
    turn: int | None
    drawn_at: str
    judged_at: str
    in_interval: bool
    corrections: int
    corrected_at: str | None
    corrected_by: str | None
    correction_reason: str | None
    comment: str | None
    probability: float
    weight: float | None
    groups: dict[str, Any] | None
    payload: Any
    raw: Raw = field(repr=False)


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """What a judge did: labels it gave, of them `unjudgeable`, and those where others were faster.

    `state` is the last one it was told, such as `target_reached`.
    """

    state: str
    labels: int
    unjudgeable: int
    overtaken: int
