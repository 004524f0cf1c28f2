"""What judges are shown of a round, what they say of it, and the loss and event that makes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from celeus.core.ledger import JointObservation, Observation, Unjudgeable
from celeus.core.pools.comparison import WORDS, loss_said, losses_said
from celeus.core.pools.item import Item
from celeus.core.pools.pool import Pool
from celeus.core.pools.systems import PLACES, SIDES
from celeus.core.session.best.state import BestState
from celeus.core.session.either import AnyPlan, AnyState, risk_plan
from celeus.core.session.mean import State
from celeus.core.session.table.state import TableState
from celeus.core.session.table.table_question import vector
from celeus.errors import InvalidValue, RoundNotDrawn

Loss = float | tuple[float | None, ...] | None
"""The loss of a round, those of several systems or metrics, or None: nobody can tell."""
Said = tuple[tuple[Any, ...], bool, Loss]
"""A judgement in its judge's words: label and so on, whether unjudgeable, loss."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judgement of a round: a loss, a true label, or a reason why there is none.

    Of two systems: the true label, ``losses`` of ``a`` and ``b`` or of ``left`` and ``right``, or a
    ``preference`` for one of these, by how many grades. Of several: the true label, or ``losses``
    by name or of the answers in the order shown. Of metrics: ``losses`` by name, None where nobody
    can tell one. ``turn``: for which time a rater of a panel judges the round; None for the first.
    ``comment``: what its judge adds, on which nothing rests; None leaves what was added before.
    """

    round: int
    loss: float | None = None
    label: int | None = None
    unjudgeable: str | None = None
    losses: Mapping[str, float | None] | Sequence[float] | None = None
    preference: str | None = None
    grade: int | None = None
    turn: int | None = None
    comment: str | None = None


def shown(pool: Pool, state: AnyState, item: Item, round_: int) -> dict[str, Any]:
    """The item of a round as its judge sees it: of systems without a word on which answer is whose.

    Its members are ``item``, with ``left`` and ``right`` of two systems, ``answers`` of several.
    """
    if pool.named is None:
        return {"item": item}
    item = item.split(pool.named)
    if isinstance(state, BestState):
        order, parts = state.shown(round_, item.index), item.sides or {}
        if order is None or all(it is None for one in parts.values() for it in one.values()):
            return {"item": item}
        names = state.plan.systems
        return {"item": item, "answers": [parts[names[one[0]]] for one in order]}
    if not isinstance(state, State) or state.sides is None:
        return {"item": item}
    answers = [(item.sides or {})[side] for side in SIDES]
    if state.sides.left(round_) != SIDES[0]:
        answers.reverse()
    return {"item": item, **dict(zip(PLACES, answers, strict=True))}


def in_order(judgement: Judgement) -> bool:
    """The losses of several answers are said in the order in which these are shown."""
    return judgement.losses is not None and not isinstance(judgement.losses, Mapping)


def words_of(detail: Mapping[str, Any], loss: Loss) -> Said:
    """The judgement that a detail of the ledger and its loss keep."""
    return (tuple(detail.get(name) for name in WORDS), "unjudgeable" in detail, loss)


def check_blind(judgements: Sequence[Judgement]) -> None:
    """Refuse what somebody who is not told which answer is whose says of systems by name."""
    for judgement in judgements:
        losses = judgement.losses
        named = isinstance(losses, Mapping) and not losses.keys() <= {*PLACES}
        if judgement.preference in SIDES or named:
            field = "preference" if judgement.preference in SIDES else "losses"
            raise InvalidValue(
                "Judges are not told which answer is whose.",
                field=field,
                rule="said of left and right, as `next` shows the two answers, or of several in"
                " the order shown",
                value=judgement.preference or list(losses or ()),
            )


def event_of(judgement: Judgement, loss: Loss) -> Observation | JointObservation | Unjudgeable:
    """The event that a judgement with this loss is."""
    round_ = judgement.round
    if isinstance(loss, tuple):
        return JointObservation(round_, loss, in_order(judgement))
    return Unjudgeable(round_) if loss is None else Observation(round_, loss)


def loss_of(  # noqa: PLR0913 -- who sees what is said by name
    plan: AnyPlan,
    pool: Pool,
    state: AnyState,
    judgement: Judgement,
    *,
    shown: bool = True,
    blind: bool = False,
) -> Loss:
    """The loss a judgement states or implies, checked against the scale; None: unjudgeable.

    Where nothing is ``shown`` of several answers, nothing can be said of them in that order. To the
    ``blind`` it is not told which losses are known: they leave none out.
    """
    drawn = state.drawn
    if not 1 <= judgement.round <= drawn:
        raise RoundNotDrawn(
            f"round {judgement.round} is not drawn; {drawn} rounds are",
            field="round",
            rule=f"a round from 1 to {drawn}" if drawn else "a round that was drawn",
            value=judgement.round,
        )
    item = state.item(judgement.round)
    if isinstance(state, TableState):
        return _vector_of(state, pool, judgement, blind=blind)
    _check_all_told(judgement)
    if isinstance(state, BestState):
        return _losses_of(state, pool, judgement, shown=shown)
    if judgement.unjudgeable is not None:
        return None
    said = detail_of(judgement)
    # An order is said of several answers alone
    said.pop("in_order", None)
    if judgement.loss is not None:
        said["loss"] = judgement.loss
    if not said:
        rule = "exactly one of loss, label, losses, preference and unjudgeable"
        raise InvalidValue(f"a judgement has {rule}", field="loss", rule=rule)
    sides = state.sides
    loss = loss_said(pool, item, said, None if sides is None else sides.left(judgement.round))
    if pool.bounds is not None and risk_plan(plan).believed is not None:
        pool.bounds.check(item, loss)
    return loss


def _vector_of(
    state: TableState, pool: Pool, judgement: Judgement, *, blind: bool
) -> tuple[float | None, ...]:
    """The losses of all metrics that a judgement states, None where nobody can tell one.

    One that is known may be left out, but by the ``blind``. Of a single metric it may be the loss,
    its label, or why nobody can tell it.
    """
    metrics, item = state.plan.metrics, state.item(judgement.round)
    names = ", ".join(metric.name for metric in metrics)
    if judgement.unjudgeable is not None and len(metrics) == 1:
        return (None,)
    if judgement.unjudgeable is not None:
        raise InvalidValue(
            "A judgement of several metrics says which of them nobody can tell.",
            field="unjudgeable",
            rule=f"left out; `losses` with null for what nobody can tell of {names}",
            value=judgement.unjudgeable,
        )
    losses = judgement.losses
    single = {
        name: getattr(judgement, name)
        for name in ("loss", "label")
        if getattr(judgement, name) is not None
    }
    if single and len(metrics) == 1:
        losses = {metrics[0].name: loss_said(pool, item, single, None)}
    if not isinstance(losses, Mapping):
        said = detail_of(judgement) | single
        field = "losses" if losses is not None else next(iter(said), "losses")
        raise InvalidValue(
            "A judgement of this session gives a loss for every metric, by name.",
            field=field,
            rule=f"`losses` of {names}, with null for what nobody can tell",
        )
    known = np.flatnonzero(~np.isnan(state.session.table.known[item])).tolist()
    left_out = {} if blind else {metrics[at].name: None for at in known}
    told = vector(metrics, left_out | dict(losses))
    state.check(item, told)
    return told


def _check_all_told(judgement: Judgement) -> None:
    """Refuse losses of systems of which one is null."""
    losses = judgement.losses
    if isinstance(losses, Mapping) and None in losses.values():
        raise InvalidValue(
            "A judgement of several systems gives the loss of each.",
            field="losses",
            rule="numbers; null is said of metrics alone",
        )


def _losses_of(
    state: BestState, pool: Pool, judgement: Judgement, *, shown: bool
) -> tuple[float, ...]:
    """The losses of all systems that a judgement states or implies."""
    if pool.lineup is None:
        message = "the best is sought in a pool of several systems"
        raise TypeError(message)
    if judgement.unjudgeable is not None:
        raise InvalidValue(
            "Where the best of several systems is sought, every round that is drawn is judged: what"
            " a round nobody can judge means for the others is not worked out.",
            field="unjudgeable",
            rule="a judgement; an item that nobody can judge belongs in no such pool",
            value=judgement.unjudgeable,
        )
    item = state.item(judgement.round)
    given = {
        name: getattr(judgement, name)
        for name in ("label", "losses", "loss", "preference")
        if getattr(judgement, name) is not None
    }
    order = state.shown(judgement.round, item) if shown else None
    losses = losses_said(pool, pool.lineup, item, given, order)
    state.check(item, losses)
    return losses


def detail_of(judgement: Judgement) -> dict[str, Any]:
    """The ledger's detail of a judgement, besides its loss."""
    detail: dict[str, Any] = {}
    if judgement.label is not None:
        detail["label"] = judgement.label
    if isinstance(judgement.losses, Mapping) and judgement.losses.keys() <= {*SIDES, *PLACES}:
        detail |= {f"loss_{name}": loss for name, loss in judgement.losses.items()}
    if in_order(judgement):
        detail["in_order"] = True
    if judgement.preference is not None:
        detail["preference"] = judgement.preference
    if judgement.grade not in {None, 1}:
        detail["grade"] = judgement.grade
    if judgement.unjudgeable is not None:
        detail["unjudgeable"] = judgement.unjudgeable
    return detail
