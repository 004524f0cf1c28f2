"""`celeus verify` on a long session: processor time of the whole process."""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from celeus.api.pools.items import archive_of
from celeus.core.plans.plan import Claim
from tests.bench.results import Goal, Line
from tests.core.certifying import World, opened, zero_one_world

ITEMS = 70_000
ROUNDS = 5_000
CLAIMS = [
    Claim(target, precision=precision)
    for target in ("pool", "population")
    for precision in (0.05, 0.02)
]


def certificate_lines(*, quick: bool) -> Iterator[Line]:
    """A certificate of 5 000 rounds of `sharp`, with its pool and without."""
    world = zero_one_world(ITEMS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with archive_of(world.pool) as archive:
            (folder / "pool.npz").write_bytes(archive.read())
        for claim in CLAIMS[:1] if quick else CLAIMS:
            yield from _verified(world, claim, folder, 1 if quick else 3)


def _verified(world: World, claim: Claim, folder: Path, repeats: int) -> Iterator[Line]:
    file = folder / "certificate.json"
    case = opened(world, claim=claim)
    case.go(ROUNDS)
    file.write_bytes(case.certificate())
    what = f"verify {ROUNDS:,} rounds of {ITEMS:,} items, {claim.target} to {claim.precision}"
    for more, pool in (("", []), (", with its pool", ["--pool", str(folder / "pool.npz")])):
        samples = [_seconds([str(file), *pool]) for _ in range(repeats)]
        yield Line(what + more, samples, "s", Goal.most(5, "s"))


def _seconds(arguments: list[str]) -> float:
    """Of the processor, whatever else the machine does."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "celeus.cli", "verify", *arguments]
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
