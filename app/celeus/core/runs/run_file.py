"""The head of a run's file: its pool, its plan, and its seed.

line 1                  the header: format, session, pool, plan and seed
as many as it has items the rows, as an upload has them
all others              the records of the ledger, as the hash chain takes them, and between them
                        how many runs were made of a draw of several that none of them settles
"""

from dataclasses import dataclass
from typing import ClassVar

from celeus.core.plain import Plain
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.rows.growth import PoolBuilder
from celeus.core.pools.score import Score
from celeus.core.pools.systems import AnySystems

KIND = "celeus-run-"
FORMAT = f"{KIND}1"
RUNS = b'{"kind":"runs",'
"""Beginning of a line that says how many runs were made of an open draw."""
HEADER = ("created_at", "format", "items", "plan", "pool", "seed", "session")
"""The members of a header."""


@dataclass(frozen=True, slots=True)
class PoolForm(Plain):
    """The facts about a pool beside its items, as in a request to create one.

    A pool of ``metrics`` has the scale of the first of them.
    """

    name: str
    loss: LossScale
    systems: AnySystems | None = None
    score: Score | None = None
    metrics: tuple[Metric, ...] = ()

    optional: ClassVar = ("systems", "score", "metrics")

    @property
    def growth(self) -> PoolBuilder:
        """Empty pool, to which items are added."""
        return PoolBuilder(self.loss, self.systems, metrics=self.metrics)
