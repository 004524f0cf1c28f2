"""The child process that checks the file of a run and writes down what it leads to.

The job's files are the run, and two empty ones for the rows of its ledger and its trajectory, in
the text format of COPY. One frame answers: what the session's own row is to hold.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import IO, Any, Never
from uuid import UUID

import numpy as np
import orjson

from celeus.core.plain import Mismatch
from celeus.core.pools.pool import Pool
from celeus.core.pools.rows.growth import pool_of_batches
from celeus.core.runs.check_run import Opening, Run, opening_of, run_of
from celeus.errors import BadRows, InvalidValue
from celeus.operations.runs.lines import numbered, row_batches
from celeus.operations.runtime.session_record import SessionRecord, status_document
from celeus.operations.runtime.workers import Files, Frame, serve
from celeus.operations.sessions.event_rows import KIND_NUMBERS

WRITE_BYTES = 1 << 20
NUL = "\\N"


def work(job: Frame, files: Files) -> Iterator[Frame]:
    """The session in the file, checked."""
    source, events, trajectory = files
    opening = None
    try:
        lines = numbered(source)
        opening = opening_of(next(lines, b""))
        project = UUID(job.values["project"])
        opening = replace(opening, session=_session_id(project, opening))
        pool = _pool(opening, lines, job.values["max_items"])
        run = run_of(opening, pool, lines, job.values["at"])
    except Mismatch as differs:
        _refuse(differs, opening)
    run.state.question.check_budget(run.plan.budget)
    session_id = UUID(bytes=run.session)
    place = f"{job.values['project']}\t{session_id}"
    _write(events, (f"{place}\t{_event(orjson.loads(record))}\n" for record in run.records))
    _write(trajectory, (f"{place}\t{point}\n" for point in _trajectory(run)))
    rule = run.state.stopping
    yield Frame(
        {
            "session": run.session.hex(),
            "pool": opening.form.to_dict(),
            "pool_digest": pool.digest,
            "plan": run.plan.to_dict(),
            "plan_digest": run.plan.digest,
            "commitment": run.plan.commitment,
            "seed": run.seed.hex(),
            "precision": rule.precision,
            "budget": rule.budget,
            "sequence": run.state.sequence,
            "revision": 1 + run.amendments,
            "drawn": run.state.drawn,
            "head": run.head.hex(),
            "status": _status(run, pool, job),
        }
    )


def _session_id(project_id: UUID, opening: Opening) -> bytes:
    """Return the id that a run's session has in a project, the same at every push.

    With the run's own id, a push would show whether another project has that session, and could
    take the id before its project does. It begins with the time of the run's opening, as other ids
    do: lists are in their order.
    """
    opened = int(np.datetime64(opening.created_at[:-6], "ms").astype(np.int64))
    digest = hashlib.sha256(b"celeus-pushed-1" + project_id.bytes + opening.session).digest()
    return max(opened, 0).to_bytes(6, "big") + digest[:10]


def _pool(opening: Opening, lines: Iterator[bytes], most: int) -> Pool:
    growth = opening.form.growth
    growth.most_items = most
    growth.check_count(opening.items)
    try:
        batches = row_batches(lines, opening.items)
        return pool_of_batches(batches, growth, opening.form.score).pool
    except BadRows:
        first = growth.faults[0]
        raise InvalidValue(
            f"{growth.faulty} rows of the file cannot become items; nothing was kept.",
            field=f"line {first.line}",
            rule=f"{first.field}: {first.rule}",
            value=str(first.value)[:100],
        ) from None


def _refuse(differs: Mismatch, opening: Opening | None) -> Never:
    """The refusal by the line of the file that is not as it has to be."""
    where, line = differs.where, "line 1"
    if where.startswith("ledger[") and opening is not None:
        index, _, inner = where.removeprefix("ledger[").partition("]")
        line = f"line {2 + opening.items + int(index)}"
        where = inner.removeprefix(".").removeprefix(", ") or "the event"
    elif where == "ledger":
        line, where = "the ledger", "what it leads to"
    raise InvalidValue(
        f"The file is no run as one is written: in {line}, {where} is not what it has to be.",
        field=line,
        rule=f"{where}: {differs.found}",
        value=differs.claimed,
    ) from differs


def _event(record: dict[str, Any]) -> str:
    """A record as a row of `events`, without project and session."""
    losses = record.get("losses")
    strata, detail = record.get("strata_q"), record.get("detail")
    values = (
        record["sequence"],
        KIND_NUMBERS[record["kind"]],
        *(record.get(name) for name in ("round", "item", "q")),
        None if strata is None else f"\\\\x{strata}",
        *(record.get(name) for name in ("seen", "loss")),
        None if losses is None else f"{{{','.join(map(_number, losses))}}}",
        # JSON holds no raw tab or line break: only its backslashes need another
        None if detail is None else orjson.dumps(detail).decode().replace("\\", "\\\\"),
        record["at"],
    )
    return "\t".join(NUL if value is None else str(value) for value in values)


def _number(value: float | None) -> str:
    return "NULL" if value is None else repr(value)


def _trajectory(run: Run) -> Iterator[str]:
    """The points as rows of `trajectory`, without project and session."""
    for point, sequence in zip(run.state.question.points, run.folded_at, strict=True):
        interval = point.interval
        ends = f"{interval.lower!r}\t{interval.upper!r}"
        yield f"{point.round}\t{sequence}\t{point.estimate!r}\t{ends}"


def _status(run: Run, pool: Pool, job: Frame) -> dict[str, Any]:
    """The status document; of the pool's id the service alone knows."""
    pushed_at = job.values["at"]
    record = SessionRecord(
        project_id=UUID(job.values["project"]),
        session_id=UUID(bytes=run.session),
        pool_id=UUID(int=0),
        lifecycle="closed",
        revision=1 + run.amendments,
        lease_seconds=job.values["lease_seconds"],
        created_at=datetime.fromisoformat(pushed_at),
        ledger_head=run.head,
        origin={"kind": "pushed", "at": pushed_at},
    )
    return status_document(record, run.state, pool)


def _write(file: IO[bytes], rows: Iterable[str]) -> None:
    """Write rows to a file, which others read from its beginning."""
    waiting: list[str] = []
    size = 0
    with open(os.dup(file.fileno()), "wb") as sink:  # noqa: PTH123 -- of a descriptor
        for row in rows:
            waiting.append(row)
            size += len(row)
            if size >= WRITE_BYTES:
                sink.write("".join(waiting).encode())
                waiting, size = [], 0
        sink.write("".join(waiting).encode())


if __name__ == "__main__":
    serve(work)
