"""A folder of pools that look like the real ones and are small and made up."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from study.pools.real import BILLIONS, VOTERS_IMAGENET

ITEMS = 1200
OPTIONS = 6


def write(folder: Path, items: int = ITEMS) -> Path:
    """Three files whose models are right more often the larger they are."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = np.random.default_rng(5)
    label = chance.integers(0, 4, items)
    _mmlu(folder / "mmlu.npz", chance, label)
    _votes(folder, chance, label)
    return folder


def _mmlu(path: Path, chance: np.random.Generator, label: np.ndarray) -> None:
    models = list(BILLIONS)
    logits = chance.normal(size=(label.size, len(models), OPTIONS))
    hard = chance.normal(size=label.size)
    for at, model in enumerate(models):
        logits[np.arange(label.size), at, label] += 1.0 + 0.3 * np.log(BILLIONS[model]) + hard
    prob = np.exp(logits)
    prob = (prob / prob.sum(axis=2, keepdims=True)).astype(np.float16)
    np.savez(path, prob=prob, label=label.astype(np.int8), models=np.array(models))


def _votes(folder: Path, chance: np.random.Generator, label: np.ndarray) -> None:
    for name, models, answers, truth in (
        (
            "mmlu_pro",
            ["gemini-1.5-pro-002_5shots", *(f"m{i}" for i in range(14))],
            "pred",
            "answer",
        ),
        ("imagenet", ["pnasnet_large_tf", *VOTERS_IMAGENET], "top1", "label"),
    ):
        wrong = chance.random((label.size, len(models))) < np.linspace(0.2, 0.6, len(models))
        given = np.where(wrong, chance.integers(0, 4, wrong.shape), label[:, None])
        arrays: dict[str, Any] = {answers: given.astype(np.int16), truth: label}
        arrays["models"] = np.array(models)
        np.savez(folder / f"{name}.npz", **arrays)


def real_pools() -> Path:
    """The folder of the real pools; the test is skipped where it is not, and says so at the end."""
    root = Path(__file__).parents[2]
    folder = Path(os.environ.get("EVALDATA", root.parent / "shared" / "evaldata"))
    if not folder.is_dir():
        pytest.skip(f"NOT CHECKED ON REAL POOLS: there is no folder {folder} (set EVALDATA)")
    return folder
