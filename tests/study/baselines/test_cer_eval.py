"""Cer-Eval's formulas, against values worked out by hand."""

import math

import numpy as np
import pytest

from study.baselines import cer_eval as cereval
from study.baselines.cer_eval import Evaluation, Labels, Setting, bound, nearest

SETTING = Setting(items=1000, precision=0.2, delta=0.05)


def labels(values: list[float]) -> Labels:
    found = Labels()
    for value in values:
        found.add(value)
    return found


def test_one_stratum_is_a_law_of_the_iterated_logarithm() -> None:
    """100 labels of which 40 are 1, all in one stratum of 1000 items; K = 1.

    eta   sqrt((2 log(log 100 + 1) + log 80) / 200) = sqrt((3.447379 + 4.382027) / 200) = 0.197856
    v     0.1 · 0.24 + 0.9 · 0.24 = 0.24, since both means are 0.4
    eps   2 · 0.039147 / 3 + 2 · 0.489898 · 0.197856 = 0.219956
    worth (4 · 0.197856 / 3 + 2 · 0.489898) · 0.197856 / 100 = 0.002461
    """
    every = labels([1.0] * 40 + [0.0] * 60)
    found = bound(every, every, 1000, 1, SETTING)
    assert found.density == 1.0
    assert found.mean == pytest.approx(0.4)
    assert found.eps == pytest.approx(0.219956, abs=2e-6)
    assert found.gain == pytest.approx(0.002461, abs=1e-6)


def test_a_stratum_borrows_the_variance_of_all_labels() -> None:
    """10 labels, 8 of them 1, in a stratum of 40 items; 100 labels in all, 50 of them 1; K = 2.

    p = 1/4, m = 0.25 · 0.8 + 0.75 · 0.5 = 0.575
    v = 0.25 · 0.16 + 0.75 · 0.25 + 0.25 · 0.225² + 0.75 · 0.075² = 0.244375
    eta = sqrt((2 log(log 10 + 1) + log 160) / 20) = sqrt((2.389410 + 5.075174) / 20) = 0.610925
    eps = 2 · 0.373229 / 3 + 2 · 0.494343 · 0.610925 = 0.852832
    """
    own, every = labels([1.0] * 8 + [0.0] * 2), labels([1.0, 0.0] * 50)
    found = bound(own, every, 40, 2, SETTING)
    assert found.density == 0.04
    assert found.eps == pytest.approx(0.852832, abs=2e-6)
    worth = 0.04 * (4.0 * 0.610925 / 3.0 + 2.0 * 0.494343) * 0.610925 / 10.0
    assert found.gain == pytest.approx(worth, rel=1e-5)


def test_an_empty_stratum_has_no_bound_and_no_half_width_is_below_hoeffdings() -> None:
    assert bound(Labels(), labels([1.0, 0.0]), 10, 2, SETTING).eps == 0.0
    assert SETTING.least == pytest.approx(math.sqrt(math.log(20.0) / 2000.0))


def test_the_nearest_is_the_one_with_the_least_angle() -> None:
    angle = np.linspace(0.0, 3.0, 700)
    unit = np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)
    learnt = unit[[600, 100, 350]]
    expected = np.abs(angle[:, None] - angle[[600, 100, 350]]).argmin(axis=1)
    off = np.flatnonzero(nearest(unit, learnt) != expected)
    assert off.size <= 2  # ties half-way


def clusters(items: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Two directions; the losses of one are all 0, those of the other all 1."""
    chance = np.random.default_rng(0)
    side = chance.random(items) < 0.5
    centre = np.where(side[:, None], [3.0, 0.0], [0.0, 3.0])
    return side.astype(np.float64), centre + 0.1 * chance.normal(size=(items, 2))


def test_strata_follow_what_the_embeddings_tell() -> None:
    loss, embeddings = clusters()
    evaluation = Evaluation(loss, embeddings, Setting(600, 0.1, 0.05), b"s")
    ends = list(evaluation.looks())
    assert evaluation.strata > 1
    assert ends[-1][0] <= loss.mean() <= ends[-1][1]
    assert evaluation.labelled <= 600
    alone = Evaluation(loss, np.ones((600, 2)), Setting(600, 0.1, 0.05), b"s")
    for _ in alone.looks():
        pass
    assert alone.strata == 1
    assert evaluation.labelled < alone.labelled


def test_a_run_starts_with_100_labels_and_stops_at_the_first_narrow_interval() -> None:
    chance = np.random.default_rng(1)
    loss = (chance.random(3000) < 0.3).astype(np.float64)
    looks = cereval.run(loss, chance.normal(size=(3000, 4)), Setting(3000, 0.15, 0.05), b"s")
    width = looks.upper - looks.lower
    assert looks.labels.tolist() == list(range(100, 100 + looks.labels.size))
    assert (width[:-1] > 0.15).all()
    assert width[-1] <= 0.15
    again = cereval.run(loss, chance.normal(size=(3000, 4)), Setting(3000, 0.15, 0.05), b"s")
    assert again.lower[0] == looks.lower[0]


def test_a_pool_that_never_gets_narrow_is_labelled_to_its_end() -> None:
    chance = np.random.default_rng(2)
    loss = (chance.random(150) < 0.5).astype(np.float64)
    looks = cereval.run(loss, chance.normal(size=(150, 4)), Setting(150, 0.05, 0.05), b"s")
    assert looks.labels[-1] == 150
    assert (looks.lower[-1] + looks.upper[-1]) / 2.0 == pytest.approx(loss.mean(), abs=0.02)
    few = cereval.run(loss[:60], np.ones((60, 2)), Setting(60, 0.05, 0.05), b"s")
    assert few.labels.tolist() == [60]


def test_labels_that_lack_a_class_cut_no_stratum_for_it() -> None:
    """0-1 losses have the classes 0 and 2 of three: a third stratum would stay empty."""
    loss, embeddings = clusters()
    evaluation = Evaluation(loss, embeddings, Setting(600, 0.02, 0.05), b"s")
    assert evaluation._predicted_strata(3, "any") is None
    assert evaluation._predicted_strata(2, "any") is not None
