"""Proposals: draw probabilities, and draws without replacement in O(1) a draw.

Notation: ``n`` items not yet drawn (J), ``w`` scores, ``beta`` the share of uniform draws.

    q(j) = (1 - beta) w_j / (sum over J of w) + beta / n        CELEUS, Assumption 2

and 1/n when no item left has a positive score. Drawing successively in proportion to fixed
weights has the law of sorting E_j / w_j with independent exponential E_j (Efraimidis and
Spirakis 2006), so a mixture is a coin and two orders fixed at opening: by weight, and uniform.
Each order is walked past what the other took; by memorylessness the next item it still holds has
exactly the conditional law. A draw costs O(1) amortised, whatever the size of the pool.

With strata every item of stratum k, rem_k of them left, has the same probability

    q_k = (1 - beta) sqrt(v_k) / (sum of rem_i sqrt(v_i)) + beta / n

with v the residual second moments predicted from folded losses (Neyman's allocation;
docs/evidence/method.md#4-what-may-be-relearnt-strata-calibration-proposal): the coin chooses the
stratum, and the item is the next one of that stratum's own random order. A draw costs O(K).

With weights w an item of stratum k has the probability w_j q_k, rem_k and n are sums of weights
left, and the order of a stratum is that of E_j / w_j (docs/evidence/method.md#16-weights).
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from celeus.core.pools.strata import NOWHERE, Strata
from celeus.core.randomness import uniforms
from celeus.core.sampling.calibration import Fit
from celeus.core.sampling.remainder import StrataLeft
from celeus.core.sampling.sums import RunningSum

Floats = NDArray[np.float64]
Items = NDArray[np.int32]


LEAST_MOMENT = 0.001
"""Least residual second moment in a predicted variance."""
UNIFORM_SHARES = (0.65, 0.8)
"""Shares of uniform draws beside the policy's own, beta."""
LOST_DIGITS = 1e-9
KNOWN = -1
"""Value of ``drawn_in`` for an item whose loss is known and that is never drawn."""


class ProposedDraw(NamedTuple):
    """The proposed item, its probability, and that of an item of weight 1 in every stratum."""

    item: int
    q: float
    strata_q: Floats | None = None


class Proposal(Protocol):
    """The distribution of the next draw, from scores, draws and the fit to labels.

    ``drawn_in`` holds the round of every item drawn, 0 for those left and KNOWN for those that are
    never drawn; shape [N].
    """

    drawn_in: Items

    def choose(self, coin: float, fit: Fit) -> ProposedDraw:
        """Return the next item without taking it; ``coin`` is uniform on (0, 1).

        ``fit`` is the one to the labels judged so far.
        """

    def chance(self, item: int, fit: Fit) -> ProposedDraw:
        """Return an item left, with its current draw probabilities."""

    def take(self, item: int, round_: int) -> None:
        """Mark ``item`` as drawn in round ``round_``."""


@dataclass(frozen=True, slots=True)
class Orders:
    """The two draw orders of a session, fixed by its seed before the first draw.

    ``by_weight`` holds the items with a positive score only.
    """

    by_weight: Items
    uniform: Items


def draw_orders(weight: Floats, seed: bytes) -> Orders:
    """Return the orders for scores ``weight`` (shape [N], each at least 0)."""
    positive = np.flatnonzero(weight > 0).astype(np.int32)
    by_weight = positive
    if positive.size:
        # The order of E / w by its logarithm: a tiny score would overflow the quotient.
        waiting = np.log(-np.log(uniforms(seed, "weight", weight.size)[positive]))
        by_weight = positive[np.argsort(waiting - np.log(weight[positive]), kind="stable")]
    uniform = np.argsort(uniforms(seed, "uniform", weight.size), kind="stable")
    return Orders(by_weight=by_weight, uniform=uniform.astype(np.int32))


