"""Every formula of the sharper engine against a plain computation from the whole history."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from celeus.core.betting.bets import Goal, RowGoals, goals_for
from celeus.core.betting.pool_target import LatticeSequence
from celeus.core.ledger import Draw
from celeus.core.mills import inverse_mills
from celeus.core.plans.pair_plan import PairPlan
from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import Scores
from celeus.core.sampling.proposals import StratifiedProposal
from celeus.simulation.sessions import Truth
from tests.core.worlds import Walk, open_walk

SHARP = policy_named("sharp")
ALPHA, PRECISION, ITEMS, ROUNDS = 0.05, 0.2, 90, 60
NEAR = 1e-9


def graded() -> Truth:
    chance = np.random.default_rng(5)
    surrogate = chance.integers(0, 4, ITEMS) / 3.0
    loss = np.clip(surrogate + 0.4 * chance.standard_normal(ITEMS), 0.0, 1.0)
    proxy = chance.integers(0, 2, ITEMS).astype(np.float64)
    return Truth(loss, Scores(surrogate, np.zeros(ITEMS), proxy))


@pytest.fixture(scope="module")
def walk() -> Walk:
    found = open_walk(graded(), SHARP, Claim("pool", ALPHA, PRECISION))
    found.go(ROUNDS)
    return found


def narrowed(h: np.ndarray, share: np.ndarray) -> np.ndarray:
    """H cut so that D / 6 lies above and below; its mean where the levels would cross."""
    mean = np.full(h.size, share @ h)
    if share @ np.maximum(h - h.min(), 0.0) <= HALF / 6 or share @ (h.max() - h) <= HALF / 6:
        return mean
    ends = float(h.min()), float(h.max())
    lowest = brentq(lambda end: share @ np.maximum(end - h, 0.0) - HALF / 6, *ends, xtol=1e-14)
    highest = brentq(lambda end: share @ np.maximum(h - end, 0.0) - HALF / 6, *ends, xtol=1e-14)
    return np.clip(h, lowest, highest) if lowest < highest else mean


class Plain:
    """Steps 1 to 7 for round ``t``, from the draws and losses of rounds before it."""

    def __init__(self, walk: Walk) -> None:
        proposal = walk.state.question.proposal
        assert isinstance(proposal, StratifiedProposal)
        self.code = proposal._strata.code
        self.base = proposal._strata.base
        self.size = proposal._strata.size
        self.draws = [one.draw for one in walk.state.rounds]
        self.loss = [float(walk.truth.loss[draw.item]) for draw in self.draws]
        self.means: list[np.ndarray] = []
        self.signals: list[float] = []
        self.centres: list[float] = []
        self.predicted: list[float] = []
        self.spreads: list[float] = []

    def fit(self, t: int) -> tuple[np.ndarray, np.ndarray]:
        """M and v of every stratum before round t (counted from 0)."""
        k = [int(self.code[draw.item]) for draw in self.draws[:t]]
        loss = np.array(self.loss[:t])
        x = self.base[k]
        weight = np.array([1.0 / ((ITEMS - i) * draw.q) for i, draw in enumerate(self.draws[:t])])
        design = np.stack([np.ones(t), x], axis=1)
        normal = design.T @ (weight[:, None] * design) + 3.0 * np.eye(2)
        line = np.linalg.solve(normal, design.T @ (weight * loss) + np.array([0.75, 1.5]))
        g = np.clip(line[0] + line[1] * self.base, 0.005, 0.995)
        used = np.array([self.means[i][k[i]] for i in range(t)])
        h, v = np.empty(g.size), np.empty(g.size)
        r2 = float(((loss - used) ** 2).sum()) if t else 0.0
        inside = float((loss * (1.0 - loss)).sum())
        graded = inside / (3.0 + inside + r2)
        f = (r2 + 3.0 * (1.0 - graded)) / (sum(self.spreads) + 3.0)
        strata = [np.array(k) == one if t else np.zeros(0, dtype=bool) for one in range(g.size)]
        for one, here in enumerate(strata):
            h[one] = (16.0 * g[one] + loss[here].sum()) / (16.0 + here.sum())
        mc = np.clip(h, 0.04, 0.96)
        tempered = 0.5 + (mc - 0.5) * t / (t + 0.5)
        spread = tempered * (1.0 - tempered)
        for one, here in enumerate(strata):
            squares = ((loss[here] - used[here]) ** 2).sum()
            v[one] = (40.0 * f * spread[one] + squares) / (40.0 + here.sum())
        self.spreads.append(float(spread[self.code[self.draws[t].item]]))
        return narrowed(h, self.size / ITEMS), v

    def q(self, m: np.ndarray, v: np.ndarray, rem: np.ndarray, n: int) -> np.ndarray:
        """The proposal whose share of uniform draws gives the least padded variance."""
        root, here, best = np.sqrt(v), rem > 0, (math.inf, np.empty(0))
        for beta in (0.5, 0.65, 0.8):
            q = (1.0 - beta) * root / (rem @ root) + beta / n
            w = float((rem * np.maximum(v, 0.001) / (ITEMS**2 * q)).sum())
            ends = sum(float((end / (ITEMS * q))[here].max()) for end in (m, 1.0 - m))
            best = min(best, (w + HALF / 3.0 * ends, q), key=lambda found: found[0])
        return best[1]

    def left(self, t: int) -> np.ndarray:
        k = [int(self.code[draw.item]) for draw in self.draws[:t]]
        return self.size - np.bincount(k, minlength=self.size.size)

    def round(self, t: int) -> tuple[float, float, float, float, float, float]:
        """P, a, b, S, mu and s2 of round t."""
        m, v = self.fit(t)
        rem, n = self.left(t), ITEMS - t
        q = self.q(m, v, rem, n)
        draw = self.draws[t]
        assert draw.strata_q == pytest.approx(q, rel=NEAR)
        assert draw.q == draw.strata_q[self.code[draw.item]]
        plug_in = (sum(self.loss[:t]) + rem @ m) / ITEMS
        here = rem > 0
        a = plug_in + ((0.0 - m) / (ITEMS * q))[here].min()
        b = plug_in + ((1.0 - m) / (ITEMS * q))[here].max()
        w = float((rem * np.maximum(v, 0.001) / (ITEMS**2 * q)).sum())
        past = list(zip(self.signals, self.centres, self.predicted, strict=True))
        ratio = (30.0 + sum((s - mu) ** 2 / x for s, mu, x in past)) / (30.0 + t)
        weights = sum(1.0 / x for _, _, x in past)
        mu = sum(s / x for s, _, x in past) / weights if past else plug_in
        mu = min(max(mu, 0.0), 1.0)
        m_k = m[self.code[draw.item]]
        signal = plug_in + (self.loss[t] - m_k) / (ITEMS * draw.q)
        self.means.append(m)
        self.signals.append(signal)
        self.centres.append(mu)
        self.predicted.append(w)
        return plug_in, a, b, signal, mu, max(0.3, ratio) * w


STEPS = round(200 / PRECISION)
HALF = PRECISION / 2.0
GOAL = (norm.ppf(1.0 - ALPHA / 2.0) / (HALF - 0.5 / STEPS)) ** 2


class PlainSide:
    """Log stakes of one side's candidates; ``sign`` is 1 for +, -1 for -."""

    def __init__(self, sign: float) -> None:
        self.sign = sign
        self.v = np.arange(STEPS + 1) / STEPS
        self.stakes = np.full(self.v.size, math.log(ALPHA / 2.0))
        self.out = np.zeros(self.v.size, dtype=bool)
        self.spent = 0.0

    def play(self, end: float, mu: float, s2: float, signal: float) -> None:
        """Bet; ``end`` is a for +, b for -."""
        pad = s2 + HALF / 3.0 * max(self.sign * (mu - end), 0.0)
        p = 0.9 * np.minimum(1.0, np.exp(self.stakes))
        missing = max(1.1 * GOAL - self.spent, 0.05 * max(GOAL, self.spent))
        pace = norm.pdf(norm.ppf(p)) / p / (pad * math.sqrt(missing))
        fastest = (2.5 if self.spent <= 1.1 * GOAL else 1.3) * HALF / pad
        gap = self.sign * (self.v - end)
        self.out |= gap < 0.0
        with np.errstate(divide="ignore"):
            lam = np.minimum(np.minimum(pace, fastest), 0.8 / np.abs(gap))
        gain = lam * (signal - self.v) * self.sign
        self.stakes += np.log1p(np.where(self.out, 0.0, gain))
        self.spent += 1.0 / pad
        self.out |= self.stakes >= 0.0


