"""A session that seeks the best of k systems, and the fold of its judgements.

    session = BestSession(contenders, alpha, seed)
    draw = session.propose()            what to judge next; changes nothing
    session.take(draw)                  it is out
    session.judge(draw.round, losses)   it is judged; folds it, and what waited for it

A judgement gives the losses of all k systems, on the unit scale. Draws may be out ahead of losses,
and judged in any order: rounds are folded in the order of their draws, each in the cut of the pool
that it was made in, with the probabilities it was made with.
"""

import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from celeus.core.eprocess.bets import Goal, goals_for
from celeus.core.eprocess.lattice import FINEST_GOAL
from celeus.core.pause import pause
from celeus.core.plans.best import BETA
from celeus.core.plans.plan import check_alpha
from celeus.core.pools.strata import NOWHERE
from celeus.core.sampling.proposals import ProposedDraw
from celeus.core.session.best.candidates import Contenders, Floats, Indices, Pairs
from celeus.core.session.best.contrasts import Forecast, Totals
from celeus.core.session.best.partition import Cut, focus_of
from celeus.core.session.best.race import Race, strongest
from celeus.core.session.mean import Coins
from celeus.errors import NothingToJudge

LABELS_AT_ONCE = 1024
Opponents = Callable[[Forecast, Indices], Indices]
"""Whom each of the systems standing bets against, from what is known before the loss."""


class BestDraw(NamedTuple):
    """A draw: its item, the probability of that item, and of any item of each stratum of a cut."""

    round: int
    item: int
    q: float
    strata_q: Floats
    cut: Cut


def goals(contenders: Contenders, drawable: int, alpha: float) -> list[Goal]:
    """The information goals of a process, as far as the pool can reach them."""
    # A level at which the normal quantile stays positive, whatever alpha.
    all_ = goals_for(None, 0.0, min(2.0 * alpha, 0.5 + alpha / 2.0))
    least = FINEST_GOAL * math.sqrt(drawable) / contenders.items
    return [goal for goal in all_ if goal.half >= least] or all_[:1]


