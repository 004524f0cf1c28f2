"""The point estimate: LURE (Farquhar et al. 2021; CELEUS, Eq. 4 and Thms. 1-2).

Notation: N items, t rounds folded, residual d_m = l_m - s_m of round m, drawn with probability q_m.

    R_t = mean of all s + (1 / t) sum over m <= t of u_m d_m
    u_m = 1 + (N - t) k_m,   k_m = (1 / ((N - m + 1) q_m) - 1) / (N - m),   k_N = 0

Unbiased at a fixed t for a fixed surrogate. It summarises; the interval is the claim.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Lure:
    """Running sums of the estimate; O(1) per round.

    ``items`` is the number of items that may be drawn, ``share`` their share of the pool.
    ``mean_surrogate`` is the mean over the whole pool, with the known losses of the other items.
    """

    items: int
    mean_surrogate: float
    share: float = 1.0
    rounds: int = 0
    residual_sum: float = 0.0
    correction_sum: float = 0.0

    def record(self, residual: float, q: float) -> None:
        """Record the next round."""
        self.rounds += 1
        self.residual_sum += residual
        after = self.items - self.rounds
        if after > 0:
            self.correction_sum += residual * (1.0 / ((after + 1) * q) - 1.0) / after

    @property
    def value(self) -> float:
        """The estimate; before the first round the mean surrogate."""
        if self.rounds == 0:
            return self.mean_surrogate
        after = self.items - self.rounds
        residual = (self.residual_sum + after * self.correction_sum) / self.rounds
        return self.mean_surrogate + self.share * residual
