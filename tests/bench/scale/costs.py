"""What a label cycle costs the machines: the one table that the model of the service computes with.

`make bench ARGS="--part size"` measures it anew; docs/evidence/scale.md quotes it.
"""

from dataclasses import dataclass

from tests.bench.results import Line


@dataclass(frozen=True, slots=True)
class Costs:
    """Milliseconds of processor time a cycle, and of waiting for the disk.

    ``service_spread`` is the standard deviation by the mean. What is ``together`` is the price of
    a cycle among many that one group of requests takes.
    """

    service: float
    service_spread: float
    service_together: float
    database: float
    database_together: float
    redis: float
    client: float
    flush: float

    def lines(self) -> list[Line]:
        """The same for people."""
        return [
            Line("processor time a cycle: service", [self.service], "ms"),
            Line("… standard deviation by the mean", [self.service_spread], ""),
            Line("… of many on one session", [self.service_together], "ms"),
            Line("processor time a cycle: PostgreSQL", [self.database], "ms"),
            Line("… of many on one session", [self.database_together], "ms"),
            Line("processor time a cycle: Redis", [self.redis], "ms"),
            Line("processor time a cycle: the benchmark's client", [self.client], "ms"),
            Line("8 KiB on disk (fdatasync)", [self.flush], "ms"),
        ]


MEASURED = Costs(
    service=2.1,
    service_spread=0.2,
    service_together=0.98,
    database=0.65,
    database_together=0.23,
    redis=0.07,
    client=0.12,
    flush=2.5,
)
"""As docs/evidence/scale.md has them, with date and machine. The flush is a slower disk's."""
