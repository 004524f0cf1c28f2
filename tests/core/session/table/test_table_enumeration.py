"""Many claims on tiny tables, over every order of drawing: exact means, stakes and misses."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from celeus.core.betting.pool_target import LatticeSequence
from celeus.core.ledger import Draw
from celeus.core.plans.table_plan import TableSettings
from celeus.core.pools.losses import LossScale
from celeus.core.pools.table_pool import Table
from celeus.core.session.fold import Fold
from celeus.core.session.session import Session
from celeus.core.session.table.table_claims import MeanClaim
from celeus.core.session.table.table_question import Table as TableQuestion
from tests.core.tables import SEED, UNIT, WIDE, at_will, branched, coming, judged, planned, table_of
from tests.nightly import by_day

EXACT = 1e-12
Hidden = frozenset[tuple[int, int]]


WIDE_OPEN = TableSettings()


@dataclass(frozen=True)
class Case:
    """A table, its losses, what nobody can tell of them, and what is asked."""

    table: Table
    losses: np.ndarray
    hidden: Hidden = frozenset()
    wish: TableSettings = WIDE_OPEN

    def begun(self, alpha: float | None = None) -> Session[TableQuestion]:
        wish = self.wish if alpha is None else replace(self.wish, alpha=alpha)
        return Session.of(TableQuestion(planned(self.table, wish), self.table, SEED), SEED)

    def truth(self, claim: MeanClaim, fill: float | None = None) -> float:
        """The risk of a claim; what is hidden counts as ``fill`` on the unit scale."""
        losses = self.losses[:, claim.metric].copy()
        for item, metric in self.hidden:
            if metric == claim.metric and fill is not None:
                losses[item] = claim.plan.lower + fill * claim.plan.scale.width
        mask = np.ones(losses.size, dtype=bool)
        for column in self.table.columns:
            if column.name == claim.claim.column:
                mask = np.array(column.values)[column.code] == claim.claim.value
        return float(losses[mask].mean())


def vectors(count: int, items: int, seed: int = 3, scale: LossScale = UNIT) -> np.ndarray:
    chance = np.random.default_rng(seed)
    return scale.lower + scale.width * np.round(chance.random((items, count)), 2)


TWO = vectors(2, 4)
THREE = np.stack([TWO[:, 0], WIDE.lower + 5.0 * TWO[:, 1], (TWO[:, 0] > 0.5) * 1.0], axis=1)
FIVE = vectors(1, 5, 8)
CODES = ["u", "v", "u", "v"]
PRECISE = TableSettings(precision={"a": 0.3, "b": 0.3}, group_precision={"a": 0.4})
WIDTHS = TableSettings(precision={"a": 0.3}, group_precision={"a": 0.4})

CASES = {
    "two metrics": Case(table_of(TWO), TWO, wish=PRECISE),
    "three metrics on other scales": Case(table_of(THREE, scales=(UNIT, WIDE, UNIT)), THREE),
    "a metric known here and there": Case(
        table_of(TWO, known=[(0, 0), (2, 0), (3, 1)]), TWO, wish=PRECISE
    ),
    "an item known altogether": Case(table_of(TWO, known=[(1, 0), (1, 1), (2, 0)]), TWO),
    "a loss nobody can tell": Case(
        table_of(TWO), TWO, frozenset({(0, 0), (3, 0), (3, 1)}), wish=PRECISE
    ),
    "two groups": Case(table_of(TWO[:, :1], CODES), TWO[:, :1], wish=WIDTHS),
    "two groups that want nothing": Case(table_of(TWO[:, :1], CODES), TWO[:, :1]),
    "three groups": Case(table_of(FIVE, ["u", "v", "w", "w", "u"]), FIVE, wish=WIDTHS),
    "a group judged whole": Case(
        table_of(TWO[:, :1], CODES), TWO[:, :1], wish=TableSettings(small_groups="whole")
    ),
    "two groups and two metrics": Case(
        table_of(TWO, CODES, known=[(3, 1)]), TWO, frozenset({(0, 0)}), wish=PRECISE
    ),
    "two columns": Case(table_of(TWO[:, :1], CODES, ["p", "p", "q", "q"]), TWO[:, :1], wish=WIDTHS),
}


@pytest.fixture(autouse=True)
def _small_groups_bet(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Groups of two items are worth bets here, but for where they are judged whole."""
    if "whole" not in request.node.name:
        for module in ("celeus.core.pools.table_pool", "celeus.core.plans.table_plan"):
            monkeypatch.setattr(f"{module}.LEAST_GROUP", 1)


def after(session: Session[TableQuestion], draw: Draw, case: Case) -> Session[TableQuestion]:
    branch = branched(session)
    branch.apply(draw)
    judged(branch, draw, case.losses, case.hidden)
    return branch


def histories(
    session: Session[TableQuestion], case: Case, depth: int = 2
) -> Iterator[Session[TableQuestion]]:
    yield session
    if depth:
        for draw in coming(session):
            yield from histories(after(session, draw, case), case, depth - 1)


def last_point(claim: MeanClaim) -> tuple[float, float]:
    point = claim.fold.points[-1]
    for side in (point.plus, point.minus):
        assert side.signal_range.lower <= side.signal + EXACT * 1e3
        assert side.signal <= side.signal_range.upper + EXACT * 1e3
    return point.plus.signal, point.minus.signal


