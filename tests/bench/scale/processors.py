"""Processor time of everything a benchmark runs, by what it is.

A busy machine stretches wall time without bound, processor time by little: figures that others
compute with come from here.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

CLIENT = "client"
SERVICE = "service"
_NAMES = {"postgres": "database", "redis": "redis"}


@dataclass(frozen=True, slots=True)
class Processors:
    """The processes that run now: this one (``client``) and its descendants, each with its kind.

    The kinds are ``service``, ``database`` and ``redis``. Linux alone.
    """

    kinds: dict[int, str]

    @classmethod
    def now(cls) -> Self:
        """Those of the moment."""
        return cls(dict(_kinds()))

    def seconds(self) -> dict[str, float]:
        """Processor seconds so far, by kind."""
        spent = dict.fromkeys(self.kinds.values(), 0.0)
        for pid, kind in self.kinds.items():
            # Some end meanwhile
            with suppress(OSError):
                spent[kind] += time.clock_gettime(_clock(pid))
        return spent


def _kinds() -> Iterator[tuple[int, str]]:
    for pid in _family(os.getpid()):
        with suppress(OSError):
            yield pid, _kind(pid)


def _clock(pid: int) -> int:
    """The clock of a process's processor time: clock_getcpuclockid(3), CPUCLOCK_SCHED."""
    return (~pid << 3) | 2


def _kind(pid: int) -> str:
    if pid == os.getpid():
        return CLIENT
    name = Path(f"/proc/{pid}/comm").read_text()
    return next((kind for start, kind in _NAMES.items() if name.startswith(start)), SERVICE)


def _family(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in task.read_text().split():
                yield from _family(int(child))


def resident_mib(kind: str = SERVICE) -> float:
    """Memory of all processes of a kind together, in MiB."""
    pages = 0
    for pid, found in _kinds():
        if found == kind:
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
