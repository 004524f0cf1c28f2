"""The child process that continues a fold: up to CONTINUATIONS futures of one session.

A process of its own, so that a forecast takes nothing from the server but idle time.
"""

import time
from collections.abc import Iterator
from dataclasses import asdict

from celeus.core.insights.forecast import continuations, resumed
from celeus.core.plans.plan import Plan, plan_from
from celeus.core.plans.stopping import StoppingRule
from celeus.core.pools.surrogates import Scores
from celeus.core.sessions.rounds import Rounds
from celeus.operations.runtime.workers import Files, Frame, serve

CONTINUATIONS = 100
LONGEST_SECONDS = 10.0


def job_of(plan: Plan, scores: Scores, rounds: Rounds, stopping: StoppingRule) -> Frame:
    """What a forecast needs: the plan, what is known of the items, and the rounds."""
    values = {
        "plan": plan.to_dict(),
        "stopping": asdict(stopping),
        "rules": [asdict(rule) for rule in rounds.rules],
        "strata": rounds.strata,
    }
    arrays = {f"scores.{name}": array for name, array in scores.arrays.items()}
    return Frame(values, arrays | rounds.columns)


def work(job: Frame, files: Files) -> Iterator[Frame]:
    """Labels left in each future, as many as LONGEST_SECONDS allow."""
    del files
    plan = plan_from(job.values["plan"])
    named = {name.partition(".")[2]: array for name, array in job.arrays.items()}
    del named[""]
    scores = Scores(**named)
    rules = [StoppingRule(**rule) for rule in job.values["rules"]]
    rounds = Rounds.from_columns(job.arrays, job.values["strata"], rules)
    state = resumed(plan, scores, rounds, StoppingRule(**job.values["stopping"]))
    deadline = time.monotonic() + LONGEST_SECONDS
    labels: list[int] = []
    for left in continuations(plan, state, scores, seed=plan.digest.encode()):
        if left is not None:
            labels.append(left)
        if len(labels) == CONTINUATIONS or time.monotonic() > deadline:
            break
    yield Frame({"labels": labels})


if __name__ == "__main__":
    serve(work)
