"""The ledger of a certificate: every record checked on its own and in its place.

What can be said of a ledger without its pool: events without a gap, rounds in order, no item drawn
twice, each probability at least what the proposal leaves every item, one judgement a round,
losses on the scale, changes the plan allows, nothing after the session was closed.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celeus.core.certificates.chain import Record, strata_of_hex
from celeus.core.certificates.parsing import (
    HEX,
    Mismatch,
    Object,
    equal,
    flag,
    listed,
    members,
    moment,
    number,
    text,
    whole,
)
from celeus.core.ledger import (
    ADDED,
    Addition,
    Amendment,
    Change,
    Draw,
    Event,
    JointObservation,
    Observation,
    Rating,
    Unjudgeable,
)
from celeus.core.plans.best import BestPlan
from celeus.core.plans.plan import Plan, check_budget, check_precision
from celeus.core.plans.stopping import StoppingRule
from celeus.core.plans.table import TablePlan
from celeus.core.pools.comparison import WORDS
from celeus.core.pools.losses import LossScale
from celeus.core.pools.strata import MOST_STRATA
from celeus.core.pools.systems import SIDES, Side
from celeus.core.session.question import AnyPlan
from celeus.core.session.table.allocation import NEEDED_SHARE
from celeus.core.session.table.cells import MOST_CELLS
from celeus.errors import Refusal

STATES = ("active", "paused", "closed")
MOST_RECORDED = MOST_STRATA + 1
"""Strata of a draw: an audit has one more."""
SLACK = 1e-9
EVERY = ("sequence", "kind", "at")
FORMS: Mapping[str, tuple[str, ...]] = {
    "draw": ("round", "item", "q", "seen"),
    "observation": ("round", "loss"),
    "unjudgeable": ("round",),
    "rating": ("round", "detail"),
    "amendment": ("round",),
    "change": ("detail",),
}
"""Members a record of each kind has beside ``EVERY``."""
JOINT_FORMS: Mapping[str, tuple[str, ...]] = {
    "draw": (*FORMS["draw"], "strata_q"),
    "observation": ("round", "losses"),
    "change": FORMS["change"],
}
"""The same where the best of several systems is sought."""
TABLE_FORMS: Mapping[str, tuple[str, ...]] = {**JOINT_FORMS, "addition": ("detail",)}
"""The same where claims are made about a table."""
NESTED = "questions"
"""The only member of a detail that is neither a text nor a number, in a claim that is added."""
OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "draw": ("strata_q", "detail"),
    "rating": ("loss",),
    "amendment": ("loss", "detail"),
}


@dataclass(slots=True)
class Transcript:
    """A ledger read and found in order; ``words`` are what judges said, by record, but for losses.

    ``losses`` are those of several systems, by record. ``left`` is the system on the left of every
    round, where two named ones are compared; ``order`` that of several answers, None where a draw
    has none.
    """

    plan: AnyPlan
    scale: LossScale
    records: list[Record] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    words: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    losses: dict[int, JointObservation] = field(default_factory=dict)
    left: list[Side] = field(default_factory=list)
    order: list[str | None] = field(default_factory=list)
    draws: list[Draw] = field(default_factory=list)
    state: str = "active"
    amendments: int = 0
    _judged: list[bool] = field(default_factory=list)
    _items: set[int] = field(default_factory=set)
    _rule: StoppingRule | None = None

    @property
    def closed(self) -> bool:
        """The session takes no more events."""
        return self.state == "closed"

    @property
    def folded(self) -> int:
        """Rounds before the first one without a judgement."""
        return self._judged.index(False) if False in self._judged else len(self._judged)

    @property
    def rule(self) -> StoppingRule:
        """Precision and budget in force for the next draw."""
        return self._rule or self.plan.stopping

    def read(self, value: object) -> None:
        """Read the next record; Mismatch when it cannot be the next one."""
        where = f"ledger[{len(self.records)}]"
        kind = text(value.get("kind") if isinstance(value, dict) else None, f"{where}.kind")
        forms = FORMS if isinstance(self.plan, Plan) else JOINT_FORMS
        if isinstance(self.plan, TablePlan):
            forms = TABLE_FORMS
        if kind not in forms:
            raise Mismatch(f"{where}.kind", kind, "one of " + ", ".join(forms))
        record = members(value, where, EVERY + forms[kind], OPTIONAL.get(kind, ("detail",)))
        sequence = whole(record["sequence"], f"{where}.sequence")
        equal(f"{where}.sequence", sequence, len(self.records) + 1)
        moment(record["at"], f"{where}.at")
        if self.closed:
            raise Mismatch(where, kind, "no event after the session was closed")
        nested = NESTED if kind == "addition" else None
        detail = _detail(record.get("detail"), f"{where}.detail", nested)
        event = self._readers()[kind](record, where)
        _check_words(detail, event, f"{where}.detail")
        self._read_words(detail, event, f"{where}.detail")
        self.events.append(event)
        self.records.append(record)

    def _read_words(self, detail: Mapping[str, Any], event: Event, where: str) -> None:
        """What a judge said, and of a draw how the answers stood before its judge."""
        said = {name: detail[name] for name in WORDS if name in detail}
        if "label" in said:
            said["label"] = whole(said["label"], f"{where}.label")
        if said:
            self.words[len(self.records)] = said
        if isinstance(event, JointObservation):
            self.losses[len(self.records)] = event
        if isinstance(self.plan, BestPlan):
            if isinstance(event, Draw):
                self.order.append(detail.get("order"))
            return
        if isinstance(self.plan, TablePlan) or self.plan.systems is None:
            return
        if isinstance(event, Draw):
            side = next((one for one in SIDES if one == detail.get("left")), None)
            if side is None:
                raise Mismatch(f"{where}.left", detail.get("left"), "one of " + ", ".join(SIDES))
            self.left.append(side)
        elif (
            not said
            and isinstance(event, Observation | Rating | Amendment)
            and event.loss is not None
            # What raters have come to is said by them
            and not (self.plan.protocol is not None and isinstance(event, Observation))
        ):
            raise Mismatch(where, None, "what the judge said of the two answers")

    def _readers(self) -> dict[str, Callable[[Object, str], Event]]:
        return {
            "draw": self._draw,
            "observation": self._observation,
            "unjudgeable": self._unjudgeable,
            "rating": self._rating,
            "amendment": self._amendment,
            "change": self._change,
            "addition": self._addition,
        }

    def _draw(self, record: Object, where: str) -> Draw:
        plan, round_ = self.plan, len(self.draws) + 1
        equal(f"{where}.round", whole(record["round"], f"{where}.round"), round_)
        most = min(plan.drawable, self.rule.budget)
        if round_ > most:
            raise Mismatch(f"{where}.round", round_, f"at most {most} draws")
        item = whole(record["item"], f"{where}.item", 0, plan.items - 1)
        if item in self._items:
            raise Mismatch(f"{where}.item", item, "an item not drawn before")
        self._items.add(item)
        # Whatever the policy, uniform draws leave every item this much; with weights, which only
        # the pool holds, the lightest one.
        least = plan.beta / (plan.drawable - round_ + 1) * (1.0 - SLACK)
        if isinstance(plan, Plan) and plan.weights is not None:
            least = plan.beta * plan.weights.least_share / plan.items * (1.0 - SLACK)
        elif isinstance(plan, TablePlan):
            least *= 1.0 - NEEDED_SHARE
        q = number(record["q"], f"{where}.q", least, 1.0 + SLACK)
        # A draw is made and written down under one lock.
        equal(f"{where}.seen", whole(record["seen"], f"{where}.seen"), len(self.records))
        strata_q = self._strata(record.get("strata_q"), q, f"{where}.strata_q")
        draw = Draw(round_, item, q, len(self.records), strata_q)
        self.draws.append(draw)
        self._judged.append(False)
        return draw

    def _strata(self, value: object, q: float, where: str) -> NDArray[np.float64] | None:
        moving = isinstance(self.plan, BestPlan)
        most = MOST_CELLS if isinstance(self.plan, TablePlan) else MOST_RECORDED
        if isinstance(self.plan, Plan) and not self.plan.policy.has_goal:
            if value is not None:
                raise Mismatch(where, value, "nothing: the policy has no strata")
            return None
        packed = text(value, where, HEX)
        if len(packed) % 16 or len(packed) > 16 * most:
            raise Mismatch(where, value, f"the bytes of 1 to {most} numbers")
        strata_q = strata_of_hex(packed)
        if not (np.isfinite(strata_q) & (strata_q > 0.0)).all():
            raise Mismatch(where, value, "probabilities above 0")
        # Where the best is sought the pool is cut anew as systems leave.
        if not moving and self.draws and (before := self.draws[0].strata_q) is not None:
            equal(f"the strata of {where}", strata_q.size, before.size)
        weighted = isinstance(self.plan, Plan) and self.plan.weights is not None
        if not weighted and not (strata_q == q).any():
            raise Mismatch(where, f"none of {strata_q.size} is {q!r}", f"q = {q!r} of one stratum")
        return strata_q

    def _observation(self, record: Object, where: str) -> Observation | JointObservation:
        round_ = self._judge(record, where)
        if isinstance(self.plan, BestPlan):
            where += ".losses"
            losses = listed(record["losses"], where, len(self.plan.systems))
            given = [self._loss(loss, f"{where}[{at}]") for at, loss in enumerate(losses)]
            in_order = (record.get("detail") or {}).get("in_order") is True
            return JointObservation(round_, tuple(given), in_order)
        if isinstance(self.plan, TablePlan):
            return JointObservation(round_, self._vector(record["losses"], f"{where}.losses"))
        return Observation(round_, self._loss(record["loss"], f"{where}.loss"))

    def _unjudgeable(self, record: Object, where: str) -> Unjudgeable:
        return Unjudgeable(self._judge(record, where))

    def _rating(self, record: Object, where: str) -> Rating:
        if not isinstance(self.plan, Plan) or self.plan.protocol is None:
            raise Mismatch(f"{where}.kind", "rating", "a session with a panel of raters")
        round_ = self._drawn(record, where)
        if self._judged[round_ - 1]:
            raise Mismatch(f"{where}.round", round_, "a round that was not judged")
        content = record["detail"]
        detail = members(content, f"{where}.detail", ("rater",), content)
        rater = text(detail["rater"], f"{where}.detail.rater")
        if rater not in self.plan.panel:
            raise Mismatch(f"{where}.detail.rater", rater, "a rater of the panel")
        turn = whole(detail["turn"], f"{where}.detail.turn", 1) if "turn" in detail else 1
        loss = self._loss(record["loss"], f"{where}.loss") if "loss" in record else None
        return Rating(round_, rater, loss, turn)

    def _amendment(self, record: Object, where: str) -> Amendment:
        round_ = self._drawn(record, where)
        if not self._judged[round_ - 1]:
            raise Mismatch(f"{where}.round", round_, "a round that was judged")
        self.amendments += 1
        has_loss = "loss" in record
        return Amendment(round_, self._loss(record["loss"], f"{where}.loss") if has_loss else None)

    def _change(self, record: Object, where: str) -> Change:
        where += ".detail"
        content = record["detail"]
        detail = members(content, where, ("precision", "budget", "state"), content)
        precision = detail["precision"]
        if precision is not None:
            precision = number(precision, f"{where}.precision")
        budget = whole(detail["budget"], f"{where}.budget")
        if budget < len(self.draws):
            raise Mismatch(f"{where}.budget", budget, f"at least the {len(self.draws)} draws made")
        try:
            # An unchanged precision was checked before.
            if not isinstance(self.plan, Plan):
                equal(f"{where}.precision", precision, None)
            elif precision != self.rule.precision:
                check_precision(self.plan, precision)
            check_budget(budget, self.plan.drawable)
        except Refusal as refusal:
            raise Mismatch(f"{where}.{refusal.field}", refusal.value, refusal.rule) from refusal
        state = text(detail["state"], f"{where}.state")
        if state not in STATES:
            raise Mismatch(f"{where}.state", state, "one of " + ", ".join(STATES))
        stop = detail.get("stop_when_decided")
        if stop is not None:
            flag(stop, f"{where}.stop_when_decided")
        rule = StoppingRule(
            precision, budget, self.rule.stop_when_decided if stop is None else stop
        )
        if self.plan.fixed:
            equal(f"{where} of a fixed session", asdict(rule), asdict(self.plan.stopping))
        self.state = state
        self._rule = rule
        return Change(precision, budget, stop)

    def _addition(self, record: Object, where: str) -> Addition:
        """A claim that is added; whether it may be is seen when the ledger is replayed."""
        where += ".detail"
        detail = members(record["detail"], where, ADDED, record["detail"])
        asked = [
            members(one, f"{where}.questions[{at}]", ("side", "threshold"))
            for at, one in enumerate(listed(detail["questions"], f"{where}.questions"))
        ]
        column, value, precision = (detail[name] for name in ("column", "value", "precision"))
        return Addition(
            metric=text(detail["metric"], f"{where}.metric"),
            level=number(detail["level"], f"{where}.level", 0.0, 1.0),
            column=None if column is None else text(column, f"{where}.column"),
            value=None if value is None else text(value, f"{where}.value"),
            precision=None if precision is None else number(precision, f"{where}.precision"),
            questions=tuple(
                (
                    text(one["side"], f"{where}.questions.side"),
                    number(one["threshold"], f"{where}.questions.threshold"),
                )
                for one in asked
            ),
        )

    def _drawn(self, record: Object, where: str) -> int:
        round_ = whole(record["round"], f"{where}.round", 1)
        if round_ > len(self.draws):
            raise Mismatch(f"{where}.round", round_, f"a round drawn: 1 to {len(self.draws)}")
        return round_

    def _judge(self, record: Object, where: str) -> int:
        round_ = self._drawn(record, where)
        if self._judged[round_ - 1]:
            raise Mismatch(f"{where}.round", round_, "a round that was not judged")
        self._judged[round_ - 1] = True
        return round_

    def _vector(self, value: object, where: str) -> tuple[float | None, ...]:
        """A loss for every metric, None where nobody could tell it."""
        metrics = self.plan.metrics if isinstance(self.plan, TablePlan) else ()
        losses = listed(value, where, len(metrics))
        return tuple(
            None if loss is None else self._loss(loss, f"{where}[{at}]", metric.scale)
            for at, (loss, metric) in enumerate(zip(losses, metrics, strict=True))
        )

    def _loss(self, value: object, where: str, scale: LossScale | None = None) -> float:
        loss = number(value, where)
        try:
            return (scale or self.scale).check(loss)
        except Refusal as refusal:
            raise Mismatch(where, loss, refusal.rule) from refusal


def _detail(value: object, where: str, nested: str | None) -> Mapping[str, Any]:
    """What else was written down with an event: texts, numbers, flags, and what is ``nested``."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Mismatch(where, value, "an object")
    for name, inner in value.items():
        if isinstance(inner, dict | list) and name != nested:
            raise Mismatch(f"{where}.{name}", inner, "a text or a number")
    return value


def _check_words(detail: Mapping[str, Any], event: Event, where: str) -> None:
    """What is written down beside an event agrees with it."""
    losses: tuple[float | None, ...] = ()
    if isinstance(event, JointObservation):
        losses = event.losses
    elif isinstance(event, Observation | Rating | Amendment):
        losses = (event.loss,)
    has_loss = any(loss is not None for loss in losses)
    has_none = not has_loss and isinstance(
        event, Unjudgeable | Rating | Amendment | JointObservation
    )
    # The loss stands in the record itself.
    words = tuple((name, has_loss) for name in WORDS)
    for name, right in (("loss", False), *words, ("unjudgeable", has_none)):
        if name in detail and not right:
            raise Mismatch(f"{where}.{name}", detail[name], "no member of this name")
    if isinstance(event, Amendment):
        for name in ("author", "reason"):
            text(detail.get(name), f"{where}.{name}")
