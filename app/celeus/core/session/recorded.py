"""Compare what a ledger recorded with what was due, for replays that draw every round again."""

import numpy as np
from numpy.typing import NDArray

from celeus.core.ledger import Draw
from celeus.core.plain import Mismatch, equal

SLACK = 1e-9
"""Share by which a recorded probability may be off."""


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
