"""Cer-Eval, to show where its guarantee ends (Wang, Chen, Li and Xu, arXiv 2505.03814).

Notation: N items, n labelled; K strata, N_k items and n_k labels in stratum k; r_k, v_k mean and
variance (divided by the count) of the labels in k, r and v_all those of all labels; delta the
probability of being wrong.

    eta_k   sqrt((2 log(log n_k + 1) + log(4 K / delta)) / (2 n_k))
    v       p v_k + (1 - p) v_all + p (r_k - m)^2 + (1 - p) (r - m)^2,  p = n_k / N_k,
            m = p r_k + (1 - p) r
    eps_k   2 eta_k^2 / 3 + 2 sqrt(v) eta_k
    density N_k / N
    interval  density . r_k  +-  max(density . eps, sqrt(log(1 / delta) / (2 N)))

100 random labels come first. Strata are cut by 1-nearest-neighbour on embeddings of length 1: for
each K <= min(floor(sqrt n), 5) it learns the classes floor(l (K - 0.01 / K)) from a random share
min(0.8, max((n / N)^1.5, 0.5)) of the labels and predicts the class of every item; the K with the
least density . eps is taken. A K that leaves a stratum fewer than two labels ends the search. They
are cut anew when n reaches max(1.1 old, old + 100). The next label is the next item, in an order
fixed at random, of the stratum with the largest density (4 eta / 3 + 2 sqrt(v)) eta / n_k.

The strata are cut by the labels that then stand in them: that, and nothing else, is what the
bounds do not cover.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from celeus.core.randomness import uniforms
from study.baselines.fixed_sample import Looks

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

FIRST_LABELS = 100
MOST_STRATA = 5
FEWEST_LABELS = 2
CHUNK = 256
"""Items whose nearest neighbours are looked for at once."""


@dataclass(frozen=True, slots=True)
class Stratum:
    """One stratum's bound: mean of its labels, half-width, and what one more label gains."""

    density: float
    mean: float
    eps: float
    gain: float


@dataclass(slots=True)
class Labels:
    """Count, sum and sum of squares of some labels."""

    count: int = 0
    total: float = 0.0
    square: float = 0.0

    def add(self, loss: float) -> None:
        """One label more."""
        self.count += 1
        self.total += loss
        self.square += loss * loss

    @property
    def mean(self) -> float:
        """Their mean."""
        return self.total / self.count

    @property
    def variance(self) -> float:
        """Their variance, divided by the count."""
        return max(self.square / self.count - self.mean**2, 0.0)


@dataclass(frozen=True, slots=True)
class Setting:
    """Parameters of a run."""

    items: int
    precision: float
    delta: float

    @property
    def least(self) -> float:
        """No half-width is smaller: sqrt(log(1 / delta) / (2 N))."""
        return math.sqrt(math.log(1.0 / self.delta) / (2.0 * self.items))


def bound(labels: Labels, every: Labels, size: int, strata: int, setting: Setting) -> Stratum:
    """The bound of a stratum of ``size`` items, of ``strata`` in all."""
    density = size / setting.items
    n = labels.count
    if n == 0:
        return Stratum(density, 0.0, 0.0, 0.0)
    p, mean = n / size, labels.mean
    pooled_mean = p * mean + (1.0 - p) * every.mean
    variance = p * labels.variance + (1.0 - p) * every.variance
    variance += p * (mean - pooled_mean) ** 2 + (1.0 - p) * (every.mean - pooled_mean) ** 2
    inner = 2.0 * math.log(math.log(n) + 1.0) + math.log(4.0 * strata / setting.delta)
    eta = math.sqrt(inner / (2.0 * n))
    spread = 2.0 * math.sqrt(max(variance, 0.0))
    eps = 2.0 * eta * eta / 3.0 + spread * eta
    return Stratum(density, mean, eps, density * (4.0 * eta / 3.0 + spread) * eta / n)


def run(loss: Floats, embeddings: Floats, setting: Setting, seed: bytes) -> Looks:
    """The intervals of all looks, from the first labels to the stop."""
    evaluation = Evaluation(loss, embeddings, setting, seed)
    rows = [(evaluation.labelled, *ends) for ends in evaluation.looks()]
    labels, lower, upper = (np.array(column) for column in zip(*rows, strict=True))
    return Looks(labels, lower, upper)