def test_a_run_is_what_a_plain_computation_from_its_history_gives(walk: Walk) -> None:
    plain, plus, minus = Plain(walk), PlainSide(1.0), PlainSide(-1.0)
    lower, upper = 0.0, 1.0
    for t, point in enumerate(walk.state.question.points):
        plug_in, a, b, signal, mu, s2 = plain.round(t)
        assert point.plus.plug_in == pytest.approx(plug_in, rel=NEAR)
        assert point.plus.signal_range.lower == pytest.approx(a, rel=NEAR)
        assert point.plus.signal_range.upper == pytest.approx(b, rel=NEAR)
        assert point.plus.signal == pytest.approx(signal, rel=NEAR)
        plus.play(a, mu, s2, signal)
        minus.play(b, mu, s2, signal)
        i = int(np.flatnonzero(~plus.out)[0])
        j = int(np.flatnonzero(~minus.out)[-1])
        seen = sum(plain.loss[: t + 1])
        lower = max(lower, plus.v[max(i - 1, 0)], seen / ITEMS)
        upper = min(upper, plus.v[min(j + 1, STEPS)], (seen + ITEMS - t - 1) / ITEMS)
        assert point.interval.lower == pytest.approx(lower, abs=NEAR)
        assert point.interval.upper == pytest.approx(upper, abs=NEAR)
        past = zip(plain.signals, plain.predicted, strict=True)
        mean = sum(s / x for s, x in past) / sum(1.0 / x for x in plain.predicted)
        assert point.estimate == pytest.approx(min(max(mean, lower), upper), abs=NEAR)
    assert upper - lower < 0.5


