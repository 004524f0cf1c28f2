"""The race: one process a system, against the opponent that the past makes the strongest.

The process of system i tests "i is best". In every round it bets that i loses more than an
opponent o, on S of the pair (i, o) against a mean of at most 0, with the bets of
``betting.bets`` at six goals. o is the system standing with the largest mu / sqrt(s2) against i.
The past alone chooses it, and fixes all of the bet but the stake, when the round is drawn. If i is
best the mean of S is at most 0 whoever o is, so the stake is a nonnegative supermartingale that
starts at alpha: it ever reaches 1 with probability at most alpha. Only the best can be lost
wrongly, and alpha is divided by nothing.
"""

from typing import NamedTuple

import numpy as np

from celeus.core.betting.base import WealthLost
from celeus.core.betting.bets import LARGEST_LOSS, TINY, BetScale, Goal, RowGoals, bet
from celeus.core.session.best.candidates import Floats, Indices, Mask, Pairs
from celeus.core.session.best.contrasts import CERTAIN, Forecast, Signals

ROUNDING = 1e-9
"""A mean half difference nearer to 0 counts as 0 where no bet decides."""


class Bets(NamedTuple):
    """The bets of a round on every system that has an opponent, fixed at its draw but for stakes.

    ``row`` is the pair with the opponent among those of the forecast, ``sign`` its direction.
    ``scale`` and ``information`` have shape [goals, systems].
    """

    system: Indices
    row: Indices
    sign: Floats
    scale: BetScale
    information: Floats


class Race:
    """The stakes of all systems, and who still stands; ``out_at`` is the round of those out, or 0.

    ``rounds`` counts those settled. Stakes are logarithms, shape [goals, k].
    """

    __slots__ = ("_accrued", "_goals", "_half", "_stake", "out_at", "rounds")

    def __init__(self, count: int, alpha: float, goals: list[Goal]) -> None:
        self._half = np.array([[goal.half] for goal in goals])
        self._goals = RowGoals.of(np.array([[goal.information] for goal in goals]))
        self._stake = np.full((len(goals), count), np.log(alpha / len(goals)))
        self._accrued = np.zeros((len(goals), count))
        self.out_at = np.zeros(count, dtype=np.int64)
        self.rounds = 0

    @property
    def standing(self) -> Indices:
        """The systems still in, ascending."""
        return np.flatnonzero(self.out_at == 0)

    @property
    def stake(self) -> Floats:
        """The stake of every system."""
        return np.asarray(np.exp(self._stake).sum(axis=0))

    def bets(self, forecast: Forecast, opponent: Indices) -> Bets:
        """The bets on the coming signals; ``opponent`` is that of every system standing."""
        system = self.standing
        row = forecast.pairs.row[system, opponent]
        # No row, and no bet: a system that is its own opponent.
        able = (row >= 0) & (forecast.variance[row] > CERTAIN)
        system, opponent, row = system[able], opponent[able], row[able]
        variance = forecast.ratio * forecast.variance
        sign = np.where(system < opponent, 1.0, -1.0)
        least = np.where(sign > 0.0, forecast.lower[row], -forecast.upper[row])
        over = np.maximum(sign * forecast.centre[row] - least, 0.0)
        padded = variance[row] + self._half / 3.0 * over
        scale = self._goals.bet_scale(self._accrued[:, system], self._half, padded)
        largest = np.minimum(scale.largest, LARGEST_LOSS / np.maximum(-least, TINY))
        return Bets(system, row, sign, BetScale(scale.factor, largest), 1.0 / padded)

    def settle(self, bets: Bets, signals: Signals) -> None:
        """Settle the bets, given the signals of all pairs of the forecast."""
        self.rounds += 1
        size = bet(self._stake[:, bets.system], bets.scale, None)
        signal = np.where(bets.sign > 0.0, signals.low[bets.row], -signals.high[bets.row])
        gain = size * signal
        if gain.size and gain.min() <= -1.0:
            message = f"a signal below its range took a whole stake in round {self.rounds}"
            raise WealthLost(message)
        # Some may have left since the draw.
        standing = self.out_at[bets.system] == 0
        self._stake[:, bets.system] += np.where(standing, np.log1p(gain), 0.0)
        self._accrued[:, bets.system] += bets.information
        beaten = self.stake >= 1.0
        # No mean lies below the range of its signal.
        least = np.where(bets.sign > 0.0, signals.lower[bets.row], -signals.upper[bets.row])
        beaten[bets.system[least > ROUNDING]] = True
        self._drop(beaten)

    def narrow(self, pairs: Pairs, lower: Floats, upper: Floats) -> None:
        """Drop the systems that are worse than another, given limits of the pairs' means."""
        worse = np.zeros(self.out_at.size, dtype=np.bool_)
        worse[pairs.first[lower > ROUNDING]] = True
        worse[pairs.second[upper < -ROUNDING]] = True
        self._drop(worse)

    def _drop(self, beaten: Mask) -> None:
        standing = self.standing
        leaving = standing[beaten[standing]]
        if leaving.size == standing.size:
            # An event of probability alpha at most: somebody is best all the same.
            leaving = leaving[leaving != standing[self.stake[standing].argmin()]]
        self.out_at[leaving] = self.rounds


def strongest(forecast: Forecast, standing: Indices) -> Indices:
    """The opponent with the largest mu / sqrt(s2) against each of the systems standing.

    Where no item left tells a system from another, it bets nothing.
    """
    certain = forecast.variance <= CERTAIN
    lead = forecast.centre / np.sqrt(forecast.ratio * np.where(certain, 1.0, forecast.variance))
    # One more for the row -1, a system and itself.
    lead = np.append(np.where(certain, np.nan, lead), np.nan)
    direction = np.where(standing[:, None] < standing, 1.0, -1.0)
    score = direction * lead[forecast.pairs.row[standing[:, None], standing]]
    score[np.isnan(score)] = -np.inf
    return np.asarray(standing[score.argmax(axis=1)])