class BestSession:
    """The state of a session; a step changes it.

    ``known`` is how many items are never drawn, since all systems gave the same answer.
    """

    __slots__ = (
        "_beta",
        "_coins",
        "_cuts",
        "_items",
        "_losses",
        "_opponents",
        "_out",
        "_seed",
        "_waiting",
        "contenders",
        "cut",
        "drawn",
        "known",
        "race",
        "totals",
    )

    def __init__(
        self,
        contenders: Contenders,
        alpha: float,
        seed: bytes,
        *,
        beta: float = BETA,
        opponents: Opponents = strongest,
    ) -> None:
        check_alpha(alpha)
        every = np.arange(contenders.count)
        self.contenders = contenders
        self.totals = Totals.of(Pairs.among(every, contenders.count).first.size)
        self._seed, self._beta, self._coins = seed, beta, Coins(seed)
        self._cuts, self._opponents = 0, opponents
        self.cut = self._cut(every)
        self.known = contenders.items - self.cut.left
        if not self.cut.left:
            raise NothingToJudge(
                "All systems gave the same answers: they are equally good, and there is nothing to"
                " judge.",
                field="answer",
                rule="an item with different answers",
                value=contenders.count,
            )
        self.race = Race(contenders.count, alpha, goals(contenders, self.cut.left, alpha))
        self.drawn: list[int] = []
        self._items: list[int] = []
        self._losses: list[Floats] = []
        self._out: deque[BestDraw] = deque()
        self._waiting: dict[int, Floats] = {}

    @property
    def standing(self) -> Indices:
        """The systems that may be best."""
        return self.race.standing

    @property
    def winner(self) -> int | None:
        """The system that is best, if only one is left."""
        standing = self.standing
        return int(standing[0]) if standing.size == 1 else None

    @property
    def leader(self) -> int:
        """The system that does best so far."""
        return focus_of(self.totals, self.standing, self.contenders.count).leader

    @property
    def can_draw(self) -> bool:
        """Something is left that may tell the systems standing from each other."""
        return self.winner is None and self.cut.left > 0

    def propose(self) -> BestDraw:
        """The next draw. Changes nothing."""
        coin = self._coins.of_round(len(self.drawn) + 1)
        return self._draw(self.cut.proposal.choose(coin, self._priorities))

    def chance(self, item: int) -> BestDraw:
        """An item left, with the probabilities it would be drawn with now."""
        return self._draw(self.cut.proposal.chance(item, self._priorities))

    @property
    def _priorities(self) -> Floats:
        focus = focus_of(self.totals, self.standing, self.contenders.count)
        return self.cut.priorities(focus)

    def _draw(self, proposed: ProposedDraw) -> BestDraw:
        item, q, strata_q = proposed
        if strata_q is None:
            raise TypeError(item)
        return BestDraw(len(self.drawn) + 1, item, q, strata_q, self.cut)

    def take(self, draw: BestDraw) -> None:
        """A draw is out, to be judged."""
        self.cut.proposal.take(draw.item, draw.round)
        self.drawn.append(draw.item)
        self._out.append(draw)

    def judge(self, round_: int, losses: Floats) -> None:
        """The losses of the k systems in a round that is out; folds all that are ready."""
        first = len(self.drawn) - len(self._out) + 1
        if not first <= round_ <= len(self.drawn) or round_ in self._waiting:
            message = f"round {round_} is not waiting for a judgement"
            raise ValueError(message)
        self.contenders.check(self.drawn[round_ - 1], losses)
        self._waiting[round_] = losses
        while self._out and self._out[0].round in self._waiting:
            draw = self._out.popleft()
            self._fold(draw, self._waiting.pop(draw.round))

    def _fold(self, draw: BestDraw, losses: Floats) -> None:
        pause()
        contrasts = draw.cut.contrasts
        forecast = contrasts.forecast(self.totals, draw.strata_q)
        bets = self.race.bets(forecast, self._opponents(forecast, self.standing))
        signal = contrasts.signals(forecast, draw.item, losses)
        self.race.settle(bets, signal)
        self._record(draw, losses)
        self.totals.record(forecast, signal)
        self.race.narrow(contrasts.pairs, *contrasts.limits(self.totals))
        standing = self.standing
        if 1 < standing.size < self._in_cut:
            self._cuts += 1
            self.cut = self._cut(standing)

    @property
    def _in_cut(self) -> int:
        pairs = self.cut.contrasts.pairs
        return np.union1d(pairs.first, pairs.second).size

    def _record(self, draw: BestDraw, losses: Floats) -> None:
        every = Pairs.among(np.arange(self.contenders.count), self.contenders.count)
        self.totals.observed += every.half(losses)
        self._items.append(draw.item)
        self._losses.append(losses)
        cuts = {id(one): one for one in (self.cut, draw.cut, *(out.cut for out in self._out))}
        for cut in cuts.values():
            cut.contrasts.record(np.array([draw.item]), losses[None])

    def _cut(self, standing: Indices) -> Cut:
        """The pool cut for some systems, and what is known of its items by now."""
        focus = focus_of(self.totals, standing, self.contenders.count)
        seed = self._seed + b"cut %d" % self._cuts if self._cuts else self._seed
        cut = Cut.of(self.contenders, standing, focus, seed, self._beta)
        if self._cuts:
            for round_, item in enumerate(self.drawn, 1):
                if cut.strata.code[item] != NOWHERE:
                    cut.proposal.take(item, round_)
            for at in range(0, len(self._items), LABELS_AT_ONCE):
                part = slice(at, at + LABELS_AT_ONCE)
                cut.contrasts.record(np.array(self._items[part]), np.array(self._losses[part]))
        return cut
