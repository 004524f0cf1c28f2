"""The demo's evaluation: a classifier of handwritten digits, a second one, and the true labels.

Both learn from the same 60 of scikit-learn's 1 797 bundled images. The first is the target, whose
error rate is asked for; the second sees only every other pixel and serves as surrogate: where the
two disagree, the target is probably wrong. The other 1 737 images become the pool.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

TRAINING_IMAGES = 60
_BRIGHTEST = 16

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Digits:
    """A pool to upload, and the true label of every item by id, which only its judges know."""

    items: list[dict[str, Any]]
    labels: Mapping[str, int]
    risk: float
    """True error rate of the target over the items."""


def digits(seed: int) -> Digits:
    """Train both classifiers and predict the images not used in training."""
    bundled = load_digits()
    images: Floats = bundled.data / _BRIGHTEST
    truth: NDArray[np.int64] = bundled.target
    training, pool = train_test_split(
        np.arange(truth.size), train_size=TRAINING_IMAGES, stratify=truth, random_state=seed
    )
    target = MLPClassifier((64,), max_iter=2000, random_state=seed)
    target.fit(images[training], truth[training])
    surrogate = LogisticRegression(max_iter=1000)
    surrogate.fit(images[training][:, ::2], truth[training])
    target_probs: Floats = target.predict_proba(images[pool])
    surrogate_probs: Floats = surrogate.predict_proba(images[pool][:, ::2])
    names = [f"digit-{index:04d}" for index in pool]
    items = [
        {
            "id": name,
            "payload": {"image": bundled.images[index].astype(int).tolist()},
            "target_probs": of_target.tolist(),
            "surrogate_probs": of_surrogate.tolist(),
        }
        for name, index, of_target, of_surrogate in zip(
            names, pool, target_probs, surrogate_probs, strict=True
        )
    ]
    labels = dict(zip(names, truth[pool].tolist(), strict=True))
    wrong = target_probs.argmax(axis=1) != truth[pool]
    return Digits(items=items, labels=labels, risk=float(wrong.mean()))
