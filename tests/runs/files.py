"""Files of runs that are closed, for tests that push them."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import celeus
from celeus.core.canonical import canonical_json
from celeus.core.plans.plan import Claim
from celeus.core.plans.plan_request import SessionRequest
from celeus.core.pools.systems import Systems
from celeus.core.runs.run_file import PoolForm
from celeus.core.session.outcome import Judgement
from celeus.runs.run import Run
from tests.runs.test_run import ASKED, FORM, ITEMS, LOSSES, ROWS

PAIRS = [
    {
        "id": f"q{at}",
        "payload": {"question": at},
        "a": {"answer": f"new {at}"},
        "b": {"answer": f"old {at if at % 3 else f'new {at}'}"},
    }
    for at in range(120)
]


def exam(path: Path, ahead: int = 1, most: int = ITEMS, asked: SessionRequest = ASKED) -> bytes:
    """A run over items with a surrogate, closed; ``ahead`` draws are out at once."""
    with Run.open(path, FORM, ROWS, asked) as run:
        draws = run.next("ada", ahead)["draws"]
        for _ in range(most):
            if not draws:
                break
            draw = draws.pop(0)
            index = draw["item"].index
            told = Judgement(draw["round"], float(LOSSES[index]))
            if index % 17 == 3:
                told = Judgement(draw["round"], unjudgeable="the image is missing")
            run.observe("ada", [told], 0)
            draws = draws or run.next("ada", ahead)["draws"]
        if most > 3:
            run.amend(Judgement(3, 1.0), "ada", "misread")
        run.close()
    return path.read_bytes()


def duel(path: Path) -> bytes:
    """A run of two systems by preference, closed."""
    systems = Systems.of(("new", "old"), ("preference", None, None), "exact")
    form = PoolForm("duel", systems.scale, systems)
    with Run.open(path, form, PAIRS, SessionRequest(Claim(precision=0.4))) as run:
        answer = run.next("ada", 1)
        while answer["draws"]:
            draw = answer["draws"][0]
            left = draw["left"]["answer"].startswith("new")
            told = Judgement(draw["round"], preference="left" if left else "right")
            answer = run.observe("ada", [told], 1)
        run.close()
    return path.read_bytes()


def race(path: Path) -> bytes:
    """A run that seeks the best of three systems, closed."""
    said = {
        name: {f"q{at}": f"{name if at % 4 else 'same'} {at}" for at in range(120)}
        for name in "xyz"
    }

    def judge(item: celeus.Turn) -> list[float]:
        return [float(not str(one.answer).startswith("x")) for one in item.answers]

    session = celeus.best(said, judge, file=path)
    session.close()
    session.client.close()
    return path.read_bytes()


def sheet(path: Path) -> bytes:
    """A run of two metrics in two groups, closed."""
    items = [
        {
            "id": f"text-{at}",
            "surrogates": {"faithful": (at % 10) / 10, "stars": 1.5},
            "groups": {"topic": ("law", "art")[at % 2]},
        }
        for at in range(120)
    ]

    def judge(item: celeus.Turn) -> dict[str, float]:
        return {"faithful": float(item.index % 10 > 6), "stars": float(item.index % 4)}

    session = celeus.certify(
        items,
        judge,
        metrics={"faithful": "zero_one", "stars": (0, 4)},
        groups=["topic"],
        precision={"faithful": 0.3},
        account="together",
        file=path,
    )
    session.close()
    session.client.close()
    return path.read_bytes()


def chancy(path: Path) -> bytes:
    """A run of a system by chance, whose draws are up to three runs of items run again, closed."""
    chance = random.Random(4)  # noqa: S311 -- the system's luck
    items = [{"id": f"task-{at}", "surrogate": at / 20} for at in range(20)]

    def judge(item: celeus.Turn) -> float:
        return float(chance.random() < item.index / 30)

    session = celeus.certify(
        items,
        judge,
        target="runs",
        repeats=True,
        success="all of 3",
        at_most=0.9,
        precision=0.5,
        file=path,
    )
    session.close()
    session.client.close()
    return path.read_bytes()


def forged(data: bytes, change: Callable[[list[dict[str, Any]]], object]) -> bytes:
    """The file with its lines changed as objects, written as they were."""
    lines = [json.loads(line) for line in data.splitlines()]
    change(lines)
    return written(lines)


def written(lines: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(canonical_json(line) + b"\n" for line in lines)
