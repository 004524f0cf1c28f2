"""The coverage study: what it counts, what it says, and that broken engines do not pass."""

from pathlib import Path

import pytest
from scipy.stats import binom

from celeus.errors import InvalidValue
from celeus.simulation.sessions import seed_of, simulate
from study.engine.judges import BROKEN, Crowd, SessionSetup, session
from study.engine.rows import Rows, Values
from study.engine.runner import measure
from study.pools.synthetic import World
from study.tables import coverage, coverage_page
from study.tables.coverage import QUICK, Options, Setting, run
from study.tables.coverage_page import LEVEL, Count, Verdict
from tests.study import broken

TRIALS = 20


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "coverage.jsonl"


def quick(methods: list[str], targets: list[str], kept: Path) -> Verdict:
    options = Options(trials=TRIALS, methods=methods, targets=targets, quick=True)
    return Verdict.of(measure(options.series, options.jobs, kept, 1), QUICK.alpha)


@pytest.mark.nightly
def test_the_engine_as_it_is_passes(kept: Path) -> None:
    found = quick(
        ["celeus", "no_surrogate", "evalue", "oracle", "sharp", "uniform"], ["pool"], kept
    )
    assert not found.rejected
    assert not any(line.broken for line in found.lines)
    assert "No policy misses significantly" in str(found)


def caught(found: Verdict) -> bool:
    """The study rejects the claim of every policy in it."""
    return found.rejected == found.lines


@pytest.mark.nightly
def test_a_range_that_is_too_narrow_is_caught(monkeypatch: pytest.MonkeyPatch, kept: Path) -> None:
    broken.narrow_floor(monkeypatch)
    found = quick(["celeus"], ["pool", "population"], kept)
    assert caught(found)
    assert all(line.broken for line in found.lines)


def test_a_range_that_is_too_narrow_is_caught_with_strata(
    monkeypatch: pytest.MonkeyPatch, kept: Path
) -> None:
    broken.narrow_exact(monkeypatch)
    found = quick(["sharp", "uniform"], ["pool"], kept)
    assert caught(found)
    assert all(line.broken for line in found.lines)


@pytest.mark.nightly
def test_raw_losses_as_signal_are_caught(monkeypatch: pytest.MonkeyPatch, kept: Path) -> None:
    monkeypatch.setattr(coverage, "policy_of", broken.raw_losses)
    assert caught(quick(["celeus"], ["pool"], kept))


@pytest.mark.parametrize(
    "method",
    [
        *(
            pytest.param(method, marks=pytest.mark.nightly)
            for method in ("celeus", "no_surrogate", "evalue", "uniform")
        ),
        "sharp",
    ],
)
def test_labels_folded_by_arrival_are_caught(
    method: str, monkeypatch: pytest.MonkeyPatch, kept: Path
) -> None:
    broken.folded_by_arrival(monkeypatch)
    assert caught(quick([method], ["pool"], kept))


def test_a_session_with_one_judge_is_what_simulate_runs() -> None:
    world = World(items=300)
    truth, seed = world.pool(seed_of(0, 0)), seed_of(0, 0)
    for method in ("sharp", "celeus"):
        claim = Setting(precision=0.2).claim("pool")
        policy = coverage.policy_of(method)
        seen = session(SessionSetup(policy, claim), truth, float(truth.loss.mean()), seed)
        expected, _ = simulate(truth, policy, claim, seed)
        assert (seen.labels, seen.lower, seen.upper) == (
            expected.labels,
            expected.lower,
            expected.upper,
        )
        assert (seen.ever, seen.stopped) == (expected.missed, expected.stopped)


def test_with_many_judges_the_slow_answers_change_nothing_but_the_draws() -> None:
    truth = World(items=300).pool(seed_of(0, 1))
    asked = SessionSetup(
        coverage.policy_of("sharp"), QUICK.claim("pool"), Crowd(judges=24, beyond=100.0)
    )
    seen = session(asked, truth, float(truth.loss.mean()), seed_of(0, 1))
    assert seen.stopped == "target_reached"
    assert seen.upper - seen.lower <= QUICK.precision
    assert not seen.missed


def test_a_world_has_the_risk_it_says_and_embeddings_that_say_nothing() -> None:
    world = World(items=200_000, dimensions=2)
    truth = world.pool(b"a")
    assert world.risk == pytest.approx(0.5)
    assert truth.loss.mean() == pytest.approx(world.risk, abs=5e-3)
    surrogate = truth.scores.surrogate
    assert 0.0 <= surrogate.min() < surrogate.max() <= 1.0
    near = abs(surrogate - 0.3) < 0.05
    assert truth.loss[near].mean() == pytest.approx(0.3, abs=0.03)
    embedding = world.embeddings(b"a")
    assert embedding.shape == (200_000, 2)
    assert embedding.std() == pytest.approx(1.0, abs=0.01)
    correlation = (embedding[:, 0] * (truth.loss - 0.5)).mean()
    assert abs(correlation) < 5e-3
    assert (world.pool(b"a").loss == truth.loss).all()
    assert (world.pool(b"b").loss != truth.loss).any()


