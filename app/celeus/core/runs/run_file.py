"""The head of a run's file: its pool, its plan, and its seed.

line 1                  the header: format, session, pool, plan and seed
as many as it has items the rows, as an upload has them
all others              the records of the ledger, as the hash chain takes them
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.rows.growth import Growth
from celeus.core.pools.score import Score
from celeus.core.pools.systems import AnySystems, systems_from

KIND = "celeus-run-"
FORMAT = f"{KIND}1"
HEADER = ("created_at", "format", "items", "plan", "pool", "seed", "session")
"""The members of a header."""


@dataclass(frozen=True, slots=True)
class PoolForm:
    """The facts about a pool beside its items, as in a request to create one.

    A pool of ``metrics`` has the scale of the first of them.
    """

    name: str
    scale: LossScale
    named: AnySystems | None = None
    score: Score | None = None
    metrics: tuple[Metric, ...] = ()

    @property
    def growth(self) -> Growth:
        """Empty pool, to which items are added."""
        return Growth(self.scale, self.named, metrics=self.metrics)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        values: dict[str, Any] = {"name": self.name, "loss": asdict(self.scale)}
        if self.named is not None:
            values["systems"] = self.named.to_dict()
        if self.score is not None:
            values["score"] = self.score.to_dict()
        if self.metrics:
            values["metrics"] = [metric.to_dict() for metric in self.metrics]
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the form whose ``to_dict`` gave ``values``."""
        loss, systems, score = values["loss"], values.get("systems"), values.get("score")
        return cls(
            name=values["name"],
            scale=LossScale(loss["kind"], float(loss["lower"]), float(loss["upper"])),
            named=None if systems is None else systems_from(systems),
            score=None if score is None else Score(**score),
            metrics=tuple(map(Metric.from_dict, values.get("metrics", ()))),
        )
