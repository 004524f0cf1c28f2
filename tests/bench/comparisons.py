"""A comparison beside an ordinary session: opening it, the time and the memory of its rounds."""

import io
import time
from collections.abc import AsyncIterator, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from celeus.core.plans.plan import Claim
from celeus.core.pools.systems import MOST
from celeus.core.session import session as core
from celeus.core.session.best.best_question import Best
from celeus.core.session.best.candidates import Candidates, narrow
from celeus.operations.runtime.memory_limits import nbytes
from celeus.simulation.best import plan_for
from celeus.simulation.sessions import Truth
from study.pools.systems import Systems
from tests.bench.connection import Connection
from tests.bench.folds import ROUNDS_A_TURN, Session
from tests.bench.results import Goal, Line
from tests.bench.truths import SEED
from tests.bench.worlds import World

CLASSES, DIFFERENT = 4, 0.4
"""Classes, and on how many of the items B guesses anew: where it says something else it differs."""
NAMES = {"a": "old", "b": "new"}
ALPHA = 0.05
SYSTEMS = 10
"""Among which the best is sought; beside it the core alone seeks among the most a pool may have."""
WIDTH, MARGIN = 0.04, 0.02
"""Of the difference; half of it for one system, whose scale is half as wide."""


def pair(items: int) -> Systems:
    """Two systems that are right on three in four items, with calibrated surrogates."""
    rng = np.random.default_rng(SEED)
    right = rng.integers(0, CLASSES, items)
    surrogate = rng.beta(0.5, 1.5, items)
    wrong = (right + rng.integers(1, CLASSES, items)) % CLASSES
    a = np.where(rng.random(items) < surrogate, wrong, right)
    anew = np.where(rng.random(items) < surrogate, (right + 1) % CLASSES, right)
    b = np.where(rng.random(items) < DIFFERENT, anew, a)
    return Systems((a, b), right, (surrogate, surrogate))


