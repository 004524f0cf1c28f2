"""What a ledger recorded against what was due, for replays that draw every round again."""

import numpy as np

from celeus.core.ledger import Draw

SLACK = 1e-9
"""Share by which a recorded probability may be off."""


class LedgerDiffers(ValueError):
    """A ledger says something else than its plan, its pool and its seed do."""

    def __init__(self, where: str, claimed: object, due: object) -> None:
        super().__init__(f"{where} is {claimed!r} and should be {due!r}")
        self.where, self.claimed, self.due = where, claimed, due


def compare_draws(where: str, claimed: Draw, due: Draw) -> None:
    """Raise LedgerDiffers unless the two draws are the same, up to the rounding of q."""
    for name in ("round", "item", "seen"):
        same(f"{where}.{name}", getattr(claimed, name), getattr(due, name))
    if not abs(claimed.q - due.q) <= SLACK * due.q:
        raise LedgerDiffers(f"{where}.q", claimed.q, due.q)
    one, other = claimed.strata_q, due.strata_q
    if one is None or other is None or one.shape != other.shape:
        raise LedgerDiffers(f"{where}.strata_q", one, other)
    apart = np.flatnonzero(~(np.abs(one - other) <= SLACK * other))
    if apart.size:
        at = int(apart[0])
        raise LedgerDiffers(f"{where}.strata_q[{at}]", float(one[at]), float(other[at]))


def same(where: str, claimed: object, due: object) -> None:
    """Raise LedgerDiffers unless the two are equal."""
    if claimed != due:
        raise LedgerDiffers(where, claimed, due)
