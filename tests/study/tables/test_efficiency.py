"""Labels to precision over all pairs: what is run, and what is said of it."""

import re
from collections import Counter
from pathlib import Path

import pytest

from study.engine.rows import Rows, Values
from study.pools.real import Source
from study.tables.courses import RECENTRED, run
from study.tables.efficiency import (
    POLICIES,
    Comparison,
    comparisons,
    jobs,
    page,
    session,
    sources,
)
from tests.study.smallpools import write
from tests.study.tables.ended import ended

PAIR = Source("mmlu", "zero_one", "Qwen-72B", "Yi-34B")


def claims_of(**courses: list[Values]) -> Comparison:
    return Comparison(PAIR, "pool", {policy: Rows(runs) for policy, runs in courses.items()})


def test_a_policy_that_does_not_look_at_the_surrogate_runs_once_for_a_target() -> None:
    pairs = [source for source in sources() if source.loss == "brier"]
    counted = Counter(job["policy"] for job in jobs(pairs, seeds=3))
    assert counted == {
        "sharp": 18 * 2 * 3,
        "celeus": 18 * 2 * 3,
        "oracle": 18 * 2 * 3,
        "uniform": 4 * 2 * 3,
        "no_surrogate": 4 * 2 * 3,
        "evalue": 4 * 2 * 3,
        RECENTRED: 4 * 2 * 3,
    }


def test_the_run_of_a_target_serves_all_of_its_pairs() -> None:
    pairs = [source for source in sources() if source.loss == "brier"][:3]
    results = Rows(job | ended(100 + job["run"]) for job in jobs(pairs, 2))
    found = comparisons(results)
    assert len(found) == 3 * 2
    assert all(len(one.courses[policy]) == 2 for one in found for policy in POLICIES)
    text = page(results)
    # Three pairs of two sessions each, but the sessions without surrogate count once.
    assert re.search(r"\| sharp \| 3 \|.*\| 0/6 \(", text)
    assert re.search(r"\| evalue \| 3 \|.*\| 0/2 \(", text)


def test_savings_and_distance_are_of_medians() -> None:
    one = claims_of(
        sharp=[ended(100), ended(200), ended(300)], evalue=[ended(1000)], oracle=[ended(400)]
    )
    assert one.saved("sharp", "evalue") == pytest.approx(0.8)
    assert one.to_oracle("sharp") == pytest.approx(0.5)


def test_the_gap_is_measured_at_the_stop_of_the_oracle() -> None:
    wide, half = ended(4000, 0.25, stopped="exhausted"), ended(3000, 0.15)
    one = claims_of(evalue=[wide], celeus=[half], sharp=[ended(100, 0.04)], oracle=[ended(400)])
    assert one.closed("celeus") == pytest.approx(0.5)
    assert one.closed("oracle") == pytest.approx(1.0)
    assert one.closed("evalue") == pytest.approx(0.0)
    assert one.closed("sharp") == pytest.approx(1.05)


def test_there_is_no_share_of_a_gap_that_is_nearly_nothing() -> None:
    one = claims_of(evalue=[ended(300, 0.051)], sharp=[ended(100)], oracle=[ended(400)])
    assert str(one.closed("sharp")) == "nan"


def test_runs_repeat_and_pairs_do_not_share_their_draws(tmp_path: Path) -> None:
    folder = write(tmp_path / "pools")
    chosen = [Source("mmlu", "doubt", "Qwen-72B", small) for small in ("Yi-34B", "Qwen-7B")]
    first, second = (
        next(job for job in jobs([one], 1) if job["policy"] == "sharp") for one in chosen
    )
    once, again = (run(session, folder, 0.2, first) for _ in range(2))
    assert (once["labels"], once["widths"]) == (again["labels"], again["widths"])
    assert once["stopped"] == "target_reached"
    assert once["widths"] != run(session, folder, 0.2, second)["widths"]
