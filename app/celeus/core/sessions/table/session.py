"""A session of many claims, and the fold of its judgements.

    session = TableSession(plan, table, seed)
    draw = session.propose(sequence)    what to judge next; changes nothing
    session.take(draw)                  it is out
    session.judge(draw.round, losses)   it is judged; folds it, and what waited for it

A judgement gives a loss for every metric, on its scale, and None where nobody can tell it. Draws
may be out ahead of losses, and judged in any order: rounds are folded in the order of their draws,
with the probabilities and the fits that they were made with.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from celeus.core.ledger import Draw
from celeus.core.plans.stopping import StopReason
from celeus.core.plans.table import TablePlan, table_for
from celeus.core.pools.table import Mask, Metric, Table
from celeus.core.sampling.proposals import StratifiedProposal
from celeus.core.sessions.state import Coins
from celeus.core.sessions.table.allocation import Wants, allocate
from celeus.core.sessions.table.calibration import TableCalibration
from celeus.core.sessions.table.cells import Cells
from celeus.core.sessions.table.claims import ClaimState, Drawn
from celeus.errors import InvalidValue

Floats = NDArray[np.float64]
Losses = tuple[float | None, ...]


class TableSession:
    """The state of a session; a step changes it. ``claims`` stand in the order of the plan's.

    ``met_at`` says after how many folded rounds a claim had what it wants, by its place among them;
    what wants nothing is not in it.
    """

    __slots__ = (
        "_beta",
        "_budget",
        "_calibration",
        "_coins",
        "_left",
        "_lower",
        "_of_cell",
        "_out",
        "_waiting",
        "_wants",
        "_width",
        "cells",
        "claims",
        "drawn",
        "folded",
        "met_at",
        "proposal",
        "table",
    )

    def __init__(self, plan: TablePlan, table: Table, seed: bytes) -> None:
        self.table = table_for(plan.small_groups, table)
        self.cells = Cells.of(self.table)
        self.proposal = StratifiedProposal(self.cells.strata, seed, plan.beta)
        self._beta, self._budget = plan.beta, plan.budget
        self._coins = Coins(seed)
        self._calibration = TableCalibration(self.cells)
        self._left: Floats = self.cells.strata.size.astype(np.float64)
        self._lower = np.array([metric.scale.lower for metric in plan.metrics])
        self._width = np.array([metric.scale.width for metric in plan.metrics])
        self.claims = self._claims(plan)
        member = np.zeros((len(self.claims), self.cells.count), dtype=np.bool_)
        for at, claim in enumerate(self.claims):
            member[at, claim.cells] = True
        self._of_cell = [np.flatnonzero(one).tolist() for one in member.T]
        self._wants = Wants.of(self.cells, self.claims, len(plan.metrics))
        self.drawn: list[int] = []
        self.folded = 0
        self.met_at: dict[int, int] = {}
        self._note_met(range(len(self.claims)))
        self._out: deque[Drawn] = deque()
        self._waiting: dict[int, Losses] = {}

    def _claims(self, plan: TablePlan) -> list[ClaimState]:
        names = [metric.name for metric in plan.metrics]
        masks: dict[tuple[str | None, str | None], Mask] = {
            (column.name, value): column.code == number
            for column in self.table.columns
            for number, value in enumerate(column.values)
        }
        masks[None, None] = np.ones(self.table.items, dtype=np.bool_)
        claims = []
        for claim in plan.claims:
            metric = names.index(claim.metric)
            mask = self.cells.of_items(masks[claim.column, claim.value])
            where = np.flatnonzero(mask & self.cells.open[metric])
            fits = self._calibration.fits
            own = plan.of(claim)
            claims.append(ClaimState(claim, own, metric, where, self.cells, self._left, fits))
        return claims

    @property
    def can_draw(self) -> bool:
        """Pool and budget leave something to draw."""
        return len(self.drawn) < self._budget

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the session stops, or None to go on."""
        wanting = sum(claim.claim.wants for claim in self.claims)
        if wanting and len(self.met_at) == wanting:
            return StopReason.TARGET_REACHED
        if not self._left.any():
            return StopReason.EXHAUSTED
        return StopReason.BUDGET_SPENT if self.folded >= self._budget else None

    @property
    def _q(self) -> Floats:
        moment, left = self._calibration.fits.moment, self.proposal.left
        return allocate(self.cells, self._wants, moment, left, self._beta)

    def propose(self, sequence: int = 0) -> Draw:
        """The next draw, made after ``sequence`` events. Changes nothing."""
        round_ = len(self.drawn) + 1
        item, q, strata_q = self.proposal.pick(self._coins.of_round(round_), self._q)
        return Draw(round_, item, q, sequence, strata_q)

    def chance(self, item: int, sequence: int = 0) -> Draw:
        """An item left, with the probabilities it would be drawn with now."""
        q = self._q
        own = float(q[self.cells.strata.code[item]])
        return Draw(len(self.drawn) + 1, item, own, sequence, q)

    def take(self, draw: Draw) -> None:
        """A draw is out, to be judged."""
        if draw.strata_q is None:
            raise ValueError(draw)
        self.proposal.take(draw.item, draw.round)
        self.drawn.append(draw.item)
        cell = int(self.cells.strata.code[draw.item])
        basis = {at: self.claims[at].fold.rounds for at in self._of_cell[cell]}
        self._out.append(Drawn(draw, draw.strata_q, self._calibration.fits, basis))

    def judge(self, round_: int, losses: Sequence[float | None]) -> None:
        """The losses of a round that is out, one a metric; folds all that are ready."""
        first = len(self.drawn) - len(self._out) + 1
        if not first <= round_ <= len(self.drawn) or round_ in self._waiting:
            message = f"round {round_} is not waiting for a judgement"
            raise ValueError(message)
        self._waiting[round_] = self.check(self.drawn[round_ - 1], losses)
        while self._out and self._out[0].draw.round in self._waiting:
            drawn = self._out.popleft()
            self._fold(drawn, self._waiting.pop(drawn.draw.round))

    def check(self, item: int, losses: Sequence[float | None]) -> Losses:
        """The losses themselves, where an item may have them; refused by name otherwise."""
        metrics = self.table.metrics
        if len(losses) != len(metrics):
            raise InvalidValue(
                "A judgement gives a loss for every metric.",
                field="losses",
                rule=f"{len(metrics)} losses, or null where nobody can tell one",
                value=len(losses),
            )
        for at, (metric, loss) in enumerate(zip(metrics, losses, strict=True)):
            known = float(self.table.known[item, at])
            if loss is None:
                continue
            metric.scale.check(loss)
            if not np.isnan(known) and loss != self._lower[at] + self._width[at] * known:
                raise InvalidValue(
                    f"The loss {metric.name} of this item is known, and is another.",
                    field=f"losses.{metric.name}",
                    rule=f"{self._lower[at] + self._width[at] * known:g}, or left out",
                    value=loss,
                )
        return tuple(losses)

    def _fold(self, drawn: Drawn, losses: Losses) -> None:
        draw = drawn.draw
        cell = int(self.cells.strata.code[draw.item])
        weight = 1.0 / (float(self._left.sum()) * draw.q)
        for at, basis in drawn.basis.items():
            claim = self.claims[at]
            claim.record(drawn, losses[claim.metric], basis)
        told = np.array([np.nan if loss is None else loss for loss in losses], dtype=np.float64)
        told[~self.cells.open[:, cell]] = np.nan
        unit = (told - self._lower) / self._width
        self._calibration.record(cell, unit, drawn.fits, weight)
        self._left[cell] -= 1.0
        self.folded += 1
        for at in drawn.basis:
            self._wants.update(at, self.claims[at])
        self._note_met(drawn.basis)

    def _note_met(self, places: Iterable[int]) -> None:
        for at in places:
            claim = self.claims[at]
            if claim.claim.wants and at not in self.met_at and claim.met:
                self.met_at[at] = self.folded


def vector(metrics: Sequence[Metric], losses: Mapping[str, float | None]) -> Losses:
    """The losses of a judgement by metric, in their order; refuses one that is missing."""
    for name in losses:
        if name not in {metric.name for metric in metrics}:
            raise InvalidValue(
                f"There is no metric {name}.",
                field=f"losses.{name}",
                rule="one of " + ", ".join(metric.name for metric in metrics),
            )
    for metric in metrics:
        if metric.name not in losses:
            raise InvalidValue(
                f"The judgement says nothing of {metric.name}.",
                field=f"losses.{metric.name}",
                rule="a loss, or null where nobody can tell it",
            )
    return tuple(losses[metric.name] for metric in metrics)
