"""The report on simulated sessions, as plain values and as a table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol, get_args

import numpy as np
from rich.table import Table

from celeus.core.interval import Interval
from celeus.core.plans.plan import METHOD_VERSION, Claim
from celeus.core.plans.policies import Policy
from celeus.core.plans.stopping import Comparison, StopReason, Verdict
from celeus.simulation.sessions import Run, Truth


def labels_of(counts: Sequence[int]) -> dict[str, float]:
    """Median, 90 % quantile and range of the labels that sessions took."""
    return {
        "median": float(np.median(counts)),
        "p90": float(np.percentile(counts, 90)),
        "min": min(counts),
        "max": max(counts),
    }


def label_rows(labels: Mapping[str, float], items: int) -> list[tuple[str, str]]:
    """The rows of a report that say how many labels sessions took."""
    share = labels["median"] / items
    return [
        ("labels, median", f"{labels['median']:,.0f} ({share:.1%} of the pool)"),
        ("labels, 90 %", f"{labels['p90']:,.0f}"),
        ("labels, least to most", f"{labels['min']:,} to {labels['max']:,}"),
    ]


def table_of(title: str, rows: Iterable[tuple[str, str]], seconds: float) -> Table:
    """A report of two columns, its last row the seconds of a round."""
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    for row in (*rows, ("time per round", f"{1e3 * seconds:.3f} ms")):
        table.add_row(*row)
    return table


class TimedRun(Protocol):
    """One simulated session: its labels to the stop, and the processor's seconds."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def labels(self) -> int:
        """Labels up to the stop."""

    @property
    def seconds(self) -> float:
        """Seconds of the processor for all proposals and folds."""


class RunsReport:
    """The figures that reports on simulated sessions of every kind share."""

    __slots__ = ()
    runs: Sequence[TimedRun]

    @property
    def labels(self) -> dict[str, float]:
        """Labels to the stop over all sessions."""
        return labels_of([run.labels for run in self.runs])

    @property
    def seconds_per_round(self) -> float:
        """Median over the sessions of the time of a proposal and a fold."""
        return float(np.median([run.seconds / run.labels for run in self.runs]))

    @property
    def sessions(self) -> list[dict[str, Any]]:
        """Every session as plain values, but for its seconds."""
        return [
            {name: value for name, value in asdict(run).items() if name != "seconds"}
            for run in self.runs
        ]


@dataclass(frozen=True, slots=True)
class Report(RunsReport):
    """Sessions on one pool with one policy and one claim, differing by their seeds only."""

    file: str
    truth: Truth
    policy: Policy
    claim: Claim
    seed: int
    runs: Sequence[Run]
    ahead: int = 1

    @property
    def risk(self) -> float:
        """The risk of the pool in the file, which the intervals had to contain.

        An interval for the population holds it too, unless the interval for the pool has failed.
        """
        return self.truth.risk

    @property
    def missed(self) -> int:
        """Sessions whose interval ever lost the risk."""
        return sum(run.missed for run in self.runs)

    @property
    def reached(self) -> int:
        """Sessions that reached the precision."""
        return sum(run.stopped == StopReason.TARGET_REACHED for run in self.runs)

    @property
    def known(self) -> int:
        """Items whose loss is known before the first draw."""
        facts = self.truth.facts.known
        return 0 if facts is None else facts.items

    @property
    def effective_items(self) -> float | None:
        """The number of equally weighted items that say as much; None where all weigh the same."""
        weights = self.truth.facts.weights
        return None if weights is None else weights.effective_items

    @property
    def verdicts(self) -> dict[str, int]:
        """The number of sessions by verdict on two systems."""
        return {
            verdict: sum(run.verdict == verdict for run in self.runs)
            for verdict in get_args(Comparison)
        }

    @property
    def wrong(self) -> int:
        """Sessions that gave any answer which is not so."""
        risk, slack = self.risk, 1e-12 * (self.truth.upper - self.truth.lower)
        risk_interval = Interval(risk, risk)
        count = 0
        for run in self.runs:
            right = [question.answer(risk_interval, slack) for question in self.claim.questions]
            answers = zip(run.answers, right, strict=True)
            lost = any(given not in {"undecided", correct} for given, correct in answers)
            if run.verdict is not None and self.claim.decide is not None:
                lost |= Verdict(self.claim.decide, run.verdict).contradicted(risk_interval, slack)
            count += lost
        return count

    @property
    def answers(self) -> list[dict[str, Any]] | dict[str, int]:
        """The number of sessions by answer, to every question or for the verdict."""
        return self.questions if self.claim.decide is None else self.verdicts

    @property
    def questions(self) -> list[dict[str, Any]]:
        """The number of sessions by answer, for every question."""
        return [
            {
                "side": question.side,
                "threshold": question.threshold,
                **{
                    answer: sum(run.answers[index] == answer for run in self.runs)
                    for answer in ("yes", "no", "undecided")
                },
            }
            for index, question in enumerate(self.claim.questions)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values; all but the seconds are the same for the same file, options and seed."""
        return {
            "file": self.file,
            "items": int(self.truth.loss.size),
            "scale": {"lower": self.truth.lower, "upper": self.truth.upper},
            "policy": self.policy.to_dict(),
            "method_version": METHOD_VERSION,
            "target": self.claim.target,
            "population_bound": self.claim.population_bound,
            "alpha": self.claim.alpha,
            "precision": self.claim.precision,
            "margin": self.claim.decide,
            "seed": self.seed,
            "ahead": self.ahead,
            "runs": len(self.runs),
            "known": self.known,
            "effective_items": self.effective_items,
            "pool_risk": self.risk,
            "labels": self.labels,
            "reached": self.reached,
            "answers": self.answers,
            "missed": self.missed,
            "wrong": self.wrong,
            "seconds_per_round": self.seconds_per_round,
            "sessions": self.sessions,
        }

    def to_table(self) -> Table:
        """The report as a table for the terminal."""
        items, width, effective = (
            int(self.truth.loss.size),
            self.claim.precision,
            self.effective_items,
        )
        width_text = "none" if width is None else f"{width:g}"
        weighted, risk = "" if effective is None else "weighted ", f"{self.risk:.4f}"
        rows = [
            ("items", f"{items:,}"),
            *([("known beforehand", f"{self.known:,}")] if self.known else []),
            *([("effective items", f"{effective:,.0f}")] if effective is not None else []),
            (f"{weighted}{'difference' if self.truth.difference else 'pool risk'}", risk),
            ("width asked for", f"{width_text} at alpha {self.claim.alpha:g}"),
            *label_rows(self.labels, items),
        ]
        if width is not None:
            rows.append(("sessions that reached it", f"{self.reached} of {len(self.runs)}"))
        for question in self.questions:
            line = f"{question['side'].replace('_', ' ')} {question['threshold']:g}"
            counts = ", ".join(f"{question[name]} {name}" for name in ("yes", "no", "undecided"))
            rows.append((f"answers to {line}", counts))
        if self.claim.decide is not None:
            counts = ", ".join(
                f"{number} {name.replace('_', ' ')}" for name, number in self.verdicts.items()
            )
            rows.append((f"verdicts, margin {self.claim.decide:g}", counts))
        if self.claim.questions or self.claim.decide is not None:
            rows.append(("sessions with a wrong answer", f"{self.wrong}"))
        rows.append(("sessions that ever missed the pool risk", f"{self.missed}"))
        if not self.policy.recentred:
            rows.append(("guarantee", "none: for comparison only"))
        title = f"{self.policy.name}, target {self.claim.target}, {self.file}"
        return table_of(title, rows, self.seconds_per_round)
