"""The real pools of the label benchmark, as truths with the scores known beforehand.

A folder holds per-item results of real models (``mmlu.npz``, ``mmlu_pro.npz``, ``imagenet.npz``);
items stand in source order there and are shuffled with a fixed seed here.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.randomness import uniforms
from app.core.surrogates import Scores
from app.study.checks import on_scale
from app.study.evaldata import Answers, answers, probabilities
from app.study.simulation import Truth

Floats = NDArray[np.float64]

VOTERS_IMAGENET = (
    "resnet_v2_101_tf",
    "densenet201",
    "resnet_v1_152_tf",
    "resnet_v1_101_tf",
    "dpn68b",
)


def cell(name: str, folder: Path) -> Truth:
    """The pool ``name`` from ``folder``; refuses a file that is no such pool."""
    return on_scale(_shuffled(CELLS[name](folder)), str(folder / FILES[name]))


def _mmlu(target: str, small: str) -> Callable[[Path], Truth]:
    """Strategy A: the pseudo-loss by a small model, beside the target's own dispersion."""

    def load(folder: Path) -> Truth:
        f, label = probabilities(folder / "mmlu.npz", target)
        g, _ = probabilities(folder / "mmlu.npz", small)
        hard = (f.argmax(axis=1) != g.argmax(axis=1)).astype(np.float64)
        dispersion = 1.0 - np.square(f).sum(axis=1)
        loss = (f.argmax(axis=1) != label).astype(np.float64)
        return Truth(loss, Scores(dispersion, np.abs(hard - dispersion), hard))

    return load


def _brier(folder: Path) -> Truth:
    """Half the Brier score of Qwen-72B, and what two small models expect it to be."""
    path = folder / "mmlu.npz"
    f, label = probabilities(path, "Qwen-72B")
    guess = (probabilities(path, "Mistral-7B-v0.1")[0] + probabilities(path, "Qwen-7B")[0]) / 2.0
    own = np.square(f).sum(axis=1)
    loss = (own - 2.0 * f[np.arange(label.size), label] + 1.0) / 2.0
    surrogate = np.clip((own - 2.0 * (guess * f).sum(axis=1) + 1.0) / 2.0, 0.0, 1.0)
    return Truth(loss, _voted(surrogate))


def _mmlu_pro(folder: Path) -> Truth:
    """Five weaker models vote on the answers of the target."""
    data = answers(folder / "mmlu_pro.npz", "pred", "answer")
    right = (data.given == data.right[:, None]).mean(axis=0)
    ranked = np.argsort(-right, kind="stable")
    return _votes(data, "gemini-1.5-pro-002_5shots", data.given[:, ranked[8:13]])


def _imagenet(folder: Path) -> Truth:
    """Five weaker networks vote on the predictions of the target."""
    data = answers(folder / "imagenet.npz", "top1", "label")
    return _votes(data, "pnasnet_large_tf", data.of(*VOTERS_IMAGENET))


def _votes(data: Answers, target: str, voters: NDArray[Any]) -> Truth:
    own = data.of(target)
    loss = (own[:, 0] != data.right).astype(np.float64)
    return Truth(loss, _voted((voters != own).mean(axis=1)))


def _voted(surrogate: Floats) -> Scores:
    return Scores(surrogate, np.sqrt(surrogate * (1.0 - surrogate)), None)


def _shuffled(truth: Truth) -> Truth:
    order = np.argsort(uniforms(b"cells", "shuffle", truth.loss.size), kind="stable")
    known = truth.scores
    proxy = None if known.proxy is None else known.proxy[order]
    return Truth(truth.loss[order], Scores(known.surrogate[order], known.weight[order], proxy))


CELLS: dict[str, Callable[[Path], Truth]] = {
    "mmlu-qwen": _mmlu("Qwen-72B", "Llama-2-7b-hf"),
    "mmlu-llama": _mmlu("Llama-2-70b-hf", "Llama-2-7b-hf"),
    "mmlu-yi": _mmlu("Yi-34B", "Qwen-7B"),
    "mmlu-brier": _brier,
    "mmlupro-votes": _mmlu_pro,
    "imagenet-votes": _imagenet,
}

FILES = {
    "mmlu-qwen": "mmlu.npz",
    "mmlu-llama": "mmlu.npz",
    "mmlu-yi": "mmlu.npz",
    "mmlu-brier": "mmlu.npz",
    "mmlupro-votes": "mmlu_pro.npz",
    "imagenet-votes": "imagenet.npz",
}
"""The file a cell is read from."""
