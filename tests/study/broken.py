"""Engines broken on purpose, each in one place: what counting misses has to catch.

Every function takes pytest's ``monkeypatch``, which mends the engine at the end of the test. The
patches do not reach other processes.
"""

from dataclasses import replace

import pytest

from celeus.core.betting.signals import Ends, Extremes, Range, exact_range, floor_range
from celeus.core.plans.policies import Policy, policy_named
from celeus.core.sampling import predictors
from celeus.core.sampling.proposals import MixtureProposal
from celeus.core.session.mean import Mean
from celeus.core.session.session import Session


def draws_recorded_as_even(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items drawn by their scores and recorded as drawn evenly: the mean signal is biased."""

    def even(self: MixtureProposal, item: int) -> float:
        del item
        return 1.0 / self.left

    monkeypatch.setattr(MixtureProposal, "probability", even)


def narrow_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The floor beta/n taken for 1/n: an item that only the even share draws leaves it."""

    def narrow(plug_in: float, left: int, beta: float, pool: Extremes) -> Range:
        del beta
        return floor_range(plug_in, left, 1.0, pool)

    monkeypatch.setattr(predictors, "floor_range", narrow)


def narrow_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """The range of the strata without its outer tenths."""

    def narrow(
        plug_in: float,
        surrogate: predictors.Floats,
        q: predictors.Floats,
        pool: Extremes,
        ends: Ends | None = None,
    ) -> Range:
        whole = exact_range(plug_in, surrogate, q, pool, ends)
        return Range(whole.lower + 0.1 * whole.width, whole.upper - 0.1 * whole.width)

    monkeypatch.setattr(predictors, "exact_range", narrow)


def raw_losses(name: str) -> Policy:
    """A policy that draws by scores and bets on the losses as they come."""
    return replace(policy_named(name), recentred=False)


def folded_by_arrival(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds are folded as their losses come: fast judgements first."""

    def fold_arrived(session: Session[Mean], most: int = 0) -> Session[Mean]:
        del most
        rounds, question = session.rounds, session.question
        arrived = (place for place in range(len(rounds)) if rounds.is_judged(place))
        places = sorted(arrived, key=rounds.answered_at.__getitem__)
        fold = question.fold
        for place in places[session.folded :]:
            rule = rounds.rule_of(place)
            fold.draw(question.plan, rounds.draw(place), rule.precision, rule.budget)
            loss = rounds.losses(place)[0]
            fold.judge(place + 1, loss)
            fold.fold_round(question.plan, fold.knowledge.open.popitem()[1], loss)
        return session

    monkeypatch.setattr(Session, "fold", fold_arrived)