@pytest.mark.parametrize("name", CASES)
def test_the_mean_signal_of_every_claim_is_its_risk(name: str) -> None:
    """In the rounds that fall into it, and in both completions of the pool."""
    case, seen = CASES[name], set()
    for session in histories(case.begun(), case):
        chance, means = 0.0, np.zeros((len(session.question.means), 3))
        for draw in coming(session):
            chance += draw.q
            branch = after(session, draw, case)
            for at, claim in enumerate(branch.question.means):
                if claim.fold.rounds > session.question.means[at].fold.rounds:
                    means[at] += draw.q * np.array([1.0, *last_point(claim)])
        if not chance:
            continue
        assert chance == pytest.approx(1.0, abs=EXACT)
        for claim, (share, plus, minus) in zip(session.question.means, means, strict=True):
            if share:
                seen.add(claim.claim.name)
                assert plus / share == pytest.approx(case.truth(claim, 0.0), abs=1e-11)
                assert minus / share == pytest.approx(case.truth(claim, 1.0), abs=1e-11)
    assert len(seen) == len(case.begun().question.means)


def open_behind(
    session: Session[TableQuestion], case: Case
) -> Iterator[tuple[Session[TableQuestion], Draw]]:
    """Every draw that stays open, alone or with a second one behind it that is judged."""
    for first in coming(session):
        out = branched(session).apply(first)
        yield out, first
        for second in coming(out):
            held = branched(out).apply(second)
            judged(held, second, case.losses, case.hidden)
            yield held, first


@pytest.mark.parametrize("name", CASES)
def test_a_draw_ahead_of_a_loss_has_the_same_mean(name: str) -> None:
    """Also where a draw behind the open one is judged, and what it said moves the next."""
    case = CASES[name]
    for session in histories(case.begun(), case, 1):
        for out, first in open_behind(session, case):
            means = np.zeros((len(out.question.means), 2))
            for second in coming(out):
                branch = branched(out)
                branch.apply(second)
                judged(branch, first, case.losses, case.hidden)
                before = [claim.fold.rounds for claim in branch.question.means]
                judged(branch, second, case.losses, case.hidden)
                for at, claim in enumerate(branch.question.means):
                    if claim.fold.rounds > before[at]:
                        means[at] += second.q * np.array([1.0, last_point(claim)[0]])
            for claim, (share, plus) in zip(out.question.means, means, strict=True):
                if share:
                    assert plus / share == pytest.approx(case.truth(claim, 0.0), abs=1e-11)


def stake(fold: Fold, unit: float, side: int) -> float:
    """The stake of the candidate next to the truth that a wrong interval rejects, summed up."""
    sequence = fold.confidence_sequence
    assert isinstance(sequence, LatticeSequence)
    lattice_side = sequence._lattice.sides[side]
    at = int(np.searchsorted(lattice_side._grid / lattice_side._steps, unit - 1e-12))
    standing = lattice_side._standing
    if at not in standing:
        return 1.0 if (standing > at).any() else 0.0
    return float(np.exp(lattice_side._stake[:, standing == at]).sum())


def stakes(session: Session[TableQuestion], case: Case) -> np.ndarray:
    """Those of both sides of every claim, shape [claims, 2]."""
    rows = []
    for claim in session.question.means:
        risk = (case.truth(claim) - claim.plan.lower) / claim.plan.scale.width
        rows.append([stake(claim.fold, risk, 0), stake(claim.fold, 1.0 - risk, 1)])
    return np.array(rows)


SOME = ["two metrics", "two groups", "two groups and two metrics"]


def by_choice(
    session: Session[TableQuestion], case: Case, draws: int, *, skips: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The stakes now, and after ``draws`` least and largest in the mean of who answers at will."""
    start = stakes(session, case)
    assert (start > 0.0).all()
    nobody = (None,) * case.losses.shape[1]

    def answers(item: int) -> list[tuple[float | None, ...]]:
        truth = tuple(case.losses[item].tolist())
        return [truth, nobody] if skips else [truth]

    return start, *at_will(session, draws, answers, lambda branch: stakes(branch, case))


@pytest.mark.parametrize("name", SOME)
def test_the_mean_stake_at_the_true_risk_is_its_start_whenever_draws_are_answered(
    name: str,
) -> None:
    """Whoever holds draws, sees their items and losses, and answers them in any order."""
    every = dict.fromkeys([metric.name for metric in CASES[name].table.metrics], 0.05)
    # So fine that every true risk is a candidate
    fine = TableSettings(precision=every, group_precision=every)
    case = replace(CASES[name], hidden=frozenset(), wish=fine)
    start, least, largest = by_choice(case.begun(1e-6), case, 3, skips=False)
    assert least == pytest.approx(start, rel=1e-9)
    assert largest == pytest.approx(start, rel=1e-9)


@pytest.mark.parametrize("name", by_day(1, SOME))
def test_no_choice_of_answers_and_skips_gains_a_stake(name: str) -> None:
    """Of who answers, skips or leaves open any draw before each later one."""
    case = replace(CASES[name], hidden=frozenset())
    start, _, largest = by_choice(case.begun(1e-6), case, 3, skips=True)
    assert (largest <= start * (1.0 + 1e-9)).all()


def missed(session: Session[TableQuestion], case: Case) -> np.ndarray:
    """Probability that each claim's interval ever loses its risk."""
    now = np.zeros(len(session.question.means))
    for at, claim in enumerate(session.question.means):
        truth, slack = case.truth(claim), 1e-9
        now[at] = not claim.interval.lower - slack <= truth <= claim.interval.upper + slack
    total = np.zeros(len(session.question.means))
    draws = list(coming(session))
    for draw in draws:
        total += draw.q * missed(after(session, draw, case), case)
    return np.maximum(now, total)


@pytest.mark.parametrize("name", SOME)
def test_every_claim_is_missed_with_probability_alpha_at_most(name: str) -> None:
    case = replace(CASES[name], hidden=frozenset())
    assert (missed(case.begun(0.3), case) <= 0.3 + EXACT).all()
