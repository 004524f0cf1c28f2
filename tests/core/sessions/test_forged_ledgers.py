"""A forged ledger of several losses a round is noticed when it is replayed."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from celeus.core.ledger import Draw, JointObservation
from celeus.core.sessions.best.replay import replay as replay_best
from celeus.core.sessions.recorded import LedgerDiffers
from celeus.core.sessions.table.replay import replay as replay_table
from tests.core.sessions.best import test_best_replay as best
from tests.core.sessions.best.test_best import SEED as BEST_SEED
from tests.core.sessions.table import test_table_replay as table
from tests.core.tables import SEED as TABLE_SEED

Ledger = Sequence[Any]
Replay = Callable[[Ledger, bytes | None], object]


@cache
def of_best() -> tuple[Ledger, Replay]:
    """The ledger of a search for the best, and how it is replayed."""
    plan, contenders, _, _, ledger = best.run()
    return ledger, lambda forged, seed: replay_best(plan, contenders, forged, seed)


@cache
def of_table() -> tuple[Ledger, Replay]:
    """The ledger of a table of claims, and how it is replayed."""
    plan, world, _, ledger = table.run()
    return ledger, lambda forged, seed: replay_table(plan, world, forged, seed)


KINDS: dict[str, tuple[Callable[[], tuple[Ledger, Replay]], bytes]] = {
    "best": (of_best, BEST_SEED),
    "table": (of_table, TABLE_SEED),
}


def fifth(ledger: Ledger) -> Draw:
    return [event for event in ledger if isinstance(event, Draw)][4]


def other_draw(ledger: Ledger, **values: Any) -> Ledger:  # noqa: ANN401 -- as a draw takes them
    """The ledger with the fifth draw changed."""
    draw = fifth(ledger)
    return [replace(event, **values) if event is draw else event for event in ledger]


def other_strata(ledger: Ledger) -> Ledger:
    q = fifth(ledger).strata_q
    assert q is not None
    return other_draw(ledger, strata_q=np.roll(q, 1))


def twice(ledger: Ledger) -> Ledger:
    first = next(event for event in ledger if isinstance(event, Draw))
    return other_draw(ledger, item=first.item)


def other_losses(ledger: Ledger) -> Ledger:
    """A judgement turned round: later draws follow from other losses."""
    at = next(at for at, event in enumerate(ledger) if isinstance(event, JointObservation))
    turned = tuple(best.LOWER + best.UPPER - loss for loss in ledger[at].losses)
    return [*ledger[:at], JointObservation(ledger[at].round, turned), *ledger[at + 1 :]]


FORGED: dict[str, tuple[Callable[[Ledger], Ledger], str]] = {
    "q": (lambda ledger: other_draw(ledger, q=fifth(ledger).q * 1.01), r"\.q"),
    "strata": (other_strata, "strata_q"),
    "no strata": (lambda ledger: other_draw(ledger, strata_q=None), "strata_q"),
    "seen": (lambda ledger: other_draw(ledger, seen=0), "seen"),
    "an item drawn twice": (twice, "item"),
    "an item beyond the pool": (lambda ledger: other_draw(ledger, item=10**6), "item"),
}


@pytest.mark.parametrize("with_seed", [True, False], ids=["with the seed", "without"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FORGED)
def test_a_forged_draw_is_noticed(name: str, kind: str, *, with_seed: bool) -> None:
    forge, where = FORGED[name]
    of_kind, seed = KINDS[kind]
    ledger, replayed = of_kind()
    with pytest.raises(LedgerDiffers, match=where):
        replayed(forge(ledger), seed if with_seed else None)


@pytest.mark.parametrize("seed", [BEST_SEED, None])
def test_losses_turned_round_are_noticed_by_later_draws(seed: bytes | None) -> None:
    ledger, replayed = of_best()
    with pytest.raises(LedgerDiffers, match=r"strata_q|item|\.q|nothing"):
        replayed(other_losses(ledger), seed)


@pytest.mark.parametrize("kind", KINDS)
def test_another_seed_is_noticed(kind: str) -> None:
    ledger, replayed = KINDS[kind][0]()
    with pytest.raises(LedgerDiffers, match="item"):
        replayed(ledger, b"another seed")
