"""Run a session on a pool whose losses are known: labels to precision, misses, time per round."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celeus.core.interval import Interval
from celeus.core.plans.plan import Claim, PoolFacts, make_plan
from celeus.core.plans.policies import Policy
from celeus.core.plans.stopping import Answer, Comparison
from celeus.core.pools.comparison import difference_scale, surrogate_columns
from celeus.core.pools.loss_bounds import KnownLosses
from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import CHAIN_START, Pool
from celeus.core.pools.surrogates import Scores, scores
from celeus.core.pools.systems import SAME_ANSWER
from celeus.core.pools.weights import Weights
from celeus.core.randomness import commitment, uniforms
from celeus.core.sampling.predictors import CalibratedPredictor
from celeus.core.session.mean import Mean
from celeus.core.session.session import Session, begin_mean, judge_rounds

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Truth:
    """A pool with its true losses (shape [N]) and the scores known beforehand.

    ``difference`` says that a loss is that of one system less that of another; known losses are so
    for one ``reason``.
    """

    loss: Floats
    scores: Scores
    lower: float = 0.0
    upper: float = 1.0
    difference: bool = False
    reason: str = "known"

    def loss_of(self, item: int) -> float:
        """The true loss of an item."""
        return float(self.loss[item])

    @property
    def risk(self) -> float:
        """The mean loss of the pool, by weight where items have any."""
        weight = self.scores.item_weight
        return float(self.loss.mean() if weight is None else np.average(self.loss, weights=weight))

    @property
    def facts(self) -> PoolFacts:
        """The facts that a plan states about this pool."""
        known, scale = None, Interval(self.lower, self.upper)
        whole = scale == Interval(0.0, 1.0) and bool(np.isin(self.loss, (0.0, 1.0)).all())
        if self.scores.bounds is not None:
            count = int(self.scores.bounds.known.sum())
            reasons = {self.reason: count} if count else {}
            known = KnownLosses.of(
                self.scores.bounds, scale, reasons, item_weight=self.scores.item_weight
            )
        weight = self.scores.item_weight
        return PoolFacts(
            "simulated",
            self.loss.size,
            self.lower,
            self.upper,
            whole_losses=whole,
            known=known,
            difference=self.difference,
            weights=None if weight is None else Weights.of(weight),
        )


@dataclass(frozen=True, slots=True)
class Run:
    """One simulated session.

    ``labels`` counts judgements up to the stop; ``missed`` says that the interval lost the true
    risk at some round; ``seconds`` are the processor's for all proposals and folds; ``answers`` are
    those to the questions of the claim, in their order, ``verdict`` the one on a difference.
    """

    labels: int
    stopped: str
    missed: bool
    lower: float
    upper: float
    estimate: float
    seconds: float
    answers: tuple[Answer, ...] = ()
    verdict: Comparison | None = None


def with_spread(surrogate: Floats) -> Scores:
    """Scores of a surrogate s of losses in [0, 1] with the weight sqrt(s (1 - s))."""
    return Scores(surrogate, np.sqrt(surrogate * (1.0 - surrogate)), None)


def difference(  # noqa: PLR0913 -- what is known of two systems
    losses: tuple[Floats, Floats],
    scale: LossScale,
    same: NDArray[np.bool_] | None,
    surrogates: tuple[Floats, Floats] | None,
    more: Mapping[str, NDArray[Any]] = MappingProxyType({}),
    *,
    exclusive: bool,
) -> Truth:
    """Losses of A less those of B; where both answered the ``same`` they are known.

    ``surrogates`` are those of both losses; ``exclusive`` says that of two different answers at
    most one is right. None stands for what is not known. ``more`` are further columns of the pool.
    """
    differences = difference_scale(scale)
    columns: dict[str, NDArray[Any]] = dict(more)
    if same is not None:
        columns["loss_lower"] = np.where(same, 0.0, differences.lower)
        columns["loss_upper"] = np.where(same, 0.0, differences.upper)
    if surrogates is not None:
        limits = Interval(scale.lower, scale.upper)
        columns |= surrogate_columns(*surrogates, limits, exclusive=exclusive)
    a, b = losses
    pool = Pool(a.size, differences, columns, groups=(), items_digest=CHAIN_START)
    ends = differences.lower, differences.upper
    return Truth(a - b, scores(pool), *ends, difference=True, reason=SAME_ANSWER)


def oracle_scores(truth: Truth) -> Scores:
    """Scores |l - s| from the true losses: the best any proposal could do (CELEUS, Thm. 4)."""
    scores = truth.scores
    weight = np.abs(truth.loss - scores.surrogate)
    return Scores(
        scores.surrogate, weight, proxy=truth.loss, lower=scores.lower, upper=scores.upper
    )


def seed_of(study: int | str, run: int) -> bytes:
    """A 32-byte seed for run ``run`` of a study with that seed, or of a part with that name."""
    return uniforms(f"study {study}".encode(), f"run {run}", 4).tobytes()


def ever_missed(state: Session[Mean], risk: float) -> bool:
    """The interval lay beside ``risk`` after at least one folded round.

    The last interval does not tell: one that lost the risk is pushed back by the logical limits.
    """
    slack = 1e-9 * state.question.plan.scale.width
    lowest = min((point.interval.upper for point in state.question.points), default=risk)
    highest = max((point.interval.lower for point in state.question.points), default=risk)
    return not highest - slack <= risk <= lowest + slack


def opened(truth: Truth, policy: Policy, claim: Claim, seed: bytes) -> Session[Mean]:
    """A session on ``truth`` before its first draw; ``oracle`` is given the true losses."""
    scores = oracle_scores(truth) if policy.name == "oracle" else truth.scores
    plan = make_plan(claim, truth.facts, policy, commitment(seed))
    return begin_mean(plan, scores, seed)


def simulate(  # noqa: PLR0913 -- a session, and how it is judged
    truth: Truth,
    policy: Policy,
    claim: Claim,
    seed: bytes,
    risk: float | None = None,
    *,
    ahead: int = 1,
) -> tuple[Run, Session[Mean]]:
    """Judge items of ``truth`` until the claim is met, the budget spent or the pool exhausted.

    ``risk`` is the value the interval must hold (default: the pool risk); ``ahead`` draws are out
    at once.
    """
    state = opened(truth, policy, claim, seed)
    true_risk = truth.risk if risk is None else risk
    began = time.process_time()
    for _ in judge_rounds(state, truth.loss_of, ahead=ahead):
        pass
    seconds = time.process_time() - began
    interval = state.question.interval
    run = Run(
        labels=state.folded,
        stopped=str(state.stop_reason),
        missed=ever_missed(state, true_risk),
        lower=interval.lower,
        upper=interval.upper,
        estimate=state.question.estimate,
        seconds=seconds,
        answers=tuple(decision.answer for decision in state.question.decisions),
        verdict=None if state.question.verdict is None else state.question.verdict.answer,
    )
    return run, state


def strata_means(state: Session[Mean]) -> Floats:
    """The calibrated mean losses of the strata now, on the unit scale; shape [K]."""
    predictor = state.question.fold.predictor
    if not isinstance(predictor, CalibratedPredictor):
        raise TypeError(predictor)
    return predictor.fit.mean.copy()
