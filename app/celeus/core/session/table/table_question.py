"""A table of claims about metrics and groups, which share their judgements.

A judgement gives a loss for every metric, on its scale, and None where nobody can tell it. Draws
and their bets take in what was judged by then; rounds are folded in the order of their draws, with
the probabilities, fits and bets that were fixed at the draw.
"""

from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from copy import deepcopy
from heapq import nlargest
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from celeus.core.interval import Interval
from celeus.core.ledger import (
    Addition,
    Draw,
    JointObservation,
    Observation,
    Rating,
    Unjudgeable,
)
from celeus.core.multiplicity.promises import Promises, promises
from celeus.core.multiplicity.selection import Closure, shown_level
from celeus.core.pause import pause
from celeus.core.plain import Mismatch, equal
from celeus.core.plans.judge_check import loss_of
from celeus.core.plans.stopping import (
    Answer,
    Decision,
    Decisions,
    StoppingRule,
    StopReason,
    rounding,
)
from celeus.core.plans.table_plan import TableClaim, TablePlan, TableSettings, claims_of, table_for
from celeus.core.pools.pool import Pool
from celeus.core.pools.table_pool import Mask
from celeus.core.pools.table_pool import Table as PoolTable
from celeus.core.sampling.calibration import Fit
from celeus.core.sampling.proposals import StratifiedProposal
from celeus.core.session.outcome import Judgement, Losses, losses_by_metric
from celeus.core.session.question import JointQuestion, View
from celeus.core.session.table.allocation import ClaimNeeds, allocate
from celeus.core.session.table.ratio_claims import RatioClaim, Verdicts, needs
from celeus.core.session.table.table_cells import Cells, TableAtDraw, TableCalibration
from celeus.core.session.table.table_claims import ClaimState, Drawn, MeanClaim
from celeus.errors import BoundContradicted, InvalidValue

Floats = NDArray[np.float64]


class PickedInterval(NamedTuple):
    """The interval of a claim where so many ``claims`` are picked, each shown at ``level``."""

    claims: int
    level: float
    interval: Interval


