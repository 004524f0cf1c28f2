"""How often an interval does not hold the true risk: the paper's coverage table, counted anew.

Every trial draws a pool from ``synthetic`` and lets each method evaluate it until its interval is
at most ``precision`` wide. Counted is how often that last interval does not hold the risk, and
how often any interval up to then did not: who looks after every label may stop at any of them.

    series = series(Setting(), seed=0)
    results = measure(series, jobs(trials=1000), Path("coverage.jsonl"))

A job is one method on one pool; the pool of a trial is the same for all methods.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from app.core.plan import Claim, PoolFacts, make_plan
from app.core.policies import Policy, policy_named
from app.core.randomness import uniforms
from app.study import cereval, peeked
from app.study.crowd import Asked, Crowd, Seen, session
from app.study.peeked import Looks
from app.study.runner import Series
from app.study.simulation import Truth, seed_of
from app.study.synthetic import World

Target = Literal["pool", "population"]

WILSON, PPI, CER_EVAL = "wilson", "ppi", "cer_eval"
RAW = "evalue_raw"
"""``evalue`` in its authors' form: on the losses as they come, not recentred."""
PEEKED = (WILSON, PPI)
PUBLISHED = ("evalue", RAW, "no_surrogate", "celeus", "oracle")
OURS = ("uniform", "sharp")
METHODS = (*PEEKED, CER_EVAL, *PUBLISHED, *OURS)
CLAIMING = tuple(name for name in (*PUBLISHED, *OURS) if name != RAW)
"""The policies a service may be asked for, and ``oracle``: their claim is what is tested."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What all trials share."""

    world: World = field(default_factory=World)
    precision: float = 0.05
    alpha: float = 0.05
    crowd: Crowd = field(default_factory=Crowd)

    def claim(self, target: Target) -> Claim:
        """What a session is asked to certify."""
        return Claim(target, self.alpha, self.precision)

    def parameters(self) -> dict[str, object]:
        """Plain values, for the head of what is kept."""
        return asdict(self)


QUICK = Setting(
    World(items=600, groups=2, noise=0.02, dimensions=4, least_risk=0.01, largest_risk=0.6),
    precision=0.2,
    crowd=Crowd(judges=48, beyond=3.0),
)
"""Small and hostile: scores that bias the draws, many judges at once, labels beyond the stop."""


RARE = Setting(World(least_risk=0.025, largest_risk=0.039), precision=0.064, alpha=0.01)
"""Losses so rare that the first 100 labels may show none: a sample variance of 0."""

COMPARED_SHARE = 10
"""``RAW`` makes no claim of ours and costs the most: it runs in a tenth of the trials."""

RARE_METHODS = (*PEEKED, CER_EVAL, "celeus", "sharp")


@dataclass(frozen=True, slots=True)
class Job:
    """One method on the pool of one trial."""

    trial: int
    method: str
    target: Target = "population"


@dataclass(frozen=True, slots=True)
class Result:
    """What it came to; ``seconds`` are the processor's, so that a busy machine counts little."""

    job: Job
    labels: int
    stopped: str
    lower: float
    upper: float
    missed: bool
    ever: bool
    seconds: float


def jobs(
    trials: int,
    methods: Sequence[str] = METHODS,
    targets: Sequence[Target] = ("population",),
    compared: int | None = None,
) -> list[Job]:
    """All methods on the first pool, then on the second, and so on; ``RAW`` on ``compared``."""
    raw = trials if compared is None else compared
    return [
        Job(trial, method, target)
        for trial in range(trials)
        for method in methods
        for target in targets
        if target == "population" or method in CLAIMING
        if trial < raw or method != RAW
    ]


def series(setting: Setting, seed: int, name: str = "coverage") -> Series[Job, Result]:
    """The trials of a setting."""
    return Series(name, Job, Result, partial(run, setting, seed), seed, setting.parameters())


def check(setting: Setting, methods: Sequence[str], targets: Sequence[Target]) -> None:
    """Refuse a claim that a policy would refuse."""
    facts = PoolFacts("simulated", setting.world.items, 0.0, 1.0, whole_losses=True)
    for method, target in product(methods, targets):
        if method in (*PUBLISHED, *OURS):
            make_plan(setting.claim(target), facts, policy_of(method), "")


def policy_of(method: str) -> Policy:
    """The policy a method is."""
    return policy_named("evalue", recentred=False) if method == RAW else policy_named(method)


def run(setting: Setting, seed: int, job: Job) -> Result:
    """Run one job."""
    own = seed_of(seed, job.trial)
    truth = _pool(setting.world, own)
    risk = setting.world.risk if job.target == "population" else float(truth.loss.mean())
    began = time.process_time()
    if job.method in (*PEEKED, CER_EVAL):
        seen = _looked(setting, job.method, truth, own)
    else:
        asked = Asked(policy_of(job.method), setting.claim(job.target), setting.crowd)
        seen = session(asked, truth, risk, own)
    return Result(job, **asdict(seen), seconds=time.process_time() - began)


def _looked(setting: Setting, method: str, truth: Truth, seed: bytes) -> Seen:
    """A method without a policy: all its intervals, up to the first one that is narrow enough."""
    risk, alpha = setting.world.risk, setting.alpha
    if method == CER_EVAL:
        asked = cereval.Setting(truth.loss.size, setting.precision, alpha)
        looks = cereval.run(truth.loss, setting.world.embeddings(seed), asked, seed)
    else:
        order = np.argsort(uniforms(seed, "peeked order", truth.loss.size), kind="stable")
        looks = _peeked(method, truth, order, alpha).until(setting.precision)
    lower, upper = float(looks.lower[-1]), float(looks.upper[-1])
    missed = looks.missed(risk)
    reached = upper - lower <= setting.precision
    return Seen(
        labels=int(looks.labels[-1]),
        stopped="target_reached" if reached else "exhausted",
        lower=lower,
        upper=upper,
        missed=bool(missed[-1]),
        ever=bool(missed.any()),
    )


def _peeked(method: str, truth: Truth, order: NDArray[np.intp], alpha: float) -> Looks:
    if method == WILSON:
        return peeked.wilson(truth.loss[order], alpha)
    return peeked.ppi(truth.loss[order], truth.scores.surrogate[order], alpha)


@lru_cache(maxsize=2)
def _pool(world: World, seed: bytes) -> Truth:
    """The methods of a trial follow each other: its pool is drawn once in a process."""
    return world.pool(seed)
