"""Labels to precision on the real pools, for every pair of a target and a smaller model.

    results = runner.measure(series(folder, PRECISION), jobs(sources(), 24), kept)
    text = page(results)

A job is one session. Policies that do not look at the surrogate run once for a target and serve
all of its pairs. The draws of different pairs, targets and runs have different seeds, so that
misses may be added up; the policies of one pair share their seeds.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from app.core.plan import Claim, Target
from app.study.courses import (
    ALPHA,
    PRECISION,
    RECENTRED,
    REFUSED,
    Course,
    course,
    policy_of,
    seed_for,
    width_at,
)
from app.study.realpools import LOSSES, NOBODY, VOTES, LossName, Source, pairs, truth_of
from app.study.runner import Series

STUDY = "efficiency"
TARGETS: tuple[Target, ...] = ("pool", "population")
POLICIES = ("sharp", "uniform", "celeus", "no_surrogate", "evalue", RECENTRED, "oracle")
ORACLE, BASELINE = "oracle", "evalue"
LEAST_GAP = 0.1


@dataclass(frozen=True, slots=True)
class Job:
    """One session to run; ``helper`` is empty where the policy does not look at the surrogate."""

    dataset: str
    loss: LossName
    model: str
    helper: str
    target: Target
    policy: str
    run: int

    @property
    def source(self) -> Source:
        """The pool it runs on."""
        return Source(self.dataset, self.loss, self.model, self.helper)


@dataclass(frozen=True, slots=True)
class Result(Course):
    """What it came to."""

    job: Job


def sources() -> list[Source]:
    """Every pair and loss of ``mmlu``, and the two vote pools.

    For the cross-entropy strategy A asks the target alone: there is one source for a target.
    """
    found = []
    for loss in LOSSES:
        alone = loss == "cross_entropy"
        helped = dict.fromkeys((f, NOBODY if alone else g) for f, g in pairs())
        found += [Source("mmlu", loss, f, g) for f, g in helped]
    return found + [Source(name, "zero_one", cell, "votes") for name, cell in VOTES.items()]


def quick_sources() -> list[Source]:
    """One pair for a loss, and the larger vote pool."""
    first = {source.loss: source for source in reversed(sources()) if source.dataset == "mmlu"}
    return [*first.values(), sources()[-1]]


def jobs(chosen: Sequence[Source], seeds: int) -> list[Job]:
    """Every session of the study, the first run of everything first."""
    found = [
        Job(of.dataset, of.loss, of.model, of.helper, target, policy, run)
        for run in range(seeds)
        for source in chosen
        for target in TARGETS
        for policy, of in ((name, seen_by(name, source)) for name in POLICIES)
    ]
    return list(dict.fromkeys(found))


def series(folder: Path, precision: float = PRECISION) -> Series[Job, Result]:
    """The sessions on the pools in ``folder``."""
    parameters = {"alpha": ALPHA, "precision": precision}
    return Series(STUDY, Job, Result, partial(run, folder, precision), parameters=parameters)


def run(folder: Path, precision: float, job: Job) -> Result:
    """Run one job."""
    place = f"{STUDY}/{job.dataset}/{job.loss}/{job.model}/{job.helper}/{job.target}"
    claim = Claim(job.target, ALPHA, precision)
    truth = truth_of(folder, job.source)
    found = course(truth, policy_of(job.policy), claim, seed_for(place, job.run))
    return Result(job=job, **asdict(found))


def seen_by(policy: str, source: Source) -> Source:
    """The source as the policy sees it: without a smaller model where it does not ask one."""
    return source if policy_of(policy).uses_scores else replace(source, helper=NOBODY)


@dataclass(frozen=True, slots=True)
class Claims:
    """All sessions of all policies on one source for one target."""

    source: Source
    target: Target
    courses: dict[str, list[Course]]

    def labels(self, policy: str) -> float:
        """Median of the labels at the stop; NaN for a policy that was not run or was refused."""
        found = self.courses.get(policy, [])
        stopped = [one.labels for one in found if one.stopped != REFUSED]
        return float(np.median(stopped)) if stopped else float("nan")

    def saved(self, policy: str, against: str) -> float:
        """Share of the labels of another policy that are not needed (medians)."""
        return 1.0 - self.labels(policy) / self.labels(against)

    def to_oracle(self, policy: str) -> float:
        """Labels as a multiple of the oracle's (medians)."""
        return self.labels(policy) / self.labels(ORACLE)

    def closed(self, policy: str) -> float:
        """Share of the gap in width between ``evalue`` and ``oracle`` that the policy closes.

        Median widths at the oracle's median stop; a policy that had stopped before counts with
        the width of its stop, so that its share is a lower bound. NaN where the gap is less than
        a tenth of the oracle's width: a share of nearly nothing says nothing.
        """
        budget = self.labels(ORACLE)
        at = {
            name: float(np.median([width_at(one, budget) for one in self.courses[name]]))
            for name in (policy, BASELINE, ORACLE)
            if self.courses.get(name)
        }
        if len(at) < len({policy, BASELINE, ORACLE}):
            return float("nan")
        gap = at[BASELINE] - at[ORACLE]
        return (at[BASELINE] - at[policy]) / gap if gap > LEAST_GAP * at[ORACLE] else float("nan")


def claims(results: Iterable[Result], chosen: Sequence[Source]) -> list[Claims]:
    """The sessions by source and target; those without surrogate stand with every pair."""
    found: dict[tuple[Source, Target, str], list[Course]] = defaultdict(list)
    for one in results:
        found[one.job.source, one.job.target, one.job.policy].append(one)
    grouped = []
    for source in chosen:
        for target in TARGETS:
            courses = {}
            for policy in POLICIES:
                courses[policy] = found.get((seen_by(policy, source), target, policy), [])
            grouped.append(Claims(source, target, courses))
    return grouped
