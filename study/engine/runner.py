"""Run the jobs of a study over all cores, keep every result, and go on where a run was ended.

    series = Series("labels", run, ("labels", "stopped"), seed=0, parameters={"alpha": 0.05})
    jobs = grid({"pool": POOLS, "run": range(24)})
    rows = measure(series, jobs, Path("labels.jsonl"), processes=2)

A job and its result are flat mappings of plain values; a row holds both. The kept file is JSON
lines: first the head (study, seed, parameters, method version), then one line a result in the order
they came. A job that has a line is not run again; a file with another head is refused, since its
results would be mixed with others.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from celeus.core.plans.plan import METHOD_VERSION
from celeus.errors import InvalidValue
from celeus.subprocesses import end_with_parent
from study.engine.rows import Rows, Values

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Series:
    """The jobs of one study: how one is run, and what a line holds.

    ``run`` is a function of a module (or a partial of one), since it goes to other processes; its
    result has the ``fields``. ``parameters`` are what results depend on beside job and seed; how
    many jobs there are is none of them, so that a study can be made longer.
    """

    study: str
    run: Callable[[Values], Values]
    fields: tuple[str, ...]
    seed: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def head(self) -> Values:
        """The first line of the kept file, as it is read back."""
        return {
            "study": self.study,
            "seed": self.seed,
            "parameters": json.loads(json.dumps(dict(self.parameters))),
            "method_version": METHOD_VERSION,
        }


def measure(
    series: Series, jobs: Sequence[Values], path: Path, processes: int | None = None
) -> Rows:
    """Run what ``path`` does not hold yet and add it there; a row for every job, in their order.

    ``processes`` defaults to the processors there are. A bar on stderr shows how far it is when a
    person watches.
    """
    rows = read(series, path)
    missing = [job for job in jobs if _key(job) not in rows]
    if missing:
        with _appended(series, path) as add:
            pairs = watched(_run(series, missing, processes), len(missing), series.study)
            for job, result in pairs:
                rows[_key(job)] = job | result
                add({"job": job} | result)
    return Rows(rows[_key(job)] for job in jobs)


def read(series: Series, path: Path) -> dict[str, Values]:
    """The rows kept before, by job; a last line that was cut short is left out."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    whole = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
    if not whole:
        return {}
    _check_head(series, path, _parsed(path, 1, whole[0]))
    rows = {}
    for number, line in enumerate(whole[1:], start=2):
        values = _parsed(path, number, line)
        job = values.pop("job", None)
        if not isinstance(job, dict) or values.keys() != set(series.fields):
            raise InvalidValue(
                f"{path}, line {number} is no result of study {series.study}", field="out"
            )
        rows[_key(job)] = job | values
    return rows


def watched(results: Iterable[T], total: int, name: str) -> Iterator[T]:
    """Pass on the results; on a terminal, a bar on stderr shows their progress."""
    if not sys.stderr.isatty():
        yield from results
        return
    from rich.console import Console  # noqa: PLC0415 -- not for those who watch nothing
    from rich.progress import track  # noqa: PLC0415

    yield from track(results, name, total, console=Console(stderr=True), transient=True)


def _run(
    series: Series, jobs: Sequence[Values], processes: int | None
) -> Iterator[tuple[Values, Values]]:
    """Jobs and results as they come; one process needs no other."""
    workers = min(processes or os.cpu_count() or 1, len(jobs))
    if workers == 1:
        yield from ((job, series.run(job)) for job in jobs)
        return
    executor = ProcessPoolExecutor(workers, get_context("spawn"), initializer=end_with_parent)
    # Every process has its own work: threads of a matrix product would only stand in their way.
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        futures = {executor.submit(series.run, job): job for job in jobs}
        for one in as_completed(futures):
            yield futures[one], one.result()
    finally:
        executor.shutdown(cancel_futures=True)
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


@contextmanager
def _appended(series: Series, path: Path) -> Iterator[Callable[[Values], None]]:
    """Add results to the file, each at once; a cut line is taken away before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as lines:
        lines.seek(0)
        whole = lines.read().rpartition(b"\n")
        lines.truncate(len(whole[0]) + len(whole[1]))

        def write(values: Values) -> None:
            lines.write(json.dumps(values).encode() + b"\n")
            lines.flush()

        if not whole[1]:
            write(series.head)
        yield write


def _check_head(series: Series, path: Path, head: Values) -> None:
    if "study" not in head:
        raise InvalidValue(
            f"{path} does not begin with the head of a study; move it away", field="out"
        )
    for name, value in series.head.items():
        if head.get(name) != value:
            raise InvalidValue(
                f"{path} holds another run, with {name} {json.dumps(head.get(name))}"
                f" instead of {json.dumps(value)}; move it away or choose another folder",
                field="out",
            )


def _parsed(path: Path, number: int, line: str) -> Values:
    try:
        values = json.loads(line)
    except ValueError as error:
        raise InvalidValue(f"{path}, line {number} is not JSON", field="out") from error
    if not isinstance(values, dict):
        raise InvalidValue(f"{path}, line {number} is not a JSON object", field="out")
    return values


def _key(job: Values) -> str:
    return json.dumps(job, sort_keys=True)
