"""No choice of skips gains anything, whoever makes it and however much he has seen.

A judge holds several rounds, sees their items and losses, and only then says which of them nobody
could judge. The mean over every order of drawing of the best he can do is at most the start: exact,
by recursion over kinds of items, those that are alike in stratum and loss.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from celeus.core.eprocess.pool_target import LatticeSequence
from celeus.core.ledger import Draw, Event, Observation, Unjudgeable
from celeus.core.plans.plan import Claim, Plan, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import Scores
from celeus.core.sessions.state import State, begin, replay
from celeus.study.engine.simulation import Truth
from tests.core.worlds import SEED

EXACT = 1e-9
Worth = Callable[[Plan, State], float]


@dataclass(frozen=True)
class Table:
    """A pool, what is claimed of it, and what a state of it is worth to a judge."""

    truth: Truth
    plan: Plan
    worth: Worth

    def state(self, events: list[Event]) -> State:
        return replay(self.plan, begin(self.plan, self.truth.scores, SEED), events)

    def coming(self, state: State) -> Iterator[tuple[float, Draw]]:
        """Every kind of item that may come next, with its probability."""
        moments, proposal = state.fold.predictor.residual_moments, state.proposal
        kinds: dict[tuple[float, float, float], list[int]] = {}
        for item in np.flatnonzero(proposal.drawn_in == 0):
            scores = self.truth.scores
            kind = (scores.surrogate[item], scores.weight[item], self.truth.loss[item])
            kinds.setdefault(kind, []).append(int(item))
        for items in kinds.values():
            item, q, strata_q = proposal.chance(items[0], moments)
            yield (
                len(items) * q,
                Draw(state.drawn + 1, item, q, state.sequence, strata_q),
            )

    def answers(self, draw: Draw) -> tuple[Event, Event]:
        loss = self.truth.loss_of(draw.item)
        return Observation(draw.round, loss), Unjudgeable(draw.round)


def held(table: Table, rounds: int, events: list[Event], draws: list[Draw]) -> float:
    """Mean of the best skips among ``rounds`` draws in a row, all of them seen beforehand."""
    if not rounds:
        choices = itertools.product(*map(table.answers, draws))
        ends = (table.state([*events, *answers]) for answers in choices)
        return max(table.worth(table.plan, end) for end in ends)
    return math.fsum(
        chance * held(table, rounds - 1, [*events, draw], [*draws, draw])
        for chance, draw in table.coming(table.state(events))
    )


def risk_of(plan: Plan, truth: Truth) -> float:
    return (math.fsum(truth.loss) / plan.items - plan.lower) / plan.scale.width


def stakes(side: int, start: float) -> Worth:
    """Stakes against the risk on a side, over their start; those of a rejected one count as 1."""

    def worth(plan: Plan, state: State) -> float:
        sequence = state.fold.confidence_sequence
        assert isinstance(sequence, LatticeSequence)
        lattice_side = sequence._lattice.sides[side]
        unit = RISK if side == 0 else 1.0 - RISK
        at = int(np.searchsorted(lattice_side._grid / lattice_side._steps, unit - 1e-12))
        where = np.flatnonzero(lattice_side._standing == at)
        if not where.size:
            return 1.0 / start
        return float(np.exp(lattice_side._stake[:, where[0]]).sum()) / start

    return worth


RISK = 0.5


def two_strata() -> Truth:
    """Eight items with two surrogates, a half of each lost."""
    surrogate = np.repeat([0.25, 0.75], 4)
    loss = np.tile([0.0, 0.0, 1.0, 1.0], 2)
    return Truth(loss, Scores(surrogate, np.sqrt(surrogate * (1.0 - surrogate)), None))


def table(
    alpha: float, precision: float | None, side: int = 0, policy="sharp", truth=None
) -> Table:
    truth = truth or two_strata()
    plan = make_plan(Claim("pool", alpha, precision), truth.facts, policy_named(policy), "")
    return Table(truth, plan, stakes(side, alpha / 2.0))


if __name__ == "__main__":
    for alpha, precision, n in (
        (0.5, 0.05, 2),
        (0.5, 0.2, 3),
        (0.05, 0.05, 3),
        (0.05, None, 2),
        (1e-9, 0.5, 3),
    ):
        print(
            alpha,
            precision,
            n,
            held(table(alpha, precision), n, [], []),
            held(table(alpha, precision, 1), n, [], []),
            flush=True,
        )
