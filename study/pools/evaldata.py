"""Read the files of the real pools, or say what is wrong with one and where.

mmlu.npz                    prob [N, models, options], label [N], models
mmlu_pro.npz, imagenet.npz  what every model answered [N, models], what is right [N], models
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from celeus.simulation.files import arrays, refused

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


@cache
def probabilities(path: Path, model: str) -> tuple[Floats, Labels]:
    """Predictive distributions of one model, shape [N, options], and the true labels."""
    data = arrays(path, ("prob", "label", "models"))
    stored, label = data["prob"], data["label"].astype(np.int64)
    models = _names(data["models"])
    at = _place(path, models, model)
    if stored.ndim != 3 or stored.shape[:2] != (label.size, len(models)):
        rule = f"[{label.size}, {len(models)}, options] numbers"
        raise refused(path, "prob", rule, stored.shape)
    options = stored.shape[2]
    if label.ndim != 1 or label.size == 0 or not ((label >= 0) & (label < options)).all():
        raise refused(path, "label", f"[N] whole numbers from 0 to {options - 1}", "others")
    raw = stored[:, at].astype(np.float64)
    total = raw.sum(axis=1, keepdims=True)
    # NaN fails the comparisons too.
    if not ((raw >= 0.0).all() and (total > 0.0).all() and np.isfinite(total).all()):
        raise refused(path, f"prob of {model}", "probabilities", "a number that is none")
    return cast("Floats", raw / total), label


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """The answers of every model (``predictions``, shape [N, models]) and the right ones ([N])."""

    path: Path
    predictions: NDArray[Any]
    right: NDArray[Any]
    models: tuple[str, ...]

    def of(self, *names: str) -> NDArray[Any]:
        """The answers of some models, shape [N, names]; refuses names that are not there."""
        return self.predictions[:, [_place(self.path, self.models, name) for name in names]]


def answers(path: Path, predictions: str, right: str) -> Answers:
    """The arrays of these names; refuses a file that does not hold them, or misshapen."""
    data = arrays(path, (predictions, right, "models"))
    models = _names(data["models"])
    items = data[right].size
    if data[right].shape != (items,) or items == 0:
        raise refused(path, right, "[N] answers, N at least 1", data[right].shape)
    if data[predictions].shape != (items, len(models)):
        raise refused(
            path, predictions, f"[{items}, {len(models)}] answers", data[predictions].shape
        )
    return Answers(path, data[predictions], data[right], models)


def _names(models: NDArray[Any]) -> tuple[str, ...]:
    return tuple(str(one) for one in models.ravel())


def _place(path: Path, models: tuple[str, ...], model: str) -> int:
    if model not in models:
        names = ", ".join(models)[:100]
        raise refused(path, "models", f"names, {model} among them", names)
    return models.index(model)
