"""Partitions: strata for the systems that still stand, and how draws are shared among them.

Notation: l the leader of the systems standing, o another of them, nu_o how much a difference
between the two matters, v^o_k its second moment in stratum k, s surrogates on the unit scale.

    l      the system whose largest mu against another is the least
    nu_o   1 / max(mu_ol, 0.01)^2, made to sum to 1
    x      sum of nu_o (s_o - s_l) over o with another answer
    r      sum of nu_o (s_l (1 - s_o) + s_o (1 - s_l)) over o with another answer, or of nu_o alone
    V_k    sum of nu_o v^o_k (share of the items left in k with another answer)

Strata are bins of x, and within these of r; without surrogates bins of r. Only items to which the
systems standing did not all give the same answer are in one: the others tell nothing any more.
When a system leaves, the pool is parted anew, in a fresh random order: items left of an
old stratum come late in its order and would not be drawn alike in a new one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from celeus.core.interval import Interval
from celeus.core.pools.strata import DIFFERENCE_BINS, MOST_BINS, NOWHERE, Strata, strata_of
from celeus.core.pools.surrogates import Scores
from celeus.core.sampling.proposals import StratifiedProposal
from celeus.core.session.best.candidates import Candidates, Floats, Indices, Pairs
from celeus.core.session.best.contrasts import Contrasts, Totals

UNIT = Interval(0.0, 1.0)
LEAST_LEAD = 0.01
"""Least lead, of half differences, that the allocation believes."""
LEAST_PRIORITY = 1e-9


class Focus(NamedTuple):
    """The leader, and how much a difference between it and each system matters, shape [k].

    ``weight`` sums to 1; it is 0 for the leader and for systems that are out.
    """

    leader: int
    weight: Floats


def focus_of(totals: Totals, standing: Indices, count: int) -> Focus:
    """The focus after the folded rounds; among equals the first system leads."""
    pairs = Pairs.among(standing, count)
    centre, _ = totals.moments(pairs.place, np.zeros(pairs.place.size))
    lead = np.full((count, count), -np.inf)
    lead[pairs.first, pairs.second] = centre
    lead[pairs.second, pairs.first] = -centre
    leader = int(standing[lead[standing].max(axis=1).argmin()])
    rivals = standing[standing != leader]
    weight = np.zeros(count)
    weight[rivals] = 1.0 / np.square(np.maximum(lead[rivals, leader], LEAST_LEAD))
    return Focus(leader, weight / max(weight.sum(), LEAST_PRIORITY))


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """The strata that items are drawn from while the same systems stand."""

    contrasts: Contrasts
    proposal: StratifiedProposal

    @classmethod
    def of(
        cls, candidates: Candidates, standing: Indices, focus: Focus, seed: bytes, beta: float
    ) -> "Partition":
        """A partition with all items still to be drawn, in the order fixed by ``seed``."""
        strata = _strata(candidates, standing, focus)
        pairs = Pairs.among(standing, candidates.count)
        contrasts = Contrasts(candidates, pairs, strata)
        return cls(contrasts, StratifiedProposal(strata, seed, beta))

    @property
    def strata(self) -> Strata:
        """The strata."""
        return self.contrasts.strata

    @property
    def left(self) -> int:
        """Items not drawn."""
        return int(self.proposal.left.sum())

    def take(self, items: Sequence[int], first: int = 1) -> None:
        """Enter the draws of round ``first`` and after; items in no stratum tell nothing here."""
        self.contrasts.take(np.array(items))
        for round_, item in enumerate(items, first):
            if self.strata.code[item] != NOWHERE:
                self.proposal.take(item, round_)

    def priorities(self, focus: Focus) -> Floats:
        """V_k: what draws are shared by, shape [K]."""
        pairs, leader = self.contrasts.pairs, focus.leader
        rows = np.flatnonzero((pairs.first == leader) | (pairs.second == leader))
        rivals = pairs.first[rows] + pairs.second[rows] - leader
        expected = focus.weight[rivals] @ (self.contrasts.left[rows] * self.contrasts.moment[rows])
        return np.asarray(expected / np.maximum(self.proposal.left, 1.0) + LEAST_PRIORITY)


def _strata(candidates: Candidates, standing: Indices, focus: Focus) -> Strata:
    open_ = candidates.open(standing)
    leader, answer, surrogate = focus.leader, candidates.answer, candidates.surrogate
    lead, change = np.full(open_.size, 0.5), np.zeros(open_.size)
    for rival in standing[standing != leader]:
        matter = np.full(open_.size, focus.weight[rival])
        if answer is not None:
            matter[answer[:, rival] == answer[:, leader]] = 0.0
        if surrogate is None:
            change += matter
        else:
            rivals, leading = surrogate[:, rival], surrogate[:, leader]
            lead += 0.5 * matter * (rivals - leading)
            change += matter * (leading * (1.0 - rivals) + rivals * (1.0 - leading))
    lower, upper, weightless = np.zeros(open_.size), open_.astype(np.float64), np.zeros(open_.size)
    if surrogate is None:
        scores = Scores(change, weightless, lower=lower, upper=upper)
        return strata_of(scores, UNIT, most_bins=MOST_BINS)
    scores = Scores(lead, weightless, lower=lower, upper=upper, change=change)
    return strata_of(scores, UNIT, most_bins=DIFFERENCE_BINS)
