"""How many labels are left: the fold continued with losses drawn from what was seen so far.

Notation: s surrogate of an item, q its probability when drawn with n items left. The loss of an
item yet to be judged is one of the observed losses, drawn with weight 1/(n q) among those whose
items had a surrogate of the same fifth, or with probability 4/(4 + c) among all of them, c being
how many the fifth holds. A forecast is a convenience: nothing that is certified rests on it.
"""

import pickle
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.core.plan import Plan
from app.core.randomness import Numbers
from app.core.session import PENDING, Coins, State, apply, can_draw, observe, propose

Floats = NDArray[np.float64]

FIFTHS = 5
BORROWED = 4.0
ROUNDS_BETWEEN_LOOKS = 200


@dataclass(frozen=True, slots=True)
class Forecast:
    """Labels left after ``round``: median, and the 10 and 90 % of the continuations."""

    round: int
    labels_left: int
    low: int
    high: int


class Losses:
    """Losses of items nobody has judged, drawn from those of items somebody has."""

    def __init__(self, surrogate: Floats, state: State, seed: bytes) -> None:
        judged = [it for it in state.rounds if isinstance(it.loss, float)]
        items = np.array([it.draw.item for it in judged], dtype=np.int64)
        left = np.array([surrogate.size - it.draw.round + 1 for it in judged])
        weight = 1.0 / (left * np.array([it.draw.q for it in judged]))
        self._loss = np.array([it.loss for it in judged], dtype=np.float64)
        self._surrogate = surrogate
        self._edges = np.quantile(surrogate[items], np.arange(1, FIFTHS) / FIFTHS)
        self._everything = self._ladder(weight)
        fifth = np.searchsorted(self._edges, surrogate[items], side="right")
        self._ladders = [self._ladder(weight * (fifth == k)) for k in range(FIFTHS)]
        self._counts = np.bincount(fifth, minlength=FIFTHS)
        self._numbers = Numbers(seed, "losses")

    def of_item(self, item: int) -> float:
        """A loss the item might have."""
        fifth = int(np.searchsorted(self._edges, self._surrogate[item], side="right"))
        count = float(self._counts[fifth])
        own = self._numbers.next() * (count + BORROWED) < count
        ladder = self._ladders[fifth] if own else self._everything
        at = int(np.searchsorted(ladder, self._numbers.next() * ladder[-1], side="right"))
        return float(self._loss[min(at, self._loss.size - 1)])

    @staticmethod
    def _ladder(weight: Floats) -> Floats:
        return np.cumsum(weight)


def snapshot(state: State) -> bytes:
    """The state as bytes, so that many continuations can start from it.

    Past answers are only counted: what was answered in a round decides nothing later.
    """
    points = state.points[-1:] * state.folded
    light = replace(state, fold=replace(state.fold, points=points))
    return pickle.dumps(light, protocol=pickle.HIGHEST_PROTOCOL)


def continuations(plan: Plan, kept: bytes, surrogate: Floats, seed: bytes) -> Iterator[int | None]:
    """Labels left in one simulated future after the other, without end.

    None comes in between, so that a caller may stop in the middle of a long one. ``kept`` is a
    snapshot with at least one judged round, ``surrogate`` one score an item.
    """
    number = 0
    while True:
        state: State = pickle.loads(kept)  # noqa: S301 - our own snapshot, made a moment ago
        own = seed + number.to_bytes(4, "big")
        yield from _continued(plan, state, Losses(surrogate, state, own), own)
        number += 1


def forecast_of(round_: int, labels: list[int]) -> Forecast:
    """Median, 10 and 90 % of simulated labels left."""
    low, middle, high = np.quantile(labels, (0.1, 0.5, 0.9), method="nearest")
    return Forecast(round_, int(middle), int(low), int(high))


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
        state = observe(plan, state, draw.round, losses.of_item(draw.item))
        labels += 1
        if labels % ROUNDS_BETWEEN_LOOKS == 0:
            yield None
    yield labels
