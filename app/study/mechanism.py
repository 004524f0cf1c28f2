"""Why it works: the bias that weighting removes, and the variance that a proposal saves.

Notation: N items, J those not drawn (n of them), q their probabilities, r_j = l_j - s_j, R the
pool risk, t draws made.

    signal        S = P + r_i / (N q_i)                        mean R (CELEUS, Eq. 1 and Thm. 3)
    its variance  sum r_j^2 / (N^2 q_j) - (sum r_j / N)^2      over J; given the draws so far
    its least     (sum |r_j|)^2 / N^2 - (sum r_j / N)^2        q in proportion to |r|; Thm. 4
    naive         l_i: the loss as it comes, as if draws were uniform
    unweighted    P + n r_i / N: the residual as if draws were uniform

and, over the t draws: ``lure`` (Eq. 4, ``core.estimators``), ``signals`` (mean of S), ``residuals``
(mean of all s plus mean of r, u_m = 1 in Eq. 4) and ``losses`` (mean of l). Variances and the mean
squared errors of the next draw are exact given the draws so far; means are over many sessions.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.core.estimators import Lure
from app.core.guesses import CalibratedGuesses
from app.core.ledger import Draw
from app.core.plan import Claim, make_plan
from app.core.policies import POLICIES, policy_named
from app.core.proposals import Mixture, draw_orders
from app.core.randomness import commitment, uniforms
from app.core.session import State, apply, begin, observe, propose
from app.core.signals import signal
from app.core.strata import strata_of
from app.core.surrogates import Scores
from app.study.courses import ALPHA, PRECISION, seed_for
from app.study.realpools import truth_of
from app.study.runner import Series
from app.study.sensitivity import POOLS
from app.study.simulation import Truth, oracle_scores

Floats = NDArray[np.float64]

STUDY = "mechanism"
AFTER = (50, 100, 200, 400, 800)
DESIGNS = ("plain", "uniform", "guided", "oracle", "sharp")
"""Who is drawn: uniformly without and with the surrogate, by the policy ``celeus``, by |l - s|
(``oracle``, beta as ``celeus``), by ``sharp``."""
NAMES = ("lure", "signals", "residuals", "losses")
SHARP_SHARE = 4
"""One session of ``sharp`` for so many of the others: it is slow and only its variance counts."""


@dataclass(frozen=True, slots=True)
class Job:
    """One session; it makes the draws of a design and never stops early."""

    pool: str
    design: str
    run: int


@dataclass(frozen=True, slots=True)
class After:
    """What holds after ``draws`` draws: errors of the four estimates, then of the next draw."""

    draws: int
    errors: tuple[float, ...]
    variance: float
    least: float
    naive: float
    unweighted: float


@dataclass(frozen=True, slots=True)
class Result:
    """What a session came to: the fields of ``After``, one tuple a checkpoint."""

    job: Job
    risk: float
    after: tuple[tuple[float, ...], ...]

    def at(self, number: int) -> After:
        """The checkpoint of that number."""
        draws, *rest = self.after[number]
        errors, (variance, least, naive, unweighted) = rest[: len(NAMES)], rest[len(NAMES) :]
        return After(int(draws), tuple(errors), variance, least, naive, unweighted)


def jobs(runs: int, pools: tuple[str, ...] = tuple(POOLS)) -> list[Job]:
    """Every session of the study, the first run of everything first."""
    return [
        Job(pool, design, run)
        for run in range(runs)
        for pool in pools
        for design in DESIGNS
        if design != "sharp" or run % SHARP_SHARE == 0
    ]


def series(folder: Path, after: tuple[int, ...] = AFTER) -> Series[Job, Result]:
    """The sessions on the pools in ``folder``."""
    return Series(STUDY, Job, Result, partial(run, folder, after), parameters={"after": after})


def run(folder: Path, after: tuple[int, ...], job: Job) -> Result:
    """Run one job."""
    truth = truth_of(folder, POOLS[job.pool])
    seed = seed_for(f"{STUDY}/{job.pool}/{job.design}", job.run)
    walk = sharpened if job.design == "sharp" else partial(mixed, job.design)
    found = walk(truth, seed, after)
    return Result(job, float(truth.loss.mean()), tuple(_plain(one) for one in found))


def _plain(found: After) -> tuple[float, ...]:
    numbers = (*found.errors, found.variance, found.least, found.naive, found.unweighted)
    return (found.draws, *numbers)


def scores_of(design: str, truth: Truth) -> Scores:
    """Surrogate and score of every item under a design of mixed draws."""
    known = truth.scores
    if design == "plain":
        lowest = np.full(truth.loss.size, truth.lower)
        return Scores(lowest, np.zeros(truth.loss.size), None)
    if design == "uniform":
        return Scores(known.surrogate, np.zeros(truth.loss.size), None)
    return oracle_scores(truth) if design == "oracle" else known


def mixed(design: str, truth: Truth, seed: bytes, after: tuple[int, ...]) -> list[After]:
    """Draws by scores mixed with uniform ones; the errors at every checkpoint."""
    known = scores_of(design, truth)
    loss, surrogate, items = truth.loss, known.surrogate, truth.loss.size
    proposal = Mixture(known.weight, draw_orders(known.weight, seed), POLICIES["celeus"].beta)
    coins = uniforms(seed, "coin", after[-1])
    risk, mean = float(loss.mean()), float(surrogate.mean())
    lure, left, sums = Lure(items, mean), float(surrogate.sum()), np.zeros(3)
    seen, found = 0.0, []
    for round_ in range(1, after[-1] + 1):
        item, q = proposal.draw(float(coins[round_ - 1]))
        residual = float(loss[item] - surrogate[item])
        lure.record(residual, q)
        sums += signal((seen + left) / items, residual, items, q), mean + residual, loss[item]
        seen += float(loss[item])
        left -= float(surrogate[item])
        proposal.take(item, round_)
        if round_ in after:
            errors = (lure.value - risk, *(float(one) for one in sums / round_ - risk))
            coming = next_draw(proposal.probabilities(), loss, surrogate, (seen + left) / items)
            found.append(After(round_, errors, *coming))
    return found


def next_draw(
    q: Floats, loss: Floats, surrogate: Floats, plug_in: float
) -> tuple[float, float, float, float]:
    """Of the coming draw: variance of the signal, and the least that any q gives.

    Then the mean squared errors of the naive and of the unweighted signal. ``q`` (shape [N]) is 0
    for items drawn.
    """
    items, risk, here = loss.size, float(loss.mean()), q > 0.0
    chance, residual = q[here], (loss - surrogate)[here]
    centre = (float(residual.sum()) / items) ** 2
    variance = float((residual**2 / chance).sum()) / items**2 - centre
    least = (float(np.abs(residual).sum()) / items) ** 2 - centre
    naive = float(chance @ (loss[here] - risk) ** 2)
    as_if = plug_in + chance.size * residual / items
    return variance, max(least, 0.0), naive, float(chance @ (as_if - risk) ** 2)


def sharpened(truth: Truth, seed: bytes, after: tuple[int, ...]) -> list[After]:
    """Draws by ``sharp``, whose surrogates change with the labels; ``lure`` is its own estimate."""
    claim = Claim("pool", ALPHA, PRECISION)
    plan = make_plan(claim, truth.facts, policy_named("sharp"), commitment(seed))
    state = begin(plan, truth.scores, seed)
    strata = strata_of(truth.scores, plan.scale)
    code, share = strata.code, strata.size / plan.items
    risk, sums, found = float(truth.loss.mean()), np.zeros(3), []
    for round_ in range(1, after[-1] + 1):
        draw = propose(plan, state)
        loss, mean = float(truth.loss[draw.item]), float(share @ _surrogates(state))
        state = observe(plan, apply(plan, state, draw), round_, loss)
        seen = state.points[-1].plus
        sums += seen.signal, mean + loss - seen.guess, loss
        if round_ in after:
            errors = (state.estimate - risk, *(float(one) for one in sums / round_ - risk))
            left = state.proposal.drawn_in == 0
            q = np.where(left, _strata_q(propose(plan, state))[code], 0.0)
            surrogate = _surrogates(state)[code]
            plug_in = float(np.where(left, surrogate, truth.loss).mean())
            found.append(After(round_, errors, *next_draw(q, truth.loss, surrogate, plug_in)))
    return found


def _surrogates(state: State) -> Floats:
    """What the fold takes for the items of every stratum now, shape [K]."""
    guesses = state.fold.guesses
    if not isinstance(guesses, CalibratedGuesses):
        raise TypeError(guesses)
    return state.scale.lower + state.scale.width * guesses.means


def _strata_q(draw: Draw) -> Floats:
    if draw.strata_q is None:
        raise TypeError(draw)
    return draw.strata_q
