"""Engines broken on purpose, each in one place: what counting misses has to catch.

Every function takes pytest's ``monkeypatch``, which mends the engine at the end of the test. The
patches do not reach other processes.
"""

from dataclasses import replace

import pytest

from app.core import guesses, session
from app.core.policies import Policy, policy_named
from app.core.proposals import Mixture
from app.core.session import PENDING, Round, State
from app.core.signals import Extremes, Range, exact_range, floor_range


def draws_recorded_as_even(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items drawn by their scores and recorded as drawn evenly: the mean signal is biased."""

    def even(self: Mixture, item: int) -> float:
        del item
        return 1.0 / self.left

    monkeypatch.setattr(Mixture, "probability", even)


def narrow_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The floor beta/n taken for 1/n: an item that only the even share draws leaves it."""

    def narrow(plug_in: float, left: int, beta: float, pool: Extremes) -> Range:
        del beta
        return floor_range(plug_in, left, 1.0, pool)

    monkeypatch.setattr(guesses, "floor_range", narrow)


def narrow_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """The range of the strata without its outer tenths."""

    def narrow(
        plug_in: float, surrogate: guesses.Floats, q: guesses.Floats, pool: Extremes
    ) -> Range:
        whole = exact_range(plug_in, surrogate, q, pool)
        return Range(whole.lower + 0.1 * whole.width, whole.upper - 0.1 * whole.width)

    monkeypatch.setattr(guesses, "exact_range", narrow)


def raw_losses(name: str) -> Policy:
    """A policy that draws by scores and bets on the losses as they come."""
    return replace(policy_named(name), recentred=False)


def folded_by_arrival(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds are folded as their losses come: fast judgements first."""

    def judge(state: State, round_: int, loss: float | None) -> None:
        at = next(i for i, one in enumerate(state.rounds) if one.draw.round == round_)
        judged: Round = state.rounds.pop(at)
        assert judged.loss is PENDING
        judged.loss = judged.answer = loss
        state.rounds.insert(state.observed, judged)
        state.observed += 1

    monkeypatch.setattr(session, "_judge", judge)
