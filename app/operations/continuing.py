"""The process that continues a fold: a job on its standard input, labels left on its output.

    python -m app.operations.continuing

A process of its own, so that a forecast takes nothing from the server but idle time: it can be
killed at any moment, and it ends by itself.
"""

import json
import os
import pickle
import sys
import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.forecast import continuations
from app.core.plan import Plan

CONTINUATIONS = 100
LONGEST_SECONDS = 10.0
NICENESS = 19


class Job(NamedTuple):
    """What a forecast needs: the plan, a snapshot of the state, and one score an item."""

    plan: Plan
    kept: bytes
    surrogate: NDArray[np.float64]


def simulated(job: Job) -> list[int]:
    """Labels left in up to CONTINUATIONS futures, as many as LONGEST_SECONDS allow."""
    deadline = time.monotonic() + LONGEST_SECONDS
    labels: list[int] = []
    for left in continuations(*job, seed=job.plan.digest.encode()):
        if left is not None:
            labels.append(left)
        if len(labels) == CONTINUATIONS or time.monotonic() > deadline:
            break
    return labels


def main() -> None:
    """Read a job, give way to everybody else, answer."""
    os.nice(NICENESS)
    job: Job = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the server that started us
    json.dump(simulated(job), sys.stdout)


if __name__ == "__main__":
    main()
