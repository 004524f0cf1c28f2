"""Small pools whose losses are known, and how the tests walk through them."""

import copy
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from celeus.core.ledger import Draw, Event, Observation, Unjudgeable
from celeus.core.plans.plan import Claim, Plan, make_plan
from celeus.core.plans.policies import Policy, policy_named
from celeus.core.pools.surrogates import Scores
from celeus.core.randomness import commitment
from celeus.core.sampling.proposals import MixtureProposal, StratifiedProposal, draw_orders
from celeus.core.session.best.best_question import Best
from celeus.core.session.mean import Mean
from celeus.core.session.provisional import WaitingRounds
from celeus.core.session.rounds import PENDING
from celeus.core.session.session import Session, begin_mean
from celeus.core.session.table.table_question import Table
from celeus.simulation.sessions import Truth, oracle_scores

Floats = NDArray[np.float64]
Q = TypeVar("Q", Mean, Best, Table)

SEED = b"a seed for the tests"
EXACT = 1e-12

CONFIGURATIONS = {
    "celeus": policy_named("celeus"),
    "celeus exact": policy_named("celeus", range="exact"),
    "celeus global": policy_named("celeus", range="global"),
    "celeus beta 0.05": policy_named("celeus", beta=0.05),
    "celeus beta 1": policy_named("celeus", beta=1.0),
    "no_surrogate": policy_named("no_surrogate"),
    "no_surrogate exact": policy_named("no_surrogate", range="exact"),
    "no_surrogate global": policy_named("no_surrogate", range="global"),
    "evalue": policy_named("evalue"),
    "evalue authors": policy_named("evalue", recentred=False),
    "oracle": policy_named("oracle"),
    "oracle exact": policy_named("oracle", range="exact"),
}
"""Every policy with every kind of range."""


def mixture(weight: list[float], seed: bytes = SEED, beta: float = 0.4) -> MixtureProposal:
    """The proposal of a session with these scores before its first draw."""
    scores = np.array(weight)
    return MixtureProposal(scores, draw_orders(scores, seed), beta)


def provisional(session: Session[Q]) -> Q | None:
    """The question with open draws at their worst; None where no judgement waits."""
    waiting = WaitingRounds.of(session)
    if waiting is None:
        return None
    question = waiting.settled()
    assert isinstance(question, type(session.question))
    return question


@dataclass(slots=True)
class Walk:
    """A session on a known pool, and the ledger it has written.

    Items in ``hidden`` can be judged by nobody.
    """

    truth: Truth
    plan: Plan
    state: Session[Mean]
    hidden: frozenset[int] = frozenset()
    events: list[Event] = field(default_factory=list)

    def enter(self, event: Event) -> None:
        self.events.append(event)
        self.state = self.state.apply(event)

    def draw(self, count: int = 1) -> list[Draw]:
        """Draw without judging."""
        made = []
        for _ in range(count):
            made.append(self.state.propose())
            self.enter(made[-1])
        return made

    def judge(self, rounds: Iterable[int] | None = None) -> None:
        """Judge these rounds in this order; without an argument all that are out."""
        if rounds is None:
            rounds = [one.draw.round for one in self.state.rounds[self.state.observed :]]
        for round_ in rounds:
            item = self.state.rounds[round_ - 1].draw.item
            loss = float(self.truth.loss[item])
            self.enter(Unjudgeable(round_) if item in self.hidden else Observation(round_, loss))

    def go(self, rounds: int) -> None:
        """Draw and judge, one after the other."""
        for _ in range(rounds):
            made = self.draw()
            self.judge([made[0].round])

    def branch(self) -> "Walk":
        """An independent walk from the same place; what no step changes is the same for both."""
        kept = (self.truth, self.plan, self.hidden, *_unchanging(self.state))
        return copy.deepcopy(self, {id(one): one for one in kept})

    @property
    def mixture(self) -> MixtureProposal:
        """The proposal of a published policy."""
        assert isinstance(self.state.question.proposal, MixtureProposal)
        return self.state.question.proposal

    def left(self) -> list[int]:
        """Items not yet drawn."""
        return [int(item) for item in np.flatnonzero(self.state.question.proposal.drawn_in == 0)]

    def completions(self) -> tuple[Floats, Floats]:
        """Losses with the smallest, and with the largest, for what nobody can judge.

        The ends are those of the item's own bounds, or of the scale.
        """
        low, high, hidden = self.truth.loss.copy(), self.truth.loss.copy(), list(self.hidden)
        bounds = None if self.plan.audit else self.truth.scores.bounds
        low[hidden] = self.plan.lower if bounds is None else bounds.lower[hidden]
        high[hidden] = self.plan.upper if bounds is None else bounds.upper[hidden]
        return low, high


