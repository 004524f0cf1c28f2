"""A ledger of the best of k replays to the same state, and verifies; a forged one does not."""

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from celeus.core.ledger import Draw, JointObservation
from celeus.core.plans.best import BestPlan
from celeus.core.randomness import commitment
from celeus.core.session.best.best_question import BestSession
from celeus.core.session.best.candidates import Contenders, Floats
from celeus.core.session.best.replay import (
    Event,
    LedgerDiffers,
    begin,
    can_draw,
    enter,
    event_of,
    replay,
)
from celeus.errors import InvalidValue
from tests.core.session.best.test_best import SEED, field

Ledger = list[Event]
LOWER, UPPER = 2.0, 5.0


def planned(contenders: Contenders) -> BestPlan:
    every = np.arange(contenders.count)
    known = int((~contenders.open(every)).sum())
    names = tuple(f"system {one}" for one in every)
    digest = "0" * 64
    budget = contenders.items - known
    return BestPlan(
        digest, contenders.items, known, names, LOWER, UPPER, 0.2, budget, commitment(SEED)
    )


def run() -> tuple[BestPlan, Contenders, Floats, BestSession, Ledger]:
    """A session of three judges, of whom the second is always late."""
    contenders, losses = field(5, 200)
    plan = planned(contenders)
    session = begin(plan, contenders, SEED)
    ledger: Ledger = []
    out: list[Draw] = []
    while session.winner is None:
        while can_draw(plan, session) and len(out) < 3:
            out.append(event_of(session.propose(), len(ledger)))
            ledger.append(out[-1])
            enter(plan, session, out[-1])
        draw = out.pop(1 if len(out) > 1 and len(ledger) % 3 else 0)
        own = LOWER + (UPPER - LOWER) * losses[draw.item]
        ledger.append(JointObservation(draw.round, tuple(own.tolist())))
        enter(plan, session, ledger[-1])
    return plan, contenders, losses, session, ledger


@pytest.mark.parametrize("seed", [SEED, None])
def test_a_ledger_replays_to_the_same_state_with_the_seed_and_without(seed: bytes | None) -> None:
    plan, contenders, losses, session, ledger = run()
    again = replay(plan, contenders, ledger, seed)
    assert again.winner == session.winner == losses.mean(axis=0).argmin()
    assert (again.race.out_at == session.race.out_at).all()
    if seed is not None:
        assert (again.race.stake == session.race.stake).all()
    assert again.race.stake == pytest.approx(session.race.stake)


def test_another_seed_is_noticed() -> None:
    plan, contenders, _, _, ledger = run()
    with pytest.raises(LedgerDiffers, match="item"):
        replay(plan, contenders, ledger, b"another seed")


def other_draw(ledger: Ledger, **values: object) -> Ledger:
    """The ledger with the fifth draw changed."""
    at = [at for at, event in enumerate(ledger) if isinstance(event, Draw)][4]
    return [*ledger[:at], replace(ledger[at], **values), *ledger[at + 1 :]]  # type: ignore[arg-type]


def fifth(ledger: Ledger) -> Draw:
    return [event for event in ledger if isinstance(event, Draw)][4]


def other_strata(ledger: Ledger) -> Ledger:
    q = fifth(ledger).strata_q
    assert q is not None
    return other_draw(ledger, strata_q=np.roll(q, 1))


def twice(ledger: Ledger) -> Ledger:
    first = next(event for event in ledger if isinstance(event, Draw))
    return other_draw(ledger, item=first.item)


def other_losses(ledger: Ledger) -> Ledger:
    """A judgement turned round: later draws follow from other losses."""
    at = next(at for at, one in enumerate(ledger) if isinstance(one, JointObservation))
    event = ledger[at]
    assert isinstance(event, JointObservation)
    turned = tuple(LOWER + UPPER - one for one in event.losses if one is not None)
    return [*ledger[:at], JointObservation(event.round, turned), *ledger[at + 1 :]]


FORGED: dict[str, tuple[Callable[[Ledger], Ledger], str]] = {
    "q": (lambda ledger: other_draw(ledger, q=fifth(ledger).q * 1.01), r"\.q"),
    "strata": (other_strata, "strata_q"),
    "no strata": (lambda ledger: other_draw(ledger, strata_q=None), "strata_q"),
    "seen": (lambda ledger: other_draw(ledger, seen=0), "seen"),
    "an item drawn twice": (twice, "item"),
    "an item beyond the pool": (lambda ledger: other_draw(ledger, item=10**6), "item"),
    "other losses": (other_losses, r"strata_q|item|\.q|nothing"),
}


@pytest.mark.parametrize("seed", [SEED, None])
@pytest.mark.parametrize("name", FORGED)
def test_a_forged_ledger_is_noticed(name: str, seed: bytes | None) -> None:
    forge, where = FORGED[name]
    plan, contenders, _, _, ledger = run()
    with pytest.raises(LedgerDiffers, match=where):
        replay(plan, contenders, forge(ledger), seed)


def test_a_pool_that_is_not_the_plans_is_noticed() -> None:
    plan, contenders, _, _, ledger = run()
    assert contenders.answer is not None
    answer = contenders.answer.copy()
    answer[0] = np.arange(answer.shape[1])
    same = np.flatnonzero((answer == answer[:, :1]).all(axis=1))
    answer[same[0]] = np.arange(answer.shape[1])
    other = replace(contenders, answer=answer)
    with pytest.raises(LedgerDiffers, match="known"):
        replay(plan, other, ledger, SEED)


def test_a_plan_is_read_back_and_its_digest_binds_it() -> None:
    plan = planned(field()[0])
    assert BestPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    assert plan.to_dict()["best"] is True
    assert replace(plan, alpha=0.01).digest != plan.digest


@pytest.mark.parametrize(
    ("field_", "value"),
    [
        ("systems", ("one",)),
        ("systems", ("one", "one")),
        ("systems", tuple(map(str, range(51)))),
        ("alpha", 0.0),
        ("budget", 0),
        ("budget", 10**6),
        ("beta", 0.0),
    ],
)
def test_plans_that_make_no_sense_are_refused_by_name(field_: str, value: object) -> None:
    plan = planned(field()[0])
    with pytest.raises(InvalidValue) as refused:
        replace(plan, **{field_: value})  # type: ignore[arg-type]
    assert refused.value.field == field_


def test_a_round_is_judged_once_and_only_when_it_is_out() -> None:
    plan, contenders, losses, _, _ = run()
    session = begin(plan, contenders, SEED)
    draw = session.propose()
    with pytest.raises(ValueError, match="round 1 is not waiting"):
        session.judge(1, losses[draw.item])
    session.take(draw)
    session.judge(1, losses[draw.item])
    with pytest.raises(ValueError, match="round 1 is not waiting"):
        session.judge(1, losses[draw.item])
