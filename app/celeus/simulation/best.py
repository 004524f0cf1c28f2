"""Simulated sessions that seek the best of k systems, and the report on them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from celeus.core.plans.best_plan import BETA, BestPlan, require_difference
from celeus.core.plans.plan import METHOD_VERSION
from celeus.core.session.best.best_question import Best
from celeus.core.session.best.candidates import Candidates
from celeus.core.session.session import Session, judge_rounds
from celeus.simulation.report import RunsReport, label_rows, table_of

Floats = NDArray[np.float64]
Stop = Literal["decided", "exhausted", "budget"]

TIE = 1e-9
"""Mean losses on the unit scale that differ by less are the same."""


@dataclass(frozen=True, slots=True)
class BestRun:
    """One session: labels, why it stopped, who was left then, and the round each left at or 0.

    ``wrong``: none of the best systems was left at some round. ``seconds`` are the processor's.
    """

    labels: int
    stopped: Stop
    standing: tuple[int, ...]
    leader: int
    out_at: tuple[int, ...]
    wrong: bool
    seconds: float


def best_systems(losses: Floats) -> NDArray[np.intp]:
    """The systems with the least mean loss."""
    risk = losses.mean(axis=0)
    return np.flatnonzero(risk <= risk.min() + TIE)


def seek(  # noqa: PLR0913 -- a session, and how it is judged
    candidates: Candidates,
    losses: Floats,
    alpha: float,
    seed: bytes,
    *,
    beta: float,
    budget: int | None = None,
    ahead: int = 1,
) -> BestRun:
    """Judge items until one system is left, the pool is exhausted or the budget spent."""
    began = time.process_time()
    plan = plan_for(candidates, alpha, beta=beta, budget=budget)
    session = Session.of(Best(plan, candidates, seed), seed)
    for _ in judge_rounds(session, lambda item: tuple(losses[item].tolist()), ahead=ahead):
        pass
    standing = session.question.race.standing
    stopped: Stop = "budget" if session.question.is_open else "exhausted"
    return BestRun(
        labels=session.folded,
        stopped="decided" if standing.size == 1 else stopped,
        standing=tuple(standing.tolist()),
        leader=session.question.leader,
        out_at=tuple(session.question.race.out_at.tolist()),
        wrong=not np.isin(best_systems(losses), standing).any(),
        seconds=time.process_time() - began,
    )


def plan_for(
    candidates: Candidates, alpha: float, *, beta: float = BETA, budget: int | None = None
) -> BestPlan:
    """The plan of a simulated session on systems without names; losses lie on the unit scale."""
    known = int((~candidates.open(np.arange(candidates.count))).sum())
    require_difference(candidates.items, known, "answer")
    return BestPlan(
        pool_digest="simulated",
        items=candidates.items,
        known=known,
        systems=tuple(f"system {number}" for number in range(1, candidates.count + 1)),
        lower=0.0,
        upper=1.0,
        alpha=alpha,
        budget=candidates.items - known if budget is None else budget,
        commitment="simulated",
        beta=beta,
    )


@dataclass(frozen=True, slots=True)
class BestReport(RunsReport):
    """Sessions on one file that differ by their seeds; ``lower`` and ``upper`` are its scale."""

    file: str
    candidates: Candidates
    losses: Floats
    lower: float
    upper: float
    alpha: float
    budget: int | None
    seed: int
    runs: Sequence[BestRun]
    ahead: int = 1

    @property
    def known(self) -> int:
        """Items that are never drawn, since all systems gave the same answer."""
        return int((~self.candidates.open(np.arange(self.candidates.count))).sum())

    @property
    def risks(self) -> list[float]:
        """Mean loss of every system."""
        unit: list[float] = self.losses.mean(axis=0).tolist()
        return [self.lower + (self.upper - self.lower) * risk for risk in unit]

    @property
    def decided(self) -> int:
        """Sessions that ended with one system."""
        return sum(run.stopped == "decided" for run in self.runs)

    @property
    def standing(self) -> list[int]:
        """The number of sessions in which each system was left at the end."""
        systems = range(self.candidates.count)
        return [sum(system in run.standing for run in self.runs) for system in systems]

    @property
    def wrong(self) -> int:
        """Sessions that lost every one of the best."""
        return sum(run.wrong for run in self.runs)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; all but the seconds are the same for the same file, options and seed."""
        return {
            "file": self.file,
            "items": self.candidates.items,
            "systems": self.candidates.count,
            "scale": {"lower": self.lower, "upper": self.upper},
            "method_version": METHOD_VERSION,
            "alpha": self.alpha,
            "budget": self.budget,
            "seed": self.seed,
            "ahead": self.ahead,
            "runs": len(self.runs),
            "known": self.known,
            "risks": self.risks,
            "best": best_systems(self.losses).tolist(),
            "labels": self.labels,
            "decided": self.decided,
            "standing": self.standing,
            "wrong": self.wrong,
            "seconds_per_round": self.seconds_per_round,
            "sessions": self.sessions,
        }

    def to_table(self) -> Table:
        """The report as a table for the terminal."""
        items, runs = self.candidates.items, len(self.runs)
        rows = [
            ("items", f"{items:,}"),
            *([("the same answer from all", f"{self.known:,}")] if self.known else []),
            *label_rows(self.labels, items),
            (f"one system left at alpha {self.alpha:g}", f"{self.decided} of {runs}"),
        ]
        for system in np.argsort(self.risks, kind="stable").tolist():
            left = sorted(run.out_at[system] for run in self.runs if run.out_at[system])
            text = f"stood in {self.standing[system]} of {runs}"
            if left:
                text += f", left at {left[len(left) // 2]:,}"
            rows.append((f"system {system}, mean loss {self.risks[system]:.4f}", text))
        rows.append(("sessions that lost the best", f"{self.wrong}"))
        title = f"best of {self.candidates.count} systems, {self.file}"
        return table_of(title, rows, self.seconds_per_round)