def result(job: Values, *, missed: bool, stopped: str = "target_reached") -> Values:
    values = (100, stopped, 0.2, 0.3, missed, missed, 0.5)
    return job | dict(zip(coverage.FIELDS, values, strict=True))


def trials(method: str, missed: int, of: int) -> Rows:
    job = {"method": method, "target": "population"}
    return Rows(result(job | {"trial": n}, missed=n < missed) for n in range(of))


def test_counts_carry_wilsons_interval_and_the_exact_test() -> None:
    count = Count.of([True] * 8 + [False] * 92)
    assert (count.times, count.trials, count.rate) == (8, 100, 0.08)
    # z = 1.959964: (0.08 + z²/200 ± z sqrt(0.08 · 0.92 / 100 + z²/40000)) / (1 + z²/100).
    assert count.lower == pytest.approx(0.041093, abs=1e-6)
    assert count.upper == pytest.approx(0.149981, abs=1e-6)
    assert count.above(0.05) == pytest.approx(float(binom.sf(7, 100, 0.05)))
    assert Count.of([False] * 10).above(0.05) == 1.0
    assert str(count) == "0.080 (0.041 – 0.150)"
    assert (Count.of([False] * 40).lower, Count.of([True] * 40).upper) == (0.0, 1.0)


def test_a_claim_is_rejected_at_the_stated_error_and_only_claims_are() -> None:
    least = next(k for k in range(1000) if binom.sf(k - 1, 1000, 0.05) < LEVEL / 2)
    for missed, bad in ((least - 1, []), (least, ["celeus"])):
        found = Rows(trials("celeus", missed, 1000) + trials("sharp", 0, 1000))
        assert [line.method for line in Verdict.of(found, 0.05).rejected] == bad
    assert Verdict.of(trials("wilson", 1000, 1000), 0.05).rejected == []


def test_the_page_shows_counts_beside_the_papers_and_the_verdict() -> None:
    last = {"trial": 1000, "method": "celeus", "target": "population"}
    broken_one = result(last, missed=True, stopped=BROKEN)
    found = Rows([*trials("cer_eval", 161, 1000), *trials("celeus", 25, 1000), broken_one])
    text = coverage_page.page(Setting(), found)
    assert "| Cer-Eval | population | 1000 | 0.161 (0.140 – 0.185) |" in text
    assert "| 0.161 | 100 | 100% |" in text
    assert "| `celeus` | population | 1001 | 0.026 (0.018 – 0.038), 1 broken |" in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1
    assert "No policy misses significantly" in text
    bad = str(Verdict.of(trials("celeus", 500, 1000), 0.05))
    assert bad.startswith("**Rejected: `celeus` for the population**")


def timeless(one: Values) -> Values:
    return one | {"seconds": 0.0}


def test_a_job_is_the_same_for_ever_and_trials_differ() -> None:
    job = {"trial": 0, "method": "sharp", "target": "pool"}
    one, again = (run(QUICK, 0, job) for _ in range(2))
    assert timeless(one) == timeless(again)
    assert run(QUICK, 0, job | {"trial": 1})["lower"] != one["lower"]
    assert run(QUICK, 1, job)["lower"] != one["lower"]


def test_cer_eval_is_scored_on_the_pool_too() -> None:
    setting = Setting(World(items=300, dimensions=2), precision=0.3)
    risks = {"population": 0.5, "pool": float(setting.world.pool(seed_of(0, 0)).loss.mean())}
    found = {}
    for target in risks:
        found[target] = run(setting, 0, {"trial": 0, "method": "cer_eval", "target": target})
    assert found["pool"]["labels"] == found["population"]["labels"]
    for target, risk in risks.items():
        one = found[target]
        assert one["missed"] == (not one["lower"] <= risk <= one["upper"])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (Options(methods=["celeus", "bayes"]), "method must be one of wilson"),
        (Options(targets=["everything"]), "target must be one of pool, population"),
        (Options(world={"groups": 1}), "groups must be at least 2"),
        (Options(world={"items": 3}), "items must be at least 10"),
        (Options(world={"noise": float("nan")}), "noise must be"),
        (Options(world={"least_risk": 0.9, "largest_risk": 0.1}), "largest_risk must be"),
        (Options(precision=1.5), "precision must be above 0"),
        (Options(alpha=0.0), "alpha must be above 0"),
        (Options(judges=0), "judges must be"),
    ],
)
def test_bad_options_are_refused_before_anything_is_written(
    options: Options, named: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidValue, match=named):
        coverage_page.study(options).perform(tmp_path / "out", 1)
    assert not (tmp_path / "out").exists()
