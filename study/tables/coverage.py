"""Count intervals that miss the true risk: the paper's coverage table again.

Every trial draws a pool from ``synthetic`` and lets each method evaluate it until its interval is
at most ``precision`` wide. Counted is how often that last interval does not hold the risk, and
how often any interval up to then did not: who looks after every label may stop at any of them.

A job is one method on one pool; the pool of a trial is the same for all methods.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np

from celeus.core.plans.plan import Claim, PoolFacts, Target, make_plan
from celeus.core.plans.policies import Policy, policy_named
from celeus.core.randomness import uniforms
from celeus.simulation.sessions import Truth, seed_of
from study.baselines import cer_eval, fixed_sample
from study.baselines.fixed_sample import Looks
from study.engine.checks import choices, within
from study.engine.judges import Crowd, SessionOutcome, SessionSetup, session
from study.engine.rows import Values, grid
from study.engine.runner import Series
from study.pools.synthetic import World, checked

TARGETS: tuple[Target, ...] = ("pool", "population")
WILSON, PPI, CER_EVAL = "wilson", "ppi", "cer_eval"
RAW = "evalue_raw"
"""``evalue`` in its authors' form: on the losses as they come, not recentred."""
PEEKED = (WILSON, PPI)
PUBLISHED = ("evalue", RAW, "no_surrogate", "celeus", "oracle")
OURS = ("uniform", "sharp")
METHODS = (*PEEKED, CER_EVAL, *PUBLISHED, *OURS)
CLAIMING = tuple(name for name in (*PUBLISHED, *OURS) if name != RAW)
"""The policies of the service, and ``oracle``: their claim is tested."""
SCORED_ON_POOL = (CER_EVAL, *CLAIMING)
"""Methods with an interval for the pool as well as for the population."""
MOST_JUDGES = 10_000
FIELDS = ("labels", "stopped", "lower", "upper", "missed", "ever", "seconds")
"""Of a result; ``seconds`` are the processor's, so that a busy machine counts little."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The settings that all trials share."""

    world: World = field(default_factory=World)
    precision: float = 0.05
    alpha: float = 0.05
    crowd: Crowd = field(default_factory=Crowd)

    def claim(self, target: Target) -> Claim:
        """The claim of a session."""
        return Claim(target, self.alpha, self.precision)


QUICK = Setting(
    World(items=600, groups=2, noise=0.02, dimensions=4, least_risk=0.01, largest_risk=0.6),
    precision=0.2,
    crowd=Crowd(judges=48, beyond=3.0),
)
"""Small and hostile: scores that bias the draws, many judges at once, labels beyond the stop."""

RARE = Setting(World(least_risk=0.025, largest_risk=0.039), precision=0.064, alpha=0.01)
"""Losses so rare that the first 100 labels may show none: a sample variance of 0."""

TRIALS, QUICK_TRIALS = 1000, 50
COMPARED_SHARE = 10
"""``RAW`` makes no claim of ours and costs the most: it runs in a tenth of the trials."""

RARE_METHODS = (*PEEKED, CER_EVAL, "celeus", "sharp")


