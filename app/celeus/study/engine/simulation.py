"""Run a session on a pool whose losses are known: labels to precision, misses, time per round."""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core.plan import Claim, PoolFacts, make_plan
from app.core.policies import Policy
from app.core.randomness import commitment, uniforms
from app.core.session import State, apply, begin, can_draw, observe, propose
from app.core.stopping import Answer
from app.core.surrogates import Scores

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Truth:
    """A pool with its true losses (shape [N]) and the scores known beforehand."""

    loss: Floats
    scores: Scores
    lower: float = 0.0
    upper: float = 1.0

    @property
    def facts(self) -> PoolFacts:
        """What a plan states about this pool."""
        whole = bool(np.isin(self.loss, (0.0, 1.0)).all())
        return PoolFacts("simulated", self.loss.size, self.lower, self.upper, whole_losses=whole)


@dataclass(frozen=True, slots=True)
class Run:
    """One simulated session.

    ``labels`` counts judgements up to the stop; ``missed`` says that the interval lost the true
    risk at some round; ``seconds`` are the processor's for all proposals and folds; ``answers`` are
    those to the questions of the claim, in their order.
    """

    labels: int
    stopped: str
    missed: bool
    lower: float
    upper: float
    estimate: float
    seconds: float
    answers: tuple[Answer, ...] = ()


def oracle_scores(truth: Truth) -> Scores:
    """Scores |l - s| from the true losses: the best any proposal could do (CELEUS, Thm. 4)."""
    surrogate = truth.scores.surrogate
    return Scores(surrogate=surrogate, weight=np.abs(truth.loss - surrogate), proxy=truth.loss)


def seed_of(number: int, run: int) -> bytes:
    """A 32-byte seed for run ``run`` of a study seeded with ``number``."""
    return uniforms(f"study {number}".encode(), f"run {run}", 4).tobytes()


def ever_missed(state: State, risk: float) -> bool:
    """The interval lay beside ``risk`` after at least one folded round.

    The last interval does not tell: one that lost the risk is pushed back by the logical limits.
    """
    slack = 1e-9 * state.scale.width
    lowest = min((point.interval.upper for point in state.points), default=risk)
    highest = max((point.interval.lower for point in state.points), default=risk)
    return not highest - slack <= risk <= lowest + slack


def simulate(
    truth: Truth, policy: Policy, claim: Claim, seed: bytes, risk: float | None = None
) -> tuple[Run, State]:
    """Judge items of ``truth`` until the claim is met, the budget spent or the pool exhausted.

    ``risk`` is the value the interval must hold (default: the pool risk).
    """
    known = oracle_scores(truth) if policy.name == "oracle" else truth.scores
    plan = make_plan(claim, truth.facts, policy, commitment(seed))
    state = begin(plan, known, seed)
    true_risk = float(truth.loss.mean()) if risk is None else risk
    began = time.process_time()
    while state.stop_reason is None and can_draw(plan, state):
        draw = propose(plan, state)
        state = apply(plan, state, draw)
        state = observe(plan, state, draw.round, float(truth.loss[draw.item]))
    seconds = time.process_time() - began
    interval = state.interval
    run = Run(
        labels=state.folded,
        stopped=str(state.stop_reason),
        missed=ever_missed(state, true_risk),
        lower=interval.lower,
        upper=interval.upper,
        estimate=state.estimate,
        seconds=seconds,
        answers=tuple(one.answer for one in state.decisions),
    )
    return run, state
