"""What the accounts promise, over every draw of tiny tables and the worst way to use them."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from celeus.core.betting.bets import Goal
from celeus.core.betting.moments import Prediction, SideSignal
from celeus.core.multiplicity.evidence import EvidenceSequence, OpenSide
from celeus.core.plans.stopping import Question
from celeus.core.plans.table_plan import TableClaim, TableSettings
from celeus.core.session.session import Session
from celeus.core.session.table.table_question import Table as TableQuestion
from tests.core.session.table.test_table_enumeration import (
    Case,
    after,
    by_choice,
    histories,
    vectors,
)
from tests.core.tables import branched, coming, table_of
from tests.nightly import NIGHTLY

SLACK = 1e-9
FOUR = vectors(2, 4)
FIVE = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
GUESSES = np.array([[0.9, 0.2], [0.1, 0.2], [0.9, 0.7], [0.1, 0.7], [0.5, 0.2]])
SELECTED = TableSettings(account="selected", alpha=0.9)
TOGETHER = TableSettings(account="together", alpha=0.9999, reserve=0.95)

CASES = {
    "two metrics": Case(table_of(FIVE, guesses=GUESSES), FIVE, wish=SELECTED),
    "with a precision": Case(
        table_of(FIVE), FIVE, wish=replace(SELECTED, precision={"a": 0.4, "b": 0.4})
    ),
    "a loss nobody can tell": Case(table_of(FOUR), FOUR, frozenset({(1, 0)}), wish=SELECTED),
    "a metric known here and there": Case(
        table_of(FIVE, known=[(0, 0), (3, 1)]), FIVE, wish=SELECTED
    ),
}


def evidence_of(session: Session[TableQuestion], at: int) -> EvidenceSequence:
    sequence = session.question.means[at].fold.confidence_sequence
    assert isinstance(sequence, EvidenceSequence)
    return sequence


@pytest.mark.parametrize("name", CASES)
def test_no_evidence_against_what_is_true_grows_in_the_mean(name: str) -> None:
    """At every moment of every history, long after the plan's own level rejects it."""
    case = CASES[name]
    session = case.begun(0.9999)
    for at, claim in enumerate(session.question.means):
        wrong = [
            question
            for threshold in np.linspace(0.02, 0.98, 25).tolist()
            for question, beyond in (
                (Question("at_most", threshold), case.truth(claim, 0.0) - threshold),
                (Question("at_least", threshold), threshold - case.truth(claim, 1.0)),
            )
            if beyond > SLACK
        ]
        assert wrong
        for now in histories(session, case):
            draws = list(coming(now))
            futures = [after(now, draw, case) for draw in draws]
            for question in wrong:
                before = math.exp(evidence_of(now, at).log_evidence(question))
                mean = sum(
                    draw.q * math.exp(evidence_of(one, at).log_evidence(question))
                    for draw, one in zip(draws, futures, strict=True)
                )
                assert mean <= before + SLACK


def worst_share(session: Session[TableQuestion], case: Case) -> float:
    """Share of false ones among those shown by who knows the truth, but not what is drawn."""
    count = len(session.question.means)
    worst = 0.0
    for shown in range(1, count + 1):
        level = case.wish.alpha * shown / count
        false = 0
        for claim in session.question.means:
            interval = claim.interval_at(level)
            false += not interval.lower - SLACK <= case.truth(claim) <= interval.upper + SLACK
        worst = max(worst, min(false, shown) / shown)
    later = [draw.q * worst_share(after(session, draw, case), case) for draw in coming(session)]
    return max(worst, sum(later))


def test_whoever_picks_and_whenever_at_most_alpha_of_the_shown_is_false() -> None:
    """At an alpha and a precision that are felt, with surrogates that mislead."""
    wish = replace(SELECTED, alpha=0.9999, precision={"a": 0.4, "b": 0.4})
    case = Case(table_of(FIVE, guesses=1.0 - GUESSES), FIVE, wish=wish)
    worst = worst_share(case.begun(), case)
    assert 0.1 < worst <= wish.alpha


def chance_of_a_false_yes(session: Session[TableQuestion], case: Case) -> float:
    for at, number in session.question.proven:
        claim = session.question.means[at]
        if claim.claim.questions[number].threshold < case.truth(claim) - SLACK:
            return 1.0
    return sum(
        draw.q * chance_of_a_false_yes(after(session, draw, case), case) for draw in coming(session)
    )


@pytest.mark.parametrize("beside", [0.39, 0.3])
def test_an_answer_yes_is_ever_false_with_at_most_alpha(beside: float) -> None:
    """Both risks are 0.4, so that both answers yes to "at most" less than that are false."""
    asked = {name: (Question("at_most", beside),) for name in "ab"}
    wish = TableSettings(account="closed", alpha=0.95, questions=asked)
    case = Case(table_of(FIVE, guesses=GUESSES), FIVE, wish=wish)
    session = case.begun()
    assert [case.truth(claim) for claim in session.question.means] == [0.4, 0.4]
    assert 0.01 < chance_of_a_false_yes(session, case) <= wish.alpha


def test_the_plans_own_intervals_are_the_same_with_evidence_kept() -> None:
    wish = TableSettings(precision={"a": 0.3})
    case = Case(table_of(FIVE), FIVE, wish=wish)
    plain = case.begun(0.9)
    kept = replace(case, wish=replace(wish, account="selected")).begun(0.9)
    while plain.can_draw:
        draw = plain.propose()
        plain, kept = after(plain, draw, case), after(kept, kept.propose(), case)
        assert plain.drawn == kept.drawn
        for one, other in zip(plain.question.means, kept.question.means, strict=True):
            assert one.interval == other.interval


