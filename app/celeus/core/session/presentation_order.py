"""On which side the judge of a round sees the answer of system A, drawn from the session's seed.

Stream `side` of the seed, word t - 1 for round t: A stands on the left where the number is below
one half. No loss is looked at, and no draw of an item looks at a side.

Of k systems a judge sees every answer once, in an order drawn likewise: words (t - 1) k and on.

Either is written down with the draw, and a verifier that has the seed draws it again.
"""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from celeus.core.pools.systems import Side
from celeus.core.randomness import uniforms
from celeus.core.session.rounds import Rounds

STREAM = "side"
LEAST = 256
Place = Literal["first", "last", "other"]
PLACES: tuple[Place, ...] = get_args(Place)
"""Places of the best of several answers; ``other`` also where several were best."""


class Order:
    """The order in which the judge of a round sees the answers of ``count`` systems."""

    __slots__ = ("_count", "_seed")

    def __init__(self, seed: bytes, count: int) -> None:
        self._seed = seed
        self._count = count

    def shown(self, round_: int, codes: Sequence[int] | None) -> list[tuple[int, ...]]:
        """The systems behind every answer shown: those with one code have one answer."""
        numbers = uniforms(self._seed, STREAM, self._count, (round_ - 1) * self._count)
        groups: dict[int, list[int]] = {}
        for system in range(self._count):
            groups.setdefault(system if codes is None else codes[system], []).append(system)
        return [
            tuple(group) for group in sorted(groups.values(), key=lambda group: numbers[group[0]])
        ]


def order_text(shown: Sequence[Sequence[int]]) -> str:
    """An order as the ledger holds it: of every answer the first system's place among the names."""
    return " ".join(str(systems[0]) for systems in shown)


def best_place(shown: Sequence[Sequence[int]], losses: Sequence[float]) -> Place:
    """Return the place of the one answer with the least loss; ``losses`` are the systems'."""
    given = [losses[systems[0]] for systems in shown]
    least = min(given)
    if given.count(least) > 1:
        return "other"
    if given[0] == least:
        return "first"
    return "last" if given[-1] == least else "other"


class Sides:
    """The sides of a session's rounds, made some at a time; round 1 is the first."""

    __slots__ = ("_seed", "_signs")

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._signs: NDArray[np.int8] = np.empty(0, dtype=np.int8)

    def left(self, round_: int) -> Side:
        """The system whose answer stands on the left."""
        return "a" if self._first(round_)[-1] > 0 else "b"

    def preferred(self, rounds: Rounds) -> dict[str, int]:
        """Counts of rounds in which left, neither or right had the smaller loss."""
        losses = np.array(rounds.loss)
        judged = np.isfinite(losses)
        signs = np.sign(losses[judged]) * self._first(len(rounds))[judged]
        return {
            "left": int((signs < 0.0).sum()),
            "tie": int((signs == 0.0).sum()),
            "right": int((signs > 0.0).sum()),
        }

    def _first(self, count: int) -> NDArray[np.int8]:
        """1 where A stands on the left, -1 where B does, of the first ``count`` rounds."""
        if count > self._signs.size:
            made = uniforms(self._seed, STREAM, max(LEAST, 2 * count))
            self._signs = np.where(made < 0.5, 1, -1).astype(np.int8)
        return self._signs[:count]
