"""The child process that simulates sessions, of one claim or of many, and says what came of each.

A process of its own, so that planning takes nothing from the server but idle time. How much it
simulates is a count of rounds and never a matter of time: equal jobs have equal answers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Self

from celeus.core.insights.curve import PoolHypothesis
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
    assumed_errors,
    assumptions_of,
    check_assumption,
    with_targets,
)
from celeus.core.plans.plan import Plan
from celeus.core.plans.table_plan import TablePlan
from celeus.core.pools.surrogates import Scores
from celeus.core.pools.table_pool import Column, Table
from celeus.operations.runtime.workers import Files, Frame, serve

WORK = 8_000
"""Rounds simulated for a plan of one claim: more would tell little."""
TABLE_WORK = 4 * WORK
"""The same for a table of claims, of which one session has more to tell."""
FIRST_SHARE = 2.0
"""The first policy's share of the rounds, as a multiple of another's."""
LADDER_SHARE = 4.0
"""A curve's share of the rounds, as a multiple of one scenario's."""
GROWTH = 4.5
"""Factor by which the rounds of a session grow when its width is halved."""
PART_BEFORE, PART_ASKED = 0.5, 0.8
"""Shares of the rounds left for a curve that one width, and the width asked for, may take."""
MOST_FINER = 4
"""Sessions at widths finer than that asked for."""


@dataclass(frozen=True, slots=True)
class Job:
    """Sessions to simulate: of these plans, on one pool.

    Of every policy there is a ladder of plans from the coarsest precision to the finest; ``asked``
    says which of them is asked for. ``guessed`` says that the scores hold a surrogate.
    """

    ladders: Sequence[Sequence[Plan]]
    asked: Sequence[int]
    scores: Scores
    whole: bool
    guessed: bool
    risk: float | None
    runs: int
    seed: int

    def frame(self) -> Frame:
        """The job as it travels."""
        values = {name: getattr(self, name) for name in _VALUES}
        ladders = [[plan.to_dict() for plan in ladder] for ladder in self.ladders]
        return Frame(values | {"ladders": ladders}, self.scores.arrays)

    @classmethod
    def of(cls, frame: Frame) -> Self:
        """The job whose ``frame`` this is."""
        ladders = [[Plan.from_dict(plan) for plan in ladder] for ladder in frame.values["ladders"]]
        return cls(**(frame.values | {"ladders": ladders, "scores": Scores(**frame.arrays)}))

    @property
    def plans(self) -> list[Plan]:
        """The plans asked for, one per policy."""
        return [ladder[index] for ladder, index in zip(self.ladders, self.asked, strict=True)]


_VALUES = ("asked", "whole", "guessed", "risk", "runs", "seed")


@dataclass(frozen=True, slots=True)
class TableJob:
    """The job of one plan with many claims; ``risks`` are the mean losses expected, by metric."""

    plan: TablePlan
    table: Table
    risks: Mapping[str, float]
    runs: int
    seed: int

    def frame(self) -> Frame:
        """The job as it travels."""
        table = self.table
        values = {name: getattr(self, name) for name in ("risks", "runs", "seed")}
        columns = [[column.name, column.values] for column in table.columns]
        arrays = {f"scores_{name}": array for name, array in table.scores.arrays.items()}
        arrays |= {f"code_{index}": column.code for index, column in enumerate(table.columns)}
        arrays |= {"surrogate": table.surrogate, "known": table.known}
        return Frame(values | {"table": self.plan.to_dict(), "columns": columns}, arrays)

    @classmethod
    def of(cls, frame: Frame) -> Self:
        """The job whose ``frame`` this is."""
        values, arrays = dict(frame.values), frame.arrays
        plan = TablePlan.from_dict(values.pop("table"))
        columns = [
            Column(name, tuple(given), arrays[f"code_{index}"])
            for index, (name, given) in enumerate(values.pop("columns"))
        ]
        begin = "scores_"
        scores = {
            name.removeprefix(begin): array
            for name, array in arrays.items()
            if name.startswith(begin)
        }
        measured = arrays["surrogate"], arrays["known"], Scores(**scores)
        return cls(plan, Table(plan.metrics, *measured, tuple(columns)), **values)


class _Course:
    """The simulated sessions of one case so far; ``name`` identifies the case."""

    follows = True
    """It waits until those that do not follow are at their end."""

    def __init__(self, name: dict[str, Any], share: float, runs: int) -> None:
        self.name = name
        self.share = share
        self.wanted = runs
        self.runs = 0
        self.work = 0.0
        self.given_up = False

    def able(self, left: float) -> bool:
        """Return whether another session is wanted, and may end in the rounds ``left``."""
        mean = self.work / self.runs if self.runs else 0.0
        return not self.given_up and self.runs < self.wanted and mean < left

    def session(self, seed: int, left: float) -> Iterator[dict[str, Any]]:
        """The next session, given up when it takes too many of the rounds ``left``."""
        raise NotImplementedError

    def _once(self, case: Case | TableCase, seed: int, most: float) -> Iterator[dict[str, Any]]:
        labels = 0
        for step in case.run(self.runs, seed):
            labels = step if isinstance(step, int) else step.labels
            so_far = {"labels": step} if isinstance(step, int) else {"outcome": astuple(step)}
            if isinstance(step, SimulationOutcome) or (
                isinstance(step, TableOutcome) and step.ended
            ):
                self.runs += 1
                yield self.name | so_far
            elif case.work(labels) > most:
                self.given_up = True
                yield self.name | so_far
                break
        self.work += case.work(labels)


class _Scenario(_Course):
    """Sessions of one case."""

    def __init__(
        self, name: dict[str, Any], share: float, runs: int, case: Case | TableCase
    ) -> None:
        super().__init__(name, share, runs)
        self._case = case

    def session(self, seed: int, left: float) -> Iterator[dict[str, Any]]:
        """The next session; a long first one leaves rounds for those behind it."""
        yield from self._once(self._case, seed, left if self.runs else left / 2.0)


class _Ladder(_Course):
    """Sessions of a curve: all runs at one width, then those at the next finer one."""

    follows = False

    def __init__(self, number: int, share: float, job: Job, supposed: PoolHypothesis) -> None:
        super().__init__({"plan": number, "at": 0}, share, job.runs)
        self._plans = job.ladders[number]
        self._asked = job.asked[number]
        self._supposed = supposed
        self._scores = job.scores
        self._most = job.runs
        self._expects = 0.0
        self._work_before = 0.0
        self._granted = 0.0

    def grant(self, work: float) -> None:
        """Say how many rounds all of it may take."""
        self._granted = work

    def able(self, left: float) -> bool:
        """Return whether another session may end in the rounds ``left``, here or one width on."""
        while not self.given_up:
            here = self.work - self._work_before
            expects = here / self.runs if self.runs else self._expects
            part = PART_ASKED if self.name["at"] == self._asked else PART_BEFORE
            most = part * (self._granted - self._work_before)
            if (
                self.runs < self.wanted
                and expects < left
                and (here + expects <= most or not expects)
            ):
                return True
            if not self.runs or self.name["at"] + 1 == len(self._plans):
                self.given_up = True
            else:
                self._finer(GROWTH * expects)
        return False

    def _finer(self, expects: float) -> None:
        width = self.name["at"] + 1
        self.name = self.name | {"at": width}
        self.wanted = self._most if width <= self._asked else min(self._most, MOST_FINER)
        self.runs, self._expects, self._work_before = 0, expects, self.work

    def session(self, seed: int, left: float) -> Iterator[dict[str, Any]]:
        """The next session."""
        plan = self._plans[self.name["at"]]
        case = self._supposed.case(plan, self._scores, self.runs)
        most = min(left, max(self._granted - self.work, GROWTH * self._expects))
        yield from self._once(case, seed, most)


def scenarios(plan: Plan, *, informed: bool) -> tuple[Scenario, ...]:
    """Return the scenarios worth simulating: one where the plan uses no surrogate."""
    return ("right", "useless") if informed and plan.policy.uses_scores else ("useless",)


def simulated(job: Job) -> Iterator[dict[str, Any]]:
    """The assumption, then each outcome as it comes, by number of plan."""
    plans = job.plans
    scale = plans[0].scale
    assumption = assumption_of(
        job.scores, scale, whole=job.whole, has_surrogate=job.guessed, risk=job.risk
    )
    risk = assumption.risk(scale)
    floors = [floor_of(plan, risk) for plan in plans]
    supposed = PoolHypothesis.of(assumption, risk_given=job.risk is not None)
    yield {
        "risk": risk,
        "informed": assumption.informed,
        "fixed_sample": fixed_sample(plans[0], assumption),
        "tempered": supposed.tempered(plans[0], job.scores, job.runs),
        "floors": [[floor.assumed, floor.middle] for floor in floors],
    }
    courses: list[_Course] = []
    for number, plan in enumerate(plans):
        share = 1.0 if number else FIRST_SHARE
        courses.append(_Ladder(number, LADDER_SHARE * share, job, supposed))
        for scenario in scenarios(plan, informed=assumption.informed):
            case = Case(plan, job.scores, assumption, scenario)
            name = {"plan": number, "scenario": scenario}
            courses.append(_Scenario(name, share, job.runs, case))
    yield from _outcomes(courses, job.seed, WORK)


def simulated_table(job: TableJob) -> Iterator[dict[str, Any]]:
    """The assumed risks, then each outcome as it comes."""
    check = job.plan.check
    worth: dict[Scenario, Scenario] = {"useless": "useless"}
    if check is not None:
        # Of the judge's verdicts people are assumed to say what they say of them, and no other
        # surrogate is assumed to tell more
        assumptions = [check_assumption(check, job.table, job.risks)]
        risks = assumed_errors(check, job.table, assumptions[0])
        worth = {"useless": "right"}
    else:
        assumptions = assumptions_of(job.table, job.risks)
        risks = {
            metric.name: assumption.risk(metric.scale.interval)
            for metric, assumption in zip(job.plan.metrics, assumptions, strict=True)
        }
    informed = any(assumption.informed for assumption in assumptions)
    yield {"risks": risks, "informed": informed}
    if informed:
        worth = {"right": "right", "useless": "useless"}
    plan = with_targets(job.plan)
    courses = [
        _Scenario(
            {"plan": 0, "scenario": name},
            1.0,
            job.runs,
            TableCase(plan, job.table, assumptions, scenario),
        )
        for name, scenario in worth.items()
    ]
    yield from _outcomes(courses, job.seed, TABLE_WORK)


def _turn(course: _Course) -> tuple[bool, bool, float]:
    return course.follows, course.runs > 0, course.work / course.share


def _outcomes(courses: Sequence[_Course], seed: int, work: float) -> Iterator[dict[str, Any]]:
    """The curves, then every case once, then always what took least of its share of ``work``."""
    shares = sum(course.share for course in courses)
    for course in courses:
        if isinstance(course, _Ladder):
            course.grant(work * course.share / shares)
    while True:
        left = work - sum(course.work for course in courses)
        able = [course for course in courses if course.able(left)]
        if left <= 0.0 or not able:
            return
        course = min(able, key=_turn)
        yield from course.session(seed, left)


def work(job: Frame, files: Files) -> Iterator[Frame]:
    """A frame each of what ``simulated`` yields."""
    del files
    steps = simulated_table(TableJob.of(job)) if "table" in job.values else simulated(Job.of(job))
    yield from map(Frame, steps)


if __name__ == "__main__":
    serve(work)
