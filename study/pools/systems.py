"""Two systems on a real pool: what each answered, what is right, and a guess of each one's loss.

    mmlu                 the most probable option; 1 less its probability under the mean of both
                         models' distributions
    mmlu_pro, imagenet   the option or class; the share of five weaker models that disagree

Items stand in the order of the other studies.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from celeus.core.pools.losses import LossScale
from celeus.simulation.sessions import Truth, difference, with_spread
from study.pools.evaldata import probabilities
from study.pools.real import VOTES, shuffled_order, voters

Floats = NDArray[np.float64]

UNIT = LossScale.of("zero_one")


class Pair(NamedTuple):
    """Two models of a dataset, by name or by how many are right more often."""

    dataset: str
    a: str | int
    b: str | int


PAIRS = {
    "MMLU: Qwen-72B, Yi-34B": Pair("mmlu", "Qwen-72B", "Yi-34B"),
    "MMLU: Qwen-72B, deepseek-67b": Pair("mmlu", "Qwen-72B", "deepseek-llm-67b-base"),
    "MMLU: Qwen-72B, Llama-2-70b": Pair("mmlu", "Qwen-72B", "Llama-2-70b-hf"),
    "MMLU-Pro: best, second": Pair("mmlu_pro", 0, 1),
    "MMLU-Pro: sixth, seventh": Pair("mmlu_pro", 5, 6),
    "ImageNet: best, second": Pair("imagenet", 0, 1),
    "ImageNet: second, third": Pair("imagenet", 1, 2),
}


@dataclass(frozen=True, slots=True, eq=False)
class Systems:
    """Answers of A and of B, the right ones, and surrogates of both losses; all of shape [N]."""

    answers: tuple[NDArray[Any], NDArray[Any]]
    right: NDArray[Any]
    surrogates: tuple[Floats, Floats]

    @property
    def losses(self) -> tuple[Floats, Floats]:
        """0 where a system is right, else 1."""
        a, b = ((one != self.right).astype(np.float64) for one in self.answers)
        return a, b

    @property
    def same(self) -> NDArray[np.bool_]:
        """A mask of the items to which both gave the same answer."""
        return np.asarray(self.answers[0] == self.answers[1])

    def difference(self, *, answers: bool = True, surrogates: bool = True) -> Truth:
        """Loss of A less that of B, with what is known of it beforehand."""
        same = self.same if answers else None
        guesses = self.surrogates if surrogates else None
        return difference(self.losses, UNIT, same, guesses, exclusive=answers)

    def alone(self, system: int) -> Truth:
        """The losses of one system."""
        return Truth(self.losses[system], with_spread(self.surrogates[system]))


@cache
def systems(folder: Path, pair: Pair) -> Systems:
    """The two systems of a pair; refuses a file that is no such pool."""
    path = folder / f"{pair.dataset}.npz"
    if pair.dataset in VOTES:
        data, ranked, jury = voters(path, pair.dataset)
        one, other = (data.predictions[:, ranked[int(at)]] for at in pair[1:])
        guesses = [(jury != answer[:, None]).mean(axis=1) for answer in (one, other)]
        right = data.right
    else:
        (f, right), (g, _) = (probabilities(path, str(model)) for model in pair[1:])
        one, other = f.argmax(axis=1), g.argmax(axis=1)
        mean, items = (f + g) / 2.0, np.arange(right.size)
        guesses = [np.clip(1.0 - mean[items, answer], 0.0, 1.0) for answer in (one, other)]
    order = shuffled_order(right.size)
    a, b = guesses
    return Systems((one[order], other[order]), right[order], (a[order], b[order]))
