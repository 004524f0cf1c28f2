"""What simulated sessions came to, as plain values and as a table."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.table import Table

from app.core.plan import METHOD_VERSION, Claim
from app.core.policies import Policy
from app.core.stopping import StopReason
from app.study.simulation import Run, Truth


@dataclass(frozen=True, slots=True)
class Study:
    """Sessions on one pool with one policy and one claim, differing by their seeds only."""

    file: str
    truth: Truth
    policy: Policy
    claim: Claim
    seed: int
    runs: Sequence[Run]

    @property
    def risk(self) -> float:
        """What the intervals had to hold: the risk of the pool in the file.

        An interval for the population holds it too, unless the interval for the pool has failed.
        """
        return float(self.truth.loss.mean())

    @property
    def labels(self) -> dict[str, float]:
        """Labels to the stop over all sessions."""
        labels = np.array([run.labels for run in self.runs])
        return {
            "median": float(np.median(labels)),
            "p90": float(np.percentile(labels, 90)),
            "min": int(labels.min()),
            "max": int(labels.max()),
        }

    @property
    def missed(self) -> int:
        """Sessions whose interval ever lost the risk."""
        return sum(run.missed for run in self.runs)

    @property
    def reached(self) -> int:
        """Sessions that reached the precision."""
        return sum(run.stopped == StopReason.TARGET_REACHED for run in self.runs)

    @property
    def answers(self) -> list[dict[str, Any]]:
        """Of every question, how many sessions gave which answer."""
        return [
            {
                "side": question.side,
                "threshold": question.threshold,
                **{
                    answer: sum(run.answers[at] == answer for run in self.runs)
                    for answer in ("yes", "no", "undecided")
                },
            }
            for at, question in enumerate(self.claim.questions)
        ]

    @property
    def seconds_per_round(self) -> float:
        """Median over the sessions of the time of a proposal and a fold."""
        return float(np.median([run.seconds / run.labels for run in self.runs]))

    def to_dict(self) -> dict[str, Any]:
        """Plain values; all but the seconds are the same for the same file, options and seed."""
        return {
            "file": self.file,
            "items": int(self.truth.loss.size),
            "scale": {"lower": self.truth.lower, "upper": self.truth.upper},
            "policy": self.policy.parameters(),
            "method_version": METHOD_VERSION,
            "target": self.claim.target,
            "population_bound": self.claim.population_bound,
            "alpha": self.claim.alpha,
            "precision": self.claim.precision,
            "seed": self.seed,
            "runs": len(self.runs),
            "pool_risk": self.risk,
            "labels": self.labels,
            "reached": self.reached,
            "answers": self.answers,
            "missed": self.missed,
            "seconds_per_round": self.seconds_per_round,
            "sessions": [
                {name: value for name, value in asdict(run).items() if name != "seconds"}
                for run in self.runs
            ],
        }

    def to_table(self) -> Table:
        """The same for a reader."""
        labels, items = self.labels, int(self.truth.loss.size)
        title = f"{self.policy.name}, target {self.claim.target}, {self.file}"
        table = Table(title=title, title_justify="left", show_header=False)
        table.add_column(style="bold")
        table.add_column(justify="right")
        share = labels["median"] / items
        table.add_row("items", f"{items:,}")
        table.add_row("pool risk", f"{self.risk:.4f}")
        width = self.claim.precision
        asked = "none" if width is None else f"{width:g}"
        table.add_row("width asked for", f"{asked} at alpha {self.claim.alpha:g}")
        table.add_row("labels, median", f"{labels['median']:,.0f} ({share:.1%} of the pool)")
        table.add_row("labels, 90 %", f"{labels['p90']:,.0f}")
        table.add_row("labels, least to most", f"{labels['min']:,} to {labels['max']:,}")
        if width is not None:
            table.add_row("sessions that reached it", f"{self.reached} of {len(self.runs)}")
        for one in self.answers:
            question = f"{one['side'].replace('_', ' ')} {one['threshold']:g}"
            counts = ", ".join(f"{one[name]} {name}" for name in ("yes", "no", "undecided"))
            table.add_row(f"answers to {question}", counts)
        table.add_row("sessions that ever missed the pool risk", f"{self.missed}")
        table.add_row("time per round", f"{1e3 * self.seconds_per_round:.3f} ms")
        return table
