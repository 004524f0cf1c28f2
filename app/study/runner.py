"""Run the jobs of a study over all cores, keep every result, and go on where a run was ended.

    series = Series("labels", Job, Result, run, seed=0, parameters={"alpha": 0.05})
    results = measure(series, jobs, Path("labels.jsonl"), processes=2)

A job is a frozen dataclass of plain values and a result another one, whose field ``job`` says what
it came from. The kept file is JSON lines: first the head (study, seed, parameters, method
version), then one line a result in the order they came. A job that has a line is not run again;
a file with another head is refused, since its results would be mixed with others.
"""

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from app.core.plan import METHOD_VERSION
from app.errors import InvalidValue

AHEAD = 4
"""Jobs given out per process: none waits for its next one, and an end loses little."""
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


class Plain(Protocol):
    """A dataclass of plain values."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


J = TypeVar("J", bound=Plain)
R = TypeVar("R", bound=Plain)


@dataclass(frozen=True, slots=True)
class Series(Generic[J, R]):
    """The jobs of one study: how one is run, and what a line holds.

    ``run`` is a function of a module (or a partial of one), since it goes to other processes.
    ``parameters`` are what results depend on beside job and seed; how many jobs there are is none
    of them, so that a study can be made longer.
    """

    study: str
    job: type[J]
    result: type[R]
    run: Callable[[J], R]
    seed: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def head(self) -> dict[str, Any]:
        """What the first line of the kept file says."""
        return {
            "study": self.study,
            "seed": self.seed,
            "parameters": _plain(self.parameters),
            "method_version": METHOD_VERSION,
        }


def measure(
    series: Series[J, R], jobs: Sequence[J], kept: Path, processes: int | None = None
) -> list[R]:
    """Run what ``kept`` does not hold yet and add it there; the results of all ``jobs``, in order.

    ``processes`` defaults to the processors there are. A bar on stderr shows how far it is when a
    person watches.
    """
    known = {_key(_job(result)): result for result in read(series, kept)}
    missing = [job for job in jobs if _key(job) not in known]
    if missing:
        with _appended(series, kept) as add:
            for result in watched(_run(series, missing, processes), len(missing), series.study):
                known[_key(_job(result))] = result
                add(result)
    return [known[_key(job)] for job in jobs]


def read(series: Series[J, R], kept: Path) -> list[R]:
    """The results kept before; a last line that was cut short is left out."""
    if not kept.exists():
        return []
    lines = kept.read_text(encoding="utf-8").splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    if not whole:
        return []
    _check_head(series, kept, whole[0])
    return [_result(series, kept, number, line) for number, line in enumerate(whole[1:], start=2)]


def watched(results: Iterable[R], total: int, name: str) -> Iterator[R]:
    """The same results; a bar on stderr shows them come when a person watches."""
    if not sys.stderr.isatty():
        yield from results
        return
    from rich.console import Console  # noqa: PLC0415 -- not for those who watch nothing
    from rich.progress import track  # noqa: PLC0415

    yield from track(results, name, total, console=Console(stderr=True), transient=True)


def _run(series: Series[J, R], jobs: Sequence[J], processes: int | None) -> Iterator[R]:
    """Results as they come; one process needs no other."""
    workers = min(processes or os.cpu_count() or 1, len(jobs))
    if workers == 1:
        yield from map(series.run, jobs)
        return
    left = iter(jobs)
    executor = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_end_with_parent)
    # Every process has its own work: threads of a matrix product would only stand in their way.
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        out: set[Future[R]] = set()
        while True:
            for job in left:
                out.add(executor.submit(series.run, job))
                if len(out) >= AHEAD * workers:
                    break
            if not out:
                return
            done, out = wait(out, return_when=FIRST_COMPLETED)
            for one in done:
                yield one.result()
    finally:
        executor.shutdown(cancel_futures=True)
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for its next job for ever."""
    parent = parent_process()
    if parent is None:
        return
    sentinel = parent.sentinel

    def end() -> None:
        connection.wait([sentinel])
        os._exit(1)

    Thread(target=end, daemon=True).start()


@contextmanager
def _appended(series: Series[J, R], kept: Path) -> Iterator[Callable[[R], None]]:
    """Add results to the file, each at once; a cut line is taken away before."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with kept.open("a+b") as lines:
        lines.seek(0)
        whole = lines.read().rpartition(b"\n")
        lines.truncate(len(whole[0]) + len(whole[1]))

        def write(values: Mapping[str, Any]) -> None:
            lines.write(json.dumps(values).encode() + b"\n")
            lines.flush()

        if not whole[1]:
            write(series.head)
        yield lambda result: write(dataclasses.asdict(result))


def _check_head(series: Series[J, R], kept: Path, line: str) -> None:
    found = _parsed(kept, 1, line)
    if "study" not in found:
        raise InvalidValue(
            f"{kept} does not begin with the head of a study; move it away", field="out"
        )
    for name, value in series.head.items():
        if found.get(name) != value:
            raise InvalidValue(
                f"{kept} holds another run, with {name} {json.dumps(found.get(name))}"
                f" instead of {json.dumps(value)}; move it away or choose another folder",
                field="out",
            )


def _result(series: Series[J, R], kept: Path, number: int, line: str) -> R:
    values = _parsed(kept, number, line)
    try:
        return series.result(**(values | {"job": series.job(**values["job"])}))
    except (KeyError, TypeError) as error:
        raise InvalidValue(
            f"{kept}, line {number} is no result of study {series.study}: {error}", field="out"
        ) from error


def _parsed(kept: Path, number: int, line: str) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except ValueError as error:
        raise InvalidValue(f"{kept}, line {number} is not JSON", field="out") from error
    if not isinstance(values, dict):
        raise InvalidValue(f"{kept}, line {number} is not a JSON object", field="out")
    return {name: _tuples(value) for name, value in values.items()}


def _job(result: Plain) -> Plain:
    job: Plain = result.job  # type: ignore[attr-defined] # every result of a series has one
    return job


def _key(job: Plain) -> str:
    return json.dumps(dataclasses.asdict(job), sort_keys=True)


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as they are read back."""
    found: dict[str, Any] = json.loads(json.dumps(dict(values)))
    return {name: _tuples(value) for name, value in found.items()}


def _tuples(value: Any) -> Any:  # noqa: ANN401 -- whatever JSON holds
    """JSON knows lists only, and a frozen value holds tuples."""
    if isinstance(value, list):
        return tuple(_tuples(one) for one in value)
    if isinstance(value, dict):
        return {name: _tuples(one) for name, one in value.items()}
    return value
