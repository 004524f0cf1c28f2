"""Simulated sessions of many claims on one stream, and the report on them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table as Printed

from celeus.core.plans.plan import METHOD_VERSION
from celeus.core.plans.table_plan import TablePlan, TableSettings, plan_table, table_for
from celeus.core.pools.table_pool import Table
from celeus.core.randomness import commitment
from celeus.core.session.session import Session, judge_rounds
from celeus.core.session.table.table_claims import MeanClaim
from celeus.core.session.table.table_question import Table as TableQuestion
from celeus.simulation.report import RunsReport, labels_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ClaimRun:
    """One claim of a session: labels until it had what it wanted, and ``rounds`` in its interval.

    ``labels`` is None for a claim that never had it, or wanted nothing. ``missed``: its interval
    lost the true risk at some round.
    """

    labels: int | None
    rounds: int
    estimate: float
    lower: float
    upper: float
    missed: bool


@dataclass(frozen=True, slots=True)
class TableRun:
    """One session; ``seconds`` are the processor's for all proposals and folds."""

    labels: int
    stopped: str
    claims: tuple[ClaimRun, ...]
    seconds: float


def risks(plan: TablePlan, table: Table, losses: Floats) -> list[float]:
    """The true risk of every claim of a plan."""
    seen = table_for(plan.small_groups, table)
    columns = {column.name: column for column in seen.columns}
    names = [metric.name for metric in seen.metrics]
    answer = []
    for claim in plan.claims:
        mask = np.ones(seen.items, dtype=np.bool_)
        if claim.column is not None:
            column = columns[claim.column]
            mask = column.code == column.values.index(claim.value or "")
        answer.append(float(losses[mask, names.index(claim.metric)].mean()))
    return answer


def ever_lost(claim: MeanClaim, risk: float) -> bool:
    """The interval of a claim lay beside its risk after at least one of its rounds."""
    slack = 1e-9 * claim.plan.scale.width
    points = claim.fold.points
    lowest = min((point.interval.upper for point in points), default=risk)
    highest = max((point.interval.lower for point in points), default=risk)
    return not highest - slack <= risk <= lowest + slack


def judge_table(  # noqa: PLR0913 -- a session, and how it is judged
    table: Table,
    losses: Floats,
    settings: TableSettings,
    seed: bytes,
    *,
    ahead: int = 1,
    past: bool = False,
) -> TableRun:
    """Judge items until every claim has what it wants, or nothing is left to draw.

    ``past`` goes on after that until nothing is left.
    """
    plan = plan_table(settings, table, "simulated", commitment(seed))
    began = time.process_time()
    session = Session.of(TableQuestion(plan, table, seed), seed)
    for _ in judge_rounds(
        session, lambda item: tuple(losses[item].tolist()), past_stop=past, ahead=ahead
    ):
        pass
    seconds = time.process_time() - began
    claims = tuple(
        ClaimRun(
            labels=session.question.met_at.get(index),
            rounds=claim.fold.rounds,
            estimate=claim.estimate,
            lower=claim.interval.lower,
            upper=claim.interval.upper,
            missed=ever_lost(claim, risk),
        )
        for index, (claim, risk) in enumerate(
            zip(session.question.means, risks(plan, table, losses), strict=True)
        )
    )
    return TableRun(session.folded, str(session.stop_reason), claims, seconds)


@dataclass(frozen=True, slots=True)
class TableReport(RunsReport):
    """Sessions on one file that differ by their seeds."""

    file: str
    table: Table
    losses: Floats
    settings: TableSettings
    seed: int
    runs: Sequence[TableRun]
    ahead: int = 1

    @property
    def plan(self) -> TablePlan:
        """The plan that the sessions share but for their seeds."""
        return plan_table(self.settings, self.table, "simulated", "")

    @property
    def claims(self) -> list[dict[str, Any]]:
        """For every claim its plan, risk, labels where it reached its aim, and misses."""
        plan, rows = self.plan, []
        for index, (claim, risk) in enumerate(
            zip(plan.claims, risks(plan, self.table, self.losses), strict=True)
        ):
            runs = [run.claims[index] for run in self.runs]
            reached = [run.labels for run in runs if run.labels is not None]
            rows.append(
                {
                    "name": claim.name,
                    "metric": claim.metric,
                    "column": claim.column,
                    "value": claim.value,
                    "items": claim.items,
                    "known": claim.known,
                    "whole": claim.whole,
                    "level": claim.level,
                    "precision": claim.precision,
                    "risk": risk,
                    "reached": len(reached),
                    "labels": labels_of(reached) if reached else None,
                    "own_labels": labels_of([run.rounds for run in runs]),
                    "width": float(np.median([run.upper - run.lower for run in runs])),
                    "missed": sum(run.missed for run in runs),
                }
            )
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Plain values; all but the seconds are the same for the same file, options and seed."""
        return {
            "file": self.file,
            "items": self.table.items,
            "known": self.table.items - int(self.table.drawable.sum()),
            "method_version": METHOD_VERSION,
            "alpha": self.settings.alpha,
            "account": self.settings.account,
            "small_groups": self.settings.small_groups,
            "budget": self.settings.budget,
            "seed": self.seed,
            "ahead": self.ahead,
            "runs": len(self.runs),
            "labels": self.labels,
            "claims": self.claims,
            "seconds_per_round": self.seconds_per_round,
            "sessions": self.sessions,
        }

    def to_table(self) -> Printed:
        """The report as a table for the terminal."""
        labels, runs = self.labels, len(self.runs)
        title = (
            f"{len(self.plan.claims)} claims, {self.file}: {labels['median']:,.0f} labels"
            f" ({labels['p90']:,.0f} at 90 %), {1e3 * self.seconds_per_round:.3f} ms a round"
        )
        printed = Printed(title=title, title_justify="left")
        for name in (
            "claim",
            "items",
            "risk",
            "width asked for",
            "labels",
            "own",
            "width",
            "missed",
        ):
            printed.add_column(name, justify="left" if name == "claim" else "right")
        for claim in self.claims:
            asked = "whole" if claim["whole"] else "as it comes"
            if claim["precision"] is not None:
                asked = f"{claim['precision']:g} at {claim['level']:.3g}"
            printed.add_row(
                claim["name"],
                f"{claim['items']:,}",
                f"{claim['risk']:.4f}",
                asked,
                "" if claim["labels"] is None else f"{claim['labels']['median']:,.0f}",
                f"{claim['own_labels']['median']:,.0f}",
                f"{claim['width']:.4f}",
                f"{claim['missed']} of {runs}",
            )
        return printed
