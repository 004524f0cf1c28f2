"""Real pools: losses of their models, and the surrogates and scores known before any label.

Notation: f, g predictive distributions of the target and of a smaller model, y true label, y_f
the most probable class of f. Only the loss looks at y.

    loss            value                                surrogate and score
    zero_one        1[y_f != y]                          strategy A, B or C (``surrogates``)
    cross_entropy   -log f(y), clipped at U = log 100    strategy A, B or C
    brier           (sum f^2 - 2 f(y) + 1) / 2           its mean if y came from g; sqrt(s (1 - s))
    doubt           1 - f(y)                             its mean if y came from g; sqrt(s (1 - s))

U is a round number chosen without a look at any loss: a probability below 1 % counts as 1 %.
The vote pools have a 0-1 loss; their surrogate is the share of five weaker models that disagree
with the target.
"""

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from celeus.core.pools.losses import LossKind, LossScale
from celeus.core.pools.pool import CHAIN_START, Pool
from celeus.core.pools.surrogates import Scores, Strategy, from_probabilities, scores
from celeus.core.randomness import uniforms
from celeus.simulation.sessions import Truth, with_spread
from study.engine.checks import on_scale
from study.pools.evaldata import Answers, answers, probabilities

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
"""What the tables call every vote pool."""
TARGETS = {"mmlu_pro": "gemini-1.5-pro-002_5shots", "imagenet": "pnasnet_large_tf"}
VOTERS_IMAGENET = (
    "resnet_v2_101_tf",
    "densenet201",
    "resnet_v1_152_tf",
    "resnet_v1_101_tf",
    "dpn68b",
)

LOSSES: tuple[LossName, ...] = ("zero_one", "brier", "doubt", "cross_entropy")
CROSS_ENTROPY_UPPER = math.log(100.0)
NOBODY = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A target model, its loss, and the smaller model its surrogate comes from.

    ``helper`` is empty where nothing is known of an item beforehand, and where the strategy asks
    the target alone; of several, joined by " + ", the mean distribution is taken.
    """

    dataset: str
    loss: LossName
    model: str
    helper: str = NOBODY
    strategy: Strategy = "A"

    @property
    def file(self) -> str:
        """The file it is read from."""
        return f"{self.dataset}.npz"


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
    path = folder / source.file
    if source.dataset == "mmlu":
        return on_scale(_mmlu(path, source), f"{path}, {source.model}")
    return on_scale(shuffled(_votes(path, source.dataset)), str(path))


def shuffled(truth: Truth) -> Truth:
    """The items in a fixed order at random: files hold them in source order."""
    return _picked(truth, shuffled_order(truth.loss.size))


def shuffled_order(items: int) -> NDArray[np.int64]:
    """The places of ``items`` items in that order."""
    return np.argsort(uniforms(b"cells", "shuffle", items), kind="stable")


def resampled(truth: Truth, seed: bytes, items: int | None = None) -> Truth:
    """As many items, or ``items``, drawn from the pool with replacement.

    They are an iid sample of a population whose risk is known: that of the pool.
    """
    coins = uniforms(seed, "resample", items or truth.loss.size)
    pick = (coins * truth.loss.size).astype(np.int64)
    return _picked(truth, pick)


def _picked(truth: Truth, items: NDArray[np.int64]) -> Truth:
    item_scores = truth.scores
    proxy = None if item_scores.proxy is None else item_scores.proxy[items]
    scores_of = Scores(item_scores.surrogate[items], item_scores.weight[items], proxy)
    return Truth(truth.loss[items], scores_of, truth.lower, truth.upper)


def _mmlu(path: Path, source: Source) -> Truth:
    f, label = probabilities(path, source.model)
    helpers = [probabilities(path, one)[0] for one in source.helper.split(" + ") if one]
    g = sum(helpers[1:], helpers[0]) / len(helpers) if helpers else None
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
    item_scores = scores(pool, _strategy(source))
    return Truth(loss, item_scores, scale.lower, scale.upper)


def _strategy(source: Source) -> Strategy | None:
    """The strategy; None, which is the target alone, where there is no smaller model."""
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
    return Truth(values, with_spread(surrogate))


def voters(path: Path, dataset: str) -> tuple[Answers, NDArray[np.intp], NDArray[Any]]:
    """Answers of all models, their order from the best, and what five weaker ones answered."""
    names = ("pred", "answer") if dataset == "mmlu_pro" else ("top1", "label")
    data = answers(path, *names)
    right = (data.predictions == data.right[:, None]).mean(axis=0)
    ranked = np.argsort(-right, kind="stable")
    if dataset == "mmlu_pro":
        return data, ranked, data.predictions[:, ranked[8:13]]
    return data, ranked, data.of(*VOTERS_IMAGENET)


def _votes(path: Path, dataset: str) -> Truth:
    """Five weaker models vote on the answers of the target."""
    data, _, jury = voters(path, dataset)
    own = data.of(TARGETS[dataset])
    loss = (own[:, 0] != data.right).astype(np.float64)
    return Truth(loss, with_spread((jury != own).mean(axis=1)))