def round_lines(*, quick: bool) -> Iterator[Line]:
    """Time of a round, and memory, of both kinds of session, advanced in turns."""
    items, rounds, repeats = (100_000, 600, 2) if quick else (1_000_000, 2_000, 5)
    systems = pair(items)
    kinds: dict[str, tuple[Truth, Claim]] = {
        "one system": (systems.alone(0), Claim(precision=WIDTH / 2.0)),
        "comparison": (systems.difference(), Claim(precision=WIDTH, decide=MARGIN)),
    }
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    sizes: dict[str, list[float]] = {kind: [] for kind in kinds}
    for run in range(repeats):
        sessions = {
            kind: Session(truth, run, "sharp", claim) for kind, (truth, claim) in kinds.items()
        }
        for _ in range(rounds // ROUNDS_A_TURN):
            for session in sessions.values():
                session.advance(ROUNDS_A_TURN)
        for kind, session in sessions.items():
            times[kind].append(session.milliseconds_a_round)
            sizes[kind].append(nbytes(session.state) / 2**20)
    for kind in kinds:
        yield Line(f"{kind}, {items:,} items: a round", times[kind], "ms", Goal.most(0.3, "ms"))
        yield Line(f"{kind}: its state after {rounds:,} rounds", sizes[kind], "MiB")
    ratios = [b / a for a, b in zip(times["one system"], times["comparison"], strict=True)]
    yield Line("… a round of a comparison by one of one system", ratios, "×", Goal.within(0, 1.5))


async def comparison_lines(world: World, *, quick: bool) -> AsyncIterator[Line]:
    """Opening a comparison of a million items, and the rounds of one."""
    for line in round_lines(quick=quick):
        yield line
    items, repeats = (100_000, 1) if quick else (1_000_000, 3)
    cold: list[float] = []
    warm: list[float] = []
    async with world.services() as urls, Connection.to(urls[0]) as connection:
        pools = [await _uploaded(connection, *two(items)) for _ in range(repeats)]
        many = await _uploaded(connection, *several(items))
    asked: dict[str, object] = {"precision": WIDTH, "decide": {"margin": MARGIN}}
    for pool in pools:
        async with world.services() as urls, Connection.to(urls[0]) as connection:
            for times in (cold, warm, warm):
                times.append(await _opened_in(connection, pool, asked))
    for told, times in (("not loaded", cold), ("loaded", warm)):
        what = f"opening a comparison of {items:,} items, pool {told}"
        yield Line(what, times, "s", Goal.most(3, "s"))
    async with world.services() as urls, Connection.to(urls[0]) as connection:
        for told in ("not loaded", "loaded"):
            what = f"opening the best of {SYSTEMS} on {items:,} items, pool {told}"
            yield Line(what, [await _opened_in(connection, many, {"best": True})], "s")
    for line in best_lines(quick=quick):
        yield line


def best_lines(*, quick: bool) -> Iterator[Line]:
    """Opening a search for the best of several on a pool that is loaded, its rounds and memory.

    Processor time, as other work of the machine is none of theirs. One of the rounds may drop a
    system, for which the pool is cut anew.
    """
    items = 100_000 if quick else 1_000_000
    for count in (SYSTEMS,) if quick else (SYSTEMS, MOST):
        opening: list[float] = []
        rounds: list[float] = []
        answer = answered(items, count)
        candidates = Candidates(items, count, narrow(answer))
        for run in range(1 if quick else 3):
            began = time.process_time()
            seed = f"best {run}".encode()
            session = core.Session.of(Best(plan_for(candidates, ALPHA), candidates, seed), seed)
            opening.append(time.process_time() - began)
            truth = np.random.default_rng(run)
            began = time.process_time()
            for _ in range(ROUNDS_A_TURN):
                draw = session.propose()
                session.apply(draw)
                losses = (answer[draw.item] != truth.integers(CLASSES)).astype(float)
                session.observe(draw.round, tuple(losses.tolist()))
            rounds.append(1e3 * (time.process_time() - began) / ROUNDS_A_TURN)
        what = f"best of {count}, {items:,} items"
        yield Line(
            f"{what}: processor time of opening, pool loaded", opening, "s", Goal.most(3, "s")
        )
        yield Line(f"{what}: processor time of a round", rounds, "ms")
        yield Line(f"{what}: its state", [nbytes(session, candidates) / 2**20], "MiB")


def answered(items: int, count: int) -> NDArray[np.int32]:
    """Answers of systems of which each says of seven in ten items what the first one does."""
    rng = np.random.default_rng(SEED)
    answer = np.empty((items, count), dtype=np.int32, order="F")
    answer[:, 0] = rng.integers(0, CLASSES, items)
    for one in range(1, count):
        anew = rng.integers(0, CLASSES, items)
        answer[:, one] = np.where(rng.random(items) < DIFFERENT, anew, answer[:, 0])
    return answer


def two(items: int) -> tuple[dict[str, object], dict[str, object]]:
    """Names and columns of a pool of two systems."""
    systems = pair(items)
    columns: dict[str, object] = {}
    for side, answer, surrogate in zip("ab", systems.answers, systems.surrogates, strict=True):
        columns |= {f"prediction_{side}": answer, f"surrogate_{side}": surrogate}
    return {**NAMES}, columns


def several(items: int) -> tuple[dict[str, object], dict[str, object]]:
    """The same of SYSTEMS."""
    answers = answered(items, SYSTEMS).T
    names = [f"system-{at}" for at in range(SYSTEMS)]
    columns = {f"answers.{one}.prediction": it for one, it in zip(names, answers, strict=True)}
    return {"names": names}, columns


async def _uploaded(
    connection: Connection, systems: dict[str, object], columns: dict[str, object]
) -> str:
    """Id of a sealed pool of these systems."""
    items = len(next(iter(columns.values())))  # type: ignore[arg-type]  # columns are arrays
    ids = [f"item-{index:07d}" for index in range(items)]
    file = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"id": ids} | columns), file)
    body = {"name": "bench", "loss": {"kind": "zero_one"}, "systems": systems}
    pool = str((await connection.send("/v1/pools", body))["id"])
    media = "application/vnd.apache.parquet"
    (await connection.post(f"/v1/pools/{pool}/items", file.getvalue(), media)).json()
    (await connection.post(f"/v1/pools/{pool}/seal", b"")).json()
    return pool


async def _opened_in(connection: Connection, pool: str, asked: dict[str, object]) -> float:
    began = time.perf_counter()
    await connection.send("/v1/sessions", {"pool_id": pool} | asked)
    return time.perf_counter() - began
