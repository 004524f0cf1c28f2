"""The child process that simulates sessions, of one claim or of many, and says what came of each.

A process of its own, so that planning takes nothing from the server but idle time: it is ended at
its deadline, and what it has answered until then still counts.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Self

from celeus.core.insights.planning import (
    Case,
    Scenario,
    SimulationOutcome,
    assumption_of,
    fixed_sample,
    floor_of,
)
from celeus.core.insights.table_planning import (
    TableCase,
    TableOutcome,
    assumptions_of,
    scale_of,
    with_targets,
)
from celeus.core.plans.plan import Plan, plan_from
from celeus.core.plans.table import TablePlan
from celeus.core.pools.surrogates import Scores
from celeus.core.pools.table import Column, Table
from celeus.operations.runtime.workers import Files, Frame, serve

FIRST_SHARE = 4.0
"""What the first plan gets of the time, in shares of another."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be simulated: sessions of these plans on one pool, until ``deadline``.

    The deadline is one of the machine's monotonic clock, which all its processes share.
    ``guessed`` says that the scores hold a surrogate.
    """

    plans: Sequence[Plan]
    scores: Scores
    whole: bool
    guessed: bool
    risk: float | None
    runs: int
    seed: int
    deadline: float

    def frame(self) -> Frame:
        """The job as it travels."""
        values = {name: getattr(self, name) for name in _VALUES}
        return Frame(
            values | {"plans": [plan.to_dict() for plan in self.plans]}, self.scores.arrays
        )

    @classmethod
    def of(cls, frame: Frame) -> Self:
        """The job whose ``frame`` this is."""
        plans = [plan_from(values) for values in frame.values["plans"]]
        return cls(**(frame.values | {"plans": plans, "scores": Scores(**frame.arrays)}))


_VALUES = ("whole", "guessed", "risk", "runs", "seed", "deadline")


@dataclass(frozen=True, slots=True)
class TableJob:
    """The same for one plan of many claims; ``risks`` are the mean losses expected, by metric."""

    plan: TablePlan
    table: Table
    risks: Mapping[str, float]
    runs: int
    seed: int
    deadline: float

    def frame(self) -> Frame:
        """The job as it travels."""
        table = self.table
        values = {name: getattr(self, name) for name in ("risks", "runs", "seed", "deadline")}
        columns = [[one.name, one.values] for one in table.columns]
        arrays = {f"scores_{name}": array for name, array in table.scores.arrays.items()}
        arrays |= {f"code_{at}": one.code for at, one in enumerate(table.columns)}
        arrays |= {"surrogate": table.surrogate, "known": table.known}
        return Frame(values | {"table": self.plan.to_dict(), "columns": columns}, arrays)

    @classmethod
    def of(cls, frame: Frame) -> Self:
        """The job whose ``frame`` this is."""
        values, arrays = dict(frame.values), frame.arrays
        plan = TablePlan.from_dict(values.pop("table"))
        columns = [
            Column(name, tuple(given), arrays[f"code_{at}"])
            for at, (name, given) in enumerate(values.pop("columns"))
        ]
        begin = "scores_"
        scores = {
            name.removeprefix(begin): array
            for name, array in arrays.items()
            if name.startswith(begin)
        }
        own = arrays["surrogate"], arrays["known"], Scores(**scores)
        return cls(plan, Table(plan.metrics, *own, tuple(columns)), **values)


class _Course:
    """The simulated sessions of one case so far."""

    def __init__(self, case: Case | TableCase, share: float) -> None:
        self.case = case
        self.share = share
        self.runs = 0
        self.seconds = 0.0
        self.given_up = False

    @property
    def costs(self) -> float:
        """Seconds a session took so far."""
        return self.seconds / self.runs if self.runs else 0.0


def scenarios(plan: Plan, *, informed: bool) -> tuple[Scenario, ...]:
    """What is worth simulating: one scenario where the surrogate plays no part."""
    return ("right", "useless") if informed and plan.policy.uses_scores else ("useless",)


def simulated(job: Job) -> Iterator[dict[str, Any]]:
    """The assumption, then each outcome as it comes, by number of plan."""
    assumption = assumption_of(
        job.scores, job.plans[0].scale, whole=job.whole, has_surrogate=job.guessed, risk=job.risk
    )
    risk = assumption.risk(job.plans[0].scale)
    floors = [floor_of(plan, risk) for plan in job.plans]
    yield {
        "risk": risk,
        "informed": assumption.informed,
        "fixed_sample": fixed_sample(job.plans[0], assumption),
        "floors": [[floor.assumed, floor.middle] for floor in floors],
    }
    courses = {
        (at, scenario): _Course(
            Case(plan, job.scores, assumption, scenario), 1.0 if at else FIRST_SHARE
        )
        for at, plan in enumerate(job.plans)
        for scenario in scenarios(plan, informed=assumption.informed)
    }
    yield from _outcomes(job, courses)


def simulated_table(job: TableJob) -> Iterator[dict[str, Any]]:
    """The assumed risks, then each outcome as it comes."""
    assumptions = assumptions_of(job.table, job.risks)
    informed = any(one.informed for one in assumptions)
    yield {
        "risks": {
            metric.name: one.risk(scale_of(metric.scale))
            for metric, one in zip(job.plan.metrics, assumptions, strict=True)
        },
        "informed": informed,
    }
    worth: tuple[Scenario, ...] = ("right", "useless") if informed else ("useless",)
    plan = with_targets(job.plan)
    courses = {
        (0, scenario): _Course(TableCase(plan, job.table, assumptions, scenario), 1.0)
        for scenario in worth
    }
    yield from _outcomes(job, courses)


def _outcomes(
    job: Job | TableJob, courses: Mapping[tuple[int, Scenario], _Course]
) -> Iterator[dict[str, Any]]:
    """Every case once, then always the one that took least of its share, as far as time allows."""
    while True:
        left = job.deadline - time.monotonic()
        able = [
            (course.runs > 0, course.seconds / course.share, name)
            for name, course in courses.items()
            if not course.given_up and course.runs < job.runs and course.costs < left
        ]
        if left <= 0.0 or not able:
            return
        _, _, name = min(able)
        course = courses[name]
        until = job.deadline
        if not course.runs:
            # A slow one leaves time for those behind it; the policy asked for first comes first.
            until = time.monotonic() + left / 2.0
        for values in _once(course, job.seed, until):
            yield {"plan": name[0], "scenario": name[1]} | values


def _once(course: _Course, seed: int, until: float) -> Iterator[dict[str, Any]]:
    """One session, given up at ``until``."""
    began = time.monotonic()
    for step in course.case.run(course.runs, seed):
        if isinstance(step, SimulationOutcome) or (isinstance(step, TableOutcome) and step.ended):
            course.runs += 1
            yield {"outcome": astuple(step)}
        elif time.monotonic() > until:
            course.given_up = True
            yield {"labels": step} if isinstance(step, int) else {"outcome": astuple(step)}
            return
    course.seconds += time.monotonic() - began


def work(job: Frame, files: Files) -> Iterator[Frame]:
    """A frame each of what ``simulated`` yields."""
    del files
    steps = simulated_table(TableJob.of(job)) if "table" in job.values else simulated(Job.of(job))
    yield from map(Frame, steps)


if __name__ == "__main__":
    serve(work)
