"""From a judgement of a round to its loss, and to the event of the ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from celeus.core.ledger import JointObservation, Observation, Unjudgeable
from celeus.core.pools.comparison import WORDS, stated_loss, stated_losses
from celeus.core.pools.metrics import Metric
from celeus.core.pools.pool import Pool
from celeus.core.pools.systems import PLACES, SIDES, Side
from celeus.errors import InvalidValue

Losses = tuple[float | None, ...]
"""The losses of several systems or metrics; None where nobody can tell one."""
Loss = float | Losses | None
"""The loss of a round, those of several systems or metrics, or None: nobody can tell."""
JudgementWords = tuple[tuple[Any, ...], bool, Loss]
"""A judgement in its judge's words: label and so on, whether unjudgeable, loss."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judgement of a round: a loss, a true label, or a reason why there is none.

    Of two systems: the true label, ``losses`` of ``a`` and ``b`` or of ``left`` and ``right``, or a
    ``preference`` for one of these, by how many grades. Of several: the true label, or ``losses``
    by name or of the answers in the order shown. Of metrics: ``losses`` by name, None where nobody
    can tell one. ``turn``: for which time a rater of a panel judges the round; None for the first.
    ``runs``: how many were made of the item, where a draw has several.
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
    runs: int | None = None
    comment: str | None = None


def in_order(judgement: Judgement) -> bool:
    """The losses of several answers are said in the order in which these are shown."""
    return judgement.losses is not None and not isinstance(judgement.losses, Mapping)


def words_of(detail: Mapping[str, Any], loss: Loss) -> JudgementWords:
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
    return judged(judgement.round, loss, in_order=in_order(judgement), runs=judgement.runs)


def judged(
    round_: int, loss: Loss, *, in_order: bool = False, runs: int | None = None
) -> Observation | JointObservation | Unjudgeable:
    """The event of a round that is judged with this loss."""
    if isinstance(loss, tuple):
        return JointObservation(round_, loss, in_order)
    return Unjudgeable(round_, runs) if loss is None else Observation(round_, loss, runs)


def loss_in(event: Observation | Unjudgeable) -> float | None:
    """The loss that a judgement of one loss states; None where nobody can tell it."""
    return event.loss if isinstance(event, Observation) else None


def single_loss(pool: Pool, item: int, judgement: Judgement, left: Side | None) -> float | None:
    """The loss a judgement states or implies; None where nobody can tell it.

    ``left`` is the system whose answer stands on the left, where two are compared.
    """
    _check_complete(judgement)
    if judgement.unjudgeable is not None:
        return None
    words = detail_of(judgement)
    # An order is said of several answers alone, and runs are no loss
    for name in ("in_order", "runs"):
        words.pop(name, None)
    if judgement.loss is not None:
        words["loss"] = judgement.loss
    if not words:
        rule = "exactly one of loss, label, losses, preference and unjudgeable"
        raise InvalidValue(f"a judgement has {rule}", field="loss", rule=rule)
    return stated_loss(pool, item, words, left)


def losses_by_system(
    pool: Pool, item: int, judgement: Judgement, order: Sequence[tuple[int, ...]] | None
) -> tuple[float, ...]:
    """The losses of all systems that a judgement states or implies.

    ``order`` is that of the answers shown, None where nothing can be said of them in an order.
    """
    _check_complete(judgement)
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
    given = {
        name: getattr(judgement, name)
        for name in ("label", "losses", "loss", "preference")
        if getattr(judgement, name) is not None
    }
    return stated_losses(pool, pool.lineup, item, given, order)


def losses_by_metric(
    pool: Pool, item: int, judgement: Judgement, metrics: Sequence[Metric], known: Sequence[str]
) -> Losses:
    """The losses of all metrics that a judgement states, None where nobody can tell one.

    Those of the metrics ``known`` may be left out. Of a single metric it may be the loss, its
    label, or why nobody can tell it.
    """
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
        losses = {metrics[0].name: stated_loss(pool, item, single, None)}
    if not isinstance(losses, Mapping):
        words = detail_of(judgement) | single
        field = "losses" if losses is not None else next(iter(words), "losses")
        raise InvalidValue(
            "A judgement of this session gives a loss for every metric, by name.",
            field=field,
            rule=f"`losses` of {names}, with null for what nobody can tell",
        )
    return vector(metrics, dict.fromkeys(known) | dict(losses))


def vector(metrics: Sequence[Metric], losses: Mapping[str, float | None]) -> Losses:
    """The losses of a judgement by metric, in their order; refuses one that is missing."""
    for name in losses:
        if name not in {metric.name for metric in metrics}:
            raise InvalidValue(
                f"There is no metric {name}.",
                field=f"losses.{name}",
                rule="one of " + ", ".join(metric.name for metric in metrics),
            )
    for metric in metrics:
        if metric.name not in losses:
            raise InvalidValue(
                f"The judgement says nothing of {metric.name}.",
                field=f"losses.{metric.name}",
                rule="a loss, or null where nobody can tell it",
            )
    return tuple(losses[metric.name] for metric in metrics)


def _check_complete(judgement: Judgement) -> None:
    """Refuse losses of systems of which one is null."""
    losses = judgement.losses
    if isinstance(losses, Mapping) and None in losses.values():
        raise InvalidValue(
            "A judgement of several systems gives the loss of each.",
            field="losses",
            rule="numbers; null is said of metrics alone",
        )


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
    if judgement.runs is not None:
        detail["runs"] = judgement.runs
    return detail
