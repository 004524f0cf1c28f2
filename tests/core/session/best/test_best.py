"""The best of k by a plain second computation, and what its sessions refuse."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import norm

from celeus.core.ledger import Draw
from celeus.core.pools.systems import MOST
from celeus.core.session.best.best_question import Best
from celeus.core.session.best.candidates import Candidates, Floats, Pairs, narrow
from celeus.core.session.best.contrasts import Contrasts, Totals
from celeus.core.session.best.partition import focus_of
from celeus.core.session.best.race import strongest
from celeus.core.session.session import Session
from celeus.errors import InvalidValue, LossOutsideScale, NothingToJudge
from celeus.simulation.best import plan_for

ITEMS, SYSTEMS, ALPHA = 400, 4, 1e-6
SEED = b"a seed for the tests"


def field(systems: int = SYSTEMS, items: int = ITEMS) -> tuple[Candidates, Floats]:
    """Choices among three by systems of which the first is the worst."""
    chance = np.random.default_rng(2)
    right = chance.integers(0, 3, items)
    able = chance.random((items, systems)) < np.linspace(0.4, 0.8, systems)
    answer = np.where(able, right[:, None], chance.integers(0, 3, (items, systems)))
    losses = (answer != right[:, None]).astype(np.float64)
    return Candidates(items, systems, answer.astype(np.int32)), losses


def begun(candidates: Candidates, alpha: float) -> Session[Best]:
    return Session.of(Best(plan_for(candidates, alpha), candidates, SEED), SEED)


def judge(session: Session[Best], losses: Floats) -> Draw:
    """Draw an item and judge it."""
    draw = session.propose()
    session.apply(draw)
    session.observe(draw.round, tuple(losses[draw.item].tolist()))
    return draw


class PlainPair:
    """A pair's numbers before a round, from all judged items, and its past signals."""

    def __init__(self, session: Session[Best], losses: Floats, i: int, o: int) -> None:
        answer = session.question.candidates.answer
        assert answer is not None
        self.code, self.strata = (
            session.question.partition.strata.code,
            range(session.question.partition.strata.count),
        )
        self.half = (losses[:, i] - losses[:, o]) / 2.0
        self.differ = answer[:, i] != answer[:, o]
        self.past: list[tuple[float, float, float]] = []

    def look(self, judged: list[int], strata_q: Floats) -> None:
        """Compute everything anew."""
        half, strata = self.half, self.strata
        here = [np.flatnonzero(self.differ & (self.code == s)) for s in strata]
        seen = [[j for j in one if j in judged] for one in here]
        self.left = [len(all_) - len(some) for all_, some in zip(here, seen, strict=True)]
        count = [len(one) for one in seen]
        g = sum(half[j] for one in seen for j in one) / (20.0 + sum(count))
        self.m = [(16.0 * g + half[seen[s]].sum()) / (16.0 + count[s]) for s in strata]
        squares = [sum((half[j] - self.m[s]) ** 2 for j in seen[s]) for s in strata]
        spread = sum(count[s] * (0.25 - self.m[s] ** 2) for s in strata)
        f = (3.0 + sum(squares)) / (3.0 + spread)
        inner = [0.25 - min(abs(one), 0.46) ** 2 for one in self.m]
        self.v = [(40.0 * f * inner[s] + squares[s]) / (40.0 + count[s]) for s in strata]
        self.p = half[judged].sum() + sum(self.left[s] * self.m[s] for s in strata)
        self.p /= ITEMS
        parts = [self.left[s] * max(self.v[s], 0.001) / strata_q[s] for s in strata]
        self.w = sum(parts) / ITEMS**2
        past = self.past
        self.mu, self.ratio = self.p, 1.0
        if past:
            self.mu = sum(x / y for x, y, _ in past) / sum(1.0 / y for _, y, _ in past)
            squared = sum((x - z) ** 2 / y for x, y, z in past)
            self.ratio = max(0.3, (30.0 + squared) / (30.0 + len(past)))
        self.least = self.p + min(
            (-0.5 - self.m[s]) / (ITEMS * strata_q[s]) for s in strata if self.left[s]
        )

    def signal(self, item: int, q: float) -> float:
        """The signal of a draw, which is then past."""
        residual = (self.half[item] - self.m[self.code[item]]) / (ITEMS * q)
        signal = float(self.p + residual * self.differ[item])
        self.past.append((signal, self.w, self.mu))
        return signal