class Table(JointQuestion):
    """The questions of a table after some rounds. ``claims`` stand in the order of the plan's.

    Behind them stand those ``added`` later, each after so many folded rounds (``added_after``).
    ``met_at`` says after how many folded rounds a claim
    had what it wants, by its place among them; what wants nothing is not in it. ``proven`` says it
    of the answers yes under the account ``closed``, by the places of claim and question. ``bets``
    are those of every claim's next round.
    """

    purpose: ClassVar = "makes a table of claims"
    folded: int
    plan: TablePlan
    proposal: StratifiedProposal

    __slots__ = (
        "_calibration",
        "_closure",
        "_evidence",
        "_lower",
        "_of_cell",
        "_out",
        "_tests",
        "_wants",
        "_width",
        "added",
        "added_after",
        "bets",
        "cells",
        "claims",
        "folded",
        "met_at",
        "plan",
        "proposal",
        "table",
    )

    def __init__(self, plan: TablePlan, table: PoolTable, seed: bytes) -> None:
        self.table = table_for(plan.small_groups, table, plan.check)
        self.cells = Cells.of(self.table)
        overall = plan.claims[: len(plan.metrics)]
        halves = [None if plan.check else plan.of(claim).half for claim in overall]
        half = halves[0] if len(plan.claims) == 1 else None
        self.proposal = StratifiedProposal(self.cells.strata, seed, plan.beta, half)
        self.plan = plan
        self._calibration = TableCalibration(self.cells, halves)
        self._lower = np.array([metric.scale.lower for metric in plan.metrics])
        self._width = np.array([metric.scale.width for metric in plan.metrics])
        self.claims = self._claims(plan)
        self.bets = [claim.bets for claim in self.claims]
        member = np.zeros((len(self.claims), self.cells.count), dtype=np.bool_)
        for place, claim in enumerate(self.claims):
            member[place, claim.cells] = True
        self._of_cell = [np.flatnonzero(cell).tolist() for cell in member.T]
        checked = plan.check is not None
        self._wants = None if checked else ClaimNeeds.of(self.cells, self.means, len(plan.metrics))
        self.added: list[TableClaim] = []
        self.added_after: list[int] = []
        self.folded = 0
        self.met_at: dict[int, int] = {}
        closed = plan.account == "closed"
        self._closure = Closure(plan.alpha) if closed else None
        self._tests = [
            (place, number)
            for place, claim in enumerate(plan.claims if closed else ())
            for number in range(len(claim.questions))
        ]
        self._evidence = np.array(
            [self._log_evidence(place, number) for place, number in self._tests]
        )
        self._note_met(range(len(self.claims)))
        self._out: deque[Drawn] = deque()

    def _claims(self, plan: TablePlan) -> list[ClaimState]:
        names = [metric.name for metric in plan.claimed]
        masks: dict[tuple[str | None, str | None], Mask] = {
            (column.name, value): column.code == number
            for column in self.table.columns
            for number, value in enumerate(column.values)
        }
        masks[None, None] = np.ones(self.table.items, dtype=np.bool_)
        called = None if plan.check is None else Verdicts.of(plan.check, self.table, self.cells)
        claims: list[ClaimState] = []
        for claim in plan.claims:
            metric, mask = names.index(claim.metric), masks[claim.column, claim.value]
            open_ = self.cells.open[loss_of(plan.check, metric)]
            where = np.flatnonzero(self.cells.of_items(mask) & open_)
            parts = claim, plan.of(claim), metric, where, self.cells, self._known
            if called is None:
                claims.append(MeanClaim(*parts, evidence=plan.keeps_evidence))
            else:
                claims.append(RatioClaim(*parts, called, mask))
        return claims

    @property
    def means(self) -> list[MeanClaim]:
        """The claims, where they are about mean losses."""
        return [claim for claim in self.claims if isinstance(claim, MeanClaim)]

    @property
    def expected_counts(self) -> Floats:
        """All items by what a checked judge and people call them, as expected: no claim."""
        return self.ratios[0].expected_counts(self._known)

    @property
    def ratios(self) -> list[RatioClaim]:
        """The claims, where they are about a judge's measures."""
        return [claim for claim in self.claims if isinstance(claim, RatioClaim)]

    def add(self, claim: TableClaim) -> None:
        """Add a claim about a metric of all items or of a group, at a level from the reserve.

        It knows what was judged before and bets on later rounds alone. Refused are those that
        ``check_addition`` refuses.
        """
        added = self.check_addition(claim)
        place = self.plan.place_of(added)
        part = self.means[place]
        parts = part.metric, part.cells, self.cells, self._known
        plan = self.plan.of(added)
        self.claims.append(MeanClaim(added, plan, *parts, seen=part.fold))
        self.bets.append(self.claims[-1].bets)
        self.added.append(added)
        self.added_after.append(self.folded)
        for cell in part.cells.tolist():
            self._of_cell[cell].append(len(self.claims) - 1)
        self._note_met([len(self.claims) - 1])
        self._update_wants(place)

    def check_addition(self, claim: TableClaim) -> TableClaim:
        """The claim as it would be added; changes nothing.

        Refused while a draw is out, whose item somebody may have seen; where nothing is left to bet
        on; at a level that the reserve has not; and where the very claim is there.
        """
        if self._out:
            raise InvalidValue(
                "Draws are out, whose items somebody may have seen: a claim is added when all are"
                " judged. Pause the session, have them judged, add the claim, and resume.",
                field="claim",
                rule="no draw out",
                value=len(self._out),
            )
        if not self.claims[self.plan.place_of(claim)].left:
            raise InvalidValue(
                "Every item of this claim was judged: nothing is left to bet on.",
                field="claim",
                rule="an item left to draw",
                value=claim.name,
            )
        return self.plan.later(claim, self.added)

    @property
    def reserve(self) -> float:
        """The part of alpha that claims added later may still take."""
        return max(self.plan.reserve - sum(claim.level for claim in self.added), 0.0)

    def after(self, place: int) -> int | None:
        """Return after how many folded rounds a claim was added; None for the plan's own."""
        added = place - len(self.plan.claims)
        return self.added_after[added] if added >= 0 else None

    @property
    def proven(self) -> dict[tuple[int, int], int]:
        """After how many folded rounds an answer yes was given under the account ``closed``."""
        if self._closure is None:
            return {}
        return {self._tests[test]: round_ for test, round_ in self._closure.at.items()}

    def shown(self, places: Sequence[int]) -> list[Interval]:
        """The intervals of claims picked after looking, under the account ``selected``.

        Valid at this moment for these claims together, whatever they were picked by. Draws that are
        out count as judged by nobody: whoever picks may know more of them than the intervals do.
        """
        self._check_selected()
        betting = self.plan.betting
        picked = [place for place in dict.fromkeys(places) if not self.claims[place].claim.whole]
        if len(set(places)) < len(places) or not picked:
            shown_level(self.plan.alpha, 0, betting)
        level = shown_level(self.plan.alpha, len(picked), betting)
        settled = self._settled()
        return [settled.means[place].interval_at(level) for place in places]

    def pickings(self) -> list[list[PickedInterval]]:
        """The intervals of every claim where 1, 2, 4 and so on, or all are picked.

        For any number of claims the interval of the next smaller one holds: it is no narrower.
        """
        self._check_selected()
        betting, settled = self.plan.betting, self._settled()
        counts = sorted({*(2**power for power in range(betting.bit_length())), betting} - {0})
        levels = [(count, shown_level(self.plan.alpha, count, betting)) for count in counts]
        return [
            [PickedInterval(count, level, claim.interval_at(level)) for count, level in levels]
            for claim in settled.means
        ]

    def _check_selected(self) -> None:
        if self.plan.account != "selected":
            raise InvalidValue(
                "What is picked after looking has intervals of its own in other sessions only.",
                field="account",
                rule="selected",
                value=self.plan.account,
            )

    def _settled(self) -> "Table":
        """The question as it is if nobody judges the draws that are out."""
        if not self._out:
            return self
        settled = self.copied()
        settled.settle()
        return settled

    def copied(self) -> "Table":
        """A copy to ``settle``; the question may go on meanwhile."""
        shared = self.plan, self.table, self.cells, self.cells.strata.code, self.proposal
        return deepcopy(self, {id(part): part for part in shared})

    def settle(self) -> None:
        """Fold all that is drawn, draws that nobody has judged as if nobody could."""
        while self._out:
            self.fold_next()

    def decisions(self, place: int) -> Decisions:
        """The answers of a claim that its account speaks for, each with the session's round.

        Under ``closed`` a yes is given when all answers yes so far hold at once.
        """
        claim, proven = self.claims[place], self.proven
        decisions = []
        for number, decision in enumerate(claim.decisions):
            # Round 0 is before the claim's first: what is known then answers.
            round_ = claim.rounds[decision.round - 1] if decision.round else decision.round
            if round_ == 0:
                round_ = self.after(place) or 0
            answer: Answer = decision.answer
            if (place, number) in proven:
                # Given for good, whatever later losses say.
                answer, round_ = "yes", proven[place, number]
            elif self._closure is not None and answer != "no":
                answer, round_ = "undecided", None
            decisions.append(Decision(decision.question, answer, round_))
        return tuple(decisions)

    @property
    def promises(self) -> Promises:
        """The account's promises, in words."""
        plan = self.plan
        # Picked are claims that bet; those of a group judged whole need no level.
        count = plan.betting if plan.account == "selected" else len(self.claims)
        asked = sum(len(claim.questions) for claim in plan.claims)
        checked = plan.check is not None and asked > 1
        return promises(plan.account, plan.alpha, count, checked=checked)

    @property
    def adaptive(self) -> bool:
        """True if draws depend on the losses judged before.

        Where all draws are uniform only by what groups lack, if there are several.
        """
        lacking = any(
            claim.claim.wants and not claim.claim.whole and claim.claim.column is not None
            for claim in self.claims
        )
        cells = self.cells
        uneven = self.plan.beta < 1.0 or (lacking and cells.start.size > 1)
        return cells.count > 1 and uneven

    def bets_per_round(self, rule: StoppingRule) -> int:
        """Bets that folding the next round may place, were it to fall into the largest claims."""
        del rule
        parts = (1 + len(self.plan.columns)) * len(self.plan.claimed)
        return sum(nlargest(parts, self.bets))

    @property
    def wanted(self) -> int:
        """The number of claims that have a target."""
        return sum(claim.claim.wants for claim in self.claims)

    def stop(self, rule: StoppingRule, drawn: int) -> StopReason | None:
        """Return the reason to stop under ``rule``, or None to go on."""
        del drawn
        if self.wanted and len(self.met_at) == self.wanted:
            return StopReason.TARGET_REACHED
        if self.folded == self.plan.drawable:
            return StopReason.EXHAUSTED
        return StopReason.BUDGET_SPENT if self.folded >= rule.budget else None

    @property
    def _known(self) -> TableAtDraw:
        return TableAtDraw(self.proposal.left, self._calibration.fits)

    @property
    def q(self) -> Floats:
        """The probability of an item left in every cell."""
        fits = self._calibration.fits
        if self._wants is None:
            return self.proposal.mixture(needs(self.ratios, self._known))
        if len(self.claims) == 1:
            return self.proposal.strata_q(Fit(fits.mean[0], fits.moment[0]))
        return allocate(self.cells, self._wants, fits.moment, self.proposal.left, self.plan.beta)

    def take(self, draw: Draw) -> None:
        """Enter the next draw of the ledger."""
        if draw.strata_q is None:
            raise Mismatch("strata_q", None, "the probability of an item of each cell")
        known = self._known
        claims = tuple(self._of_cell[int(self.cells.strata.code[draw.item])])
        for place in claims:
            self.claims[place].draw(draw, known)
        weight = 1.0 / (float(known.left.sum()) * draw.q)
        self._out.append(Drawn(draw, known.fits, weight, claims))
        self.proposal.take(draw.item, draw.round)

    def accept(self, event: Observation | Unjudgeable | JointObservation, item: int) -> None:
        """Check the losses of all metrics, and learn from them for later draws."""
        if not isinstance(event, JointObservation):
            raise TypeError(event)
        losses = self.check(item, event.losses)
        drawn = self._out[event.round - self.folded - 1]
        cell = int(self.cells.strata.code[item])
        for place in drawn.claims:
            claim = self.claims[place]
            claim.judge(event.round, losses[loss_of(self.plan.check, claim.metric)])
            # The oldest draw's are updated as it is folded, before the next draw
            if drawn is not self._out[0]:
                self._update_wants(self._slot(place))
        known = np.array([np.nan if loss is None else loss for loss in losses], dtype=np.float64)
        known[~self.cells.open[:, cell]] = np.nan
        unit = (known - self._lower) / self._width
        self._calibration.record(cell, unit, drawn.fits, drawn.weight)

    def enter(self, event: Rating | Addition) -> None:
        """Add a claim."""
        if isinstance(event, Rating):
            raise Mismatch("ledger", event, "draw, losses, change or claim")
        self.add(TableClaim.asked(event))

    def answers(self) -> Iterator[tuple[str, str]]:
        """One answer: all claims have what was asked for."""
        if self.wanted and len(self.met_at) == self.wanted:
            yield "targets", "met"

    def check_budget(self, budget: int) -> None:
        """Refuse a budget that would fill a ledger whose certificate nobody verifies."""
        self.cells.check_budget(budget)

    def outcome(self, pool: Pool, item: int, judgement: Judgement, view: View) -> Losses:
        """The losses of all metrics that a judgement states, None where nobody can tell one.

        A loss that is known may be left out, but by the blind.
        """
        metrics = self.plan.metrics
        known = [] if view.blind else np.flatnonzero(~np.isnan(self.table.known[item])).tolist()
        names = [metrics[metric].name for metric in known]
        losses = losses_by_metric(pool, item, judgement, metrics, names)
        return self.check(item, losses)

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
        for place, (metric, loss) in enumerate(zip(metrics, losses, strict=True)):
            known = float(self._lower[place] + self._width[place] * self.table.known[item, place])
            if loss is None:
                continue
            metric.scale.check(loss, f"losses.{metric.name}")
            if abs(loss - known) > rounding(metric.scale.interval):
                raise BoundContradicted(
                    f"The pool states that the loss {metric.name} of this item is known, and is"
                    " another. If the judgement is right, what the pool states is false, and the"
                    " session can claim nothing.",
                    field=f"losses.{metric.name}",
                    rule=f"{known:g}, or null",
                    value=loss,
                ).of(item, known, known, metric.name)
        return tuple(losses)

    def fold_next(self) -> None:
        """Fold the oldest draw that is out; one without a judgement at its worst."""
        pause()
        drawn = self._out.popleft()
        for place in drawn.claims:
            claim = self.claims[place]
            claim.fold_next(drawn.draw.round)
            self.bets[place] = claim.bets
        self.folded += 1
        proven = 0 if self._closure is None else self._prove(self._closure, drawn.claims)
        for place in drawn.claims if not proven else range(len(self.claims)):
            self._update_wants(self._slot(place))
        self._note_met(drawn.claims if not proven else range(len(self.claims)))

    def _prove(self, closure: Closure, folded: Container[int]) -> int:
        """Answers yes that a round of the claims ``folded`` has given under ``closed``."""
        before = len(closure.at)
        for place, (claim, number) in enumerate(self._tests):
            if claim in folded:
                self._evidence[place] = self._log_evidence(claim, number)
        closure.update(self._evidence, self.folded)
        return len(closure.at) - before

    def _log_evidence(self, place: int, number: int) -> float:
        return self.means[place].log_evidence(self.plan.claims[place].questions[number])

    def _slot(self, place: int) -> int:
        """The place of the opening's claim about the same part and metric."""
        count = len(self.plan.claims)
        return place if place < count else self.plan.place_of(self.claims[place].claim)

    def _update_wants(self, slot: int) -> None:
        if self._wants is None:
            return
        later = range(len(self.plan.claims), len(self.claims))
        places = [slot, *(place for place in later if self._slot(place) == slot)]
        claims = [
            (claim, self._is_met(place))
            for place in places
            if isinstance(claim := self.claims[place], MeanClaim)
        ]
        self._wants.update(slot, *claims)

    def _is_met(self, place: int) -> bool:
        """The claim has what was asked for, and its answers yes are given as the account says."""
        claim = self.claims[place]
        if not claim.met or self._closure is None or not claim.left:
            return claim.met
        return all(
            decision.answer == "no" or (place, number) in self.proven
            for number, decision in enumerate(claim.decisions)
        )

    def _note_met(self, places: Iterable[int]) -> None:
        for place in places:
            if self.claims[place].claim.wants and place not in self.met_at and self._is_met(place):
                self.met_at[place] = self.folded


def check_plan(plan: TablePlan, table: PoolTable) -> None:
    """Raise Mismatch unless the table is as the plan says."""
    equal("plan.items", plan.items, table.items)
    equal("plan.metrics", plan.metrics, table.metrics)
    equal("plan.drawable", plan.drawable, int(table.drawable.sum()))
    settings = TableSettings(check=plan.check)
    due = claims_of(settings, table_for(plan.small_groups, table, plan.check))
    equal("plan.claims", [_fact(claim) for claim in plan.claims], [_fact(claim) for claim in due])


def _fact(claim: TableClaim) -> tuple[object, ...]:
    """The facts of a claim that follow from the table alone."""
    part = claim.metric, claim.column, claim.value, claim.whole
    return (*part, claim.items, claim.known, claim.total)