class MixtureProposal:
    """Scores mixed with uniform draws, over the items still left.

    It sees scores and draws, never a loss: the probabilities are fixed before a loss is seen.
    """

    __slots__ = (
        "_beta",
        "_left_weight",
        "_orders",
        "_positive",
        "_trusted_down_to",
        "_walked",
        "drawn_in",
        "left",
        "weight",
    )

    def __init__(
        self, weight: Floats, orders: Orders, beta: float, known: NDArray[np.bool_] | None = None
    ) -> None:
        """Make the proposal; ``known`` is the mask of items never drawn, whose weight is 0."""
        self.weight = weight
        self.drawn_in: Items = np.zeros(weight.size, dtype=np.int32)
        if known is not None:
            self.drawn_in[known] = KNOWN
        self.left = int((self.drawn_in == 0).sum())
        self._orders = orders
        self._beta = beta
        self._sum_up()
        self._positive = int(orders.by_weight.size)
        self._walked = [0, 0]

    def choose(self, coin: float, fit: Fit) -> ProposedDraw:
        """Return the next item and its probability; the fit is not used."""
        del fit
        return ProposedDraw(*self.draw(coin))

    def chance(self, item: int, fit: Fit) -> ProposedDraw:
        """Return an item left, with its current draw probability."""
        del fit
        return ProposedDraw(item, self.probability(item))

    def draw(self, coin: float) -> tuple[int, float]:
        """Return the next item and its probability without taking it; ``coin`` is uniform."""
        use_weight = self._positive > 0 and coin >= self._beta
        order = self._orders.by_weight if use_weight else self._orders.uniform
        place = self._walked[use_weight]
        while self.drawn_in[order[place]]:
            place += 1
        self._walked[use_weight] = place
        item = int(order[place])
        return item, self.probability(item)

    def take(self, item: int, round_: int) -> None:
        """Mark ``item`` as drawn in round ``round_``."""
        self.drawn_in[item] = round_
        self.left -= 1
        score = float(self.weight[item])
        if score > 0:
            self._positive -= 1
            self._left_weight.add(-score)
            if self._positive and self._left_weight.value < self._trusted_down_to:
                self._sum_up()

    def _sum_up(self) -> None:
        """Recompute the sum of the scores left, whose digits may be lost in a running sum.

        O(N), but only each time the sum has fallen by LOST_DIGITS, a few times in a session.
        """
        self._left_weight = RunningSum.of(self.weight[self.drawn_in == 0])
        self._trusted_down_to = self._left_weight.value * LOST_DIGITS

    def probability(self, item: int) -> float:
        """Return the probability q of an item that is still left."""
        if self._positive == 0:
            return 1.0 / self.left
        share = float(self.weight[item]) / self._left_weight.value
        return (1.0 - self._beta) * share + self._beta / self.left

    def probabilities(self, round_: int | None = None) -> Floats:
        """Return every item's probability in ``round_`` (default: the next), 0 if drawn before.

        Shape [N]; O(N), for exact ranges and tests.
        """
        mask = self.drawn_in == 0
        if round_ is not None:
            mask |= self.drawn_in >= round_
        items_left = int(mask.sum())
        weight = np.where(mask, self.weight, 0.0)
        if not weight.any():
            return np.asarray(mask / items_left, dtype=np.float64)
        share = weight / weight.sum()
        q = mask * ((1.0 - self._beta) * share + self._beta / items_left)
        return np.asarray(q, dtype=np.float64)


def shares_adapt(beta: float, strata: int) -> bool:
    """Return whether the shares of so many strata depend on losses, by their residual moments.

    They do not where there is one stratum, nor where all draws are uniform.
    """
    return strata > 1 and beta < 1.0


