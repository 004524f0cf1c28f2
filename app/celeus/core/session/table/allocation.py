"""Allocation: how draws are shared among the cells, so that the slowest claim gets most.

Notation: I* the information a claim needs, I what it has, v^c its second moments, rem the items
not drawn of a cell, n of all, N those of the claim, q of a single item.

    s2     ratio (sum over the claim's cells of rem v^c / q) (sum of rem q) / N^2
    g      max(1.1 I* - I, 0.05 I*) of a claim that still wants something
    nu_c   g^2 s2 of metric c, made to sum to 1 with a floor of 1e-4
    V      sum of nu_c v^c
    q      (1 - beta) sqrt(V) / sum of rem sqrt(V) + beta / n

s2 follows from q and q from s2: three times in turn. While groups want something, an atom is
drawn first,

    need   g s2 of a group, the largest over its metrics, at most its items left
    Q      0.8 need / sum of need + 0.2 rem / n        a group's need shared by the items left in it

and V and q are those within the atom. All of it is known before the loss, and none of it decides
whether an interval is valid.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.bets import OVERSHOOT, SOFTNESS
from celeus.core.sampling.calibration import LEAST_MOMENT as TINY_MOMENT
from celeus.core.sampling.proposals import LEAST_MOMENT
from celeus.core.session.table.table_cells import Cells
from celeus.core.session.table.table_claims import MeanClaim

Floats = NDArray[np.float64]

NEEDED_SHARE = 0.8
LEAST_PRIORITY = 1e-4
TURNS = 3
TINY = 1e-300


@dataclass(slots=True, eq=False)
class ClaimNeeds:
    """The information every claim still lacks; shapes [parts, C], part 0 being all items.

    ``member`` says which cells are in a part, ``atoms`` which atoms of a group, both as 0 and 1.
    ``lack`` is g, 0 for a claim that has what it wants; ``whole`` parts want every item.
    """

    member: Floats
    atoms: Floats
    items: Floats
    lack: Floats
    ratio: Floats
    whole: NDArray[np.bool_]

    @classmethod
    def of(cls, cells: Cells, claims: Sequence[MeanClaim], metrics: int) -> Self:
        """The wants before the first round; ``claims`` stand by part and metric."""
        parts = len(claims) // metrics
        member = np.zeros((parts, cells.count))
        for place, claim in enumerate(claims):
            member[place // metrics, claim.cells] = 1.0
        atoms = np.maximum.reduceat(member[1:], cells.start, axis=1)
        shape = parts, metrics
        items = np.array([claim.plan.items for claim in claims], dtype=np.float64).reshape(shape)
        whole = np.zeros(parts, dtype=np.bool_)
        wants = cls(member, atoms, items, np.zeros(shape), np.ones(shape), whole)
        for place, claim in enumerate(claims):
            wants.update(place, (claim, claim.met))
        return wants

    def update(self, place: int, *claims: tuple[MeanClaim, bool]) -> None:
        """Set what the claims about one part and metric lack now; each with whether it is met."""
        part, metric = divmod(place, self.items.shape[1])
        self.lack[part, metric] = 0.0
        for claim, met in claims:
            outlook = claim.outlook
            self.whole[part] = claim.claim.whole and claim.left > 0
            if outlook is None or not claim.claim.wants or met:
                continue
            missing = max(OVERSHOOT * outlook.goal - outlook.accrued, SOFTNESS * outlook.goal)
            if missing > self.lack[part, metric]:
                self.lack[part, metric] = missing
                self.ratio[part, metric] = outlook.ratio

    def variances(self, left: Floats, open_: Floats, moment: Floats, q: Floats) -> Floats:
        """s2 of every claim at these probabilities, shape [parts, C]."""
        present = left * open_
        inverse = self.member @ (present * np.maximum(moment, LEAST_MOMENT) / q).T
        share = self.member @ (present * q).T
        return np.asarray(self.ratio * inverse * share / np.square(self.items))


def allocate(cells: Cells, wants: ClaimNeeds, moment: Floats, left: Floats, beta: float) -> Floats:
    """The probability of a single item left in every cell, shape [cells].

    ``moment`` are the second moments of all metrics, shape [C, cells]. Cells without items left
    have one too, which nobody is drawn with.
    """
    moment = np.maximum(moment, TINY_MOMENT)
    groups = bool((wants.lack[1:] > 0.0).any() or wants.whole[1:].any())
    if not groups:
        return _together(cells, wants, moment, left, beta)
    return _by_atoms(cells, wants, moment, left, beta)


def _together(cells: Cells, wants: ClaimNeeds, moment: Floats, left: Floats, beta: float) -> Floats:
    """All items as one atom."""
    metrics = moment.shape[0]
    nu = np.full(metrics, 1.0 / metrics)
    open_ = cells.open.astype(np.float64)
    n = left.sum()
    for turn in range(TURNS + 1):
        root = np.sqrt(nu @ (moment * open_) if metrics > 1 else moment[0])
        share = (1.0 - beta) / float(left @ root)
        q = np.asarray(share * root + beta / n)
        lack = wants.lack[0]
        if metrics == 1 or turn == TURNS or not lack.any():
            return q
        nu = _priorities(np.square(lack) * wants.variances(left, open_, moment, q)[0])
    return q


def _by_atoms(cells: Cells, wants: ClaimNeeds, moment: Floats, left: Floats, beta: float) -> Floats:
    """The atom first, by what its groups need, and then within it."""
    metrics, start, atom = moment.shape[0], cells.start, cells.atom
    open_ = cells.open.astype(np.float64)
    rem = np.add.reduceat(left, start)
    atoms = wants.atoms
    rem_of = atoms @ rem
    chance = rem / rem.sum()
    nu = np.full((start.size, metrics), 1.0 / metrics)
    divisor = np.maximum(rem, 1.0)
    turns = TURNS if metrics > 1 else 1
    for turn in range(turns + 1):
        mixed = np.einsum("cm,mc->c", nu[atom], moment * open_) if metrics > 1 else moment[0]
        root = np.sqrt(mixed)
        share = (1.0 - beta) / np.maximum(np.add.reduceat(left * root, start), TINY)
        inner = share[atom] * root + beta / divisor[atom]
        q = np.asarray(np.maximum(chance[atom] * inner, TINY))
        if turn == turns:
            break
        variance = wants.variances(left, open_, moment, q)[1:]
        need = np.minimum((wants.lack[1:] * variance).max(axis=1), rem_of)
        need = np.where(wants.whole[1:], rem_of, need)
        need = np.where(rem_of > 0.0, need, 0.0)
        if need.sum() > 0.0:
            by_atom = (need / np.maximum(rem_of, 1.0)) @ atoms * rem
            chance = NEEDED_SHARE * by_atom / by_atom.sum() + (1.0 - NEEDED_SHARE) * rem / rem.sum()
        if metrics > 1:
            weight = np.square(wants.lack[1:]) * variance
            weight = weight / np.maximum(weight.sum(axis=1, keepdims=True), TINY)
            nu = _priorities(atoms.T @ (need[:, None] * weight))
    return q


def _priorities(weight: Floats) -> Floats:
    """Weights made to sum to 1 along the last axis, none below the floor; even where all are 0."""
    total = weight.sum(axis=-1, keepdims=True)
    even = 1.0 / weight.shape[-1]
    share = np.where(total > 0.0, weight / np.maximum(total, TINY), even)
    share = np.maximum(share, LEAST_PRIORITY)
    return np.asarray(share / share.sum(axis=-1, keepdims=True))
