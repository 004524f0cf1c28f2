"""A claim among others that share their judgements, as every kind of claim shows itself."""

from abc import ABC, abstractmethod
from array import array

import numpy as np
from numpy.typing import NDArray

from celeus.core.interval import Interval
from celeus.core.ledger import Draw
from celeus.core.plans.plan import Plan
from celeus.core.plans.stopping import Decisions, all_decided
from celeus.core.plans.table_plan import TableClaim
from celeus.core.session.table.table_calibration import Known

Indices = NDArray[np.intp]


class ClaimState(ABC):
    """A claim after some rounds, with the ``plan`` of a session about it alone.

    ``metric`` is its place among what claims are about, ``cells`` are those of its part; ``rounds``
    are those that fell into it, by the table's count.
    """

    __slots__ = ("cells", "claim", "metric", "plan", "rounds")

    def __init__(self, claim: TableClaim, plan: Plan, metric: int, cells: Indices) -> None:
        self.claim = claim
        self.plan = plan
        self.metric = metric
        self.cells = cells
        self.rounds = array("i")

    @property
    @abstractmethod
    def interval(self) -> Interval:
        """Interval for the risk of the claim."""

    @property
    @abstractmethod
    def estimate(self) -> float:
        """Point estimate, within the interval."""

    @property
    @abstractmethod
    def decisions(self) -> Decisions:
        """The answers to its questions, each with the claim's own round."""

    @property
    @abstractmethod
    def emptied(self) -> bool:
        """No candidate is left; the last interval stays."""

    @property
    @abstractmethod
    def bets(self) -> int:
        """Bets that folding the claim's next round may place."""

    @property
    @abstractmethod
    def left(self) -> int:
        """Items of the claim that are not folded."""

    @property
    def met(self) -> bool:
        """It has what was asked for, or nothing is left to judge."""
        claim = self.claim
        if not self.left:
            return True
        precise = claim.precision is None or self.interval.width <= claim.precision
        decided = not claim.questions or all_decided(self.decisions)
        return precise and decided and not claim.whole

    @abstractmethod
    def draw(self, draw: Draw, known: Known) -> None:
        """Fix the bets on a draw that falls into the claim."""

    @abstractmethod
    def record(self, round_: int, loss: float | None) -> None:
        """Fold the oldest round drawn; ``loss`` is None when nobody could tell it."""
