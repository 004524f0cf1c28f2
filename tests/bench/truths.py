"""Pools whose losses are known: synthetic ones of any size, and the real cells of a folder."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celeus.core.pools.surrogates import Scores
from celeus.simulation.sessions import Truth

Floats = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]

SEED = 20261121


def synthetic(items: int, risk: float = 0.2, vagueness: float = 2.0) -> Truth:
    """0-1 losses with mean about ``risk`` and calibrated surrogates.

    The larger ``vagueness``, the nearer all surrogates lie to ``risk`` and the less they tell.
    """
    rng = np.random.default_rng(SEED)
    surrogate = rng.beta(vagueness * risk, vagueness * (1.0 - risk), items)
    loss = (rng.random(items) < surrogate).astype(np.float64)
    return Truth(loss, Scores(surrogate, _spread(surrogate), None))


def cells(folder: Path) -> dict[str, Truth]:
    """The real cells that can be made from the files of ``folder``, shuffled by a fixed seed."""
    found: dict[str, Truth] = {}
    if (arrays := _arrays(folder / "mmlu.npz")) is not None:
        found |= _mmlu(arrays)
    if (arrays := _arrays(folder / "mmlu_pro.npz")) is not None:
        found["mmlupro-votes"] = _mmlu_pro(arrays)
    if (arrays := _arrays(folder / "imagenet.npz")) is not None:
        found["imagenet-votes"] = _imagenet(arrays)
    return {name: _shuffled(truth) for name, truth in found.items()}


def _arrays(path: Path) -> Arrays | None:
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _mmlu(arrays: Arrays) -> dict[str, Truth]:
    models = [str(name) for name in arrays["models"]]
    prob = arrays["prob"].astype(np.float64)
    prob /= prob.sum(axis=2, keepdims=True)
    label = arrays["label"].astype(int)

    def of(name: str) -> Floats:
        return np.asarray(prob[:, models.index(name)])

    def strategy_a(target: str, surrogate: str) -> Truth:
        f, guess = of(target), of(surrogate).argmax(axis=1)
        hard = (f.argmax(axis=1) != guess).astype(np.float64)
        dispersion = 1.0 - np.square(f).sum(axis=1)
        loss = (f.argmax(axis=1) != label).astype(np.float64)
        return Truth(loss, Scores(dispersion, np.abs(hard - dispersion), hard))

    f, g = of("Qwen-72B"), (of("Mistral-7B-v0.1") + of("Qwen-7B")) / 2.0
    true = np.eye(f.shape[1])[label]
    brier = np.square(f - true).sum(axis=1) / 2.0
    # The mean over classes y with probabilities g_y of |f - e_y|^2 / 2
    expected = (np.square(f).sum(axis=1) - 2.0 * (f * g).sum(axis=1) + 1.0) / 2.0
    return {
        "mmlu-qwen": strategy_a("Qwen-72B", "Llama-2-7b-hf"),
        "mmlu-llama": strategy_a("Llama-2-70b-hf", "Llama-2-7b-hf"),
        "mmlu-yi": strategy_a("Yi-34B", "Qwen-7B"),
        "mmlu-brier": Truth(brier, Scores(expected, _spread(expected), None)),
    }


def _mmlu_pro(arrays: Arrays) -> Truth:
    models = [str(name) for name in arrays["models"]]
    pred, answer = arrays["pred"], arrays["answer"]
    ranked = np.argsort(-(pred == answer[:, None]).mean(axis=0), kind="stable")
    return _votes(pred, answer, models.index("gemini-1.5-pro-002_5shots"), ranked[8:13].tolist())


def _imagenet(arrays: Arrays) -> Truth:
    models = [str(name) for name in arrays["models"]]
    voters = ["resnet_v2_101_tf", "densenet201", "resnet_v1_152_tf", "resnet_v1_101_tf", "dpn68b"]
    target = models.index("pnasnet_large_tf")
    return _votes(arrays["top1"], arrays["label"], target, [models.index(name) for name in voters])


def _votes(pred: NDArray[Any], label: NDArray[Any], target: int, voters: list[int]) -> Truth:
    loss = (pred[:, target] != label).astype(np.float64)
    share = (pred[:, voters] != pred[:, target, None]).mean(axis=1)
    return Truth(loss, Scores(share, _spread(share), None))


def _spread(surrogate: Floats) -> Floats:
    return np.asarray(np.sqrt(np.maximum(surrogate * (1.0 - surrogate), 0.0)))


def _shuffled(truth: Truth) -> Truth:
    order = np.random.default_rng(SEED).permutation(truth.loss.size)
    known = truth.scores
    proxy = None if known.proxy is None else known.proxy[order]
    return Truth(truth.loss[order], Scores(known.surrogate[order], known.weight[order], proxy))
