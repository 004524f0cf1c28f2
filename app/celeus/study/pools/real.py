"""Losses of the models in the real pools, and what else is known of them before any label.

Notation: f, g predictive distributions of the target and of a smaller model, y true label, y_f
the most probable class of f. Only the loss looks at y.

    loss            value                                surrogate and score
    zero_one        1[y_f != y]                          strategy A, B or C (``core.surrogates``)
    cross_entropy   -log f(y), clipped at U = log 100    strategy A, B or C
    brier           (sum f^2 - 2 f(y) + 1) / 2           its mean if y came from g; sqrt(s (1 - s))
    doubt           1 - f(y)                             its mean if y came from g; sqrt(s (1 - s))

U is a round number chosen without a look at any loss: a probability below 1 % counts as 1 %.
The vote pools (``cells``) have a 0-1 loss; their surrogate is the share of five weaker models that
disagree with the target.
"""

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from app.core.losses import LossKind, LossScale
from app.core.pool import CHAIN_START, Pool
from app.core.randomness import uniforms
from app.core.surrogates import Scores, Strategy, from_probabilities, scores
from app.study.cells import FILES, cell
from app.study.checks import on_scale
from app.study.evaldata import probabilities
from app.study.simulation import Truth

Floats = NDArray[np.float64]
LossName = Literal["zero_one", "cross_entropy", "brier", "doubt"]

BILLIONS = {
    "Qwen-72B": 72.0,
    "Yi-34B": 34.0,
    "Llama-2-70b-hf": 70.0,
    "deepseek-llm-67b-base": 67.0,
    "Mistral-7B-v0.1": 7.0,
    "Qwen-7B": 7.0,
    "Llama-2-7b-hf": 7.0,
    "deepseek-llm-7b-base": 7.0,
}
"""Parameters of the models of ``mmlu.npz``, as their names say."""

VOTES = {"mmlu_pro": "mmlupro-votes", "imagenet": "imagenet-votes"}
"""The cell of every vote pool."""

LOSSES: tuple[LossName, ...] = ("zero_one", "brier", "doubt", "cross_entropy")
CROSS_ENTROPY_UPPER = math.log(100.0)
NOBODY = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A target model, its loss, and the smaller model that guesses it.

    ``helper`` is empty where nothing is known of an item beforehand, and where the strategy asks
    the target alone.
    """

    dataset: str
    loss: LossName
    model: str
    helper: str = NOBODY
    strategy: Strategy = "A"

    @property
    def file(self) -> str:
        """The file it is read from."""
        return "mmlu.npz" if self.dataset == "mmlu" else FILES[VOTES[self.dataset]]


def pairs() -> list[tuple[str, str]]:
    """Every target of ``mmlu`` with every model at most half its size."""
    return [
        (target, small)
        for target, size in BILLIONS.items()
        for small, less in BILLIONS.items()
        if less <= size / 2.0
    ]


@cache
def truth_of(folder: Path, source: Source) -> Truth:
    """The pool of a source from ``folder``; refuses a file that is no such pool."""
    if source.dataset != "mmlu":
        return cell(VOTES[source.dataset], folder)
    path = folder / source.file
    return on_scale(_mmlu(path, source), f"{path}, {source.model}")


def resampled(truth: Truth, seed: bytes) -> Truth:
    """As many items drawn from the pool with replacement.

    They are an iid sample of a population whose risk is known: that of the pool.
    """
    items = truth.loss.size
    pick = (uniforms(seed, "resample", items) * items).astype(np.int64)
    known = truth.scores
    proxy = None if known.proxy is None else known.proxy[pick]
    drawn = Scores(known.surrogate[pick], known.weight[pick], proxy)
    return Truth(truth.loss[pick], drawn, truth.lower, truth.upper)


def _mmlu(path: Path, source: Source) -> Truth:
    f, label = probabilities(path, source.model)
    g = probabilities(path, source.helper)[0] if source.helper else None
    right = np.take_along_axis(f, label[:, None], axis=1)[:, 0]
    if source.loss in {"brier", "doubt"}:
        return _graded(source.loss, f, g, right)
    kind: LossKind = "zero_one" if source.loss == "zero_one" else "cross_entropy"
    scale = LossScale.of(kind, upper=_upper(source.loss))
    if source.loss == "zero_one":
        loss = (f.argmax(axis=1) != label).astype(np.float64)
    else:
        # A probability of 0 would be an infinite loss; both are clipped to the same end.
        least = math.exp(-scale.upper)
        loss = np.clip(-np.log(np.maximum(right, least)), scale.lower, scale.upper)
    columns = from_probabilities(scale, f, g)
    pool = Pool(loss.size, scale, columns, groups=(), items_digest=CHAIN_START)
    known = scores(pool, _strategy(source))
    return Truth(loss, known, scale.lower, scale.upper)


def _strategy(source: Source) -> Strategy | None:
    """None, which is the target alone, where no smaller model is there to be asked."""
    needs = not (source.loss == "cross_entropy" and source.strategy != "C")
    return None if needs and not source.helper else source.strategy


def _upper(loss: LossName) -> float | None:
    return CROSS_ENTROPY_UPPER if loss == "cross_entropy" else None


def _graded(loss: str, f: Floats, g: Floats | None, right: Floats) -> Truth:
    expected = np.zeros(right.size) if g is None else (g * f).sum(axis=1)
    if loss == "brier":
        own = np.square(f).sum(axis=1)
        values = (own - 2.0 * right + 1.0) / 2.0
        surrogate = (own - 2.0 * expected + 1.0) / 2.0
    else:
        values, surrogate = 1.0 - right, 1.0 - expected
    # Rounding alone leaves the scale.
    values, surrogate = np.clip(values, 0.0, 1.0), np.clip(surrogate, 0.0, 1.0)
    return Truth(values, Scores(surrogate, np.sqrt(surrogate * (1.0 - surrogate)), None))