class StratifiedProposal:
    """Strata drawn by their predicted residuals, mixed with a share ``beta`` of uniform draws.

    Unequal draws gain variance where strata differ, and widen the range of signals everywhere. With
    ``half``, half a precision on the unit scale, the share is the one of ``beta`` and those above
    it in UNIFORM_SHARES with the least variance padded for the range
    (docs/evidence/method.md#4-what-may-be-relearnt-strata-calibration-proposal).
    """

    __slots__ = ("_half", "_left", "_order", "_shares", "_strata", "_walked", "drawn_in")

    def __init__(self, strata: Strata, seed: bytes, beta: float, half: float | None = None) -> None:
        self._strata = strata
        self._shares = np.array([beta, *(share for share in UNIFORM_SHARES if share > beta)])
        self._half = half if self._shares.size > 1 else None
        waiting = uniforms(seed, "uniform", strata.code.size)
        if strata.item_weight is not None:
            # Ascending in the uniform, so that equal weights have the order of none.
            waiting = np.log(-np.log1p(-waiting)) - np.log(strata.item_weight)
        shuffled = np.argsort(waiting, kind="stable")
        shuffled = shuffled[strata.code[shuffled] != NOWHERE]
        grouped = np.argsort(strata.code[shuffled], kind="stable")
        self._order: Items = shuffled[grouped].astype(np.int32)
        self._walked = [int(end) for end in np.cumsum(strata.size) - strata.size]
        self._left = StrataLeft(strata)
        self.drawn_in: Items = np.zeros(strata.code.size, dtype=np.int32)
        self.drawn_in[strata.code == NOWHERE] = KNOWN

    @property
    def left(self) -> Floats:
        """Number of items left in every stratum, or the sum of their weights; shape [K]."""
        return self._left.weight

    def choose(self, coin: float, fit: Fit) -> ProposedDraw:
        """Return the next item of the stratum that the coin selects, without taking it."""
        return self.pick(coin, self.strata_q(fit))

    def pick(self, coin: float, q: Floats) -> ProposedDraw:
        """Return the next item for given probabilities ``q`` of an item per stratum, shape [K]."""
        reach = np.cumsum(self.left * q)
        stratum = int(np.searchsorted(reach, coin * reach[-1], side="right"))
        if stratum == q.size or not self.left[stratum]:
            # Rounding put the coin on the very end of the scale.
            stratum = int(np.flatnonzero(self.left)[-1])
        place = self._walked[stratum]
        while self.drawn_in[self._order[place]]:
            place += 1
        self._walked[stratum] = place
        item = int(self._order[place])
        return ProposedDraw(item, self._strata.weight_of(item) * float(q[stratum]), q)

    def chance(self, item: int, fit: Fit) -> ProposedDraw:
        """Return an item left, with its current draw probabilities."""
        return self.at(item, self.strata_q(fit))

    def at(self, item: int, q: Floats) -> ProposedDraw:
        """Return an item left for given probabilities ``q`` of an item per stratum, shape [K]."""
        weight = self._strata.weight_of(item)
        return ProposedDraw(item, weight * float(q[self._strata.code[item]]), q)

    def take(self, item: int, round_: int) -> None:
        """Mark ``item`` as drawn in round ``round_``."""
        if self.drawn_in[item]:
            message = f"item {item} of round {round_} was drawn before"
            raise ValueError(message)
        self.drawn_in[item] = round_
        self._left.take(item)

    def strata_q(self, fit: Fit) -> Floats:
        """Return the probability of an item of weight 1 left in every stratum, shape [K]."""
        if self._half is None:
            return self.mixture(fit.moment)
        q = self._mixtures(fit.moment, self._shares)
        left, items = self.left, self._strata.code.size
        predicted = (left * np.maximum(fit.moment, LEAST_MOMENT) / q).sum(axis=1) / items**2
        open_ = left > 0.0
        mean, chance = fit.mean[open_], items * q[:, open_]
        reach = (mean / chance).max(axis=1) + ((1.0 - mean) / chance).max(axis=1)
        return np.asarray(q[(predicted + self._half / 3.0 * reach).argmin()])

    def mixture(self, moment: Floats) -> Floats:
        """Return the mixture with the policy's share of uniform draws, shape [K]."""
        return np.asarray(self._mixtures(moment, self._shares[:1])[0])

    def _mixtures(self, moment: Floats, shares: Floats) -> Floats:
        """Return a mixture for each share of uniform draws, shape [shares, K]."""
        root, left = np.sqrt(moment), self.left
        doubt = (1.0 - shares) / float(left @ root)
        return np.asarray(doubt[:, None] * root + (shares / float(left.sum()))[:, None])