def test_a_claim_added_later_has_a_signal_whose_mean_is_its_risk() -> None:
    """And knows what was judged before, a loss that nobody could tell included."""
    wish = TableSettings(account="together", alpha=0.9, reserve=0.3)
    for hidden in (frozenset[tuple[int, int]](), frozenset({(2, 0)})):
        case = Case(table_of(FIVE), FIVE, hidden, wish=wish)
        for now in histories(case.begun(), case):
            if not now.can_draw:
                continue
            begun = branched(now)
            begun.question.add(TableClaim("a", 0, 0.2))
            added = begun.question.means[-1]
            assert added.left == begun.question.means[0].left
            own = added.interval
            assert own.lower - SLACK <= case.truth(added, 0.0) <= case.truth(added, 1.0)
            assert case.truth(added, 1.0) <= own.upper + SLACK
            means = np.zeros(2)
            for draw in coming(begun):
                point = after(begun, draw, case).question.means[-1].fold.points[-1]
                means += draw.q * np.array([point.plus.signal, point.minus.signal])
            assert means == pytest.approx([case.truth(added, fill) for fill in (0.0, 1.0)])


LATE = {
    "all items": (
        Case(table_of(FIVE, guesses=1.0 - GUESSES), FIVE, wish=TOGETHER),
        TableClaim("a", 0, 0.95, precision=0.4),
    ),
    "a loss nobody can tell": (
        Case(table_of(FIVE, guesses=1.0 - GUESSES), FIVE, frozenset({(2, 0)}), wish=TOGETHER),
        TableClaim("a", 0, 0.95, precision=0.4),
    ),
    "a group": (
        Case(table_of(FIVE, ["u", "v", "u", "u", "u"], guesses=1.0 - GUESSES), FIVE, wish=TOGETHER),
        TableClaim("a", 0, 0.95, "x", "u", precision=0.5),
    ),
}
"""Claims added later at a level that is felt, with surrogates that mislead."""


@pytest.mark.parametrize(
    "name",
    [name if name != "a group" else pytest.param(name, marks=pytest.mark.nightly) for name in LATE],
)
def test_whenever_a_claim_is_added_it_is_lost_with_at_most_its_level(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given all that was judged before: so whoever adds it may choose when, knowing the truth."""
    for module in ("celeus.core.pools.table_pool", "celeus.core.plans.table_plan"):
        monkeypatch.setattr(f"{module}.LEAST_GROUP", 1)
    case, claim = LATE[name]
    chances = []
    for now in histories(case.begun(), case, 2 if NIGHTLY and not claim.column else 1):
        begun = branched(now)
        begun.question.add(claim)
        chances.append(lost(begun, case))
    assert 0.0 < max(chances) <= claim.level + SLACK


def lost(session: Session[TableQuestion], case: Case) -> float:
    """Probability that the interval of the claim added last ever loses its risk."""
    added = session.question.means[-1]
    low, high = case.truth(added, 0.0), case.truth(added, 1.0)
    if not (added.interval.lower <= low + SLACK and high - SLACK <= added.interval.upper):
        return 1.0
    return sum(draw.q * lost(after(session, draw, case), case) for draw in coming(session))


def test_no_choice_of_skips_gains_a_stake_of_a_claim_added_later() -> None:
    """Whoever holds draws made after it was added sees items and losses, and then skips."""
    four = vectors(2, 4)
    case = Case(table_of(four), four, wish=TOGETHER)
    for now in histories(case.begun(), case, 1):
        begun = branched(now)
        begun.question.add(TableClaim("a", 0, 1e-6))
        start, _, largest = by_choice(begun, case, begun.drawn + 2, skips=True)
        assert (largest[-1] <= start[-1] * (1.0 + 1e-9)).all()


@pytest.mark.parametrize("unit", [1.0, 0.4, 4.0])
def test_a_stake_after_a_round_never_falls_in_the_stake_before_it(unit: float) -> None:
    """So whoever skips a round, which lowers a stake, gains nothing by it later."""
    befores, gains = (-0.8, -0.6, -0.5, -0.4, -0.3, -0.2, 0.0, 0.5), (-0.4, 0.1, 2.0, 6.0, 60.0)
    for log_before, gain in product(befores, gains):
        assert_stake_rises(log_before, gain, unit)


def assert_stake_rises(log_before: float, gain: float, unit: float) -> None:
    """Of two stakes before a round the larger one is larger after it."""
    goals = [Goal(0.1, 400.0, unit=unit)]
    after_round = []
    for more in (0.0, 1e-3):
        side = OpenSide(100, 0.05, goals, None)
        side._stake = np.full_like(side._stake, log_before + more)
        value = float(side._value[50])
        side.update(Prediction(value - 0.5, value, 0.02), (0.0,), SideSignal(value + gain, -1.0))
        after_round.append(float(side._stake[0, 50]))
    assert after_round[0] < after_round[1]


def test_draws_that_are_out_count_as_judged_by_nobody_where_claims_are_shown() -> None:
    case = CASES["two metrics"]
    waiting, skipped = case.begun(), case.begun()
    for session in (waiting, skipped):
        for _ in range(3):
            session.apply(session.propose())
        session.observe(2, tuple(case.losses[session.item(2)].tolist()))
    for round_ in (1, 3):
        skipped.observe(round_, (None, None))
    shown = [one.question.shown([0, 1]) for one in (waiting, skipped)]
    assert shown[0] == shown[1]
    assert waiting.folded == 0
