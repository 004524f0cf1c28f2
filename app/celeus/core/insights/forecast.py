"""Forecast of the labels left: the fold continued with losses resampled from those observed.

Notation: s surrogate of an item, q its probability when drawn with n items left. The loss of an
item yet to be judged is one of the observed losses, drawn with weight 1/(n q) among those whose
items had a surrogate of the same fifth, or with probability 4/(4 + c) among all of them, c being
how many the fifth holds. Where items have weights w, it is w/(n q), n being the sum of those left:
losses of heavy items then stand for as much as they weigh. A forecast is a convenience: nothing
that is certified rests on it.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from celeus.core.plans.plan import Plan
from celeus.core.plans.stopping import StoppingRule
from celeus.core.pools.surrogates import Scores
from celeus.core.randomness import Numbers
from celeus.core.sessions.rounds import PENDING, Rounds
from celeus.core.sessions.state import (
    Coins,
    State,
    apply,
    begin,
    can_draw,
    fold_ready,
    observe,
    propose,
)

Floats = NDArray[np.float64]

FIFTHS = 5
BORROWED = 4.0
ROUNDS_BETWEEN_LOOKS = 200
MOST_TIMES = 60
FEWEST_TIMES = 30
TOGETHER = 10
"""Of the pace: the latest labels that it is measured over, the fewest, and how many in a row."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Labels left after ``round``: median of the continuations.

    Their spread is not reported: it holds the truth far less often than its level says.
    ``seconds_per_label`` is the `pace` then.
    """

    round: int
    labels_left: int
    seconds_per_label: float | None = None


class Losses:
    """Losses of items nobody has judged, drawn from those of items somebody has."""

    def __init__(self, scores: Scores, state: State, seed: bytes) -> None:
        judged = [it for it in state.rounds if isinstance(it.loss, float)]
        items = np.array([it.draw.item for it in judged], dtype=np.int64)
        surrogate, own, left = scores.surrogate, np.ones(1), np.arange(state.drawable, 0, -1.0)
        if scores.item_weight is not None:
            own, left = scores.item_weight[items], _left(scores.item_weight, state)
        before = np.array([it.draw.round - 1 for it in judged], dtype=np.int64)
        weight = own / (left[before] * np.array([it.draw.q for it in judged]))
        self._loss = np.array([it.loss for it in judged], dtype=np.float64)
        self._surrogate = surrogate
        self._edges = np.quantile(surrogate[items], np.arange(1, FIFTHS) / FIFTHS)
        self._everything = self._cumulative(weight)
        fifth = np.searchsorted(self._edges, surrogate[items], side="right")
        self._cumulatives = [self._cumulative(weight * (fifth == k)) for k in range(FIFTHS)]
        self._counts = np.bincount(fifth, minlength=FIFTHS)
        self._numbers = Numbers(seed, "losses")

    def of_item(self, item: int) -> float:
        """A loss the item might have."""
        fifth = int(np.searchsorted(self._edges, self._surrogate[item], side="right"))
        count = float(self._counts[fifth])
        own = self._numbers.next() * (count + BORROWED) < count
        cumulative = self._cumulatives[fifth] if own else self._everything
        at = int(np.searchsorted(cumulative, self._numbers.next() * cumulative[-1], side="right"))
        return float(self._loss[min(at, self._loss.size - 1)])

    @staticmethod
    def _cumulative(weight: Floats) -> Floats:
        return np.cumsum(weight)


def resumed(plan: Plan, scores: Scores, rounds: Rounds, stopping: StoppingRule) -> State:
    """The state of a session with these rounds and this rule in force.

    Its draws to come are those of another seed: a forecast is not told the session's own.
    """
    state = begin(plan, scores, plan.digest.encode())
    # Of a panel the outcomes are foretold, and not what its raters say
    state.ratings = None
    for place, item in enumerate(rounds.item):
        state.proposal.take(item, place + 1)
    state.rounds, state.stopping = rounds, stopping
    state.observed = sum(map(rounds.is_judged, range(len(rounds))))
    return fold_ready(plan, state)


def continuations(plan: Plan, state: State, scores: Scores, seed: bytes) -> Iterator[int | None]:
    """Labels left in one simulated future after the other, without end.

    None comes in between, so that a caller may stop in the middle of a long one. The ``state``,
    which stays as it is, has at least one judged round.
    """
    number = 0
    while True:
        own = seed + number.to_bytes(4, "big")
        yield from _continued(plan, deepcopy(state), Losses(scores, state, own), own)
        number += 1


def pace(times: Sequence[float]) -> float | None:
    """Seconds that a label takes, of all judges together, by the times of the latest ones.

    The median over every ten in a row: a break is part of few of them. None where there are fewer
    than ``FEWEST_TIMES``, or most came at once, as those of a program do.
    """
    if len(times) < FEWEST_TIMES:
        return None
    each = np.sort(np.asarray(times, dtype=np.float64))
    taken = float(np.median(each[TOGETHER:] - each[:-TOGETHER])) / TOGETHER
    return taken if taken > 0.0 else None


def _left(weight: Floats, state: State) -> Floats:
    """The weight of the items left before every round drawn, and now."""
    drawn = weight[np.array(state.rounds.item, dtype=np.int64)]
    now = state.fold.remainder.weight.value - float(drawn[state.folded :].sum())
    return np.asarray(now + np.append(np.cumsum(drawn[::-1])[::-1], 0.0))


def forecast_of(round_: int, labels: list[int]) -> Forecast:
    """Median of simulated labels left."""
    return Forecast(round_, int(np.quantile(labels, 0.5, method="nearest")))


def _continued(plan: Plan, state: State, losses: Losses, seed: bytes) -> Iterator[int | None]:
    state.coins = Coins(seed)
    waiting = deque(it.draw for it in state.rounds if it.loss is PENDING)
    labels = 0
    while state.stop_reason is None and (waiting or can_draw(plan, state)):
        if waiting:
            draw = waiting.popleft()
        else:
            draw = propose(plan, state)
            state = apply(plan, state, draw)
        own = state.fold.remainder.limits(draw.item)
        loss = min(max(losses.of_item(draw.item), own.lower), own.upper)
        state = observe(plan, state, draw.round, loss)
        labels += 1
        if labels % ROUNDS_BETWEEN_LOOKS == 0:
            yield None
    yield labels
