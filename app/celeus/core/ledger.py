"""The ledger: the kinds of event a session is made of.

The ledger is the truth: the plan and these events, in order of their sequence, give the state.
A round is one draw and what became of it; rounds count from 1 and items from 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.plain import SLACK, Mismatch, Plain, Probability, equal


@dataclass(frozen=True, slots=True)
class Draw:
    """An item was chosen, with a probability fixed before its loss could be known.

    ``q`` is the probability among the items not yet drawn, ``strata_q`` the probability of a
    single item in every stratum where the policy has strata, ``seen`` the sequence of the last
    event known when both were computed.
    """

    round: int
    item: int
    q: float
    seen: int
    strata_q: NDArray[np.float64] | None = None

    @property
    def q_by_stratum(self) -> NDArray[np.float64]:
        """The probability of a single item in every stratum; TypeError without strata."""
        if self.strata_q is None:
            raise TypeError(self)
        return self.strata_q


@dataclass(frozen=True, slots=True)
class Observation:
    """The judge's loss for a drawn round, on the scale of the pool.

    ``runs`` is how many were made of its item, where a draw has several.
    """

    round: int
    loss: float
    runs: int | None = None


@dataclass(frozen=True, slots=True)
class JointObservation:
    """Several losses in a drawn round: of all systems, or one a metric; each on its scale.

    A metric's loss is None if nobody can judge it. ``in_order``: the losses were given in the order
    in which the answers were shown.
    """

    round: int
    losses: tuple[float | None, ...]
    in_order: bool = False


@dataclass(frozen=True, slots=True)
class Unjudgeable:
    """A round whose loss no judge can determine; both completions of the pool are kept.

    See docs/evidence/method.md#8-rounds-that-nobody-can-judge. ``runs`` are as in `Observation`.
    """

    round: int
    runs: int | None = None


@dataclass(frozen=True, slots=True)
class Rating:
    """A rating of a drawn round by one rater of a panel; None if they cannot judge it.

    The round is judged once its protocol has come to an outcome, by the event that follows. A later
    rating of the same rater and ``turn`` takes the place of an earlier one.
    """

    round: int
    rater: str
    loss: float | None
    turn: int = 1


@dataclass(frozen=True, slots=True)
class Amendment:
    """A correction: from now on the round has this loss, or none when ``loss`` is None."""

    round: int
    loss: float | None


@dataclass(frozen=True, slots=True)
class Change:
    """New precision and budget, binding from the first draw made after it.

    ``stop_when_decided`` says from now on whether answers to all questions end the session; None
    leaves it as it was.
    """

    precision: float | None
    budget: int
    stop_when_decided: bool | None = None


@dataclass(frozen=True, slots=True)
class AddedQuestion(Plain):
    """A question of a claim that is added, on the scale of its metric."""

    side: str
    threshold: float


@dataclass(frozen=True, slots=True)
class Addition(Plain):
    """A claim added to a table at a level from the reserve; it bets on later draws alone.

    It is about ``metric``, of the items with this ``value`` in ``column`` or of all; ``precision``
    is on the scale of the metric.
    """

    metric: str
    level: Probability
    column: str | None = None
    value: str | None = None
    precision: float | None = None
    questions: tuple[AddedQuestion, ...] = ()

    @classmethod
    def in_detail(cls, detail: Mapping[str, Any], where: str = "") -> Self:
        """Return the claim in a record's detail, which may have further members."""
        return cls.from_dict({name: detail[name] for name in ADDED if name in detail}, where)


ADDED = tuple(member.name for member in fields(Addition))
"""The members of an added claim in the ledger."""

Event = Draw | Observation | JointObservation | Unjudgeable | Rating | Amendment | Change | Addition


def compare_draws(where: str, claimed: Draw, due: Draw) -> None:
    """Raise Mismatch unless the two draws are the same, up to the rounding of q."""
    for name in ("round", "item", "seen"):
        equal(f"{where}.{name}", getattr(claimed, name), getattr(due, name))
    if not abs(claimed.q - due.q) <= SLACK * due.q:
        raise Mismatch(f"{where}.q", claimed.q, due.q)
    _compare_strata(f"{where}.strata_q", claimed.strata_q, due.strata_q)


def _compare_strata(
    where: str, claimed: NDArray[np.float64] | None, due: NDArray[np.float64] | None
) -> None:
    if claimed is None or due is None or claimed.shape != due.shape:
        equal(f"the strata of {where}", *(None if q is None else q.size for q in (claimed, due)))
        return
    apart = np.flatnonzero(~(np.abs(claimed - due) <= SLACK * due))
    if apart.size:
        stratum = int(apart[0])
        place = f"{where}, stratum {stratum}"
        raise Mismatch(place, float(claimed[stratum]), float(due[stratum]))