def coming(walk: Walk) -> list[Draw]:
    """Every draw that may come next."""
    return [walk.state.chance(item) for item in walk.left()]


def after(walk: Walk, draw: Draw) -> Walk:
    """The walk after this draw, with every round judged."""
    branch = walk.branch()
    branch.enter(draw)
    rounds = branch.state.rounds
    branch.judge([made.draw.round for made in rounds if made.loss is PENDING])
    return branch


def draws_ahead(walk: Walk) -> None:
    walk.go(1)
    walk.draw(2)


def losses_out_of_order(walk: Walk) -> None:
    walk.draw(4)
    walk.judge([3, 1])


def judged_behind_open_rounds(walk: Walk) -> None:
    """Later draws are made with what the judgements behind the open front said."""
    walk.draw(2)
    walk.judge([2])
    walk.draw(2)
    walk.judge([4])
    walk.draw(1)
    walk.judge([5])


STAGES: dict[str, Callable[[Walk], None]] = {
    "untouched": lambda _: None,
    "midway": lambda walk: walk.go(3),
    "draws ahead": draws_ahead,
    "losses out of order": losses_out_of_order,
    "judged behind open rounds": judged_behind_open_rounds,
    "last item": lambda walk: walk.go(len(walk.left()) - 1),
}
"""What has happened to a session of six items or more."""


def _unchanging(state: Session[Mean]) -> Iterator[object]:
    """What the steps of a session leave as it is."""
    engine = state.question.engine
    yield from (*engine.fixed, engine.bounds, engine.item_weight)
    if isinstance(engine.proposal, MixtureProposal):
        yield engine.proposal.weight


def alike(walk: Walk, draws: Iterable[Draw]) -> list[tuple[float, Draw]]:
    """One draw of every kind of items, and the probability of any of that kind.

    What comes after the draws of a kind is the same but for which of them was drawn: their items
    are in one stratum, and have the same loss and the same scores.
    """
    truth, proposal = walk.truth, walk.state.question.proposal
    assert isinstance(proposal, StratifiedProposal)
    scores = truth.scores
    columns: list[NDArray[Any]] = [proposal._strata.code, truth.loss]
    columns += [scores.surrogate, scores.weight]
    columns += [one for one in (scores.proxy, scores.lower, scores.upper) if one is not None]
    kinds: dict[tuple[float | bool, ...], list[Draw]] = {}
    for draw in draws:
        kind = (*(float(one[draw.item]) for one in columns), draw.item in walk.hidden)
        kinds.setdefault(kind, []).append(draw)
    return [(math.fsum(draw.q for draw in kind), kind[0]) for kind in kinds.values()]


def open_walk(
    truth: Truth,
    policy: Policy,
    claim: Claim | None = None,
    seed: bytes = SEED,
    hidden: Iterable[int] = (),
) -> Walk:
    """A session before its first draw; ``oracle`` is given the true losses."""
    plan = make_plan(claim or Claim(), truth.facts, policy, commitment(seed))
    known = oracle_scores(truth) if policy.name == "oracle" else truth.scores
    return Walk(truth, plan, begin_mean(plan, known, seed), frozenset(hidden))


def small_truth(items: int = 7, *, lower: float = 0.0, upper: float = 1.0, seed: int = 1) -> Truth:
    """Graded losses and surrogates anywhere on the scale; some scores are zero, some are tiny."""
    chance = np.random.default_rng(seed)
    width = upper - lower
    loss = lower + width * chance.random(items)
    loss[:2] = lower, upper
    surrogate = lower + width * chance.random(items)
    weight = width * chance.random(items) ** 3
    weight[::3] = 0.0
    weight[1] = 1e-17
    return Truth(loss, Scores(surrogate, weight, None), lower, upper)


def zero_one_truth(items: int, *, risk: float = 0.3, seed: int = 1) -> Truth:
    """Zero-one losses with an informative surrogate."""
    chance = np.random.default_rng(seed)
    surrogate = np.clip(risk + 0.3 * chance.standard_normal(items), 0.02, 0.98)
    loss = (chance.random(items) < surrogate).astype(np.float64)
    return Truth(loss, Scores(surrogate, np.sqrt(surrogate * (1.0 - surrogate)), None))
