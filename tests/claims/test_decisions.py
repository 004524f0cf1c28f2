"""An answer is wrong in at most alpha of the sessions, on either side, however near the risk.

A claim fails when an exact binomial test rejects it at 1e-3; the last tests show that it can.
"""

import pytest

from celeus.core.betting.candidate_grid import CandidateGrid, ThresholdDesign
from celeus.core.interval import Interval
from celeus.core.plans.stopping import Answer, Question, Side
from tests.claims.deciding import Asking, told
from tests.claims.sessions import FURTHER_WORLDS, HARDEST, WORLDS, credible
from tests.nightly import NIGHTLY

SESSIONS, ITEMS = (1500, 200) if NIGHTLY else (24, 60)
SIDES: tuple[Side, ...] = ("at_most", "at_least")
POOLS = [
    *(("sharp", "pool", world) for world in ((*WORLDS, *FURTHER_WORLDS) if NIGHTLY else HARDEST)),
    ("uniform", "pool", "informative surrogate"),
    ("sharp", "population", "informative surrogate"),
    ("celeus", "pool", "more than half drawn"),
    *((policy, "pool", "rare losses") for policy in ("no_surrogate", "evalue") if NIGHTLY),
]
ASKED: list[tuple[Side, bool]] = [("at_most", False), ("at_least", True)]
"""Both sides, and both answers."""
FURTHER: list[tuple[Side, bool]] = [("at_most", True), ("at_least", False)]
CASES = [
    (*pools, *asked)
    for number, pools in enumerate(POOLS)
    # By day the pools take turns
    for asked in (ASKED + FURTHER if NIGHTLY else [ASKED[number % len(ASKED)]])
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_at_most_alpha_of_the_sessions_say_anything_wrong(
    case: tuple[str, str, str, Side, bool],
) -> None:
    counted = told(Asking(*case, items=ITEMS), SESSIONS)
    assert counted.wrong <= counted.anything
    assert credible(counted.anything, counted.sessions), counted


@pytest.mark.parametrize(("side", "beside"), ASKED)
def test_stakes_that_add_up_to_more_than_alpha_are_caught(
    side: Side,
    beside: bool,  # noqa: FBT001 -- a parameter of a test
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    candidates = ThresholdDesign.candidates

    def generous(self: ThresholdDesign, steps: int) -> tuple[CandidateGrid, CandidateGrid]:
        plus, minus = candidates(self, steps)
        return plus._replace(share=8.0 * plus.share), minus._replace(share=8.0 * minus.share)

    monkeypatch.setattr(ThresholdDesign, "candidates", generous)
    broken = Asking("sharp", "pool", "more than half drawn", side, beside, 60)
    counted = told(broken, 40)
    assert not credible(counted.wrong, counted.sessions), counted


@pytest.mark.parametrize("side", SIDES)
def test_an_answer_before_the_interval_is_past_the_threshold_is_caught(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers read off the half of the interval that is nearer to the estimate."""
    answer = Question.answer

    def hasty(self: Question, interval: Interval, slack: float = 0.0) -> Answer:
        quarter = interval.width / 4.0
        return answer(self, Interval(interval.lower + quarter, interval.upper - quarter), slack)

    monkeypatch.setattr(Question, "answer", hasty)
    hurried = Asking("sharp", "pool", "more than half drawn", side, beside=True, items=60)
    counted = told(hurried, 40)
    assert not credible(counted.wrong, counted.sessions), counted
