# Generated from openapi/openapi.json by `make generate`: change the contract, not this file.
"""The service's answers as frozen dataclasses, with the members that docs/api.md describes.

Members that a newer service adds are in `raw`, which holds the whole answer.
"""

from dataclasses import dataclass, field
from typing import Any

from celeus.client.reading import PlanMethods, Raw, StatusMethods


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to a question; ``round`` is the one that gave it. An answer stays."""

    side: str
    threshold: float
    answer: str
    round: int | None


@dataclass(frozen=True, slots=True)
class Scale:
    """The range of every loss."""

    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Score:
    """The claim as people name it: the interval of the mean loss on the scale of the score.

    Of two systems it is the score of a less that of b.
    """

    name: str
    better: str
    unit: str
    estimate: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim: a metric over all items, or over those of one group.

    Each interval holds by itself at its `level`; `promises` of the session's status says what holds
    of several. Those to show of claims picked after looking are in the certificate, as `picked`.
    """

    metric: str
    column: str | None
    value: str | None
    items: int
    known: int
    level: float | None
    precision: float | None
    estimate: float
    lower: float
    upper: float
    score: Score
    sentence: str
    scale: Scale
    whole: bool
    added: int | None
    met: bool | None
    met_at: int | None
    rounds: dict[str, int]
    answers: tuple[Decision, ...]
    raw: Raw = field(repr=False)


@dataclass(frozen=True, slots=True)
class Comment:
    """A judge's comment on a judgement. It is part of neither the ledger nor a certificate."""

    round: int
    item: str
    comment: str
    key: str
    author: str | None
    worker: str
    rater: str | None
    at: str


@dataclass(frozen=True, slots=True)
class DrawnItem:
    """The item to judge."""

    index: int
    id: str
    payload: Any


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer to be judged, and nothing that tells whose it is."""

    answer: str | None
    payload: Any


@dataclass(frozen=True, slots=True)
class Draw:
    """A draw leased to the worker until ``expires_at``."""

    round: int
    item: DrawnItem
    left: ShownAnswer | None
    right: ShownAnswer | None
    answers: tuple[ShownAnswer, ...]
    turn: int | None
    runs: int | None
    expires_at: str
    raw: Raw = field(repr=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """One event. ``at`` is the database's time; ``detail`` holds worker, label, author, reason.

    Of a change and of a claim that is added, ``detail`` is what was asked.
    """

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
class Forecast:
    """Labels left until the stop, if losses go on as they did; no part of the claim."""

    round: int
    labels_left: int
    low: int
    high: int
    seconds_per_label: float | None


@dataclass(frozen=True, slots=True)
class Item:
    """An item as a judge sees it."""

    index: int
    id: str
    payload: Any
    a: dict[str, Any] | None
    b: dict[str, Any] | None
    answers: dict[str, dict[str, Any]] | None
    raw: Raw = field(repr=False)


@dataclass(frozen=True, slots=True)
class Label:
    """A judgement as it stands, after its corrections."""

    loss: float | None
    losses: dict[str, float | None] | None
    label: int | None
    preference: str | None
    grade: int | None
    unjudgeable: str | None
    sequence: int
    round: int
    kind: str
    item: str
    index: int
    person: str | None
    worker: str | None
    rater: str | None
    turn: int | None
    left: str | None
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
    groups: dict[str, str] | None
    payload: Any
    raw: Raw = field(repr=False)


@dataclass(frozen=True, slots=True)
class Loss:
    """Scale of the loss; of two systems of the difference, loss of a less loss of b."""

    kind: str
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class ScoreName:
    """Name of the mean of the pool's losses, by default after the kind of loss."""

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
class Origin:
    """The origin of a session that ran elsewhere: whoever pushed it had its seed and its file."""

    kind: str
    at: str


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace of labels in the latest sessions of the project, of all their judges together."""

    seconds_per_label: float
    sessions: int


@dataclass(frozen=True, slots=True)
class Spread:
    """Median of the simulated sessions, and their 10 and 90 %."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PlannedPoint:
    """The labels of a session that stops at one precision, over all that may be true.

    The simulated sessions suppose surrogates of different worth, and mean losses below and above
    what they say.
    """

    precision: float | None
    labels: Spread
    reached: float
    runs: int
    extrapolated: bool


@dataclass(frozen=True, slots=True)
class PolicyPlan:
    """The labels that one policy would need."""

    policy: str
    refused: dict[str, Any] | None
    warning: str | None
    smallest_width: dict[str, float] | None
    expected: PlannedPoint | None
    curve: tuple[PlannedPoint, ...]
    surrogate_right: dict[str, Any] | None
    surrogate_useless: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Plan(PlanMethods):
    """The labels that each policy would need, by simulation; nothing of it is certified."""

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


@dataclass(frozen=True, slots=True)
class Point:
    """The answer after a folded round."""

    round: int
    sequence: int
    estimate: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Systems:
    """The two systems that a pool compares."""

    a: str | None
    b: str | None
    loss: Loss
    normalisation: str | None
    names: tuple[str, ...]


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
    intake: dict[str, Any] | None
    digest: str | None
    archived: bool
    created_at: str
    sealed_at: str | None
    raw: Raw = field(repr=False)


@dataclass(frozen=True, slots=True)
class Provisional:
    """The answer with the rounds that wait, and the open draws at their worst.

    It holds at the same alpha, at once with all other answers shown. It stops nothing.
    """

    lower: float | None
    upper: float | None
    standing: tuple[str, ...]
    met: int | None
    metrics: tuple[dict[str, Any], ...]
    open: int
    judged: int
    sentence: str


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """A question, and its answer so far, in words."""

    question: str
    given: str
    answer: str


@dataclass(frozen=True, slots=True)
class Rounds:
    """Counts of rounds: drawn = judged + pending, and judged = in_interval + waiting."""

    drawn: int
    judged: int
    in_interval: int
    pending: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Sides:
    """Counts of the side with the smaller loss, over all judged rounds; no claim rests on them.

    Which answer stands on the left is drawn for every round: where one side wins far more often, it
    is the judges that lean to it.
    """

    left: int
    tie: int
    right: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict; ``round`` is the one that gave it. An answer stays."""

    margin: float
    answer: str
    round: int | None


@dataclass(frozen=True, slots=True)
class Words:
    """Words beside the sentence, for people; pages and report show them as they are."""

    answers: tuple[QuestionAnswer, ...]
    progress: str
    holds: str | None
    labels: int
    share: float | None
    in_interval: int


@dataclass(frozen=True, slots=True)
class Status(StatusMethods):
    """The status of a session. The interval is based on `rounds.in_interval` of its rounds."""

    id: str
    name: str | None
    pool_id: str
    state: str
    target: str
    repeats: bool
    success: str | None
    runs: int | None
    alpha: float
    policy: str | None
    strategy: str | None
    method_version: str
    round: int
    estimate: float | None
    lower: float | None
    upper: float | None
    width: float | None
    provisional: Provisional | None
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
    subject: tuple[dict[str, str], ...]
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
    assumptions: tuple[dict[str, str], ...]
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


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The record that is kept of a deleted session."""

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