def test_stakes_are_those_of_a_plain_computation(walk: Walk) -> None:
    confidence_sequence = walk.state.question.fold.confidence_sequence
    assert isinstance(confidence_sequence, LatticeSequence)
    for lattice_side in confidence_sequence._lattice.sides:
        assert (lattice_side._stake < 0.0).all()
        assert np.array_equal(lattice_side._value, lattice_side._standing / lattice_side._steps)


def test_the_hazard_table_is_the_hazard() -> None:
    log_stake = -np.random.default_rng(1).exponential(3.0, 500)
    p = 0.9 * np.exp(log_stake)
    assert inverse_mills(log_stake) == pytest.approx(norm.pdf(norm.ppf(p)) / p, rel=1e-3)
    assert inverse_mills(np.array([0.0, 3.0])) == pytest.approx([norm.pdf(norm.ppf(0.9)) / 0.9] * 2)
    assert inverse_mills(np.array([-1e4])) == pytest.approx(inverse_mills(np.array([-700.0])))


@pytest.mark.parametrize("accrued", [0.0, 50.0, 108.9, 1.1 * 100.0, 110.1, 300.0, 2300.0])
def test_the_scale_of_a_bet_is_the_printed_one_before_and_past_its_goal(accrued: float) -> None:
    half, variance, goals = 0.05, 0.3, np.array([50.0, 100.0, 104.8, 400.0])
    rows = RowGoals.of(goals).bet_scale(accrued, half, variance)
    for row, goal in enumerate(goals):
        missing = max(1.1 * goal - accrued, 0.05 * max(goal, accrued))
        factor, unit = 1.0 / (variance * math.sqrt(missing)), half / variance
        before = accrued <= 1.1 * goal
        scale = Goal(half, goal).bet_scale(variance, accrued)
        assert scale == pytest.approx((factor, (2.5 if before else 1.3) * unit))
        one = rows.take(np.array([row]))
        largest = (2.5 if before else 1.3 * math.sqrt(1.1 * goal / accrued)) * unit
        assert (float(one.factor[0]), float(one.largest[0])) == pytest.approx((factor, largest))


def test_without_a_precision_there_are_six_goals_by_halves() -> None:
    found = goals_for(None, 1.0 / 2000.0, 0.05)
    assert [one.half for one in found] == [0.1, 0.05, 0.025, 0.0125, 0.00625, 0.003125]
    for one in found:
        z = norm.ppf(0.975)
        assert one.information == pytest.approx((z / (one.half - 0.00025)) ** 2)


@pytest.mark.parametrize("items", [300, 9970, 2_000_000])
def test_the_plan_of_pairs_is_the_printed_one(items: int) -> None:
    level, precision = 0.0475, 0.05
    plan = PairPlan(items, level, 1600)
    half, step = precision / 2.0, 1.0 / 1600.0
    z = norm.ppf(1.0 - level / 2.0)
    h0, log_level = norm.pdf(z) / (level / 2.0), math.log(2.0 / level)
    risks = np.array([0.0, 0.01, 0.26, 0.5, 0.9])
    for r, sigma in zip(risks, plan.sigma(risks, half), strict=True):
        tau2 = r * (1.0 - r) / items

        def kappa(s: float, tau2: float = tau2) -> float:
            return float(h0 / math.sqrt(s * s + h0 * h0 * tau2 / (2.0 * log_level)))

        def reach(s: float, tau2: float = tau2) -> float:
            k = kappa(s)
            grid = np.linspace(-12.0, 4.0, 400_001)
            mills = np.exp(norm.logpdf(grid) - norm.logsf(grid))
            z1 = float(np.interp(k * s, mills, grid))
            spent = norm.logsf(z1) + log_level + k * k * tau2 / 2.0
            return float(s * z1 + spent / k)

        if sigma > 0.1 * half * 1.001:
            assert reach(sigma) == pytest.approx(half - step / 2.0, rel=1e-5)
        else:
            assert reach(0.1 * half) > half - step / 2.0
        one = np.array([r])
        found = plan.kappa(np.array([sigma]), one)
        assert found[0] == pytest.approx(kappa(sigma))
        moment = items * math.log(1.0 - r + r * math.exp(found[0] / items))
        assert plan.start(found, one)[0] == pytest.approx(math.log(level / 2.0) - moment, rel=1e-6)


def test_a_draw_without_the_probabilities_of_its_strata_is_refused() -> None:
    walk = open_walk(graded(), SHARP, Claim("pool", ALPHA, PRECISION))
    with pytest.raises(ValueError, match="without the probabilities of its strata"):
        walk.enter(Draw(1, 0, 1.0 / ITEMS, 0))