class Evaluation:
    """One run: who is labelled, how the items are cut, and what the labels add up to."""

    def __init__(self, loss: Floats, embeddings: Floats, setting: Setting, seed: bytes) -> None:
        norm = np.linalg.norm(embeddings, axis=1, keepdims=True)
        self._unit = (embeddings / np.maximum(norm, 1e-12)).astype(np.float32)
        self._loss = loss
        self._setting = setting
        self._seed = seed
        self._order = np.argsort(uniforms(seed, "cer-eval order", loss.size), kind="stable")
        self._mask = np.zeros(loss.size, dtype=np.bool_)
        self._mask[self._order[: min(FIRST_LABELS, loss.size)]] = True
        self._recut_at = self.labelled = int(self._mask.sum())
        self._cut(np.zeros(loss.size, dtype=np.int64), 1)

    @property
    def strata(self) -> int:
        """K."""
        return len(self._labels)

    def looks(self) -> Iterator[tuple[float, float]]:
        """The interval after the first labels and after each label more, up to the stop."""
        while True:
            if self.labelled >= self._recut_at and self.labelled < self._loss.size:
                self._recut()
            bounds = self._bounds()
            centre = sum(one.density * one.mean for one in bounds)
            half = max(sum(one.density * one.eps for one in bounds), self._setting.least)
            yield centre - half, centre + half
            if 2.0 * half <= self._setting.precision or not self._label_next(bounds):
                return

    def _bounds(self) -> list[Stratum]:
        return [
            bound(labels, self._every, size, self.strata, self._setting)
            for labels, size in zip(self._labels, self._size, strict=True)
            if size
        ]

    def _label_next(self, bounds: list[Stratum]) -> bool:
        """Label one item of the stratum with the largest gain; false when none is left."""
        occupied = [k for k, size in enumerate(self._size) if size]
        gain = sorted(zip(bounds, occupied, strict=True), key=lambda one: -one[0].gain)
        for _, k in gain:
            item = next(self._waiting[k], None)
            if item is not None:
                loss = float(self._loss[item])
                self._mask[item] = True
                self.labelled += 1
                self._labels[k].add(loss)
                self._every.add(loss)
                return True
        return False

    def _recut(self) -> None:
        """Cut the items anew, into the number of strata with the least half-width."""
        self._recut_at = max(int(self._recut_at * 1.1), self._recut_at + 100)
        n = self.labelled
        best, least = 1, math.inf
        for strata in range(1, min(math.isqrt(n), MOST_STRATA) + 1):
            code = self._predicted_strata(strata, f"cer-eval share {n} {strata}")
            if code is None:
                break
            self._cut(code, strata)
            if min(one.count for one in self._labels) < FEWEST_LABELS:
                break
            half = sum(one.density * one.eps for one in self._bounds())
            if half < least:
                best, least = strata, half
        code = self._predicted_strata(best, f"cer-eval share {n}")
        self._cut(code if code is not None else np.zeros(self._loss.size, dtype=np.int64), best)

    def _predicted_strata(self, strata: int, purpose: str) -> Codes | None:
        """The stratum of every item, or None when the labels learnt from lack one of them."""
        if strata == 1:
            return np.zeros(self._loss.size, dtype=np.int64)
        labelled = np.flatnonzero(self._mask)
        share = min(0.8, max((labelled.size / self._loss.size) ** 1.5, 0.5))
        order = np.argsort(uniforms(self._seed, purpose, labelled.size), kind="stable")
        training = labelled[order[: int(labelled.size * share)]]
        classes = np.floor(self._loss[training] * (strata - 0.01 / strata)).astype(np.int64)
        if np.unique(classes).size < strata:
            return None
        return classes[nearest(self._unit, self._unit[training])]

    def _cut(self, code: Codes, strata: int) -> None:
        labelled = np.flatnonzero(self._mask)
        self._size = np.bincount(code, minlength=strata).tolist()
        loss, own = self._loss[labelled], code[labelled]
        sums = [np.bincount(own, weights=loss**power, minlength=strata) for power in (0, 1, 2)]
        self._labels = [Labels(int(n), float(s), float(q)) for n, s, q in zip(*sums, strict=True)]
        self._every = Labels(labelled.size, float(loss.sum()), float((loss**2).sum()))
        unlabelled = self._order[~self._mask[self._order]]
        self._waiting = [iter(unlabelled[code[unlabelled] == k].tolist()) for k in range(strata)]


def nearest(unit: NDArray[np.float32], training: NDArray[np.float32]) -> Codes:
    """For every row of ``unit`` the row of ``training`` nearest to it; all are of length 1."""
    indices = [
        np.argmax(unit[start : start + CHUNK] @ training.T, axis=1)
        for start in range(0, unit.shape[0], CHUNK)
    ]
    return np.concatenate(indices)
