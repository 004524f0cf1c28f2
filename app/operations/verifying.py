"""Verify one certificate within limits; also the process that does so for the service.

    python -m app.operations.verifying SECONDS [--pool FD] [--key HEX] < certificate

A process of its own, so that a hostile certificate can take nothing from the server but what it
was given: it can be killed at any moment. Its answer is one line of JSON, a report or a refusal.
"""

import argparse
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import IO, Any, Never

from app.core.report import Report
from app.core.verification import NOTHING_NOTED, verify
from app.errors import Refusal, VerificationTooCostly
from app.operations.archives import read_archive

MOST_MEMORY_BYTES = 4 << 30
NICENESS = 10


def verified(
    certificate: bytes,
    pool: IO[bytes] | None,
    trusted: bytes | None,
    noted: Mapping[int, bytes] = NOTHING_NOTED,
) -> Report:
    """The report on a certificate; refuses a pool's archive that cannot be read."""
    evidence = None if pool is None else read_archive(pool)
    return verify(certificate, evidence, trusted, noted)


@contextmanager
def limited(seconds: float, memory_bytes: int = MOST_MEMORY_BYTES) -> Iterator[None]:
    """Refuse what takes more time of the processor, or more memory, than this process may."""

    def late(number: int, frame: FrameType | None) -> Never:
        del number, frame
        raise _too_costly(f"{seconds:g} s of processor time")

    before = resource.getrlimit(resource.RLIMIT_AS)
    most = memory_bytes if before[1] == resource.RLIM_INFINITY else min(memory_bytes, before[1])
    handler = signal.signal(signal.SIGPROF, late)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, seconds)
        yield
        if time.process_time() - began > seconds:
            # The timer ticks every few milliseconds only
            raise _too_costly(f"{seconds:g} s of processor time")
    except MemoryError:
        raise _too_costly(f"{memory_bytes >> 30} GiB of memory") from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def refusal_members(refusal: Refusal) -> dict[str, Any]:
    """A refusal on its way to the process that asked."""
    return {
        "code": refusal.code,
        "detail": refusal.detail,
        "field": refusal.field,
        "rule": refusal.rule,
    }


def main() -> None:
    """Read a certificate, give way to everybody else, answer."""
    asked = argparse.ArgumentParser()
    asked.add_argument("seconds", type=float)
    asked.add_argument("--pool", type=int)
    asked.add_argument("--key", type=bytes.fromhex)
    given = asked.parse_args()
    os.nice(NICENESS)
    try:
        with limited(given.seconds):
            pool = None if given.pool is None else os.fdopen(given.pool, "rb")
            report = verified(sys.stdin.buffer.read(), pool, given.key)
            answer = {"report": report.to_dict()}
    except Refusal as refusal:
        answer = {"refusal": refusal_members(refusal)}
    json.dump(answer, sys.stdout)


def _too_costly(what: str) -> VerificationTooCostly:
    return VerificationTooCostly(
        "The certificate takes too long or too much memory to verify; `celeus verify --seconds` may"
        " be given more time.",
        field="certificate",
        rule=f"verified within {what}",
    )


if __name__ == "__main__":
    main()
