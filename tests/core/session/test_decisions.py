"""Questions are answered when the interval says so, once, and right on the threshold."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from celeus.core.insights.forecast import forecast
from celeus.core.interval import Interval
from celeus.core.ledger import Amendment, Change
from celeus.core.plans.plan import Claim, Plan, PoolFacts, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.plans.stopping import (
    Answer,
    Decision,
    Question,
    Side,
    StoppingRule,
    StopReason,
    all_decided,
    rounding,
)
from celeus.core.pools.surrogates import Scores
from celeus.core.session.mean import Mean
from celeus.core.session.session import Session, begin_mean
from celeus.errors import InvalidValue, UnreachablePrecision
from celeus.simulation.sessions import Truth
from tests.core.worlds import SEED, Walk, open_walk, zero_one_truth
from tests.nightly import NIGHTLY, by_day

UNIT = Interval(0.0, 1.0)
SLACK = rounding(UNIT)
ULP = 2.0**-54
NO_LUCK = 1e-12
"""An alpha at which no candidate of a small pool is rejected: only what is certain decides."""
SIDES: tuple[Side, ...] = ("at_most", "at_least")
POLICIES = ("sharp", "uniform", "celeus", "no_surrogate", "evalue")


def at_most(threshold: float) -> Question:
    return Question("at_most", threshold)


def at_least(threshold: float) -> Question:
    return Question("at_least", threshold)


@pytest.mark.parametrize(
    ("question", "interval", "answer"),
    [
        (at_most(0.3), (0.1, 0.3), "yes"),
        (at_most(0.3), (0.1, 0.3 + ULP), "yes"),
        (at_most(0.3), (0.1, 0.31), "undecided"),
        (at_most(0.3), (0.3, 0.31), "undecided"),
        (at_most(0.3), (0.3 + ULP, 0.31), "undecided"),
        (at_most(0.3), (0.3001, 0.31), "no"),
        (at_most(0.3), (0.3, 0.3), "yes"),
        (at_least(0.3), (0.3, 0.5), "yes"),
        (at_least(0.3), (0.3 - ULP, 0.5), "yes"),
        (at_least(0.3), (0.29, 0.5), "undecided"),
        (at_least(0.3), (0.29, 0.3), "undecided"),
        (at_least(0.3), (0.29, 0.3 - ULP), "undecided"),
        (at_least(0.3), (0.2, 0.2999), "no"),
        (at_least(0.3), (0.3, 0.3), "yes"),
    ],
)
def test_an_answer_is_read_off_the_closed_interval(
    question: Question, interval: tuple[float, float], answer: Answer
) -> None:
    assert question.answer(Interval(*interval), SLACK) == answer


def test_a_decision_keeps_its_first_answer_and_its_round() -> None:
    decision = Decision(at_most(0.3))
    decision = decision.after(1, UNIT, SLACK)
    assert decision == Decision(at_most(0.3), "undecided", None)
    decision = decision.after(2, Interval(0.1, 0.25), SLACK)
    assert decision == Decision(at_most(0.3), "yes", 2)
    moved = Interval(0.4, 0.4)
    assert decision.after(3, moved, SLACK) is decision
    assert decision.contradicted(moved, SLACK)
    assert not decision.contradicted(Interval(0.2, 0.25), SLACK)
    assert not Decision(at_most(0.3)).contradicted(moved, SLACK)


def test_nothing_asked_is_nothing_decided() -> None:
    assert not all_decided(())
    assert all_decided((Decision(at_most(0.3), "no", 4),))
    assert not all_decided((Decision(at_most(0.3), "no", 4), Decision(at_most(0.2))))


class TestExactness:
    """With every item judged, R <= c and R >= c are answered as arithmetic answers them."""

    @pytest.mark.parametrize("policy", POLICIES)
    @pytest.mark.parametrize("items", [10, 30, 49])
    def test_a_risk_on_the_threshold_answers_yes_to_both(self, policy: str, items: int) -> None:
        for wrong in range(1, items):
            loss = np.zeros(items)
            loss[:wrong] = 1.0
            surrogate = np.linspace(0.1, 0.9, items)
            truth = Truth(loss, Scores(surrogate, surrogate, None))
            # As a person writes it, and as the machine divides.
            for threshold in {wrong / items, float(f"{wrong / items:.16g}")}:
                asked = (at_most(threshold), at_least(threshold))
                claim = Claim(alpha=NO_LUCK, questions=asked)
                walk = open_walk(truth, policy_named(policy), claim)
                if items == 10 or wrong == items // 2:
                    walk.go(items)
                    answers = [one.answer for one in walk.state.question.decisions]
                    assert answers == ["yes", "yes"], (wrong, threshold)

    @given(data=st.data())
    @settings(max_examples=60)
    def test_sums_that_round_decide_nothing_wrong(self, data: st.DataObject) -> None:
        """Decimal losses on scales near and far from zero; the threshold is their mean."""
        items = data.draw(st.integers(2, 25))
        lower = data.draw(st.sampled_from([0.0, -1.0, 0.1, 1e6, -1e3]))
        tenths = data.draw(st.lists(st.integers(0, 10), min_size=items, max_size=items))
        loss = lower + np.array(tenths) / 10.0
        risk = lower + sum(tenths) / (10.0 * items)
        if not 0 < sum(tenths) < 10 * items:
            return
        scores = Scores(np.full(items, lower + 0.5), np.ones(items), None)
        truth = Truth(loss, scores, lower, lower + 1.0)
        policy = policy_named(data.draw(st.sampled_from(POLICIES)))
        questions = (at_most(risk), at_least(risk))
        walk = open_walk(truth, policy, Claim(alpha=NO_LUCK, questions=questions))
        walk.go(items)
        assert [one.answer for one in walk.state.question.decisions] == ["yes", "yes"]

    @pytest.mark.parametrize("policy", POLICIES)
    def test_one_item_beside_the_threshold_is_told_apart(self, policy: str) -> None:
        truth = zero_one_truth(40)
        risk = float(truth.loss.mean())
        step = 1.0 / 40.0
        asked = (
            at_most(risk - step / 2),
            at_most(risk + step / 2),
            at_least(risk - step / 2),
            at_least(risk + step / 2),
        )
        walk = open_walk(truth, policy_named(policy), Claim(alpha=NO_LUCK, questions=asked))
        walk.go(40)
        assert [one.answer for one in walk.state.question.decisions] == ["no", "yes", "yes", "no"]

    def test_what_nobody_can_judge_may_leave_a_question_open_for_ever(self) -> None:
        truth = zero_one_truth(40)
        risk = float(truth.loss.mean())
        claim = Claim(alpha=NO_LUCK, questions=(at_most(risk), at_most(risk + 0.2)))
        walk = open_walk(truth, policy_named("sharp"), claim, hidden=(1, 2, 3))
        walk.go(40)
        assert [one.answer for one in walk.state.question.decisions] == ["undecided", "yes"]
        assert walk.state.stop_reason is StopReason.EXHAUSTED


CLAIMS: dict[str, Claim] = {
    "pool": Claim("pool"),
    "pool with precision": Claim("pool", precision=0.3),
    "population": Claim("population"),
    "population by pairs": Claim("population", precision=0.8),
}


@st.composite
def walks(draw: st.DrawFn) -> Walk:
    """Sessions with questions, on pools in which some items are unjudgeable."""
    items = draw(st.integers(20, 60))
    chance = np.random.default_rng(draw(st.integers(0, 10**6)))
    surrogate = chance.random(items)
    loss = (chance.random(items) < surrogate).astype(np.float64)
    weight = np.sqrt(surrogate * (1.0 - surrogate))
    truth = Truth(loss, Scores(surrogate, weight, None))
    claim = CLAIMS[draw(st.sampled_from(sorted(CLAIMS)))]
    policy = draw(st.sampled_from(POLICIES))
    if claim.precision is not None and claim.target == "population":
        policy = "sharp"
    near = float(loss.mean())
    thresholds = draw(
        st.lists(
            st.one_of(st.floats(0.01, 0.99), st.just(min(max(near, 0.01), 0.99))),
            min_size=1,
            max_size=4,
            unique_by=lambda value: round(value, 6),
        )
    )
    sides = st.sampled_from(SIDES)
    questions = tuple(Question(draw(sides), value) for value in thresholds)
    # Often wrong on purpose: an answer has to stay even when it was.
    alpha = draw(st.sampled_from([0.05, 0.5, 0.95]))
    claim = replace(claim, alpha=alpha, questions=questions)
    hidden = draw(st.sets(st.integers(0, items - 1), max_size=4))
    try:
        return open_walk(truth, policy_named(policy), claim, hidden=hidden)
    except UnreachablePrecision:
        reject()


def eventful(walk: Walk, data: st.DataObject) -> Iterator[Session[Mean]]:
    """Every state of a session with draws ahead and changes, to exhaustion."""
    while walk.state.folded < walk.plan.items:
        move = data.draw(st.integers(0, 9))
        if move == 0:
            precision = data.draw(st.sampled_from([None, 0.6, 0.2, 0.07]))
            if not walk.plan.bound.paired or precision is not None:
                walk.enter(Change(precision, walk.plan.items))
        left = walk.plan.items - walk.state.drawn
        if move == 1 and left >= 3:
            walk.draw(3)
            rounds = [walk.state.drawn - 1, walk.state.drawn, walk.state.drawn - 2]
            walk.judge(rounds)
        else:
            walk.go(min(left, 1 + move))
        yield walk.state


@given(walk=walks(), data=st.data())
@settings(max_examples=120 if NIGHTLY else 40)
def test_an_answer_once_given_stays(walk: Walk, data: st.DataObject) -> None:
    slack = rounding(walk.plan.scale)
    known = walk.state.question.decisions
    for state in eventful(walk, data):
        for before, now in zip(known, state.question.decisions, strict=True):
            assert before.answer in {"undecided", now.answer}
            assert before.round in {None, now.round}
        known = state.question.decisions
    points = walk.state.question.points
    for decision in known:
        # The round is the first whose interval answers, and no earlier or later one.
        told = [decision.question.answer(point.interval, slack) for point in points]
        first = next((at for at, answer in enumerate(told, 1) if answer != "undecided"), None)
        assert decision.round == first
        assert decision.answer == (told[first - 1] if first else "undecided")
        if not walk.state.question.fold.emptied:
            # Nested intervals never say another thing, so bisection finds the round as well.
            assert set(told[: decision.round and decision.round - 1]) <= {"undecided"}
            assert set(told[(decision.round or len(told) + 1) - 1 :]) <= {decision.answer}
            assert not decision.contradicted(walk.state.question.interval, slack)
    if not walk.state.question.fold.emptied:
        for one, two in pairwise(points):
            assert two.interval.lower >= one.interval.lower - slack
            assert two.interval.upper <= one.interval.upper + slack


@given(walk=walks(), data=st.data())
@settings(max_examples=30)
def test_a_replay_decides_the_same_in_the_same_rounds(walk: Walk, data: st.DataObject) -> None:
    for _ in eventful(walk, data):
        pass
    again = begin_mean(walk.plan, walk.truth.scores, SEED).replay(walk.events)
    assert again.question.decisions == walk.state.question.decisions
    assert again.stop_reason == walk.state.stop_reason


def test_a_wrong_answer_stays_and_is_told_to_be_contradicted() -> None:
    """At alpha 0.95 a session answers wrongly soon; judging everything then says the opposite."""
    truth = zero_one_truth(60)
    risk = float(truth.loss.mean())
    asked = (at_most(risk + 0.04), at_least(risk - 0.04))
    for number in range(40):
        seed = bytes([number]) * 4
        claim = Claim(alpha=0.95, questions=asked)
        walk = open_walk(truth, policy_named("sharp"), claim, seed)
        walk.go(60)
        wrong = [one for one in walk.state.question.decisions if one.answer == "no"]
        for one in wrong:
            assert walk.state.question.interval.width == 0.0
            assert one.contradicted(walk.state.question.interval, SLACK)
            assert walk.state.question.fold.emptied
        if wrong:
            return
    raise AssertionError("no session was wrong")


class TestStopping:
    def test_the_session_stops_when_every_question_is_decided(self) -> None:
        asked = (at_most(0.9), at_most(0.55))
        walk = open_walk(zero_one_truth(300), policy_named("sharp"), Claim(questions=asked))
        while walk.state.stop_reason is None:
            walk.go(1)
        first, second = walk.state.question.decisions
        assert walk.state.stop_reason is StopReason.DECIDED
        assert first.round is not None
        assert second.round is not None
        assert first.round < second.round == walk.state.folded < 300

    def test_the_precision_may_come_first(self) -> None:
        claim = Claim(precision=0.5, questions=(at_most(0.3),))
        walk = open_walk(zero_one_truth(300, risk=0.3), policy_named("sharp"), claim)
        while walk.state.stop_reason is None:
            walk.go(1)
        assert walk.state.stop_reason is StopReason.TARGET_REACHED

    def test_going_on_is_a_change_and_stopping_again_another(self) -> None:
        claim = Claim(questions=(at_most(0.9),))
        walk = open_walk(zero_one_truth(100), policy_named("sharp"), claim)
        while walk.state.stop_reason is None:
            walk.go(1)
        decided = walk.state.question.decisions
        reasons = []
        for event in (
            Change(None, 100, stop_when_decided=False),
            Change(None, 90),
            Change(None, 90, stop_when_decided=True),
            Change(None, 95),
        ):
            walk.enter(event)
            reasons.append(walk.state.stop_reason)
        assert reasons == [None, None, StopReason.DECIDED, StopReason.DECIDED]
        walk.go(5)
        assert walk.state.question.decisions == decided

    def test_questions_may_be_answered_without_stopping(self) -> None:
        claim = Claim(budget=80, questions=(at_most(0.9),), stop_when_decided=False)
        walk = open_walk(zero_one_truth(100), policy_named("sharp"), claim)
        walk.go(79)
        assert walk.state.question.decisions[0].answer == "yes"
        assert walk.state.stop_reason is None
        walk.go(1)
        assert walk.state.stop_reason is StopReason.BUDGET_SPENT

    def test_a_rule_aims_at_a_precision_or_at_answers(self) -> None:
        assert not StoppingRule(None, 10).can_stop_early
        assert StoppingRule(0.1, 10).can_stop_early
        assert StoppingRule(None, 10, stop_when_decided=True).can_stop_early

    def test_a_correction_folds_again_and_may_decide_otherwise(self) -> None:
        loss = np.zeros(40)
        loss[:20] = 1.0
        scores = Scores(np.full(40, 0.5), np.ones(40), None)
        claim = Claim(alpha=NO_LUCK, questions=(at_most(0.45),))
        walk = open_walk(Truth(loss, scores), policy_named("sharp"), claim)
        walk.go(40)
        before = walk.state.question.decisions[0]
        assert before.answer == "no"
        wrong = [one.draw.round for one in walk.state.rounds if one.loss == 1.0]
        for round_ in wrong[:5]:
            walk.enter(Amendment(round_, 0.0))
        after = walk.state.question.decisions[0]
        assert after.answer == "yes"
        assert after.round is not None

    def test_a_forecast_counts_the_labels_to_the_answers(self) -> None:
        truth = zero_one_truth(400)
        claim = Claim(questions=(at_most(0.45),))
        walk = open_walk(truth, policy_named("sharp"), claim)
        walk.go(20)
        found = forecast(walk.state)
        walk_on = walk.branch()
        while walk_on.state.stop_reason is None:
            walk_on.go(1)
        needed = walk_on.state.folded - 20
        assert walk_on.state.stop_reason is StopReason.DECIDED
        assert found is not None
        assert found.low <= needed <= found.high
        assert found.labels_left < 380


FACTS = PoolFacts("digest", 200, -1.0, 3.0, whole_losses=False)
OTHER_FACTS = PoolFacts("digest", 200, 0.0, 1.0, whole_losses=True)


def refused(facts: PoolFacts = OTHER_FACTS, **values: Any) -> InvalidValue:  # noqa: ANN401 -- one type per field
    with pytest.raises(InvalidValue) as caught:
        make_plan(Claim(**values), facts, policy_named("sharp"), "commitment")
    return caught.value


class TestPlan:
    @pytest.mark.parametrize("stop", [None, True, False])
    def test_a_plan_with_questions_survives_the_way_through_json(self, stop: bool | None) -> None:  # noqa: FBT001 -- a parameter of a test
        asked = (at_most(0.1), at_least(0.2), at_least(0.1))
        claim = Claim(questions=asked, stop_when_decided=stop)
        made = make_plan(claim, FACTS, policy_named("sharp"), "commitment")
        again = Plan.from_dict(json.loads(json.dumps(made.to_dict())))
        assert again == made
        assert again.digest == made.digest
        assert made.stop_when_decided is (stop is not False)
        assert made.stopping.stop_when_decided is (stop is not False)

    def test_a_plan_without_questions_is_written_as_before_there_were_any(self) -> None:
        made = make_plan(Claim(), FACTS, policy_named("sharp"), "commitment")
        values = made.to_dict()
        assert "questions" not in values
        assert "stop_when_decided" not in values
        assert Plan.from_dict(values) == made
        assert not made.stop_when_decided

    def test_every_question_is_part_of_the_digest(self) -> None:
        made = [
            make_plan(claim, FACTS, policy_named("sharp"), "commitment").digest
            for claim in (
                Claim(),
                Claim(questions=(at_most(0.1),)),
                Claim(questions=(at_least(0.1),)),
                Claim(questions=(at_most(0.2),)),
                Claim(questions=(at_most(0.1), at_most(0.2))),
                Claim(questions=(at_most(0.1),), stop_when_decided=False),
            )
        ]
        assert len(set(made)) == len(made)

    @pytest.mark.parametrize("threshold", [0.0, 1.0, -0.1, 1.1, 1e-12, float("nan"), float("inf")])
    def test_a_threshold_lies_strictly_inside_the_scale(self, threshold: float) -> None:
        refusal = refused(questions=(at_most(0.5), at_most(threshold)))
        assert refusal.field == "questions.1.threshold"
        assert refusal.rule == "inside the scale, above 0 and below 1"
        assert str(refusal.value) == str(threshold)

    def test_the_scale_is_that_of_the_pool(self) -> None:
        claim = Claim(questions=(at_most(-0.5), at_most(2.5)))
        assert make_plan(claim, FACTS, policy_named("sharp"), "").questions == claim.questions
        assert refused(FACTS, questions=(at_most(3.0),)).field == "questions.0.threshold"

    def test_at_most_twenty_questions_are_taken(self) -> None:
        many = tuple(at_most(0.01 * at) for at in range(1, 22))
        plan = make_plan(Claim(questions=many[:20]), OTHER_FACTS, policy_named("sharp"), "")
        assert len(plan.questions) == 20
        refusal = refused(questions=many)
        assert (refusal.field, refusal.value) == ("questions", 21)

    @pytest.mark.parametrize("other", [at_most(0.1), at_most(0.1 + ULP * 4), at_least(0.1 + 1e-12)])
    def test_nothing_is_asked_twice(self, other: Question) -> None:
        refusal = refused(questions=(at_most(0.1), other))
        assert (refusal.field, refusal.rule) == ("questions.1", "asked once")

    def test_a_side_is_one_of_two(self) -> None:
        side: Any = "below"
        assert refused(questions=(Question(side, 0.1),)).field == "questions.0.side"

    def test_without_questions_there_is_no_waiting_for_answers(self) -> None:
        assert refused(stop_when_decided=True).field == "stop_when_decided"
        claim = Claim(stop_when_decided=False)
        assert not make_plan(claim, FACTS, policy_named("sharp"), "").stop_when_decided


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("target", ["pool", "population"])
@pytest.mark.parametrize("side", by_day(1, ["at_most", "at_least"]))
def test_questions_move_no_interval_but_that_of_a_goalless_pool(
    policy: str, target: Literal["pool", "population"], side: Side
) -> None:
    truth = zero_one_truth(120)
    for precision in (0.4, None):
        claim = Claim(target, precision=precision)
        if precision is None and target == "pool" and policy in {"sharp", "uniform"}:
            continue
        asking = replace(claim, questions=(Question(side, 0.31),), stop_when_decided=False)
        with_, without = (open_walk(truth, policy_named(policy), one) for one in (asking, claim))
        for one in (with_, without):
            one.go(120)
        assert with_.state.question.points == without.state.question.points
