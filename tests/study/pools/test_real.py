"""Losses and scores of the models in the real pools."""

import math
from pathlib import Path

import numpy as np
import pytest

from celeus.errors import InvalidValue
from study.pools.real import (
    BILLIONS,
    CROSS_ENTROPY_UPPER,
    LOSSES,
    LossName,
    Source,
    pairs,
    resampled,
    truth_of,
)
from tests.study.smallpools import real_pools, write

F, G = "Qwen-72B", "Mistral-7B-v0.1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("pools"), 300)


def probabilities(folder: Path, model: str) -> tuple[np.ndarray, np.ndarray]:
    data = np.load(folder / "mmlu.npz")
    raw = data["prob"][:, list(data["models"]).index(model)].astype(np.float64)
    return raw / raw.sum(axis=1, keepdims=True), data["label"].astype(int)


def test_a_pair_is_a_target_and_a_model_at_most_half_its_size() -> None:
    found = pairs()
    assert len(found) == 18
    assert ("Llama-2-70b-hf", "Yi-34B") in found
    assert ("deepseek-llm-67b-base", "Yi-34B") not in found
    assert all(2.0 * BILLIONS[g] <= BILLIONS[f] for f, g in found)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_are_those_of_the_definitions_item_by_item(folder: Path, loss: LossName) -> None:
    f, label = probabilities(folder, F)
    found = truth_of(folder, Source("mmlu", loss, F, G))
    for item in range(0, 300, 17):
        p, y = f[item], label[item]
        truth = np.eye(p.size)[y]
        expected = {
            "zero_one": float(p.argmax() != y),
            "brier": float(((p - truth) ** 2).sum()) / 2.0,
            "doubt": 1.0 - p[y],
            "cross_entropy": min(-math.log(p[y]), CROSS_ENTROPY_UPPER),
        }
        assert found.loss[item] == pytest.approx(expected[loss])
    assert (found.lower, found.upper) == (0.0, 1.0 if loss != "cross_entropy" else math.log(100))


@pytest.mark.parametrize("loss", ["brier", "doubt"])
def test_the_surrogate_of_a_graded_loss_is_its_mean_if_the_small_model_told_the_label(
    folder: Path, loss: LossName
) -> None:
    f, _ = probabilities(folder, F)
    g, _ = probabilities(folder, G)
    found = truth_of(folder, Source("mmlu", loss, F, G)).scores.surrogate
    for item in range(0, 300, 29):
        p, mean = f[item], 0.0
        for y, chance in enumerate(g[item]):
            graded = ((p - np.eye(p.size)[y]) ** 2).sum() / 2.0
            mean += chance * (graded if loss == "brier" else 1.0 - p[y])
        assert found[item] == pytest.approx(mean)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_score_depends_on_a_label(folder: Path, tmp_path: Path, loss: LossName) -> None:
    data = dict(np.load(folder / "mmlu.npz"))
    other = tmp_path / "mmlu.npz"
    np.savez(other, **(data | {"label": (data["label"] + 1) % 6}))
    source = Source("mmlu", loss, F, G)
    before, after = truth_of(folder, source), truth_of(tmp_path, source)
    assert not np.array_equal(before.loss, after.loss)
    assert np.array_equal(before.scores.surrogate, after.scores.surrogate)
    assert np.array_equal(before.scores.weight, after.scores.weight)
    assert before.upper == after.upper


def test_a_resampled_pool_is_a_sample_of_whole_items(folder: Path) -> None:
    truth = truth_of(folder, Source("mmlu", "doubt", F, G))
    drawn = resampled(truth, b"one")
    known = set(zip(truth.loss, truth.scores.surrogate, truth.scores.weight, strict=True))
    again = zip(drawn.loss, drawn.scores.surrogate, drawn.scores.weight, strict=True)
    assert set(again) < known
    means = [resampled(truth, f"{run}".encode()).loss.mean() for run in range(400)]
    error = truth.loss.std() / np.sqrt(truth.loss.size * 400)
    assert abs(np.mean(means) - truth.loss.mean()) < 4.0 * error


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"models": np.array([f"m{i}" for i in range(8)])}, "models"),
        ({"label": np.full(300, 6)}, "label"),
        ({"prob": np.full((300, 8, 6), np.nan)}, "prob of Qwen-72B"),
        ({"prob": np.full((300, 7, 6), 0.1)}, "prob"),
    ],
)
def test_a_file_that_is_no_such_pool_is_refused(
    folder: Path, tmp_path: Path, change: dict[str, np.ndarray], named: str
) -> None:
    data = dict(np.load(folder / "mmlu.npz"))
    np.savez(tmp_path / "mmlu.npz", **(data | change))
    with pytest.raises(InvalidValue, match=rf"mmlu.npz: {named} must be .*; found"):
        truth_of(tmp_path, Source("mmlu", "zero_one", F, G))


@pytest.mark.nightly
def test_the_real_pools_have_the_means_their_page_states() -> None:
    folder = real_pools()
    stated = {F: 0.259, "Yi-34B": 0.258, "Llama-2-70b-hf": 0.319, "deepseek-llm-67b-base": 0.289}
    for model, mean in stated.items():
        truth = truth_of(folder, Source("mmlu", "zero_one", model))
        assert float(truth.loss.mean()) == pytest.approx(mean, abs=5e-4)
        graded = truth_of(folder, Source("mmlu", "cross_entropy", model))
        assert float((graded.loss == graded.upper).mean()) < 0.01
    assert float(truth_of(folder, Source("imagenet", "zero_one", "")).loss.mean()) == (
        pytest.approx(0.171, abs=5e-4)
    )
