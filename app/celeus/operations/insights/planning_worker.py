"""The process that simulates sessions: a job on its standard input, what came of it line by line.

    python -m app.operations.planningjob

A process of its own, so that planning takes nothing from the server but idle time: it can be
killed at any moment, and what it has told until then still counts.
"""

import json
import os
import pickle
import sys
import time
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple

from app.core.plan import Plan
from app.core.planning import Assumed, Case, Outcome, Scenario, assumed, floor_of
from app.core.surrogates import Scores

NICENESS = 5
"""Somebody waits for the answer; those who judge still come first."""
FIRST_SHARE = 4.0
"""What the first plan gets of the time, in shares of another."""


class Job(NamedTuple):
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


class _Course:
    """The simulated sessions of one case so far."""

    def __init__(self, case: Case, share: float) -> None:
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


def told(job: Job) -> Iterator[dict[str, Any]]:
    """What is found, as it is found: the assumption, then outcomes by number of plan."""
    assumption = assumed(
        job.scores, job.plans[0].scale, whole=job.whole, guessed=job.guessed, risk=job.risk
    )
    risk = assumption.risk(job.plans[0].scale)
    floors = [floor_of(plan, risk) for plan in job.plans]
    yield {
        "risk": risk,
        "informed": assumption.informed,
        "floors": [[floor.assumed, floor.middle] for floor in floors],
    }
    yield from _simulated(job, assumption)


def _simulated(job: Job, assumption: Assumed) -> Iterator[dict[str, Any]]:
    """Every case once, then always the one that took least of its share, as far as time allows."""
    courses = {
        (at, scenario): _Course(
            Case(plan, job.scores, assumption, scenario), 1.0 if at else FIRST_SHARE
        )
        for at, plan in enumerate(job.plans)
        for scenario in scenarios(plan, informed=assumption.informed)
    }
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
        for found in _once(course, job.seed, until):
            yield {"plan": name[0], "scenario": name[1]} | found


def _once(course: _Course, seed: int, until: float) -> Iterator[dict[str, Any]]:
    """One session, given up at ``until``."""
    began = time.monotonic()
    for found in course.case.run(course.runs, seed):
        if isinstance(found, Outcome):
            course.runs += 1
            yield {"outcome": [found.labels, found.reached, found.width]}
        elif time.monotonic() > until:
            course.given_up = True
            yield {"labels": found}
            return
    course.seconds += time.monotonic() - began


def run(source: IO[bytes], sink: IO[str]) -> None:
    """Read a job and tell what comes of it, a line of JSON each."""
    job: Job = pickle.load(source)  # noqa: S301 - written by the server that started us
    for line in told(job):
        sink.write(json.dumps(line) + "\n")
        sink.flush()


def main() -> None:
    """Give way to everybody else, then run."""
    os.nice(NICENESS)
    run(sys.stdin.buffer, sys.stdout)


if __name__ == "__main__":
    main()
