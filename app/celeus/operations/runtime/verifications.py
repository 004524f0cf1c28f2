"""Have certificates verified in a child process."""

from collections.abc import Mapping
from typing import IO, Any

from celeus.errors import VerificationTooCostly
from celeus.operations.runtime.gathering import only_answer
from celeus.operations.runtime.workers import Bounds, Frame, WorkerFailed

MODULE = "celeus.operations.certificates.verify_worker"
MOST_MEMORY_BYTES = 4 << 30
PATIENCE = 2.0
"""Longest wall time of the process, as a multiple of its processor time."""
START_SECONDS = 10.0


def bounds_of(seconds: float, memory: int = MOST_MEMORY_BYTES) -> Bounds:
    """Bounds of a verification that may take ``seconds`` of a processor."""
    return Bounds(PATIENCE * seconds + START_SECONDS, seconds, memory)


async def report_on(
    files: Mapping[str, IO[bytes]],
    trusted: bytes | None,
    bounds: Bounds,
    noted: Mapping[int, bytes] | None = None,
) -> dict[str, Any]:
    """The report of `verify` on the ``certificate`` among the files.

    Beside it may be its ``pool``'s archive, ``items`` and ``timestamp_roots``. Refuses an
    archive and roots that cannot be read, and what takes more than its bounds.
    """
    job = Frame(
        {
            "seconds": bounds.processor_seconds,
            "trusted": None if trusted is None else trusted.hex(),
            "noted": {str(sequence): head.hex() for sequence, head in (noted or {}).items()},
            "files": list(files),
        }
    )
    try:
        return await only_answer(MODULE, job, bounds, list(files.values()))
    except WorkerFailed as failure:
        raise _too_costly(failure, bounds) from failure


def _too_costly(failure: WorkerFailed, bounds: Bounds) -> VerificationTooCostly:
    if failure.reason == "memory":
        return VerificationTooCostly.of(f"{bounds.memory >> 30} GiB of memory")
    if failure.reason == "time":
        return VerificationTooCostly.of(f"{bounds.seconds:g} s")
    if failure.reason == "answer":
        return VerificationTooCostly.of(f"{bounds.answer >> 20} MiB of a report")
    return VerificationTooCostly.of(f"{bounds.processor_seconds:g} s of processor time")