class PlainGoal:
    """The stake of a system at one of ``count`` goals."""

    def __init__(self, half: float, count: int) -> None:
        self.half = half
        self.needed = (ndtri(1.0 - ALPHA) / self.half) ** 2
        self.stake, self.accrued = ALPHA / count, 0.0

    def bet(self, pair: PlainPair, signal: float) -> None:
        """Bet on the pair's signal."""
        padded = pair.ratio * pair.w + self.half / 3.0 * max(pair.mu - pair.least, 0.0)
        stake = 0.9 * min(1.0, self.stake)
        mills = norm.pdf(ndtri(stake)) / stake
        missing = max(1.1 * self.needed - self.accrued, 0.05 * max(self.needed, self.accrued))
        most = 2.5 if self.accrued <= 1.1 * self.needed else 1.3
        lam = min(mills / (padded * math.sqrt(missing)), most * self.half / padded)
        self.stake *= 1.0 + min(lam, 0.8 / -pair.least) * signal
        self.accrued += 1.0 / padded


def test_forecasts_and_stakes_are_those_of_a_plain_computation() -> None:
    candidates, losses = field()
    session = begun(candidates, ALPHA)
    plain = {
        (i, o): PlainPair(session, losses, i, o)
        for i in range(SYSTEMS)
        for o in range(i + 1, SYSTEMS)
    }
    finest = 0.5 * math.sqrt(ITEMS - session.question.known) / ITEMS
    halves = [0.1 * 0.5**number for number in range(6) if 0.1 * 0.5**number >= finest]
    goals = [PlainGoal(half, len(halves)) for half in halves]
    assert len(goals) > 2
    judged: list[int] = []
    for _ in range(25):
        draw = session.propose()
        assert draw.strata_q is not None
        forecast = session.question.partition.contrasts.forecast(
            session.question.totals, draw.item, draw.strata_q
        )
        place = session.question.partition.contrasts.pairs.place
        plug_in = session.question.totals.plug_in(place, forecast.rest)
        stratum = session.question.partition.strata.code[draw.item]
        for row, pair in enumerate(plain.values()):
            pair.look(judged, draw.strata_q)
            assert forecast.mean[row] == pytest.approx(pair.m[stratum])
            assert session.question.partition.contrasts.moment[row] == pytest.approx(pair.v)
            assert plug_in[row] == pytest.approx(pair.p)
            assert forecast.variance[row] == pytest.approx(pair.w)
            assert forecast.centre[row] == pytest.approx(pair.mu, abs=1e-12)
            assert forecast.ratio[row] == pytest.approx(pair.ratio)
        leads = [pair.mu / math.sqrt(pair.ratio * pair.w) for pair in list(plain.values())[:3]]
        opponent = 1 + int(np.argmax(leads))
        assert strongest(forecast, session.question.race.standing)[0] == opponent
        signals = {names: pair.signal(draw.item, draw.q) for names, pair in plain.items()}
        for goal in goals:
            goal.bet(plain[0, opponent], signals[0, opponent])
        judge(session, losses)
        judged.append(draw.item)
        assert session.question.race.stake[0] == pytest.approx(
            sum(goal.stake for goal in goals), rel=1e-4
        )


def test_draws_are_shared_by_what_tells_the_leader_from_its_rivals() -> None:
    candidates, losses = field()
    session = begun(candidates, ALPHA)
    for _ in range(20):
        judge(session, losses)
    focus = focus_of(session.question.totals, session.question.race.standing, SYSTEMS)
    contrasts, leader = session.question.partition.contrasts, focus.leader
    assert leader == session.question.leader
    assert focus.weight[leader] == 0.0
    assert focus.weight.sum() == pytest.approx(1.0)
    rivals = [one for one in range(SYSTEMS) if one != leader]
    rows = contrasts.pairs.row[leader, rivals]
    centre, _ = session.question.totals.moments(rows, np.zeros(len(rivals)))
    behind = np.where(np.array(rivals) < leader, 1.0, -1.0) * centre
    weight = 1.0 / np.maximum(behind, 0.01) ** 2
    assert focus.weight[rivals] == pytest.approx(weight / weight.sum())
    expected = np.zeros(session.question.partition.strata.count)
    for rival, row in zip(rivals, rows, strict=True):
        share = contrasts.left[row] / np.maximum(session.question.partition.proposal.left, 1.0)
        expected += focus.weight[rival] * share * contrasts.moment[row]
    assert session.question.partition.priorities(focus) == pytest.approx(expected, abs=2e-9)


def test_labels_learnt_at_once_say_what_they_say_one_by_one() -> None:
    candidates, losses = field()
    session = begun(candidates, ALPHA)
    strata, pairs = session.question.partition.strata, session.question.partition.contrasts.pairs
    one, all_ = (Contrasts(candidates, pairs, strata) for _ in range(2))
    items = np.random.default_rng(4).permutation(ITEMS)[:40]
    for item in items:
        one.take(np.array([item]))
        one.record(np.array([item]), losses[[item]])
    all_.take(items)
    all_.record(items, losses[items])
    totals, q = Totals.of(ITEMS, pairs.place.size), np.full(strata.count, 0.01)
    for first, second in zip(
        one.forecast(totals, 0, q)[1:], all_.forecast(totals, 0, q)[1:], strict=True
    ):
        assert np.asarray(first) == pytest.approx(np.asarray(second))


