"""What a comparison costs: what is run, on which losses and answers, and what is said of it."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from celeus.core.plans.plan import Claim
from celeus.simulation.backtest import paired_width
from celeus.simulation.sessions import seed_of
from study.baselines.fixed_sample import paired_test
from study.engine.rows import Rows, Values
from study.pools.cells import cell
from study.pools.differences import border
from study.pools.systems import PAIRS, systems
from study.tables import compare
from study.tables.compare import (
    BESIDE,
    FIELDS,
    KNOWN,
    NEW,
    SEPARATE,
    WAYS,
    draw,
    jobs,
    page,
    to_exhaustion,
)
from tests.study.smallpools import write

MMLU = "MMLU: Qwen-72B, Yi-34B"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("pools"), 300)


def run(folder: Path, job: Values) -> Values:
    found = compare.run(folder, job | {"run": 0})
    assert set(found) == set(FIELDS)
    return found


@pytest.mark.parametrize("name", PAIRS)
def test_losses_and_equal_answers_are_those_of_the_file(folder: Path, name: str) -> None:
    pair = systems(folder, PAIRS[name])
    a, b = pair.losses
    assert 0.0 < pair.same.mean() < 1.0
    assert (a[pair.same] == b[pair.same]).all()
    known = pair.difference().scores.bounds
    assert known is not None
    assert (known.known == pair.same).all()
    assert pair.difference(answers=False).scores.bounds is None
    assert (pair.difference().loss == a - b).all()
    for at, loss in enumerate(pair.losses):
        assert (pair.alone(at).loss == loss).all()
        assert ((pair.surrogates[at] >= 0.0) & (pair.surrogates[at] <= 1.0)).all()


def test_a_pair_of_mmlu_stands_in_the_order_of_its_pools(folder: Path) -> None:
    for old, new, name in NEW.values():
        pair = systems(folder, PAIRS[name])
        losses = {cell(one, folder).loss.tobytes() for one in (old, new)}
        assert losses == {loss.tobytes() for loss in pair.losses}


def test_the_guess_of_a_loss_is_that_of_the_mean_of_both_models(folder: Path) -> None:
    data = np.load(folder / "mmlu.npz")
    models = list(data["models"])
    f, g = (data["prob"][:, models.index(one)].astype(float) for one in ("Qwen-72B", "Yi-34B"))
    mean = (f / f.sum(axis=1, keepdims=True) + g / g.sum(axis=1, keepdims=True)) / 2.0
    expected = 1.0 - mean[np.arange(len(mean)), f.argmax(axis=1)]
    found = systems(folder, PAIRS[MMLU]).surrogates[0]
    assert np.sort(found) == pytest.approx(np.sort(expected), abs=1e-9)


def test_fixed_samples_reach_their_width_and_their_power() -> None:
    loss = np.repeat([-1.0, 0.0, 1.0], [60, 700, 40])

    def error(draws: int) -> float:
        """Of a mean of uniform draws without replacement."""
        return float(np.sqrt(loss.var() * (1.0 / draws - 1.0 / loss.size)))

    draws = paired_width(loss, 0.04, 0.05)
    assert error(draws) * norm.ppf(0.975) <= 0.02 < error(draws - 1) * norm.ppf(0.975)
    draws = paired_test(loss, 0.025, 0.05, 0.9)
    power = [norm.cdf(0.025 / error(n) - norm.ppf(0.95)) for n in (draws - 1, draws)]
    assert power[0] < 0.9 <= power[1]


@pytest.mark.parametrize("way", WAYS)
def test_every_way_ends_with_an_interval_that_is_narrow_enough(folder: Path, way: str) -> None:
    found = run(folder, {"part": "width", "pair": MMLU, "way": way})
    most = 600 if way == SEPARATE else 300
    assert 20 < found["labels"] <= most
    assert found["mean"] == pytest.approx(
        systems(folder, PAIRS[MMLU]).difference().loss.mean(), abs=1e-4
    )


def test_equal_answers_and_judged_items_are_not_asked_for(folder: Path) -> None:
    pair = systems(folder, PAIRS[MMLU])
    asked = run(folder, {"part": "width", "pair": MMLU, "way": "comparison"})["labels"]
    assert asked <= 300 - pair.same.sum()
    left = [
        run(folder, {"part": "version", "models": next(iter(NEW)), "old": 200, "known": known})
        for known in KNOWN
    ]
    labels = [one["labels"] for one in left]
    assert labels[2] <= 100
    assert labels[2] < labels[1] < labels[0]


@pytest.mark.parametrize("margin", [0.0, 0.1])
def test_a_decision_has_an_answer_or_all_that_differs_was_judged(
    folder: Path, margin: float
) -> None:
    found = run(folder, {"part": "decision", "pair": MMLU, "margin": margin})
    assert found["answer"] != "undecided"
    assert not found["wrong"]


def test_a_proposal_is_accepted_or_given_up_and_costs_more_after_others(folder: Path) -> None:
    better = {"part": "proposal", "pair": "MMLU: Qwen-72B, Llama-2-70b", "candidate": "A"}
    found = [run(folder, better | {"failed": failed}) for failed in (0, 99)]
    assert all(one["mean"] < 0.0 for one in found)
    assert found[0]["labels"] <= found[1]["labels"]
    worse = run(folder, better | {"candidate": "B", "failed": 0})
    assert (worse["answer"], worse["wrong"]) == ("not better", False)


def test_pools_at_a_border_lie_there() -> None:
    chance = np.random.default_rng(1)
    for mean, _ in BESIDE:
        assert border(chance, 200, mean).loss.sum() == mean


def test_what_is_watched_goes_on_behind_the_verdict(folder: Path) -> None:
    truth = border(np.random.default_rng(2), 100, 30)
    found = to_exhaustion(truth, Claim(decide=0.02), seed_of("watched", 0))
    assert (found.answer, found.missed, found.wrong) == ("b_at_least_as_good", False, False)
    assert found.labels < 100
    for job in (
        {"part": "interval", "world": "rare"},
        {"part": "answer", "beside": 0, "margin": 12},
    ):
        assert not run(folder, job)["missed"]


def test_the_page_and_the_picture_show_what_was_run(tmp_path: Path) -> None:
    values = dict(zip(FIELDS, (300, "equivalent", False, False, 0.8, -0.03, 1500), strict=True))
    rows = Rows(job | values | {"wrong": job["run"] == 1} for job in jobs(16, 3))
    text = page(rows)
    assert text.count("\n## ") == 5
    assert f"| {MMLU} | 80 % | -3.0 | 300 | 1500 |{' 300 / 300 |' * 4}" in text
    assert "| 0.02 | -3.0 | 1500 | 300 / 300 | E 64 | 1 of 64 |" in text
    assert "| 13 | 12 | 1/3" in text
    draw(rows, tmp_path / "compare.png")
    assert (tmp_path / "compare.png").read_bytes().startswith(b"\x89PNG")
    quick = {job.get("way") for job in jobs(2, 4, quick=True)}
    assert SEPARATE not in quick