@dataclass(frozen=True, slots=True)
class Options:
    """The options as given; None stands for the default of the setting, quick or full."""

    world: Mapping[str, Any] = field(default_factory=dict)
    precision: float | None = None
    alpha: float | None = None
    judges: int | None = None
    trials: int | None = None
    seed: int = 0
    methods: Sequence[str] | None = None
    targets: Sequence[str] | None = None
    quick: bool = False
    rare: bool = False

    @property
    def setting(self) -> Setting:
        """The setting of the options; refuses an impossible one."""
        setting = QUICK if self.quick else RARE if self.rare else Setting()
        values = {name: value for name, value in self.world.items() if value is not None}
        setting = replace(setting, world=checked(replace(setting.world, **values)))
        if self.precision is not None:
            setting = replace(setting, precision=within("precision", self.precision, 0.0, 1.0))
        if self.alpha is not None:
            setting = replace(setting, alpha=within("alpha", self.alpha, 0.0, 1.0))
        if self.judges is not None:
            judges = int(within("judges", self.judges, 0, MOST_JUDGES + 1))
            setting = replace(setting, crowd=replace(setting.crowd, judges=judges))
        return setting

    @property
    def series(self) -> Series:
        """The trials of the setting."""
        name, setting = "coverage-rare" if self.rare else "coverage", self.setting
        run_one = partial(run, setting, self.seed)
        return Series(name, run_one, FIELDS, self.seed, asdict(setting))

    @property
    def jobs(self) -> list[Values]:
        """The jobs of the options; refuses a claim that a policy would refuse."""
        defaults = RARE_METHODS if self.rare else METHODS
        methods = choices(self.methods, METHODS, "method") if self.methods else list(defaults)
        default = TARGETS if self.quick else ("population",)
        names = choices(self.targets, TARGETS, "target") if self.targets else default
        targets = [one for one in TARGETS if one in names]
        check(self.setting, methods, targets)
        # Who names the methods, or wants the small test, gets them all in every trial.
        whole = self.quick or self.methods
        compared = self.count if whole else -(-self.count // COMPARED_SHARE)
        return jobs(self.count, methods, targets, compared)

    @property
    def count(self) -> int:
        """The number of trials."""
        return self.trials or (QUICK_TRIALS if self.quick else TRIALS)


def jobs(
    trials: int,
    methods: Sequence[str] = METHODS,
    targets: Sequence[Target] = ("population",),
    compared: int | None = None,
) -> list[Values]:
    """All methods on the first pool, then on the second, and so on; ``RAW`` on ``compared``."""
    raw = trials if compared is None else compared
    return [
        job
        for job in grid({"trial": range(trials), "method": methods, "target": targets})
        if job["target"] == "population" or job["method"] in SCORED_ON_POOL
        if job["trial"] < raw or job["method"] != RAW
    ]


def check(setting: Setting, methods: Sequence[str], targets: Sequence[Target]) -> None:
    """Refuse a claim that a policy would refuse."""
    facts = PoolFacts("simulated", setting.world.items, 0.0, 1.0, whole_losses=True)
    for method, target in product(methods, targets):
        if method in (*PUBLISHED, *OURS):
            make_plan(setting.claim(target), facts, policy_of(method), "")


def policy_of(method: str) -> Policy:
    """The policy a method is."""
    return policy_named("evalue", recentred=False) if method == RAW else policy_named(method)


def run(setting: Setting, seed: int, job: Values) -> Values:
    """Run one job."""
    own, method = seed_of(seed, job["trial"]), job["method"]
    truth = _pool(setting.world, own)
    risk = setting.world.risk if job["target"] == "population" else float(truth.loss.mean())
    began = time.process_time()
    if method in (*PEEKED, CER_EVAL):
        outcome = _outcome(setting, _looks(setting, method, truth, own), risk)
    else:
        setup = SessionSetup(policy_of(method), setting.claim(job["target"]), setting.crowd)
        outcome = session(setup, truth, risk, own)
    return asdict(outcome) | {"seconds": time.process_time() - began}


def _looks(setting: Setting, method: str, truth: Truth, seed: bytes) -> Looks:
    """All intervals of a method without a policy, up to the first one that is narrow enough."""
    if method == CER_EVAL:
        design = cer_eval.Setting(truth.loss.size, setting.precision, setting.alpha)
        return cer_eval.run(truth.loss, setting.world.embeddings(seed), design, seed)
    order = np.argsort(uniforms(seed, "peeked order", truth.loss.size), kind="stable")
    loss, surrogate = truth.loss[order], truth.scores.surrogate[order]
    if method == WILSON:
        return fixed_sample.wilson(loss, setting.alpha).until(setting.precision)
    return fixed_sample.ppi(loss, surrogate, setting.alpha).until(setting.precision)


def _outcome(setting: Setting, looks: Looks, risk: float) -> SessionOutcome:
    lower, upper, missed = float(looks.lower[-1]), float(looks.upper[-1]), looks.missed(risk)
    return SessionOutcome(
        labels=int(looks.labels[-1]),
        stopped="target_reached" if upper - lower <= setting.precision else "exhausted",
        lower=lower,
        upper=upper,
        missed=bool(missed[-1]),
        ever=bool(missed.any()),
    )


@lru_cache(maxsize=2)
def _pool(world: World, seed: bytes) -> Truth:
    """The methods of a trial follow each other: its pool is drawn once in a process."""
    return world.pool(seed)
