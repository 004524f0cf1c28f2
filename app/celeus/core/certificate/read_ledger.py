"""The ledger of a certificate: every record checked on its own and in its place.

What can be said of a ledger without its pool: events without a gap, rounds in order, no item drawn
twice, each probability at least what the proposal leaves every item, one judgement a round,
losses on the scale, changes the plan allows, times in order, nothing after the session was closed.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from celeus.core.certificate.chain import Record, strata_of_hex
from celeus.core.certificate.members import RECORDS
from celeus.core.ledger import (
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
from celeus.core.plain import (
    HEX,
    SLACK,
    Mismatch,
    Object,
    equal,
    flag,
    listed,
    members,
    number,
    refusals,
    text,
    whole,
)
from celeus.core.plans.best_plan import BestPlan
from celeus.core.plans.plan import Plan, check_budget, check_precision
from celeus.core.plans.stopping import StoppingRule
from celeus.core.plans.success import check_made
from celeus.core.plans.table_plan import TablePlan
from celeus.core.pools.comparison import WORDS
from celeus.core.pools.losses import LossScale
from celeus.core.pools.strata import MOST_STRATA
from celeus.core.pools.systems import SIDES, Side
from celeus.core.pools.weights import Weights
from celeus.core.session.question import AnyPlan
from celeus.core.session.table.allocation import NEEDED_SHARE
from celeus.core.session.table.table_cells import MOST_CELLS
from celeus.errors import Refusal

STATES = ("active", "paused", "closed")
MOST_RECORDED = MOST_STRATA + 1
"""Strata of a draw: an audit has one more."""
NESTED = "questions"
"""The only member of a detail that is neither a text nor a number, in a claim that is added."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The bounds of what the ledger of a session may hold.

    ``losses`` are the scale of every loss of a joint judgement, and whether that loss may be
    missing. ``arrangement`` is the member of a draw's detail that says how answers stood before its
    judge. ``panel`` are the raters whose ratings there may be. A draw has at most ``most_strata``
    strata, 0 where it states none, and as many as the first draw where ``strata_stay``.
    ``even_share`` is the least part of the even probability that is left to every item; ``once``:
    no item is drawn again.
    """

    events: tuple[type[Event], ...]
    losses: tuple[tuple[LossScale, bool], ...] = ()
    arrangement: Literal["left", "order"] | None = None
    panel: tuple[str, ...] = ()
    most_strata: int = MOST_RECORDED
    strata_stay: bool = True
    even_share: float = 1.0
    once: bool = True


def rules_of(plan: AnyPlan, scale: LossScale) -> Rules:
    """The rules of the ledger of a plan's session on a pool of this scale."""
    match plan:
        case Plan():
            if plan.repeats:
                kinds = Draw, Observation, Unjudgeable, Amendment, Change
                return Rules(kinds, most_strata=0, once=False)
            return Rules(
                (Draw, Observation, Unjudgeable, Rating, Amendment, Change),
                arrangement=None if plan.systems is None else "left",
                panel=() if plan.protocol is None else plan.panel,
                most_strata=MOST_RECORDED if plan.policy.has_goal else 0,
            )
        case BestPlan():
            # The pool is cut anew as systems leave.
            losses = ((scale, False),) * plan.width
            return Rules((Draw, JointObservation, Change), losses, "order", strata_stay=False)
        case TablePlan():
            # Part of the even share goes to claims that need it.
            return Rules(
                (Draw, JointObservation, Change, Addition),
                tuple((metric.scale, True) for metric in plan.metrics),
                most_strata=MOST_CELLS,
                even_share=1.0 - NEEDED_SHARE,
            )


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
    _rules: Rules = field(init=False)

    def __post_init__(self) -> None:
        self._rules = rules_of(self.plan, self.scale)

    @property
    def arrangement(self) -> Literal["left", "order"] | None:
        """The member of a draw's detail that says how answers stood before its judge."""
        return self._rules.arrangement

    @property
    def closed(self) -> bool:
        """The session takes no more events."""
        return self.state == "closed"

    @property
    def strata(self) -> int:
        """The number of strata of the first draw; 0 where it has none, or there is no draw."""
        strata_q = self.draws[0].strata_q if self.draws else None
        return 0 if strata_q is None else strata_q.size

    @property
    def folded(self) -> int:
        """Rounds before the first one without a judgement."""
        return self._judged.index(False) if False in self._judged else len(self._judged)

    @property
    def outcomes(self) -> list[float | None]:
        """The loss of every judged round, as corrected; None where nobody could tell it."""
        losses: list[float | None] = [None] * len(self.draws)
        for event in self.events:
            if isinstance(event, Observation | Amendment):
                losses[event.round - 1] = event.loss
        return losses

    @property
    def rule(self) -> StoppingRule:
        """Precision and budget in force for the next draw."""
        return self._rule or self.plan.stopping

    def read(self, value: object) -> None:
        """Read the next record; Mismatch when it cannot be the next one."""
        where = f"ledger[{len(self.records)}]"
        kind = text(value.get("kind") if isinstance(value, dict) else None, f"{where}.kind")
        forms = {RECORDS[event].kind: RECORDS[event] for event in self._rules.events}
        if kind not in forms:
            raise Mismatch(f"{where}.kind", kind, "one of " + ", ".join(forms))
        record = members(value, where, value)  # type: ignore[arg-type]  # it has a kind
        values = forms[kind].read(record, where)
        equal(f"{where}.sequence", values["sequence"], len(self.records) + 1)
        if self.closed:
            raise Mismatch(where, kind, "no event after the session was closed")
        last = self.records[-1]["at"] if self.records else values["at"]
        if values["at"] < last:
            raise Mismatch(f"{where}.at", values["at"], f"not before the event before it, {last}")
        nested = NESTED if kind == "addition" else None
        detail = _detail(record.get("detail"), f"{where}.detail", nested)
        event = self._readers()[kind](values, where)
        _check_words(detail, event, f"{where}.detail")
        self._read_words(detail, event, f"{where}.detail")
        self.events.append(event)
        self.records.append(record)

    def _read_words(self, detail: Mapping[str, Any], event: Event, where: str) -> None:
        """Keep the words of a judge, and how the answers of a draw stood before its judge."""
        words = {name: detail[name] for name in WORDS if name in detail}
        if "label" in words:
            words["label"] = whole(words["label"], f"{where}.label")
        if words:
            self.words[len(self.records)] = words
        if isinstance(event, JointObservation):
            self.losses[len(self.records)] = event
        if self._rules.arrangement == "order" and isinstance(event, Draw):
            self.order.append(detail.get("order"))
        if self._rules.arrangement != "left":
            return
        if isinstance(event, Draw):
            side = next((name for name in SIDES if name == detail.get("left")), None)
            if side is None:
                raise Mismatch(f"{where}.left", detail.get("left"), "one of " + ", ".join(SIDES))
            self.left.append(side)
        elif (
            not words
            and isinstance(event, Observation | Rating | Amendment)
            and event.loss is not None
            # What raters have come to is said by them
            and not (self._rules.panel and isinstance(event, Observation))
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
        equal(f"{where}.round", record["round"], round_)
        most = min(plan.most_draws, self.rule.budget)
        if round_ > most:
            raise Mismatch(f"{where}.round", round_, f"at most {most} draws")
        item = record["item"]
        if item >= plan.items:
            raise Mismatch(f"{where}.item", item, f"at most {plan.items - 1}")
        if self._rules.once and item in self._items:
            raise Mismatch(f"{where}.item", item, "an item not drawn before")
        self._items.add(item)
        q = number(record["q"], f"{where}.q", self._least_q(round_), 1.0 + SLACK)
        # A draw is made and written down under one lock.
        equal(f"{where}.seen", record["seen"], len(self.records))
        strata_q = self._strata(record.get("strata_q"), q, f"{where}.strata_q")
        draw = Draw(round_, item, q, len(self.records), strata_q)
        self.draws.append(draw)
        self._judged.append(False)
        return draw

    @property
    def _weights(self) -> Weights | None:
        return self.plan.weights if isinstance(self.plan, Plan) else None

    def _least_q(self, round_: int) -> float:
        """The least probability of a draw; of weights, which only the pool holds, the lightest."""
        plan, weights = self.plan, self._weights
        if weights is None:
            left = plan.drawable - round_ + 1 if self._rules.once else plan.items
            even = plan.beta / left * (1.0 - SLACK)
            return even * self._rules.even_share
        return plan.beta * weights.least_share / plan.items * (1.0 - SLACK)

    def _strata(self, value: object, q: float, where: str) -> NDArray[np.float64] | None:
        most = self._rules.most_strata
        if not most:
            if value is not None:
                raise Mismatch(where, value, "nothing: a draw of this plan states no strata")
            return None
        packed = text(value, where, HEX)
        if len(packed) % 16 or len(packed) > 16 * most:
            raise Mismatch(where, value, f"the bytes of 1 to {most} numbers")
        strata_q = strata_of_hex(packed)
        if not (np.isfinite(strata_q) & (strata_q > 0.0)).all():
            raise Mismatch(where, value, "probabilities above 0")
        if (
            self._rules.strata_stay
            and self.draws
            and (before := self.draws[0].strata_q) is not None
        ):
            equal(f"the strata of {where}", strata_q.size, before.size)
        if self._weights is None and not (strata_q == q).any():
            raise Mismatch(
                where, f"none of {strata_q.size} is {q:.12g}", f"q = {q:.12g} of one stratum"
            )
        return strata_q

    def _observation(self, record: Object, where: str) -> Observation | JointObservation:
        round_ = self._judge(record, where)
        if "loss" in record:
            loss = self._loss(record["loss"], f"{where}.loss")
            return Observation(round_, loss, self._runs(record, loss, where))
        in_order = (record.get("detail") or {}).get("in_order") is True
        ordered = in_order and self._rules.arrangement == "order"
        return JointObservation(round_, self._losses(record["losses"], f"{where}.losses"), ordered)

    def _unjudgeable(self, record: Object, where: str) -> Unjudgeable:
        return Unjudgeable(self._judge(record, where), self._runs(record, None, where))

    def _runs(self, record: Object, loss: float | None, where: str) -> int | None:
        """The runs that were made of a draw of several; None where it is one."""
        success = self.plan.success if isinstance(self.plan, Plan) else None
        given = (record.get("detail") or {}).get("runs")
        runs = None if given is None else whole(given, f"{where}.detail.runs")
        with refusals(f"{where}.detail"):
            check_made(success, loss, runs)
        return runs

    def _rating(self, record: Object, where: str) -> Rating:
        if not self._rules.panel:
            raise Mismatch(f"{where}.kind", "rating", "a session with a panel of raters")
        round_ = self._drawn(record, where)
        if self._judged[round_ - 1]:
            raise Mismatch(f"{where}.round", round_, "a round that was not judged")
        content = record["detail"]
        detail = members(content, f"{where}.detail", ("rater",), content)
        rater = text(detail["rater"], f"{where}.detail.rater")
        if rater not in self._rules.panel:
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
            if not isinstance(self.plan, Plan):
                equal(f"{where}.precision", precision, None)
            elif precision != self.rule.precision:
                check_precision(self.plan, precision)
            check_budget(budget, self.plan.most_draws, repeats=self.plan.repeats)
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
        return Addition.in_detail(record["detail"], f"{where}.detail")

    def _drawn(self, record: Object, where: str) -> int:
        round_: int = record["round"]
        if round_ > len(self.draws):
            raise Mismatch(f"{where}.round", round_, f"a round drawn: 1 to {len(self.draws)}")
        return round_

    def _judge(self, record: Object, where: str) -> int:
        round_ = self._drawn(record, where)
        if self._judged[round_ - 1]:
            raise Mismatch(f"{where}.round", round_, "a round that was not judged")
        self._judged[round_ - 1] = True
        return round_

    def _losses(self, value: object, where: str) -> tuple[float | None, ...]:
        """The losses of a judgement of several, None where one may be missing and is."""
        scales = self._rules.losses
        losses = listed(value, where, len(scales))
        return tuple(
            None if missing and loss is None else self._loss(loss, f"{where}[{place}]", scale)
            for place, (loss, (scale, missing)) in enumerate(zip(losses, scales, strict=True))
        )

    def _loss(self, value: object, where: str, scale: LossScale | None = None) -> float:
        loss = number(value, where)
        try:
            return (scale or self.scale).check(loss)
        except Refusal as refusal:
            raise Mismatch(where, loss, refusal.rule) from refusal


def _detail(value: object, where: str, nested: str | None) -> Mapping[str, Any]:
    """The detail of an event: texts, numbers, flags, and the member ``nested``."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Mismatch(where, value, "an object")
    for name, inner in value.items():
        if isinstance(inner, dict | list) and name != nested:
            raise Mismatch(f"{where}.{name}", inner, "a text or a number")
    return value


def _check_words(detail: Mapping[str, Any], event: Event, where: str) -> None:
    """Refuse a detail that contradicts its event."""
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
    # A correction leaves the runs of its draw as they are.
    runs = ("runs", not isinstance(event, Amendment))
    for name, right in (("loss", False), *words, ("unjudgeable", has_none), runs):
        if name in detail and not right:
            raise Mismatch(f"{where}.{name}", detail[name], "no member of this name")
    if isinstance(event, Amendment):
        for name in ("author", "reason"):
            text(detail.get(name), f"{where}.{name}")