def test_draws_out_at_once_are_folded_in_the_cut_they_were_made_in() -> None:
    candidates, losses = field(8, 400)
    session = begun(candidates, 0.3)
    out: list[tuple[int, tuple[float, ...]]] = []
    cuts = [session.question.partition]
    while session.question.winner is None:
        while session.can_draw and len(out) < 7:
            draw = session.propose()
            session.apply(draw)
            out.append((draw.round, tuple(losses[draw.item].tolist())))
        session.observe(*out.pop(0))
        if session.question.partition is not cuts[-1]:
            cuts.append(session.question.partition)
    assert len(set(session.rounds.item)) == len(session.rounds.item)
    assert session.question.race.rounds == len(session.rounds.item) - len(out)
    assert len(cuts) > 2
    for earlier, later in pairwise(cuts):
        assert later.strata.size.sum() < earlier.strata.size.sum()
    best = int(losses.mean(axis=0).argmin())
    assert session.question.race.standing.tolist() == [best]


@pytest.mark.parametrize("systems", [2, 3, 50])
def test_pairs_are_numbered_without_gaps(systems: int) -> None:
    pairs = Pairs.among(np.arange(systems), systems)
    assert pairs.place.tolist() == list(range(systems * (systems - 1) // 2))
    some = Pairs.among(np.arange(0, systems, 2), systems)
    assert (pairs.first[some.place] == some.first).all()
    assert (pairs.second[some.place] == some.second).all()
    assert (np.diag(pairs.row) == -1).all()


@pytest.mark.parametrize("count", [0, 1, MOST + 1])
def test_the_best_is_sought_among_two_to_fifty(count: int) -> None:
    with pytest.raises(InvalidValue) as refused:
        Candidates(10, count)
    assert (refused.value.field, refused.value.value) == ("systems", count)


@pytest.mark.parametrize(
    "losses", [[0.0, 1.0], [0.0, 0.0, 0.0, 1.5], [0.0, 0.0, math.nan, 0.0], [1.0, 0.0, 0.0, 1.0]]
)
def test_losses_that_the_answers_cannot_have_change_nothing(losses: list[float]) -> None:
    answer = np.zeros((2, 4), dtype=np.int32)
    answer[:, 2:] = 1
    session = begun(Candidates(2, 4, answer), 0.05)
    session.apply(session.propose())
    before = session.question.race.stake
    with pytest.raises((InvalidValue, LossOutsideScale)) as refused:
        session.observe(1, tuple(losses))
    assert refused.value.field == "losses"
    assert (session.question.race.stake == before).all()
    session.observe(1, (0.0, 0.0, 1.0, 1.0))
    assert session.question.race.rounds == 1


def test_systems_that_answer_alike_need_no_session() -> None:
    alike = Candidates(3, 2, np.ones((3, 2), dtype=np.int32))
    plan = replace(plan_for(field(2, 3)[0], 0.05), known=0)
    with pytest.raises(NothingToJudge, match="equally good"):
        Best(plan, alike, SEED)


def test_systems_with_the_same_answers_are_never_told_apart() -> None:
    candidates, losses = field()
    assert candidates.answer is not None
    twins = [1, 3, 3, 0]
    same = Candidates(ITEMS, len(twins), candidates.answer[:, twins])
    session = begun(same, 0.2)
    rounds = 0
    while session.can_draw:
        first, second = session.propose(), None
        session.apply(first)
        if session.can_draw:
            second = session.propose()
            session.apply(second)
        for draw in (second, first):
            if draw is not None:
                session.observe(draw.round, tuple(losses[draw.item, twins].tolist()))
                rounds += 1
    assert session.question.race.standing.tolist() == [1, 2]
    assert session.question.winner is None
    assert session.question.race.rounds == rounds < ITEMS - session.question.known


@pytest.mark.parametrize(
    ("codes", "kind"),
    [
        ([[0, 255]], np.uint8),
        ([[0, 256]], np.uint16),
        ([[-1, 2]], np.int8),
        ([[-1, 200]], np.int16),
    ],
)
def test_codes_are_kept_in_as_few_bytes_as_hold_them(codes: list[list[int]], kind: type) -> None:
    told = np.array(codes, dtype=np.int32)
    kept = narrow(told)
    assert kept.dtype == kind
    assert kept.flags.f_contiguous
    assert (kept == told).all()
